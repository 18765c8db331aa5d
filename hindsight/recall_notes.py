"""What a server has recalled, said to the database afterwards: nobody waits for it, and nothing fails for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self
from uuid import UUID

from hindsight.client import AsyncHindsight

log = logging.getLogger("hindsight.server")

MOST = 1000
"""Recalls that may wait to be noted; beyond them they are not."""
PATIENCE = 2.0
"""Seconds that the end of a server waits for them."""


class RecallNotes:
    """Calls note_recall for one recall after the other, on one connection. An async context manager."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[tuple[AsyncHindsight, str, Sequence[UUID]]] = asyncio.Queue(MOST)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None  # noqa: S101  # entered before
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._waiting.join()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def add(self, client: AsyncHindsight, bank: str, memory_ids: Sequence[UUID]) -> None:
        """Notes that these were recalled, soon, in the name of whoever recalled them."""
        if not memory_ids:
            return
        try:
            self._waiting.put_nowait((client, bank, memory_ids))
        except asyncio.QueueFull:
            log.debug("a recall is not noted: %d wait already", MOST)

    async def _work(self) -> None:
        while True:
            client, bank, memory_ids = await self._waiting.get()
            try:
                await client.note_recall(bank, memory_ids)
            except Exception as error:  # a login that may only read, say
                log.debug("a recall is not noted: %s", error)
            finally:
                self._waiting.task_done()
