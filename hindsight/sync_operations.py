"""Made from operations.py by `make generate`: change that one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, cast
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from hindsight.calls import Duration, Identifiers, Labels, Moment, call, of_transaction, stated, translated
from hindsight.results import (
    ArchivedTurns,
    Bank,
    BankStatus,
    Erased,
    EventProblem,
    Finding,
    Insight,
    Model,
    ModelUsage,
    Policy,
    Redacted,
    Redaction,
    SampledMemory,
    Tag,
    ToReflect,
    TurnLine,
    TurnMonth,
    UndecidedPair,
    UpkeepTurn,
    Versions,
)
from hindsight.sync_embeddings import Embeddings


class Operations(Embeddings):
    """What keeps banks: for whoever owns them, and for operators."""

    def create_bank(
        self,
        bank: str,
        *,
        description: str | None = None,
        language: str | None = None,
        decay_rate: float | None = None,
    ) -> int:
        """Makes a bank owned by the caller, or finds the one that the caller owns. Returns its id.

        language: PostgreSQL's text-search configuration (english by default). decay_rate: λ per day (0.01).
        """
        given = {"description": description, "language": language, "decay_rate": decay_rate}
        return cast(int, self._value("create_bank", bank=bank, **given))

    def policies(self, bank: str) -> list[Policy]:
        """What each type of memory is in a bank: decay rate, weight, time to live, and what a conflict comes to."""
        return self._rows(Policy, "policies", bank=bank)

    def set_policy(
        self,
        bank: str,
        type: str,
        *,
        decay_rate: float | None = None,
        weight: float | None = None,
        ttl: Duration | None = None,
        on_conflict: str | None = None,
    ) -> None:
        """Changes what is given of a type of memory in this bank. For its owner; new memories go by it.

        ttl: how long it lives when it is not told; 0 for good. on_conflict: overwrite, history (the old value remains
        answerable by date) or confident (the more confident value stays).
        """
        given = {"decay_rate": decay_rate, "weight": weight, "ttl": ttl, "on_conflict": on_conflict}
        self._transaction("set_policy", [{"bank": bank, "type": type, **given}])

    def redaction(self, bank: str) -> Redaction:
        """What becomes of personal data and secrets in what a bank stores."""
        return (self._rows(Redaction, "redaction", bank=bank))[0]

    def set_redaction(
        self,
        bank: str,
        policy: str | None = None,
        *,
        kinds: Labels | None = None,
        patterns: Mapping[str, str] | None = None,
    ) -> None:
        """Changes what is given of a bank's redaction, for what is stored from now on. For its owner.

        policy: off, mask (a placeholder takes the place of what is redacted) or refuse (the call raises SecretRefused).
        kinds: some of private_key, api_key, password, card, iban, resident_id, ssn, phone, email, ip. patterns: kinds
        of your own, each with a regular expression: {"employee": "EMP[0-9]{6}"}; an empty one takes them away.
        """
        given = {"policy": policy, "kinds": kinds, "patterns": patterns}
        self._transaction("set_redaction", [{"bank": bank, **given}])

    def redactions(self, bank: str) -> list[Redacted]:
        """How much was redacted in a bank, of each kind, in how many writes, and when; no content."""
        return self._rows(Redacted, "redactions", bank=bank)

    def redact(self, content: str, kinds: Labels | None = None) -> str:
        """A text with placeholders ([phone:1]) in place of personal data and secrets, of these kinds or of all."""
        return cast(str, self._value("redact", content=content, kinds=kinds))

    def status(self) -> list[BankStatus]:
        """Every bank that the caller may read, with what it holds."""
        return self._rows(BankStatus, "status")

    def banks(self) -> list[Bank]:
        """The banks that the caller may read, or works for, by name, and what there is to do in them."""
        return self._rows(Bank, "banks")

    def claim_upkeep(self, task: str, every: Duration, *, idle: Duration | None = None) -> UpkeepTurn | None:
        """The bank whose turn it is for a task: maintain, audit, reflect; None where all had theirs within `every`.

        idle: to be reflected on, it must have been idle for so long (ten minutes).
        """
        found = self._rows(UpkeepTurn, "claim_upkeep", task=task, every=every, idle=idle)
        return found[0] if found else None

    def note_audit(self, bank: str, findings: int) -> None:
        """Keeps how many findings the last audit of a bank had."""
        self._value("note_audit", bank=bank, findings=findings)

    def versions(self) -> Versions:
        """The versions of PostgreSQL, pgvector and the schema."""
        return (self._rows(Versions, "versions"))[0]

    def maintain(self, bank: str) -> dict[str, int]:
        """Keeps a bank: counts the words of a large one, seals its events, and puts away all that is due.

        In batches, each in a transaction of its own, so that writers beside it wait for none of them long. Returns what
        was done: for each task, how many.
        """
        done = self._tasks("maintain", bank=bank)
        while swept := self.sweep(bank):
            done.update({task: done.get(task, 0) + affected for task, affected in swept.items()})
        return done

    def sweep(self, bank: str, most: int = 100) -> dict[str, int]:
        """Puts away what is due, at most so many memories. Returns for each reason how many; empty: nothing is due."""
        return self._tasks("sweep", bank=bank, most=most)

    def verify_events(self, bank: str) -> list[EventProblem]:
        """The gaps and edits in a bank's trail of events, as far as it is sealed. Empty: it is as it was written."""
        return self._rows(EventProblem, "verify_events", bank=bank)

    def audit(self, bank: str, checks: Labels | None = None, *, most: int = 100) -> list[Finding]:
        """What is wrong, or may be, with a bank's memories: at most so many findings (1 to 1,000) of each check.

        checks: some of contradictions, duplicates, stale, orphans, hypotheses, sources, tags; None: all.
        """
        return self._rows(Finding, "audit", bank=bank, checks=checks or None, most=most)

    def resolve(self, bank: str, finding: str, memory_id: UUID | str, other_id: UUID | str | None = None) -> str:
        """Does what a finding has as its remedy, where that loses nothing: merged, withdrawn, retagged, or left."""
        return cast(
            str,
            self._value(
                "resolve",
                bank=bank,
                finding=finding,
                memory_id=memory_id,
                other_id=other_id,
            ),
        )

    def reflect(self, bank: str, *, most: int = 200) -> list[Insight]:
        """Keeps as hypotheses what was said again and again, among what is new; by rules, in about two seconds.

        Where the last outcome is `more`, there is more to review: call it again.
        """
        return self._rows(Insight, "reflect", bank=bank, most=most)

    def propose_insight(
        self,
        bank: str,
        content: str,
        derived_from: Identifiers,
        *,
        confidence: float | None = None,
        tags: Labels | None = None,
    ) -> Insight:
        """Keeps what is concluded from at least two memories, as a hypothesis that cites them.

        confidence: 0.5 to 0.7, whatever is given. It is refused where they do not bear it out.
        """
        given = {"content": content, "derived_from": derived_from, "confidence": confidence, "tags": tags}
        return (self._rows(Insight, "propose_insight", bank=bank, **given))[0]

    def to_reflect(self, bank: str, *, most: int = 40) -> ToReflect:
        """Groups of memories that resemble each other, among what is new to a language model: at most so many."""
        return (self._rows(ToReflect, "to_reflect", bank=bank, most=most))[0]

    def note_reflection(self, bank: str, until: Moment) -> None:
        """Says up to which moment a language model has reflected on a bank."""
        self._value("note_reflection", bank=bank, until=until)

    def undecided(self, bank: str, *, most: int = 100) -> list[UndecidedPair]:
        """Pairs of memories that the rules of an audit leave open, the nearest first, at most so many (1 to 1,000)."""
        return self._rows(UndecidedPair, "undecided", bank=bank, most=most)

    def usage(self, bank: str, since: Moment | None = None) -> list[ModelUsage]:
        """What language models have used for a bank, the latest day first; since: from the day (UTC) of a moment on."""
        return self._rows(ModelUsage, "usage", bank=bank, since=since)

    def note_usage(
        self,
        bank: str,
        purpose: str,
        model: str,
        *,
        calls: int = 1,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        failures: int = 0,
    ) -> None:
        """Adds what calls of a language model have used to the bank's day; failures: how many of them failed."""
        used = {"calls": calls, "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        given = {"bank": bank, "purpose": purpose, "model": model, **used, "failures": failures}
        self._transaction("note_usage", [given])

    def tokens_left(self, bank: str, budget: int | None) -> int | None:
        """How much of a budget of tokens a day is left for a bank today (UTC). None: there is no budget."""
        return cast(int | None, self._value("tokens_left", bank=bank, budget=budget))

    def tags(self, bank: str) -> list[Tag]:
        """The tags of a bank's live memories, the most frequent first, with their other spellings."""
        return self._rows(Tag, "tags", bank=bank)

    def set_tags(
        self, bank: str, *, allowed: Labels | None = None, aliases: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Sets which tags the memories of a bank may have, and which other spellings mean the same. For its owners.

        allowed: None leaves it, an empty list lifts the limit. aliases: tag → its other spellings, in place of those
        that the tag has: {"frontend": ["front-end", "前端"]}.
        """
        self._transaction("set_tags", [{"bank": bank, "allowed": allowed, "aliases": aliases}])

    def erase_memory(self, bank: str, memory_id: UUID | str, reason: str) -> list[Erased]:
        """Removes a memory and all that was made of it, for good: nothing restores it. For the bank's owner.

        Its events stay, without content. Returns what was removed.
        """
        why = stated(reason, "erase_memory")
        return self._rows(Erased, "erase_memory", bank=bank, memory_id=memory_id, reason=why)

    def erase_bank(self, bank: str, reason: str) -> list[Erased]:
        """Removes all that a bank holds, for good: nothing restores it. For its owner. Returns what was removed."""
        return self._rows(Erased, "erase_bank", bank=bank, reason=stated(reason, "erase_bank"))

    def turn_months(self) -> list[TurnMonth]:
        """The months that have turns, by bank: how many, and how many wait to be distilled. For operators."""
        return self._rows(TurnMonth, "turn_months")

    def month_lines(
        self, bank: str, month: date, after_session: str = "", after_sequence: int = 0, most: int = 1000
    ) -> list[TurnLine]:
        """The turns of a bank and a month as lines of an archive: so many after the one named. For operators."""
        after = {"after_session": after_session, "after_sequence": after_sequence}
        return self._rows(TurnLine, "month_lines", bank=bank, month=month.isoformat(), **after, most=most)

    def archive_month(self, month: date, files: Sequence[Mapping[str, Any]]) -> list[ArchivedTurns]:
        """Drops a month of turns, of all banks, once files hold them: see `hindsight archive`. For operators.

        files: for each bank its bank, location, digest, turns and checksum. Conflict where they do not hold all.
        """
        return self._rows(ArchivedTurns, "archive_month", month=month.isoformat(), files=files)

    def export_bank(self, bank: str) -> Iterator[dict[str, Any]]:
        """All that is known of a bank: every row of every table, with its `table`, one by one. For its owner."""
        statement, parameters = call("export_bank", {"bank": bank})
        setting = of_transaction(seconds=None, principal=self._principal, request=None)
        try:
            with self.engine.connect() as connection:
                if setting is not None:
                    connection.execute(setting)
                streamed = connection.execution_options(stream_results=True).execute(statement, parameters)
                for row in streamed:
                    yield row[0]
        except (SQLAlchemyError, OSError) as error:
            raise translated(error) from None

    def drop_unused_indexes(self, models: Sequence[str] | None = None) -> int:
        """Drops the indexes of vectors that no bank needs, of all models or of these; nobody waits. For operators."""
        given = {"models": None if models is None else list(models)}
        rows = (self._transaction("unused_indexes", [given]))[0]
        self._outside_a_transaction([row["unused_indexes"] for row in rows])
        return len(rows)

    def models(self) -> list[Model]:
        """The registered embedding models, with their thresholds and the settings of their indexes."""
        return self._rows(Model, "models")

    def set_thresholds(
        self,
        model: str,
        *,
        floor: float | None = None,
        recall_threshold: float | None = None,
        merge_threshold: float | None = None,
    ) -> None:
        """Changes what is given of a model's cosines; the next recall goes by them. For operators."""
        given = {"floor": floor, "recall_threshold": recall_threshold, "merge_threshold": merge_threshold}
        self._transaction("set_thresholds", [{"model": model, **given}])

    def set_index(
        self, model: str, *, m: int | None = None, ef_construction: int | None = None, ef_search: int | None = None
    ) -> bool:
        """Changes what is given of a model's HNSW index. For operators.

        m (2 to 100) or ef_construction (4 to 1,000, at least twice m) build it anew, while memories are read and
        written, and return when that is done: True. ef_search (1 to 1,000) counts from the next recall on.
        """
        given = {"m": m, "ef_construction": ef_construction, "ef_search": ef_search, "build_now": False}
        rows = (self._transaction("set_index", [{"model": model, **given}]))[0]
        self._outside_a_transaction([row["set_index"] for row in rows])
        return bool(rows)

    def sample_memories(self, bank: str, most: int = 100) -> list[SampledMemory]:
        """Live memories of a bank with their embeddings, drawn at random: at most so many, each once."""
        model = self.embedder.model if self.embedder else None
        rows = (self._transaction("sample_memories", [{"bank": bank, "most": most, "model": model}]))[0]
        return [SampledMemory(**{**row, "embedding": json.loads(row["embedding"])}) for row in rows]

    def _tasks(self, function: str, **arguments: Any) -> dict[str, int]:
        rows: list[Mapping[str, Any]] = [*(self._transaction(function, [arguments]))[0]]
        return {row["task"]: row["affected"] for row in rows}
