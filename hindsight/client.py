"""The async client: each method embeds where a text needs it, and calls the SQL function of its name.

`sync_client.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self, TypeVar, cast
from uuid import UUID

from anyio import sleep
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from hindsight import reranking, rewriting
from hindsight.calls import (
    MOST_QUERIES,
    RECALL_ARGUMENTS,
    RETRIED,
    STORE_ARGUMENTS,
    STORE_VECTORS,
    UPDATE_ARGUMENTS,
    Labels,
    Moment,
    call,
    chosen,
    conversation,
    identifier,
    labels,
    moment,
    refuse_unstorable,
    reject_unknown,
    sqlstate,
    stored_arguments,
    timeout,
    translated,
    vector,
)
from hindsight.config import Settings, load_settings
from hindsight.database import database_url, migrate
from hindsight.embedding import Embedder, embedder_from
from hindsight.engine import async_engine
from hindsight.errors import DatabaseError, InvalidEmbedding
from hindsight.model_endpoint import EndpointFailure
from hindsight.query_cache import QueryCache
from hindsight.reranking import Reranker, reranker_from
from hindsight.results import (
    BankStatus,
    Context,
    Event,
    Finding,
    Forgotten,
    Memory,
    Model,
    Neighbour,
    RecallAdvice,
    Recalled,
    Recollection,
    SampledMemory,
    Stored,
    Tag,
    Versions,
)
from hindsight.rewriting import Rewriter, rewriter_from

Row = TypeVar("Row")


class AsyncHindsight:
    """Long-term memory in PostgreSQL. Made by `connect`; an async context manager; safe for concurrent tasks.

    Every method raises the error class of the SQLSTATE that the function raised (see `hindsight.errors`),
    DatabaseUnavailable when the database can't be reached, and EmbeddingError when a text can't be embedded:
    then nothing was stored.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        settings: Settings,
        embedder: Embedder | None,
        reranker: Reranker | None = None,
        rewriter: Rewriter | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self.embedder = embedder
        self._reranker = reranker
        self._rewriter = rewriter
        self._query_cache = QueryCache(settings.query_cache_seconds)
        self._is_registered = False

    @classmethod
    async def connect(cls, url: str | None = None, *, settings: Settings | None = None) -> Self:
        """Opens a client.

        url: the database; by default that of the settings (`DATABASE_URL`), else the embedded server in the
        user's data directory, which is started and migrated. The models come from the settings as well.
        """
        settings = settings or load_settings()
        models = embedder_from(settings), reranker_from(settings), rewriter_from(settings)
        if url is None:
            url = await run_sync(database_url, settings)
            if settings.database_url is None:
                await run_sync(migrate, url)
        return cls(async_engine(url, settings), settings, *models)

    async def close(self) -> None:
        """Closes the connections. The client can't be used afterwards."""
        await self._engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

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
        return cast(
            int,
            await self._value(
                "create_bank", bank=bank, description=description, language=language, decay_rate=decay_rate
            ),
        )

    async def store(
        self,
        bank: str,
        content: str,
        *,
        type: str | None = None,
        tags: Labels | None = None,
        session_id: str | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        source: str | None = None,
        slot: str | None = None,
        entities: Labels | None = None,
        context: str | None = None,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> Stored:
        """Stores one memory, and says what became of it: stored, merged, pending, superseding, superseded.

        type: fact (the default), preference, decision, todo, hypothesis, summary, knowledge or lesson.
        confidence, importance: in [0, 1]; 0.9 and 0.5 by default; below 0.6 a memory is pending.
        source: user, document, tool or inferred. slot: the key of a thing that has one value at a time.
        context: what was said around it, found by but not shown. occurred_at: when it was said.
        """
        reject_unknown("store", unknown, STORE_ARGUMENTS)
        given = {name: value for name, value in locals().items() if name in STORE_ARGUMENTS and value is not None}
        return (await self.store_many(bank, [given]))[0]

    async def store_many(self, bank: str, memories: Sequence[Mapping[str, Any]]) -> list[Stored]:
        """Stores memories, each a mapping of the arguments of `store`: all, or none when one is refused.

        Returns what became of each, in their order.
        """
        arguments = [stored_arguments(bank, memory) for memory in memories]
        embeddable = [given for given in arguments if self.embedder and given["content"].strip()]
        if self.embedder is not None and embeddable:
            contents = [given["content"] for given in embeddable]
            made = await run_sync(self.embedder.passages, contents)
            for given, embedding in zip(embeddable, made, strict=True):
                given.update(embedding=vector(embedding), model=self.embedder.model)
        # In one order for every writer, so that batches with contents in common do not deadlock. Slots come first:
        # their writers take turns.
        order = sorted(
            range(len(arguments)),
            key=lambda n: (not arguments[n].get("slot"), arguments[n].get("slot") or "", arguments[n]["content"]),
        )
        rows = await self._transaction("store", [arguments[n] for n in order])
        return [Stored(**row) for _, (row,) in sorted(zip(order, rows, strict=True), key=lambda pair: pair[0])]

    async def recall(
        self,
        bank: str,
        query: str | Sequence[str] | None = "",
        *,
        top_k: int = 10,
        types: Labels | None = None,
        tags: Labels | None = None,
        all_tags: Labels | None = None,
        no_tags: Labels | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        session_id: str | None = None,
        entities: Labels | None = None,
        metadata: Mapping[str, Any] | None = None,
        min_confidence: float | None = None,
        min_score: float | None = None,
        hops: int | None = None,
        diversity: float | None = None,
        include_pending: bool = False,
        as_of: Moment | None = None,
        context: str | Sequence[str] | None = None,
        rerank: bool | None = None,
        rewrite: bool | None = None,
        **unknown: Never,
    ) -> Recollection:
        """The best live memories for a query, best first, at most `top_k` (1 to 1,000), relevant ones only.

        query: one, or up to nine: a memory counts by the query that it answers best. None lists what the bank holds,
        the freshest first.
        types, tags, entities: any of; all_tags: all of; no_tags: none of; an empty list does not filter.
        since, until: when it was said, else stored; a day as `until` is meant whole.
        metadata: contains these values, or compares: {"year": {"$gte": 2020}, "status": {"$in": ["open"]}}.
        min_confidence, min_score: in [0, 1]; a min_score takes the place of the default threshold of relevance.
        hops: 1 (the default) follows links, 0 does not. diversity: in [0, 1]; above 0 passes over repetition.
        include_pending: also what is not believed yet. as_of: what was believed at that moment.
        rerank: let the reranker order what was found; rewrite: let the language model add queries, which `context`, the
        last lines of the conversation, makes better. None: as the settings say. Where one of them fails or takes too
        long, the result goes without it and has a warning.
        """
        reject_unknown("recall", unknown, RECALL_ARGUMENTS)
        queries: list[str] = [query] if isinstance(query, str) else [one or "" for one in query or [""]]
        said = conversation(context)
        refuse_unstorable({"query": queries, "context": said})
        asks = any(one.strip() for one in queries)
        reranker = chosen("rerank", rerank, self._reranker, self._settings.rerank, reranking.UNCONFIGURED)
        rewriter = chosen("rewrite", rewrite, self._rewriter, self._settings.rewrite, rewriting.UNCONFIGURED)
        warnings = list[str]()
        if rewriter and asks:
            try:
                added = (await run_sync(rewriter.queries, queries[0], said))[1:]
                queries += added[: MOST_QUERIES - len(queries)]
            except EndpointFailure as failure:
                warnings.append(f"The query was not rewritten: {failure}")
        first, *further = [await self._embedded(one) for one in queries]
        found = await self._rows(
            Recalled,
            "recall",
            bank=bank,
            query=queries[0],
            embedding=first,
            queries=queries[1:] or None,
            embeddings=further if any(further) else None,
            model=self.embedder.model if self.embedder and any((first, *further)) else None,
            top_k=reranking.candidates(top_k) if reranker and asks else top_k,
            types=labels(types, "types") or None,
            tags=labels(tags) or None,
            all_tags=labels(all_tags, "all_tags") or None,
            no_tags=labels(no_tags, "no_tags") or None,
            since=moment(since, "since"),
            until=moment(until, "until"),
            session_id=session_id,
            entities=labels(entities, "entities") or None,
            metadata=metadata,
            min_confidence=min_confidence,
            min_score=min_score,
            hops=hops,
            diversity=diversity,
            include_pending=include_pending,
            as_of=moment(as_of, "as_of"),
        )
        if reranker and asks:
            try:
                found = await run_sync(reranking.reranked, reranker, "\n".join(queries), found)
            except EndpointFailure as failure:
                warnings.append(f"The results have their plain order: {failure}")
        return Recollection(found[:top_k], warnings)

    async def recall_context(
        self, bank: str, query: str | Sequence[str] | None = "", *, max_tokens: int = 1000, **arguments: Any
    ) -> Context:
        """What `recall` finds, as one block of text for a prompt, within `max_tokens` (1 to 1,000,000), with citations.

        arguments: those of `recall`. Each memory stands on a line with its age and what makes it doubtful. The best is
        there whatever the budget; one of more than 500 tokens is shortened.
        """
        memories = await self.recall(bank, query, **arguments)
        found = await self._transaction(
            "context_block",
            [
                {
                    "bank": bank,
                    "memory_ids": [memory.memory_id for memory in memories],
                    "max_tokens": max_tokens,
                    "as_of": moment(arguments.get("as_of"), "as_of"),
                }
            ],
        )
        return Context(**found[0][0], memories=memories, warnings=memories.warnings)

    async def should_recall(self, bank: str, message: str) -> RecallAdvice:
        """Whether a message refers to the past, to the user or to something that the bank knows, by rules; and why."""
        return (await self._rows(RecallAdvice, "should_recall", bank=bank, message=message))[0]

    async def get(self, bank: str, memory_id: UUID | str) -> Memory:
        """One memory by its id. A forgotten one is not there: UnknownMemory."""
        return (await self._rows(Memory, "get", bank=bank, memory_id=identifier(memory_id)))[0]

    async def update(
        self,
        bank: str,
        memory_id: UUID | str,
        *,
        content: str | None = None,
        type: str | None = None,
        tags: Labels | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        slot: str | None = None,
        entities: Labels | None = None,
        context: str | None = None,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        clear: Labels | None = None,
        reason: str | None = None,
        expected_version: int | None = None,
        **unknown: Never,
    ) -> Memory:
        """Changes what is given and keeps the rest; the old values stay in the history. Returns the memory.

        clear: names of what shall be empty (slot, context, occurred_at, expires_at). expected_version: refuses
        with Conflict when somebody changed the memory since that version was read.
        """
        reject_unknown("update", unknown, UPDATE_ARGUMENTS)
        changed = identifier(memory_id)
        refuse_unstorable({"content": content})
        embedding = None
        if content is not None and content.strip() and self.embedder is not None:
            embedding = (await run_sync(self.embedder.passages, [content]))[0]
        await self._value(
            "update_memory",
            bank=bank,
            memory_id=changed,
            content=content,
            type=type,
            tags=labels(tags),
            confidence=confidence,
            importance=importance,
            slot=slot,
            entities=labels(entities, "entities"),
            context=context,
            occurred_at=moment(occurred_at, "occurred_at"),
            expires_at=moment(expires_at, "expires_at"),
            metadata=metadata,
            clear=labels(clear, "clear"),
            reason=reason,
            expected_version=expected_version,
            embedding=vector(embedding),
            model=self.embedder.model if self.embedder and embedding else None,
        )
        return await self.get(bank, changed)

    async def forget(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Forgotten:
        """Forgets a memory: gone from every channel at once, restorable; a second time changes nothing."""
        return (await self._rows(Forgotten, "forget", bank=bank, memory_id=identifier(memory_id), reason=reason))[0]

    async def restore(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Memory:
        """Takes a forgetting back. Conflict when its content or slot is taken meanwhile."""
        await self._value("restore", bank=bank, memory_id=identifier(memory_id), reason=reason)
        return await self.get(bank, memory_id)

    async def history(self, bank: str, memory_id: UUID | str) -> list[Event]:
        """A memory's life, oldest event first, its forgetting included."""
        return await self._rows(Event, "history", bank=bank, memory_id=identifier(memory_id))

    async def link(
        self,
        bank: str,
        from_id: UUID | str,
        to_id: UUID | str,
        relation: str = "related",
        weight: float = 1.0,
    ) -> bool:
        """Links one memory to another: recall of the one brings up the other. False: the same link was there.

        relation: related, causes, solves, part_of, contradicts, evolved_into, derived_from, or your own.
        weight: in [0, 1]; linking again changes it.
        """
        return cast(
            bool,
            await self._value(
                "link",
                bank=bank,
                from_id=identifier(from_id, "from_id"),
                to_id=identifier(to_id, "to_id"),
                relation=relation,
                weight=weight,
            ),
        )

    async def unlink(self, bank: str, from_id: UUID | str, to_id: UUID | str, relation: str | None = None) -> int:
        """Takes the links from one memory to another away, of one relation or all. Returns how many."""
        return cast(
            int,
            await self._value(
                "unlink",
                bank=bank,
                from_id=identifier(from_id, "from_id"),
                to_id=identifier(to_id, "to_id"),
                relation=relation,
            ),
        )

    async def neighbours(self, bank: str, memory_id: UUID | str) -> list[Neighbour]:
        """The live memories that a memory is linked with, in either direction, the heaviest link first."""
        return await self._rows(Neighbour, "neighbours", bank=bank, memory_id=identifier(memory_id))

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
    ) -> int:
        """Keeps one message of a session as it was said. Returns its place in the session, from 1.

        With a `sequence`, logging the same turn again changes nothing, and another turn there is a Conflict.
        """
        return cast(
            int,
            await self._value(
                "log_turn",
                bank=bank,
                session_id=session_id,
                role=role,
                content=content,
                tool_calls=tool_calls,
                occurred_at=moment(occurred_at, "occurred_at"),
                metadata=metadata,
                sequence=sequence,
            ),
        )

    async def status(self) -> list[BankStatus]:
        """Every bank that the caller may read, with what it holds."""
        return await self._rows(BankStatus, "status")

    async def versions(self) -> Versions:
        """The versions of PostgreSQL, pgvector and the schema."""
        return (await self._rows(Versions, "versions"))[0]

    async def maintain(self, bank: str) -> dict[str, int]:
        """Keeps a bank quick: counts the words of a large one. Returns what it did."""
        rows = (await self._transaction("maintain", [{"bank": bank}]))[0]
        return {row["task"]: row["affected"] for row in rows}

    async def embed_pending(self, bank: str, batch_size: int = 64) -> int:
        """Embeds the memories of a bank that have no embedding yet. Returns how many it embedded."""
        embedded = 0
        while self.embedder is not None:
            waiting = (await self._transaction("unembedded", [{"bank": bank, "most": batch_size}]))[0]
            if not waiting:
                break
            made = await run_sync(self.embedder.passages, [row["content"] for row in waiting])
            done = await self._transaction(
                "embed_memory",
                [
                    {
                        "bank": bank,
                        "memory_id": row["memory_id"],
                        "version": row["version"],
                        "embedding": vector(embedding),
                        "model": self.embedder.model,
                    }
                    for row, embedding in zip(waiting, made, strict=True)
                ],
            )
            embedded += sum(row["embed_memory"] for (row,) in done)
        return embedded

    async def reembed(self, bank: str) -> int:
        """Makes the configured embedding model the bank's, and embeds its memories anew. Returns how many.

        Until a memory has its new embedding it is found by its words.
        """
        if self.embedder is None:
            return 0
        await self.register_model()
        await self._value("set_bank_model", bank=bank, model=self.embedder.model)
        return await self.embed_pending(bank)

    async def register_model(self) -> None:
        """Puts the configured embedding model into the registry and makes its index; a registered one stays as it is.

        Storing and reembedding do it by themselves.
        """
        if self.embedder is None:
            return
        embedder = self.embedder
        dimensions = await run_sync(lambda: embedder.dimensions)
        given = {
            "model": embedder.model,
            "dimensions": dimensions,
            "floor": embedder.floor,
            "recall_threshold": embedder.recall_threshold,
            "merge_threshold": embedder.merge_threshold,
            **self._settings.hnsw,
        }
        await self._transaction("register_model", [given])
        self._is_registered = True

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
        try:
            async with self._engine.connect() as connection:
                connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
                for row in rows:  # they may not run in a transaction
                    await connection.exec_driver_sql(row["set_index"])
        except (SQLAlchemyError, OSError) as error:
            raise translated(error) from None
        return bool(rows)

    async def sample_memories(self, bank: str, most: int = 100) -> list[SampledMemory]:
        """Live memories of a bank with their embeddings, drawn at random: at most so many, each once."""
        model = self.embedder.model if self.embedder else None
        rows = (await self._transaction("sample_memories", [{"bank": bank, "most": most, "model": model}]))[0]
        return [SampledMemory(**{**row, "embedding": json.loads(row["embedding"])}) for row in rows]

    async def audit(self, bank: str, checks: Labels | None = None, *, most: int = 100) -> list[Finding]:
        """What is wrong, or may be, with a bank's memories: at most so many findings (1 to 1,000) of each check.

        checks: some of contradictions, duplicates, stale, orphans, hypotheses, sources, tags; None: all.
        """
        return await self._rows(Finding, "audit", bank=bank, checks=labels(checks, "checks") or None, most=most)

    async def resolve(self, bank: str, finding: str, memory_id: UUID | str, other_id: UUID | str | None = None) -> str:
        """Does what a finding has as its remedy, where that loses nothing: merged, withdrawn, retagged, or left."""
        return cast(
            str,
            await self._value(
                "resolve",
                bank=bank,
                finding=finding,
                memory_id=identifier(memory_id),
                other_id=None if other_id is None else identifier(other_id, "other_id"),
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
        await self._transaction("set_tags", [{"bank": bank, "allowed": labels(allowed, "allowed"), "aliases": aliases}])

    async def _embedded(self, query: str) -> str | None:
        """A query's embedding, as recall takes it: from this process, the database, or the model. None without one."""
        if self.embedder is None or not query.strip():
            return None
        model = self.embedder.model
        embedding = self._query_cache.get(model, query) or await self._cached_embedding(model, query)
        if embedding is None:
            made, is_new = await run_sync(self._query_cache.embed, self.embedder, query)
            if is_new:
                await self._cache_embedding(model, query, made)
            embedding = made
        return embedding

    async def _cached_embedding(self, model: str, query: str) -> str | None:
        """The vector that the database keeps. What it has against its cache is no reason not to recall."""
        if not self._query_cache.seconds:
            return None
        try:
            found: str | None = await self._value("cached_embedding", model=model, query=query)
        except DatabaseError:
            return None
        if found is not None:
            self._query_cache.keep(model, query, found)
        return found

    async def _cache_embedding(self, model: str, query: str, embedding: str) -> None:
        """Lets the database keep a vector, if it can. One that it refuses is not kept here either."""
        seconds = self._query_cache.seconds
        try:
            if seconds:
                await self._value(
                    "cache_embedding", model=model, query=query, embedding=embedding, seconds=float(seconds)
                )
        except InvalidEmbedding:
            self._query_cache.drop(model, query)
        except DatabaseError:
            return

    async def _rows(self, result: type[Row], function: str, **arguments: Any) -> list[Row]:
        return [result(**row) for row in (await self._transaction(function, [arguments]))[0]]

    async def _value(self, function: str, **arguments: Any) -> Any:
        return (await self._transaction(function, [arguments]))[0][0][function]

    async def _transaction(self, function: str, many: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """The rows of each call of a function; all calls in one transaction, run again when it lost a race."""
        stores_vectors = function in STORE_VECTORS and any(given.get("model") for given in many)
        if stores_vectors and not self._is_registered:
            await self.register_model()
        calls = [call(function, arguments) for arguments in many]
        limit = self._settings.statement_timeout
        for attempt in range(1, 11):
            try:
                async with self._engine.begin() as connection:
                    if limit is not None:  # for this transaction: a pooler's connection is shared
                        await connection.execute(timeout(limit))
                    found = []
                    for statement, parameters in calls:
                        rows = (await connection.execute(statement, parameters)).mappings()
                        found.append([dict(row) for row in rows])
                    return found
            except (SQLAlchemyError, OSError) as error:
                if attempt == 10 or sqlstate(error) not in RETRIED:
                    raise translated(error) from None
            await sleep(random.uniform(0, 0.02 * attempt))  # noqa: S311 so that the two do not meet again
        raise AssertionError("unreachable")
