"""A session in an agent's loop: what is known comes before the answer, what was said is kept after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from hindsight.calls import refuse_unstorable
from hindsight.errors import (
    AccessDenied,
    Conflict,
    DatabaseUnavailable,
    HindsightError,
    InvalidArgument,
    InvalidContent,
    SecretRefused,
    UnknownBank,
    UnknownMemory,
)
from hindsight.results import Context

if TYPE_CHECKING:
    from hindsight.client import AsyncHindsight

log = logging.getLogger("hindsight.session")

PATIENCE = 30.0
"""Seconds for which the end of a session tries to write what is not written yet."""
_LONGEST_PAUSE = 5.0
_MOST = 100  # turns written in one statement
_LONGEST = 1_000_000  # characters of a turn
_LONGEST_QUERY = 10_000  # characters that recall takes
_REFUSED = (InvalidArgument, InvalidContent, SecretRefused, Conflict)  # it is about one turn: the others are written
_BARRED = (UnknownBank, AccessDenied)  # it is about all turns, and waiting helps none


class AgentSession:
    """One conversation. An async context manager, made by `AsyncHindsight.session`.

    Turns are written behind, in their order; each has an id of its own, so that one that is written again after a
    failure is not there twice. The end of the block writes what is left and closes the session. A turn that the bank
    refuses (a secret, where its policy is to refuse) is left out; `flush`, and so the end of the block, raises that.
    """

    def __init__(self, client: AsyncHindsight, bank: str, session_id: str, *, closes: bool = True) -> None:
        self.bank = bank
        self.session_id = session_id
        self._client = client
        self._closes = closes
        self._unwritten: list[dict[str, Any]] = []
        self._written = asyncio.Event()
        self._written.set()
        self._more = asyncio.Event()
        self._failure: HindsightError | None = None
        self._refused: HindsightError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            try:
                await self.flush()
            finally:
                if self._closes and not self._unwritten:
                    await self._close()
        finally:
            assert self._task is not None  # noqa: S101  # entered before
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def before(self, user_input: str, **arguments: Any) -> Context:
        """What is known and may help with what the user says: `block` is text for the prompt, empty if nothing.

        A message that asks for no memory (should_recall) costs no search; of a long one, a log that was pasted, the
        beginning and the end are asked for. arguments: those of `recall_context`.
        """
        if len(user_input) > _LONGEST_QUERY:
            user_input = f"{user_input[: _LONGEST_QUERY // 5]}\n{user_input[-_LONGEST_QUERY // 5 :]}"
        if not user_input.strip() or not await self._client.should_recall(self.bank, user_input):
            return Context(block="", citations=[], tokens=0, memories=[], warnings=[])
        return await self._client.recall_context(self.bank, user_input, **arguments)

    async def after(
        self,
        user_input: str,
        answer: str | None,
        *,
        tool_calls: Any | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Keeps what the user said and what was answered. Returns at once: it is written behind.

        answer: None where the model calls tools and says nothing.
        """
        self.log("user", user_input, metadata=metadata)
        self.log("assistant", answer or "", tool_calls=tool_calls, metadata=metadata)

    def log(
        self, role: str, content: str, *, tool_calls: Any | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Keeps one message, such as a tool's result. Returns at once; blank ones without tool calls are left out.

        Raises InvalidContent, and what keeps all of them from being written: no access, say.
        """
        if self._task is None:
            raise InvalidArgument(
                "the session is not entered", hint='For example: async with client.session("alice", "s1") as session'
            )
        if not content.strip() and tool_calls is None:
            return
        if self._failure is not None:
            raise self._failure
        turn = {"role": role, "content": content, "tool_calls": tool_calls, "metadata": metadata}
        given = {name: value for name, value in turn.items() if value is not None}
        refuse_unstorable(given)
        if len(content) > _LONGEST:
            raise InvalidContent(f"content has {len(content)} characters, at most {_LONGEST} are taken")
        self._unwritten.append({**given, "turn_id": str(uuid4()), "occurred_at": datetime.now(UTC).isoformat()})
        self._written.clear()
        self._more.set()

    async def flush(self) -> None:
        """Waits until all that was said is written. Raises what keeps it from being written, within 30 seconds if that
        may pass, and once of turns that were refused the first reason.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await self._written.wait()
        except TimeoutError:
            raise DatabaseUnavailable(
                f"{len(self._unwritten)} turns of session {self.session_id!r} are not written: the database has not "
                f"taken them within {PATIENCE:g} seconds"
            ) from None
        refused, self._refused = self._refused, None
        if (failure := self._failure or refused) is not None:
            raise failure

    async def _write(self) -> None:
        pause = 0.1
        most = _MOST
        while True:
            await self._more.wait()
            self._more.clear()
            while self._unwritten:
                turns = self._unwritten[:most]
                try:
                    await self._client.log_turns(self.bank, self.session_id, turns)
                except _REFUSED as error:
                    if len(turns) > 1:  # which of them it is
                        most = 1
                        continue
                    log.warning("a turn is left out: %s", error)
                    self._refused = self._refused or error
                except _BARRED as error:
                    self._failure = error
                    break
                except HindsightError as error:
                    log.warning("%d turns wait to be written: %s", len(self._unwritten), error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
                pause = 0.1
                del self._unwritten[: len(turns)]
            most = _MOST
            self._written.set()

    async def _close(self) -> None:
        with contextlib.suppress(UnknownMemory):  # nothing was said
            await self._client.close_session(self.bank, self.session_id)
