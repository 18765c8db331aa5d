"""What the async client stands on: its connections, the calls through them, and the vectors that those take.

`sync_caller.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from anyio import sleep
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from hindsight.calls import RETRIED, STORE_VECTORS, call, of_transaction, sqlstate, translated, vector
from hindsight.config import Settings, load_settings
from hindsight.database import database_url, migrate
from hindsight.embedding import Embedder, embedder_from
from hindsight.engine import async_engine
from hindsight.errors import DatabaseError, InvalidEmbedding
from hindsight.query_cache import QueryCache
from hindsight.request_id import request_id
from hindsight.reranking import Reranker, reranker_from
from hindsight.rewriting import Rewriter, rewriter_from

Row = TypeVar("Row")


class AsyncCaller:
    """Calls functions of the schema, each call or batch in a transaction."""

    def __init__(
        self,
        engine: AsyncEngine,
        settings: Settings,
        embedder: Embedder | None,
        reranker: Reranker | None = None,
        rewriter: Rewriter | None = None,
    ) -> None:
        self.engine = engine
        self._settings = settings
        self.embedder = embedder
        self._reranker = reranker
        self._rewriter = rewriter
        self._query_cache = QueryCache(settings.query_cache_seconds)
        self._is_registered = False
        self._principal: str | None = None
        self._url = ""

    def acting_for(self, principal: str | None) -> Self:
        """The same client, for calls in the name of somebody else: for a service. It shares the connections."""
        other = copy.copy(self)
        other._principal = principal
        return other

    def within(self, seconds: float) -> Self:
        """The same client, whose statements the database stops after so many seconds. It shares the connections."""
        other = copy.copy(self)
        other._settings = self._settings.model_copy(update={"statement_timeout": seconds})
        return other

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
        client = cls(async_engine(url, settings), settings, *models)
        client._url = url
        return client

    def beside(self) -> Self:
        """A client of the same database with connections of its own, for work that shall not take this one's."""
        other = self.acting_for(None)
        other.engine = async_engine(self._url, self._settings)
        return other

    async def close(self) -> None:
        """Closes the connections. The client can't be used afterwards."""
        await self.engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

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

    async def passages(self, contents: list[str]) -> list[dict[str, Any]]:
        """The arguments `embedding` and `model` of contents, in their order: none of what is blank, or without a model.

        Raises EmbeddingError.
        """
        embeddable = [content for content in contents if content.strip()]
        if self.embedder is None or not embeddable:
            return [{} for _ in contents]
        made = iter(await run_sync(self.embedder.passages, embeddable))
        model = self.embedder.model
        return [{"embedding": vector(next(made)), "model": model} if one.strip() else {} for one in contents]

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
        calls = [call(function, arguments) for arguments in many]
        stored = [one for given in many for one in (given, *given.get("memories", ()))]
        stores_vectors = function in STORE_VECTORS and any(one.get("model") for one in stored)
        if stores_vectors and not self._is_registered:
            await self.register_model()
        setting = of_transaction(
            seconds=self._settings.statement_timeout, principal=self._principal, request=request_id.get()
        )
        for attempt in range(1, 11):
            try:
                async with self.engine.begin() as connection:
                    # For this transaction: a pooler's connection is shared.
                    if setting is not None:
                        await connection.execute(setting)
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

    async def _outside_a_transaction(self, statements: Sequence[str]) -> None:
        """Runs what builds and drops indexes while memories are read and written, which no transaction may hold."""
        try:
            async with self.engine.connect() as connection:
                connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in statements:
                    await connection.exec_driver_sql(statement)
        except (SQLAlchemyError, OSError) as error:
            raise translated(error) from None
