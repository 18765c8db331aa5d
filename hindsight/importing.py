"""Importing records into a bank: in batches, each all or none, so that doing it again changes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hindsight import errors
from hindsight.masked import is_kept_as
from hindsight.results import Imported
from hindsight.sync_client import Hindsight
from hindsight.transcripts import Dumped, Problem, Record, Turn

TURNS = 2000  # logged in one transaction
MEMORIES = 64  # stored in one transaction
_CHARACTERS = 4_000_000  # of turns in one transaction
_SESSIONS = 200  # closed in one transaction
_REFUSED = (errors.InvalidArgument, errors.InvalidContent, errors.SecretRefused, errors.Conflict)


@dataclass(slots=True)
class Report:
    """What an import came to. turns, memories: outcome → how many. problems: what was not imported."""

    turns: Counter[str] = field(default_factory=Counter)
    memories: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    problems: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "sessions": self.sessions,
            "turns": dict(self.turns),
            "memories": dict(self.memories),
            "problems": [asdict(one) for one in self.problems],
        }


class BadRecord(errors.HindsightError):
    """A line or an item can't be imported, and nothing was said of skipping it."""


class Importer:
    """Imports records into a bank. `skips_bad`: what is wrong is reported and left out; else it ends the import."""

    def __init__(
        self, client: Hindsight, bank: str, report: Report, *, skips_bad: bool, tell: Callable[[Problem], None]
    ) -> None:
        self.report = report
        self._client = client
        self._bank = bank
        self._skips_bad = skips_bad
        self._tell = tell
        self._turns = list[Turn]()
        self._characters = 0
        self._memories = list[Dumped]()
        self._known = dict[str, dict[str, list[Imported]]]()
        self._told = set[tuple[str, str, str]]()
        self._seen = set[str]()
        self._to_close = set[str]()

    def take(self, records: Iterable[Record]) -> None:
        """Imports records. Raises BadRecord at the first that is wrong, with all before it imported."""
        for record in records:
            if isinstance(record, Turn):
                self._turns.append(record)
                self._characters += len(str(record.given.get("content", "")))
                if len(self._turns) >= TURNS or self._characters >= _CHARACTERS:
                    self._log_waiting()
            elif isinstance(record, Dumped):
                self._memories.append(record)
                if len(self._memories) >= MEMORIES:
                    self._store()
            else:
                self._refuse(record)
        self._flush()

    def close_sessions(self) -> None:
        """Says of the imported sessions that they are over; of those not that only came back from an archive."""
        ids = sorted(self._to_close)
        for start in range(0, len(ids), _SESSIONS):
            self._client.close_sessions(self._bank, ids[start : start + _SESSIONS])

    def _flush(self) -> None:
        self._log_waiting()
        self._store()

    def _refuse(self, problem: Problem) -> None:
        if not self._skips_bad:
            self._flush()  # all before it
            raise BadRecord(f"{problem.place}: {problem.reason.rstrip('.')}")
        self.report.problems.append(problem)
        self._tell(problem)

    def _log_waiting(self) -> None:
        turns, self._turns, self._characters = self._turns, [], 0
        self._log(turns)

    def _log(self, turns: Sequence[Turn]) -> None:
        """Logs turns in one transaction. Where they are refused, in two halves, down to the one that is wrong."""
        sessions = defaultdict[str, list[Turn]](list)
        for turn in turns:
            sessions[turn.session_id].append(turn)
        try:
            logged = self._client.log_sessions(
                self._bank, {one: [turn.given for turn in given] for one, given in sessions.items()}
            )
        except _REFUSED as error:
            if len(turns) == 1:
                self._refuse(Problem(turns[0].place, str(error)))
            else:
                self._log(turns[: len(turns) // 2])
                self._log(turns[len(turns) // 2 :])
        else:
            for session_id, given in sessions.items():
                self._note(session_id, given, [one.outcome for one in logged[session_id]])

    def _note(self, session_id: str, turns: Sequence[Turn], outcomes: Sequence[str]) -> None:
        self.report.turns.update(outcomes)
        self.report.sessions += session_id not in self._seen
        self._seen.add(session_id)
        if any("distilled_at" not in turn.given for turn in turns):
            self._to_close.add(session_id)

    def _store(self) -> None:
        memories, self._memories = self._memories, []
        wanted = [(one, given) for one in memories if (given := self._wanted(one)) is not None]
        if len(memories) > len(wanted):
            self.report.memories["there already"] += len(memories) - len(wanted)
        self._keep(wanted)

    def _keep(self, wanted: Sequence[tuple[Dumped, Mapping[str, Any]]]) -> None:
        try:
            stored = self._client.store_many(self._bank, [given for _, given in wanted])
        except _REFUSED as error:
            if len(wanted) == 1:
                self._refuse(Problem(wanted[0][0].place, str(error)))
            else:
                self._keep(wanted[: len(wanted) // 2])
                self._keep(wanted[len(wanted) // 2 :])
        else:
            self.report.memories.update(one.outcome for one in stored)

    def _wanted(self, dumped: Dumped) -> Mapping[str, Any] | None:
        """A memory as `store` takes it, in place of an earlier state of the same item; None: it was imported before."""
        if dumped.document is None or dumped.item is None:
            return dumped.given
        if dumped.document not in self._known:
            known = self._known.setdefault(dumped.document, defaultdict(list))
            for one in self._client.imported(self._bank, dumped.document):
                known[one.place or ""].append(one)
        before = self._known[dumped.document].get(dumped.item, [])
        told = (dumped.document, dumped.item, dumped.given["content"])
        if told in self._told or any(is_kept_as(dumped.given["content"], one.content) for one in before):
            return None
        self._told.add(told)
        metadata = dict(dumped.given.get("metadata") or {})
        if metadata.get("document") != dumped.document:
            theirs = {f"{dumped.document}.{name}": metadata[name] for name in ("document", "place") if name in metadata}
            metadata |= theirs | {"document": dumped.document, "place": dumped.item}
        given = {**dumped.given, "metadata": metadata}
        if live := [one for one in before if one.state == "live"]:
            given["supersedes"] = live[0].memory_id
        return given
