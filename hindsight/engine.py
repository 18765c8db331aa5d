"""Connections: the engines of both clients, made to work behind PgBouncer in transaction mode.

A pooler hands each transaction to any server connection, so no statement may stay prepared on one: asyncpg gets
unnamed statements and no cache, psycopg none at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hindsight.config import Settings
from hindsight.postgres_url import asyncpg_connect_args, sqlalchemy_url


def _pool(settings: Settings) -> dict[str, Any]:
    return {"pool_size": settings.pool_size, "max_overflow": 0, "pool_pre_ping": True, "hide_parameters": True}


def async_engine(url: str, settings: Settings) -> AsyncEngine:
    return create_async_engine(
        sqlalchemy_url(url, "asyncpg"),
        connect_args={
            **asyncpg_connect_args(url),
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        },
        **_pool(settings),
    )


def sync_engine(url: str, settings: Settings) -> Engine:
    return create_engine(sqlalchemy_url(url, "psycopg"), connect_args={"prepare_threshold": None}, **_pool(settings))


@contextlib.asynccontextmanager
async def listening(engine: AsyncEngine, channel: str, told: Callable[[], None]) -> AsyncIterator[asyncio.Event]:
    """Calls `told` at each NOTIFY of a channel, on a connection that it keeps; the event says that it is lost.

    Behind a pooler nothing may come.
    """
    async with engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        assert driver is not None  # noqa: S101  # the connection is open
        is_lost = asyncio.Event()
        listener = lambda *_: told()  # noqa: E731  # the same object is taken away again
        driver.add_termination_listener(lambda *_: is_lost.set())
        await driver.add_listener(channel, listener)
        try:
            yield is_lost
        finally:
            if not driver.is_closed():
                await driver.remove_listener(channel, listener)
