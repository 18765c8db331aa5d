"""The part of the async client that is for conversations: turns, the desk of a session, and how sessions are distilled.

`sync_conversations.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from hindsight.calls import Duration, Labels, Moment
from hindsight.operations import AsyncOperations
from hindsight.results import (
    ClaimedSession,
    DistilledMemory,
    Imported,
    LoggedTurn,
    QueuedSession,
    Source,
    WorkDone,
    WorkingMemory,
)


class AsyncConversations(AsyncOperations):
    """What was said, what a session works with, and what is made of it."""

    async def log_turn(
        self,
        bank: str,
        session_id: str,
        role: str,
        content: str,
        *,
        tool_calls: Any | None = None,
        occurred_at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        sequence: int | None = None,
        turn_id: str | None = None,
    ) -> int:
        """Keeps one message of a session as it was said. Returns its place in the session, from 1.

        With a `turn_id` of your own, or a `sequence`, logging the same turn again changes nothing, and another turn
        there is a Conflict.
        """
        given = {
            "tool_calls": tool_calls,
            "occurred_at": occurred_at,
            "metadata": metadata,
            "sequence": sequence,
            "turn_id": turn_id,
        }
        return cast(
            int, await self._value("log_turn", bank=bank, session_id=session_id, role=role, content=content, **given)
        )

    async def log_turns(self, bank: str, session_id: str, turns: Sequence[Mapping[str, Any]]) -> list[LoggedTurn]:
        """Keeps messages of a session, at most 10,000: all, or none when one is refused.

        turns: each a mapping of role, content, tool_calls, metadata, occurred_at, sequence, turn_id. Returns the place
        of each, and whether it was logged before.
        """
        return await self._rows(LoggedTurn, "log_turns", bank=bank, session_id=session_id, turns=turns)

    async def log_sessions(
        self, bank: str, sessions: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> dict[str, list[LoggedTurn]]:
        """Keeps turns of several sessions, as `log_turns` does those of one: all, or none when one is refused."""
        ids = sorted(sessions)  # in one order for every writer, so that no two of them deadlock
        calls = [{"bank": bank, "session_id": one, "turns": sessions[one]} for one in ids]
        found = await self._transaction("log_turns", calls)
        return {one: [LoggedTurn(**row) for row in rows] for one, rows in zip(ids, found, strict=True)}

    async def close_sessions(self, bank: str, session_ids: Iterable[str]) -> None:
        """Says that several conversations are over, as `close_session` does of one."""
        await self._transaction("close_session", [{"bank": bank, "session_id": one} for one in sorted(session_ids)])

    async def close_session(self, bank: str, session_id: str) -> None:
        """Says that a conversation is over: it is distilled at once, and summarised. A turn opens it again."""
        await self._value("close_session", bank=bank, session_id=session_id)

    async def working_set(
        self, bank: str, session_id: str, key: str, value: Any, *, ttl: Duration | None = None
    ) -> None:
        """Puts a value (anything that is JSON) on a session's desk; None takes it away. It stays a day, or `ttl`."""
        await self._value("working_set", bank=bank, session_id=session_id, key=key, value=value, ttl=ttl)

    async def working_get(self, bank: str, session_id: str, *, max_tokens: int | None = None) -> WorkingMemory:
        """A session's desk: its values, and its last turns, within a budget of tokens (4,000 by default)."""
        found = await self._rows(WorkingMemory, "working_get", bank=bank, session_id=session_id, max_tokens=max_tokens)
        return found[0]

    async def sources(self, bank: str, memory_id: UUID | str) -> list[Source]:
        """The turns that a memory was distilled from, as they were said, the oldest first."""
        return await self._rows(Source, "sources", bank=bank, memory_id=memory_id)

    async def imported(self, bank: str, document: str) -> list[Imported]:
        """The memories that came from a document, or a dump of that name, with their places in it and their states."""
        return await self._rows(Imported, "imported", bank=bank, document=document)

    async def documents(self, bank: str) -> dict[str, int]:
        """What the memories of a bank were imported from, with how many of each."""
        rows = (await self._transaction("documents", [{"bank": bank}]))[0]
        return {row["document"]: row["memories"] for row in rows}

    async def set_distilling(
        self,
        bank: str,
        *,
        mode: str | None = None,
        after_turns: int | None = None,
        after_idle: Duration | None = None,
        working_turns: int | None = None,
    ) -> None:
        """Changes how a bank's sessions are distilled: what is given. For its owner.

        mode: auto (by a language model where the worker has one, else by rules), model, rules, verbatim or off.
        after_turns, after_idle: a session is distilled when so many turns wait (4), or after so long (10 minutes).
        working_turns: how many of the last turns `working_get` returns (20).
        """
        given = {"mode": mode, "after_turns": after_turns, "after_idle": after_idle, "working_turns": working_turns}
        await self._value("set_distilling", bank=bank, **given)

    async def queue(self, bank: str | None = None, *, most: int = 100) -> list[QueuedSession]:
        """The sessions that wait to be distilled, of one bank or of all: when, what failed, and why."""
        return await self._rows(QueuedSession, "queue", bank=bank, most=most)

    async def retry(self, bank: str, session_id: str | None = None) -> int:
        """Makes the sessions that failed, or one that waits, due at once. Returns how many."""
        return cast(int, await self._value("retry", bank=bank, session_id=session_id))

    async def distil_waiting(self, bank: str | None = None, *, most: int = 100) -> WorkDone:
        """Distils sessions that are due, by rules, as a worker would. Returns how many, and of how many turns."""
        return (await self._rows(WorkDone, "distil_waiting", bank=bank, most=most))[0]

    async def claim_session(
        self, bank: str | None = None, *, lease: Duration | None = None, modes: Labels | None = None
    ) -> ClaimedSession | None:
        """Claims a session that is due, for whoever distils: nobody else is given it within `lease` (5 minutes).

        None: nothing is due. modes: only of banks that are distilled so. What was found goes to `distil`.
        """
        found = await self._rows(ClaimedSession, "claim_session", bank=bank, lease=lease, modes=modes)
        return found[0] if found else None

    async def extend_claim(self, session: ClaimedSession, lease: Duration | None = None) -> None:
        """Keeps a claim: it holds for so long from now on (5 minutes). Conflict when it has ended."""
        await self._value("extend_claim", **_place(session), lease=lease)

    async def release_session(self, session: ClaimedSession, error: str | None = None) -> None:
        """Gives a session back: it is tried again later, after longer each time; at once without an error."""
        await self._value("release_session", **_place(session), error=error)

    async def extract_turns(self, session: ClaimedSession, mode: str = "rules") -> list[dict[str, Any]]:
        """What is worth keeping in a session's turns by rules, or (verbatim) every turn of importance."""
        found = await self._value("extract_turns", turns=session.turns, before=session.before, mode=mode)
        return cast(list[dict[str, Any]], found)

    async def distil(
        self, session: ClaimedSession, memories: Sequence[Mapping[str, Any]], *, summary: str | None = None
    ) -> list[DistilledMemory]:
        """Stores what was found in a claimed session and marks its turns, in one transaction; the claim ends.

        memories: see `distil` in docs/sql-api.md. Conflict when the claim has ended: then nothing is stored.
        """
        return await self._rows(
            DistilledMemory,
            "distil",
            **_place(session),
            sequences=[turn["sequence"] for turn in session.turns],
            memories=memories,
            is_ending=session.is_ending,
            summary=summary,
        )


def _place(session: ClaimedSession) -> dict[str, Any]:
    return {"bank": session.bank_name, "session_id": session.session_id, "claim": session.claim}
