"""The part of the async client that is for operators: banks and their policies, models, upkeep, proof and erasure.

`sync_operations.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from hindsight.calls import Duration, Labels, stated, translated
from hindsight.embeddings import AsyncEmbeddings
from hindsight.results import (
    BankStatus,
    Erased,
    EventProblem,
    Finding,
    Model,
    Policy,
    SampledMemory,
    Tag,
    Versions,
)


class AsyncOperations(AsyncEmbeddings):
    """What keeps banks: for whoever owns them, and for operators."""

    async def create_bank(
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
        return cast(int, await self._value("create_bank", bank=bank, **given))

    async def policies(self, bank: str) -> list[Policy]:
        """What each type of memory is in a bank: decay rate, weight, time to live, and what a conflict comes to."""
        return await self._rows(Policy, "policies", bank=bank)

    async def set_policy(
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
        await self._transaction("set_policy", [{"bank": bank, "type": type, **given}])

    async def status(self) -> list[BankStatus]:
        """Every bank that the caller may read, with what it holds."""
        return await self._rows(BankStatus, "status")

    async def versions(self) -> Versions:
        """The versions of PostgreSQL, pgvector and the schema."""
        return (await self._rows(Versions, "versions"))[0]

    async def maintain(self, bank: str) -> dict[str, int]:
        """Keeps a bank: counts the words of a large one, seals its events, and puts away all that is due.

        In batches, each in a transaction of its own, so that writers beside it wait for none of them long. Returns what
        was done: for each task, how many.
        """
        done = await self._tasks("maintain", bank=bank)
        while swept := await self.sweep(bank):
            done.update({task: done.get(task, 0) + affected for task, affected in swept.items()})
        return done

    async def sweep(self, bank: str, most: int = 100) -> dict[str, int]:
        """Puts away what is due, at most so many memories. Returns for each reason how many; empty: nothing is due."""
        return await self._tasks("sweep", bank=bank, most=most)

    async def verify_events(self, bank: str) -> list[EventProblem]:
        """The gaps and edits in a bank's trail of events, as far as it is sealed. Empty: it is as it was written."""
        return await self._rows(EventProblem, "verify_events", bank=bank)

    async def audit(self, bank: str, checks: Labels | None = None, *, most: int = 100) -> list[Finding]:
        """What is wrong, or may be, with a bank's memories: at most so many findings (1 to 1,000) of each check.

        checks: some of contradictions, duplicates, stale, orphans, hypotheses, sources, tags; None: all.
        """
        return await self._rows(Finding, "audit", bank=bank, checks=checks or None, most=most)

    async def resolve(self, bank: str, finding: str, memory_id: UUID | str, other_id: UUID | str | None = None) -> str:
        """Does what a finding has as its remedy, where that loses nothing: merged, withdrawn, retagged, or left."""
        return cast(
            str,
            await self._value(
                "resolve",
                bank=bank,
                finding=finding,
                memory_id=memory_id,
                other_id=other_id,
            ),
        )

    async def tags(self, bank: str) -> list[Tag]:
        """The tags of a bank's live memories, the most frequent first, with their other spellings."""
        return await self._rows(Tag, "tags", bank=bank)

    async def set_tags(
        self, bank: str, *, allowed: Labels | None = None, aliases: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Sets which tags the memories of a bank may have, and which other spellings mean the same. For its owners.

        allowed: None leaves it, an empty list lifts the limit. aliases: tag → its other spellings, in place of those
        that the tag has: {"frontend": ["front-end", "前端"]}.
        """
        await self._transaction("set_tags", [{"bank": bank, "allowed": allowed, "aliases": aliases}])

    async def erase_memory(self, bank: str, memory_id: UUID | str, reason: str) -> list[Erased]:
        """Removes a memory and all that was made of it, for good: nothing restores it. For the bank's owner.

        Its events stay, without content. Returns what was removed.
        """
        why = stated(reason, "erase_memory")
        return await self._rows(Erased, "erase_memory", bank=bank, memory_id=memory_id, reason=why)

    async def erase_bank(self, bank: str, reason: str) -> list[Erased]:
        """Removes all that a bank holds, for good: nothing restores it. For its owner. Returns what was removed."""
        return await self._rows(Erased, "erase_bank", bank=bank, reason=stated(reason, "erase_bank"))

    async def drop_unused_indexes(self, models: Sequence[str] | None = None) -> int:
        """Drops the indexes of vectors that no bank needs, of all models or of these; nobody waits. For operators."""
        given = {"models": None if models is None else list(models)}
        rows = (await self._transaction("unused_indexes", [given]))[0]
        await self._outside_a_transaction([row["unused_indexes"] for row in rows])
        return len(rows)

    async def models(self) -> list[Model]:
        """The registered embedding models, with their thresholds and the settings of their indexes."""
        return await self._rows(Model, "models")

    async def set_thresholds(
        self,
        model: str,
        *,
        floor: float | None = None,
        recall_threshold: float | None = None,
        merge_threshold: float | None = None,
    ) -> None:
        """Changes what is given of a model's cosines; the next recall goes by them. For operators."""
        given = {"floor": floor, "recall_threshold": recall_threshold, "merge_threshold": merge_threshold}
        await self._transaction("set_thresholds", [{"model": model, **given}])

    async def set_index(
        self, model: str, *, m: int | None = None, ef_construction: int | None = None, ef_search: int | None = None
    ) -> bool:
        """Changes what is given of a model's HNSW index. For operators.

        m (2 to 100) or ef_construction (4 to 1,000, at least twice m) build it anew, while memories are read and
        written, and return when that is done: True. ef_search (1 to 1,000) counts from the next recall on.
        """
        given = {"m": m, "ef_construction": ef_construction, "ef_search": ef_search, "build_now": False}
        rows = (await self._transaction("set_index", [{"model": model, **given}]))[0]
        await self._outside_a_transaction([row["set_index"] for row in rows])
        return bool(rows)

    async def sample_memories(self, bank: str, most: int = 100) -> list[SampledMemory]:
        """Live memories of a bank with their embeddings, drawn at random: at most so many, each once."""
        model = self.embedder.model if self.embedder else None
        rows = (await self._transaction("sample_memories", [{"bank": bank, "most": most, "model": model}]))[0]
        return [SampledMemory(**{**row, "embedding": json.loads(row["embedding"])}) for row in rows]

    async def _outside_a_transaction(self, statements: Sequence[str]) -> None:
        """Runs what builds and drops indexes while memories are read and written, which no transaction may hold."""
        try:
            async with self._engine.connect() as connection:
                connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in statements:
                    await connection.exec_driver_sql(statement)
        except (SQLAlchemyError, OSError) as error:
            raise translated(error) from None

    async def _tasks(self, function: str, **arguments: Any) -> dict[str, int]:
        rows: list[Mapping[str, Any]] = [*(await self._transaction(function, [arguments]))[0]]
        return {row["task"]: row["affected"] for row in rows}
