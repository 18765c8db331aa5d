"""The worker: embeds what has no embedding, distils sessions, keeps banks, reflects. It claims rows by their state.

Several workers share the work. One that is killed loses nothing: its claims end, and what it had in hand is due again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from hindsight import distilling, reflecting
from hindsight.client import AsyncHindsight
from hindsight.config import Settings
from hindsight.distiller import Distiller, distiller_from
from hindsight.embedding import Embedder
from hindsight.engine import listening
from hindsight.errors import AccessDenied, Conflict, HindsightError
from hindsight.model_endpoint import EndpointFailure
from hindsight.reflector import Reflector, reflector_from
from hindsight.results import ClaimedSession

log = logging.getLogger("hindsight.worker")

BY_RULES = ["auto", "rules", "verbatim"]
"""The modes of banks that need no language model."""
LONGEST_PAUSE = 60.0
"""Seconds that a task waits at most after it failed."""
PATIENCE = 10.0
"""Seconds that the end of a server waits for what its worker has in hand."""


class Worker:
    """Does the work of all banks that its login works for, until it is told to end.

    client: an open client, whose embedder embeds. distiller, reflector: the language model that distils and reflects;
    None: rules do.
    """

    def __init__(
        self,
        client: AsyncHindsight,
        settings: Settings,
        distiller: Distiller | None = None,
        reflector: Reflector | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._distiller = distiller
        self._reflector = reflector
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()

    @property
    def has_model(self) -> bool:
        """Whether a language model distils."""
        return self._distiller is not None

    def end(self) -> None:
        """Lets `run` return when what is in hand is done."""
        self._ending.set()
        self._woken.set()

    async def run(self) -> None:
        """Works until `end`. A task that fails is logged, and tried again; it stops none of the others."""
        tasks = [
            *(self._forever("distil", self._distil_one) for _ in range(self._settings.worker_sessions)),
            self._forever("embed", self._embed_some),
            self._forever("maintain", self._maintain_one),
            self._forever("audit", self._audit_one),
            self._forever("reflect", self._reflect_one),
        ]
        listening = asyncio.create_task(self._listen())
        try:
            await asyncio.gather(*tasks)
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    async def drain(self) -> int:
        """Does all that is due now, and returns how many pieces of work there were."""
        done = 0
        for task in (self._distil_one, self._embed_some):
            while await task():
                done += 1
        return done

    async def _forever(self, name: str, task: Callable[[], Awaitable[bool]]) -> None:
        """Runs a task again and again, with a pause where there was nothing to do, or it failed."""
        failures = 0
        while not self._ending.is_set():
            try:
                if await task():
                    failures = 0
                    continue
                failures = 0
                pause = self._settings.worker_poll
            except AccessDenied as error:  # a login that may only read: others do the work, until it may write
                if not failures:
                    log.info("this login does not %s: %s", name, error)
                failures += 1
                pause = LONGEST_PAUSE
            except HindsightError as error:
                failures += 1
                pause = min(self._settings.worker_poll * 2**failures, LONGEST_PAUSE)
                log.warning("%s failed, again in %.0f seconds: %s", name, pause, error)
            except Exception:
                failures += 1
                pause = LONGEST_PAUSE
                log.exception("%s failed, again in %.0f seconds", name, pause)
            await self._wait(pause * random.uniform(0.75, 1.25))  # noqa: S311 so that workers do not meet

    async def _wait(self, seconds: float) -> None:
        """Waits so long, or until somebody says that there is work, or that it is the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        if not self._ending.is_set():
            self._woken.clear()

    async def _listen(self) -> None:
        """Wakes the tasks by NOTIFY, on a connection that is none of the pool's; without one they poll."""
        is_told = True
        async with self._client.beside() as own:
            while True:
                try:
                    async with listening(own.engine, "hindsight_work", self._woken.set) as is_lost:
                        is_told = True
                        self._woken.set()  # what came while nobody listened
                        await is_lost.wait()
                except (SQLAlchemyError, PostgresError, OSError) as error:
                    if is_told:
                        log.info(
                            "not told of new work, looking every %g seconds: %s", self._settings.worker_poll, error
                        )
                    is_told = False
                await asyncio.sleep(min(self._settings.worker_poll, LONGEST_PAUSE))

    async def _distil_one(self) -> bool:
        """Distils one session that is due; False where there is none."""
        modes = None if self._distiller else BY_RULES
        session = await self._client.claim_session(lease=self._settings.worker_lease, modes=modes)
        if session is None:
            return False
        async with self._extending(session):
            try:
                await self._distil(session)
            except Conflict as error:  # the claim has ended: somebody else has the session
                log.info("session is left to another worker: %s", error)
            except (HindsightError, EndpointFailure) as error:
                log.warning("a session of %s is not distilled, and tried again later: %s", session.bank_name, error)
                with contextlib.suppress(Conflict):
                    await self._client.release_session(session, str(error))
            except Exception as error:  # a fault of ours: its text may hold what was said
                log.exception("a session of %s is not distilled, and tried again later", session.bank_name)
                with contextlib.suppress(Conflict):
                    await self._client.release_session(session, f"{type(error).__name__}, see the worker's log")
        return True

    async def _distil(self, session: ClaimedSession) -> None:
        summary = None
        if self._distiller is not None and session.mode in ("auto", "model"):
            found, summary = await distilling.by_model(
                self._client, self._distiller, session, budget=self._settings.llm_daily_tokens
            )
        else:
            mode = "verbatim" if session.mode == "verbatim" else "rules"
            found = await self._client.extract_turns(session, mode)
        kept = await self._client.distil(session, await self._with_vectors(session, found), summary=summary)
        for memory in kept:
            if memory.outcome == "refused":
                log.warning("what was found in a session of %s is refused: %s", session.bank_name, memory.reasons)

    async def _with_vectors(self, session: ClaimedSession, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What was found, embedded if that can be done now; else it is embedded later."""
        if not self._embeds(session.model):
            return list(found)
        try:
            vectors = await self._client.passages([memory["content"] for memory in found])
        except HindsightError as error:
            log.warning("memories are stored without an embedding for now: %s", error)
            return list(found)
        return [{**memory, **vector} for memory, vector in zip(found, vectors, strict=True)]

    @contextlib.asynccontextmanager
    async def _extending(self, session: ClaimedSession) -> AsyncIterator[None]:
        """Keeps a claim while a session is at work."""

        async def extend() -> None:
            while True:
                await asyncio.sleep(self._settings.worker_lease / 3)
                with contextlib.suppress(HindsightError):
                    await self._client.extend_claim(session, self._settings.worker_lease)

        heartbeat = asyncio.create_task(extend())
        try:
            yield
        finally:
            heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeat

    async def _embed_some(self) -> bool:
        """Embeds what has no embedding, of each bank a batch; False where there is nothing."""
        if self._client.embedder is None:
            return False
        done = 0
        for bank in await self._client.banks():
            if not bank.to_embed or not self._embeds(bank.model):
                continue
            try:
                counts = await self._client.acting_for(bank.owner).embed_waiting(bank.bank)
            except AccessDenied:  # somebody else's work
                continue
            except HindsightError as error:  # it is about this bank: the others go on
                log.warning("memories of %s are not embedded: %s", bank.bank, error)
                continue
            done += counts.embedded
            if counts.error is not None:
                log.warning("memories of %s are not embedded, and tried again later: %s", bank.bank, counts.error)
        return done > 0

    def _embeds(self, model: str | None) -> bool:
        """Whether the configured model is that of a bank, or can become it."""
        return self._client.embedder is not None and model in (None, self._client.embedder.model)

    async def _maintain_one(self) -> bool:
        """Maintains the bank whose turn it is; False where it is none's."""
        turn = await self._client.claim_upkeep("maintain", self._settings.worker_maintain)
        if turn is None:
            return False
        await self._client.acting_for(turn.owner).maintain(turn.bank)
        return True

    async def _audit_one(self) -> bool:
        """Audits the bank whose turn it is, and keeps how much it found; False where it is none's."""
        turn = await self._client.claim_upkeep("audit", self._settings.worker_audit)
        if turn is None:
            return False
        client = self._client.acting_for(turn.owner)
        findings = await client.audit(turn.bank)
        await client.note_audit(turn.bank, len(findings))
        if findings:
            log.info("%d findings in the bank %s: hindsight audit shows them", len(findings), turn.bank)
        return True

    async def _reflect_one(self) -> bool:
        """Reflects on the bank whose turn it is; False where it is none's."""
        if not self._settings.worker_reflect:
            return False
        turn = await self._client.claim_upkeep(
            "reflect", self._settings.worker_reflect, idle=self._settings.worker_reflect_idle
        )
        if turn is None:
            return False
        client, budget = self._client.acting_for(turn.owner), self._settings.llm_daily_tokens
        found, problems = await reflecting.reflect(client, turn.bank, self._reflector, budget=budget)
        for problem in problems:
            log.warning("reflecting on the bank %s: %s", turn.bank, problem)
        if found:
            log.info("%d insights in the bank %s", len(found), turn.bank)
        return True


def worker_from(client: AsyncHindsight, settings: Settings) -> Worker:
    """The worker that `settings` mean. Raises ConfigurationError."""
    return Worker(client, settings, distiller_from(settings), reflector_from(settings))


@contextlib.asynccontextmanager
async def working(client: AsyncHindsight, settings: Settings) -> AsyncIterator[None]:
    """A worker beside what the block does, if `settings.worker` says so, on connections of its own.

    At the end it finishes what it has in hand, for a few seconds; what it does not is done by another.
    """
    if not settings.worker:
        yield
        return
    async with client.beside() as own:
        worker = worker_from(own, settings)
        task = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.end()
            _, unfinished = await asyncio.wait([task], timeout=PATIENCE)
            for task in unfinished:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def drain(url: str, settings: Settings, embedder: Embedder | None) -> int:
    """Does what is due in a database, by rules. Returns how many pieces of work it was."""
    async with await AsyncHindsight.connect(url, settings=settings) as client:
        client.embedder = embedder
        return await Worker(client, settings).drain()


async def work(settings: Settings, *, once: bool = False) -> int:
    """Works until SIGTERM or SIGINT, and then finishes what is in hand; `once`: until nothing is due.

    Returns how many pieces of work were done, where `once` counts them.
    """
    async with await AsyncHindsight.connect(settings=settings) as client:
        worker = worker_from(client, settings)
        if once:
            return await worker.drain()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.end)
        log.info("working%s", "" if worker.has_model else ", by rules: no language model is configured")
        await worker.run()
    return 0
