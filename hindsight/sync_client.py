"""The sync client. Made from client.py by `make generate`: change that one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from time import sleep
from types import TracebackType
from typing import Any, Never, Self, TypeVar, cast
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from hindsight.calls import (
    RECALL_ARGUMENTS,
    RETRIED,
    STORE_ARGUMENTS,
    UPDATE_ARGUMENTS,
    Labels,
    Moment,
    call,
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
from hindsight.engine import sync_engine
from hindsight.results import BankStatus, Context, Event, Forgotten, Memory, RecallAdvice, Recalled, Stored, Versions

Row = TypeVar("Row")


class Hindsight:
    """Long-term memory in PostgreSQL. Made by `connect`; a context manager; safe for several threads.

    Every method raises the error class of the SQLSTATE that the function raised (see `hindsight.errors`),
    DatabaseUnavailable when the database can't be reached, and EmbeddingError when a text can't be embedded:
    then nothing was stored.
    """

    def __init__(self, engine: Engine, embedder: Embedder | None, statement_timeout: float | None = None) -> None:
        self._engine = engine
        self._statement_timeout = statement_timeout
        self.embedder = embedder
        self._is_registered = False

    @classmethod
    def connect(cls, url: str | None = None, *, settings: Settings | None = None) -> Self:
        """Opens a client.

        url: the database; by default that of the settings (`DATABASE_URL`), else the embedded server in the
        user's data directory, which is started and migrated. Embeddings come from the settings as well.
        """
        settings = settings or load_settings()
        embedder = embedder_from(settings)
        if url is None:
            url = database_url(settings)
            if settings.database_url is None:
                migrate(url)
        return cls(sync_engine(url, settings), embedder, settings.statement_timeout)

    def close(self) -> None:
        """Closes the connections. The client can't be used afterwards."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        return cast(
            int,
            self._value("create_bank", bank=bank, description=description, language=language, decay_rate=decay_rate),
        )

    def store(
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
        return (self.store_many(bank, [given]))[0]

    def store_many(self, bank: str, memories: Sequence[Mapping[str, Any]]) -> list[Stored]:
        """Stores memories, each a mapping of the arguments of `store`: all, or none when one is refused.

        Returns what became of each, in their order.
        """
        arguments = [stored_arguments(bank, memory) for memory in memories]
        embeddable = [given for given in arguments if self.embedder and given["content"].strip()]
        if self.embedder is not None and embeddable:
            contents = [given["content"] for given in embeddable]
            vectors = self.embedder.passages(contents)
            for given, embedding in zip(embeddable, vectors, strict=True):
                given.update(embedding=vector(embedding), model=self.embedder.model)
        # In one order for every writer, so that batches with contents in common do not deadlock. Slots come first:
        # their writers take turns.
        order = sorted(
            range(len(arguments)),
            key=lambda n: (not arguments[n].get("slot"), arguments[n].get("slot") or "", arguments[n]["content"]),
        )
        rows = self._transaction("store", [arguments[n] for n in order])
        return [Stored(**row) for _, (row,) in sorted(zip(order, rows, strict=True), key=lambda pair: pair[0])]

    def recall(
        self,
        bank: str,
        query: str = "",
        *,
        top_k: int = 10,
        types: Labels | None = None,
        tags: Labels | None = None,
        all_tags: Labels | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        session_id: str | None = None,
        entities: Labels | None = None,
        metadata: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        include_pending: bool = False,
        as_of: Moment | None = None,
        **unknown: Never,
    ) -> list[Recalled]:
        """The best live memories for a query, best first, at most `top_k` (1 to 1,000), relevant ones only.

        types, tags, entities: any of; all_tags: all of; an empty list does not filter.
        since, until: when it was said, else stored; a day as `until` is meant whole.
        metadata: contains these values. min_score: in [0, 1], instead of the default threshold of relevance.
        include_pending: also what is not believed yet. as_of: what was believed at that moment.
        An empty query lists what the bank holds, the freshest first.
        """
        reject_unknown("recall", unknown, RECALL_ARGUMENTS)
        query = query or ""
        refuse_unstorable({"query": query})
        asked = self.embedder.query(query) if self.embedder and query.strip() else None
        return self._rows(
            Recalled,
            "recall",
            bank=bank,
            query=query,
            embedding=vector(asked),
            model=self.embedder.model if self.embedder and asked else None,
            top_k=top_k,
            types=labels(types, "types") or None,
            tags=labels(tags) or None,
            all_tags=labels(all_tags, "all_tags") or None,
            since=moment(since, "since"),
            until=moment(until, "until"),
            session_id=session_id,
            entities=labels(entities, "entities") or None,
            metadata=metadata,
            min_score=min_score,
            include_pending=include_pending,
            as_of=moment(as_of, "as_of"),
        )

    def recall_context(self, bank: str, query: str = "", *, max_tokens: int = 1000, **arguments: Any) -> Context:
        """What `recall` finds, as one block of text for a prompt, within `max_tokens` (1 to 1,000,000), with citations.

        arguments: those of `recall`. Each memory stands on a line with its age and what makes it doubtful. The best is
        there whatever the budget; one of more than 500 tokens is shortened.
        """
        memories = self.recall(bank, query, **arguments)
        found = self._transaction(
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
        return Context(**found[0][0], memories=memories)

    def should_recall(self, bank: str, message: str) -> RecallAdvice:
        """Whether a message refers to the past, to the user or to something that the bank knows, by rules; and why."""
        return (self._rows(RecallAdvice, "should_recall", bank=bank, message=message))[0]

    def get(self, bank: str, memory_id: UUID | str) -> Memory:
        """One memory by its id. A forgotten one is not there: UnknownMemory."""
        return (self._rows(Memory, "get", bank=bank, memory_id=identifier(memory_id)))[0]

    def update(
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
            embedding = (self.embedder.passages([content]))[0]
        self._value(
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
        return self.get(bank, changed)

    def forget(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Forgotten:
        """Forgets a memory: gone from every channel at once, restorable; a second time changes nothing."""
        return (self._rows(Forgotten, "forget", bank=bank, memory_id=identifier(memory_id), reason=reason))[0]

    def restore(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Memory:
        """Takes a forgetting back. Conflict when its content or slot is taken meanwhile."""
        self._value("restore", bank=bank, memory_id=identifier(memory_id), reason=reason)
        return self.get(bank, memory_id)

    def history(self, bank: str, memory_id: UUID | str) -> list[Event]:
        """A memory's life, oldest event first, its forgetting included."""
        return self._rows(Event, "history", bank=bank, memory_id=identifier(memory_id))

    def log_turn(
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
            self._value(
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

    def status(self) -> list[BankStatus]:
        """Every bank that the caller may read, with what it holds."""
        return self._rows(BankStatus, "status")

    def versions(self) -> Versions:
        """The versions of PostgreSQL, pgvector and the schema."""
        return (self._rows(Versions, "versions"))[0]

    def maintain(self, bank: str) -> dict[str, int]:
        """Keeps a bank quick: counts the words of a large one. Returns what it did."""
        rows = (self._transaction("maintain", [{"bank": bank}]))[0]
        return {row["task"]: row["affected"] for row in rows}

    def embed_pending(self, bank: str, batch_size: int = 64) -> int:
        """Embeds the memories of a bank that have no embedding yet. Returns how many it embedded."""
        embedded = 0
        while self.embedder is not None:
            waiting = (self._transaction("unembedded", [{"bank": bank, "most": batch_size}]))[0]
            if not waiting:
                break
            vectors = self.embedder.passages([row["content"] for row in waiting])
            done = self._transaction(
                "embed_memory",
                [
                    {
                        "bank": bank,
                        "memory_id": row["memory_id"],
                        "version": row["version"],
                        "embedding": vector(embedding),
                        "model": self.embedder.model,
                    }
                    for row, embedding in zip(waiting, vectors, strict=True)
                ],
            )
            embedded += sum(row["embed_memory"] for (row,) in done)
        return embedded

    def reembed(self, bank: str) -> int:
        """Makes the configured embedding model the bank's, and embeds its memories anew. Returns how many.

        Until a memory has its new embedding it is found by its words.
        """
        if self.embedder is None:
            return 0
        self._register_model()
        self._value("set_bank_model", bank=bank, model=self.embedder.model)
        return self.embed_pending(bank)

    def _register_model(self) -> None:
        embedder = cast(Embedder, self.embedder)
        dimensions = embedder.dimensions
        given = {
            "model": embedder.model,
            "dimensions": dimensions,
            "floor": embedder.floor,
            "recall_threshold": embedder.recall_threshold,
            "merge_threshold": embedder.merge_threshold,
        }
        self._transaction("register_model", [given])
        self._is_registered = True

    def _rows(self, result: type[Row], function: str, **arguments: Any) -> list[Row]:
        return [result(**row) for row in (self._transaction(function, [arguments]))[0]]

    def _value(self, function: str, **arguments: Any) -> Any:
        return (self._transaction(function, [arguments]))[0][0][function]

    def _transaction(self, function: str, many: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """The rows of each call of a function; all calls in one transaction, run again when it lost a race."""
        stores_vectors = function not in ("recall", "register_model") and any(given.get("model") for given in many)
        if stores_vectors and not self._is_registered:
            self._register_model()
        calls = [call(function, arguments) for arguments in many]
        for attempt in range(1, 11):
            try:
                with self._engine.begin() as connection:
                    if self._statement_timeout is not None:  # for this transaction: a pooler's connection is shared
                        connection.execute(timeout(self._statement_timeout))
                    found = []
                    for statement, parameters in calls:
                        rows = (connection.execute(statement, parameters)).mappings()
                        found.append([dict(row) for row in rows])
                    return found
            except (SQLAlchemyError, OSError) as error:
                if attempt == 10 or sqlstate(error) not in RETRIED:
                    raise translated(error) from None
            sleep(random.uniform(0, 0.02 * attempt))  # noqa: S311 so that the two do not meet again
        raise AssertionError("unreachable")
