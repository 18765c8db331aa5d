"""The part of the async client that gives memories their embeddings, and changes the model that makes them.

`sync_embeddings.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from uuid import UUID

from anyio import sleep
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from hindsight.caller import AsyncCaller
from hindsight.calls import RETRIED, call, sqlstate, translated, vector
from hindsight.embedding_work import CLAIM_SECONDS, REFUSED_SECONDS, UNREACHABLE_SECONDS, EmbeddingCounts, embed_batch
from hindsight.errors import AccessDenied, ConfigurationError, Conflict, EmbeddingUnavailable
from hindsight.results import EmbeddingStatus

RowsOf = Callable[[str, Mapping[str, Any]], Awaitable[list[dict[str, Any]]]]
"""Calls a function of the schema and gives its rows."""
Progress = Callable[[str, int], None]
"""Told what is being done, and for how many memories more it is done."""


class AsyncEmbeddings(AsyncCaller):
    """The embeddings of a bank: whoever waits for one, and a change of model."""

    async def embed_waiting(self, bank: str, most: int = 100, *, take_over: bool = False) -> EmbeddingCounts:
        """Embeds memories of a bank that wait for the configured model, at most so many (1 to 10,000): one step.

        They wait because they have no embedding, or because the bank is changing to that model. What is claimed here
        nobody else is given; take_over: also what others have claimed, for the end, where they may be gone. What the
        model refuses is kept with the error and tried again later, and so is everything when it can't be reached.
        """
        return await self._embed_waiting(self._rows_of, bank, most, take_over)

    async def _embed_waiting(self, rows_of: RowsOf, bank: str, most: int, take_over: bool) -> EmbeddingCounts:
        if self.embedder is None:
            return EmbeddingCounts()
        common = {"bank": bank, "model": self.embedder.model}
        claim = {**common, "most": most, "seconds": CLAIM_SECONDS, "take_over": take_over}
        waiting = await rows_of("claim_unembedded", claim)
        batch = await run_sync(embed_batch, self.embedder, [row["content"] for row in waiting])
        taken = 0
        if batch.vectors:
            rows = [waiting[place] for place in batch.vectors]
            given = {
                "memory_ids": [row["memory_id"] for row in rows],
                "versions": [row["version"] for row in rows],
                "embeddings": [vector(embedding) for embedding in batch.vectors.values()],
            }
            taken = (await rows_of("set_embeddings", {**common, **given}))[0]["set_embeddings"]
        failed = [
            {"memory_ids": [waiting[place]["memory_id"]], "error": error, "seconds": REFUSED_SECONDS}
            for place, error in batch.refused.items()
        ]
        if batch.unreachable is not None:
            left = [row["memory_id"] for place, row in enumerate(waiting) if place not in batch.vectors | batch.refused]
            failed.append({"memory_ids": left, "error": batch.unreachable, "seconds": UNREACHABLE_SECONDS})
        for one in failed:
            await rows_of("embeddings_failed", {**common, **one})
        return EmbeddingCounts(
            claimed=len(waiting),
            embedded=taken,
            changed=len(batch.vectors) - taken,
            refused=len(batch.refused),
            unreached=len(waiting) - len(batch.vectors) - len(batch.refused),
            error=batch.unreachable,
        )

    async def embed_pending(self, bank: str, batch_size: int = 100, progress: Progress | None = None) -> int:
        """Embeds all memories of a bank that wait for the configured model. Returns how many it embedded.

        What the model refuses is left, as `embedding_status` says. Several at once share the work. Where memories come
        in all the time it ends when it has caught up with them: at the second batch in a row that is not full.
        progress: called with "embedding" and how many more are done. Raises EmbeddingUnavailable where the model can't
        be reached; what is embedded by then stays.
        """
        embedded = 0
        catches_up = False
        await self.retry_embeddings(bank)
        while True:
            counts = await self.embed_waiting(bank, batch_size)
            if not counts.claimed:  # whoever has claimed the rest may be gone
                counts = await self.embed_waiting(bank, batch_size, take_over=True)
            if progress:
                progress("embedding", counts.embedded)
            embedded += counts.embedded
            if counts.error is not None:
                raise EmbeddingUnavailable(
                    f"{counts.error}. What is embedded stays: the same command goes on from there"
                )
            is_part = counts.claimed < batch_size and not counts.changed
            if not counts.claimed or (is_part and catches_up):
                return embedded
            catches_up = is_part
            if counts.changed and not counts.embedded:  # a writer is at them
                await sleep(0.2)

    async def reembed(
        self,
        bank: str,
        batch_size: int = 100,
        *,
        keep_old: bool = False,
        without_refused: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Makes the configured embedding model the bank's, and embeds its memories anew. Returns how many.

        Recall goes on with the old model until every memory has its new vector, then with the new one. Broken off, it
        goes on from there the next time; several at once share the work.
        keep_old: stops after the switch, when queries of both models are answered; the next call takes the old vectors
        away. without_refused: switches although the model refused some memories, which are then found by their words.
        progress: called with "embedding", "indexing", "switching" or "settling" and how many more are done.
        Raises ConfigurationError without a model, Conflict when the bank is changing to another one, or when memories
        were refused; EmbeddingUnavailable when the model can't be reached.
        """
        if self.embedder is None:
            raise ConfigurationError("no embedding model is configured: set HINDSIGHT_EMBEDDING_PROVIDER")
        await self._transaction("begin_reembedding", [{"bank": bank, "model": self.embedder.model}])
        embedded = 0
        while True:
            embedded += await self.embed_pending(bank, batch_size, progress)
            switch = {"bank": bank, "without_failed": without_refused}
            (done,) = (await self._transaction("finish_reembedding", [switch]))[0]  # at once: before more is stored
            if done["outcome"] == "settled":
                return embedded
            if progress and done["outcome"] != "embedding":
                progress("indexing" if done["outcome"] == "indexed" else "switching", 0)
            if done["outcome"] == "switched":
                break
            if done["outcome"] == "embedding" and 0 < done["waiting"] <= batch_size:
                await self._embed_the_last(bank, batch_size, switch)
            status = await self.embedding_status(bank)
            if status.reembedding == "embedding" and 0 < status.failed == status.waiting and not without_refused:
                raise Conflict(
                    f"{status.failed} memories can't be embedded, the last one because: {status.last_error}",
                    hint="Change or forget them and run it again, or switch without them: --without-refused",
                )
        if not keep_old:
            await self._settle(bank, progress)
            embedded += await self.embed_pending(
                bank, batch_size, progress
            )  # what a service of the old model stored last
        return embedded

    async def _embed_the_last(self, bank: str, most: int, switch: dict[str, Any]) -> None:
        """Embeds the few memories that were stored since the last claim, and switches, while nobody can store a vector.

        Else a bank that is stored to all the time would never have all of them at one moment.
        """
        assert self.embedder is not None  # noqa: S101  # reembed() has looked
        try:
            async with self.engine.begin() as connection:

                async def rows_of(function: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
                    statement, parameters = call(function, arguments)
                    return [dict(row) for row in (await connection.execute(statement, parameters)).mappings()]

                # It holds writers of vectors up until the transaction ends.
                await rows_of("begin_reembedding", {"bank": bank, "model": self.embedder.model})
                await self._embed_waiting(rows_of, bank, most, True)
                await rows_of("finish_reembedding", switch)
        except (SQLAlchemyError, OSError) as error:
            if sqlstate(error) not in RETRIED:
                raise translated(error) from None

    async def _rows_of(self, function: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        return (await self._transaction(function, [arguments]))[0]

    async def _settle(self, bank: str, progress: Progress | None) -> None:
        await self._prepare_settling(bank)
        after: UUID | None = None
        while True:
            (row,) = (await self._transaction("settle_embeddings", [{"bank": bank, "after": after}]))[0]
            if row["is_done"]:
                return
            if progress:
                progress("settling", row["settled"])
            if after is None and not row["settled"]:  # a writer is at what is left, or somebody makes the index
                await sleep(0.2)
            after = row["last_id"]
            if after is None:
                await self._prepare_settling(bank)

    async def _prepare_settling(self, bank: str) -> None:
        """Drops the index that vectors would settle into one by one, and makes it once they have; if the caller may."""
        try:
            rows = await self._rows_of("settling_indexes", {"bank": bank})
            await self._outside_a_transaction([row["settling_indexes"] for row in rows])
        except AccessDenied:
            return  # it is slower so

    async def cancel_reembedding(self, bank: str) -> int:
        """Gives up a change of model before its switch; the old vectors were never touched. Returns how many go."""
        return cast(int, await self._value("cancel_reembedding", bank=bank))

    async def embedding_status(self, bank: str) -> EmbeddingStatus:
        """How many memories have their embedding, wait or failed, and where a change of the bank's model is."""
        return (await self._rows(EmbeddingStatus, "embedding_status", bank=bank))[0]

    async def retry_embeddings(self, bank: str) -> int:
        """Lets what failed be embedded at once. Returns how many memories."""
        return cast(int, await self._value("retry_embeddings", bank=bank))
