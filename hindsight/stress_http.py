"""`hindsight stress --http`: a server under many clients, some hostile, and for a while without its database."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from rich.console import RenderableType

from hindsight import embedded
from hindsight.config import Settings
from hindsight.errors import HindsightError
from hindsight.http_guards import LARGEST_BODY
from hindsight.stress import percentiles
from hindsight.stress_check import Invariant, verdicts
from hindsight.sync_client import Hindsight
from hindsight.tables import pairs_table

BANK = "served"
HOSTILE = 0.1
"""The part of all requests that no client of good will sends."""
PAUSE = 2.0
"""Seconds between two requests of a client, on average."""
SLOWEST = 5.0
"""How many times the p99 of a client alone the p99 of many may be."""
GROWTH = 1.25
"""How many times its memory after a third of the time the server may hold at the end."""
RECOVERY = 10.0
"""Seconds after the database's return within which every request must be served again."""
_ALONE = 300  # requests of the client alone
_MEMORIES = 1000
_STORED = "SELECT count(*) FROM hindsight.memory WHERE memory_id = ANY (%s::uuid[])"
_NESTED = b"[" * 100_000

# What hostile clients send: method, path, body, and the statuses that refuse it clearly.
_ATTACKS: list[tuple[str, str, bytes, set[int]]] = [
    ("POST", "/api/recall", b'{"query": "' + b"x" * (LARGEST_BODY + 1) + b'"}', {413}),
    ("POST", "/api/recall", b'{"query": "' + b"x" * 1_000_000 + b'"}', {400}),
    ("POST", "/api/memory", b'{"content": ' + _NESTED, {400}),
    ("POST", "/api/memory", b'{"content": "half of a character \\ud800"}', {400}),
    ("POST", "/api/memory", b'{"content": {"$ne": null}, "bank": "served"}', {400}),
    ("POST", "/api/recall", b'{"query": "port", "bank": "x\'; DROP TABLE hindsight.memory; --"}', {404}),
    ("POST", "/api/recall", b'{"query": "port", "top_k": 1e999}', {400}),
    ("GET", "/api/memory/../../etc/passwd", b"", {404}),
    ("DELETE", "/api/memory/not-an-id", b"{}", {400}),
    ("PUT", "/api/memory/not-an-id", b"{}", {405}),
]


@dataclass(slots=True)
class Phase:
    """What clients saw in a phase: milliseconds of good requests, outcomes, and answers that should not have been."""

    times: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        return percentiles(self.times)["p99"]


@dataclass(slots=True)
class Served:
    """What was measured. Latencies are in milliseconds, the server's memory in MiB."""

    clients: int
    cores: int | None
    alone: dict[str, float]
    together: dict[str, float]
    requests_a_second: float
    outcomes: dict[str, dict[str, int]]
    memory: list[float]
    acknowledged: int
    invariants: list[Invariant]

    @property
    def holds(self) -> bool:
        return not any(invariant.broken for invariant in self.invariants)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "times_alone": self.together["p99"] / self.alone["p99"], "holds": self.holds}


def http(url: str, directory: Path, clients: int, seconds: float, most_times: float | None = SLOWEST) -> Served:
    """Runs a server on a database that lives in `directory`: one client alone, then many for so many seconds, then as
    long again, while the database is killed and started.

    most_times: how many times the p99 of one client that of many may be; None measures only.
    """
    settings = Settings(embedding_provider="none")
    draw = random.Random(0)  # noqa: S311 for data, not for secrets
    with Hindsight.connect(url, settings=settings) as client:
        client.create_bank(BANK)
        contents = [f"service {n} listens on port {draw.randrange(1024, 65536)}" for n in range(_MEMORIES)]
        client.store_many(BANK, [{"content": content, "importance": 0.6} for content in contents])
    token = secrets.token_hex(32)
    with _server(url, token) as (address, process):
        return asyncio.run(_Load(url, directory, address, process.pid, token, clients, seconds).run(most_times))


class _Load:
    def __init__(
        self, url: str, directory: Path, address: str, pid: int, token: str, clients: int, seconds: float
    ) -> None:
        self._url = url
        self._directory = directory
        self._address = address
        self._pid = pid
        self._bearer = {"Authorization": f"Bearer {token}"}
        self._clients = clients
        self._seconds = seconds
        self._acknowledged: list[str] = []
        self._down: tuple[float, float] | None = None  # from when to when requests may fail, in the third phase

    async def run(self, most_times: float | None) -> Served:
        alone, together, outage = Phase(), Phase(), Phase()
        async with httpx2.AsyncClient(base_url=self._address, timeout=30) as client:
            draw = random.Random(1)  # noqa: S311
            for _ in range(_ALONE):
                await self._good(client, draw, alone)
        memory = await self._crowd(together)
        killing = asyncio.create_task(self._kill())
        memory += await self._crowd(outage)
        await killing
        await self._served_again(outage)
        with psycopg.connect(self._url) as connection:
            ((kept,),) = connection.execute(_STORED, [self._acknowledged]).fetchall()
        lost = len(self._acknowledged) - kept
        grown = memory[-1] / memory[len(memory) // 6]
        times = together.p99 / alone.p99
        return Served(
            self._clients,
            os.cpu_count(),
            percentiles(alone.times),
            percentiles(together.times),
            len(together.times) / self._seconds,
            {
                name: dict(phase.outcomes)
                for name, phase in (("alone", alone), ("together", together), ("outage", outage))
            },
            [round(one, 1) for one in memory],
            len(self._acknowledged),
            [
                Invariant(
                    "every good request was served, every hostile one refused clearly",
                    (alone.wrong + together.wrong)[:5],
                ),
                *(
                    []
                    if most_times is None
                    else [
                        Invariant(
                            f"p99 of many is at most {most_times:g} times that of one",
                            [f"{times:.1f} times"] if times > most_times else [],
                        )
                    ]
                ),
                Invariant(
                    "without the database requests failed clearly, and were served again by themselves",
                    outage.wrong[:5],
                ),
                Invariant("no acknowledged memory was lost", [f"{lost} are"] if lost else []),
                Invariant(
                    f"the server's memory grew to at most {GROWTH:g} times",
                    [f"{grown:.2f} times"] if grown > GROWTH else [],
                ),
            ],
        )

    async def _crowd(self, phase: Phase) -> list[float]:
        """All clients for so many seconds; the server's memory meanwhile, in MiB."""
        end = time.monotonic() + self._seconds
        tasks = [asyncio.create_task(self._client(number, phase, end)) for number in range(self._clients)]
        memory = []
        while time.monotonic() < end:
            await asyncio.sleep(min(1, self._seconds / 10))
            memory.append(_resident(self._pid))
        await asyncio.gather(*tasks)
        return memory

    async def _client(self, number: int, phase: Phase, end: float) -> None:
        draw = random.Random(number)  # noqa: S311
        async with httpx2.AsyncClient(base_url=self._address, timeout=30) as client:
            await asyncio.sleep(draw.uniform(0, PAUSE))
            while time.monotonic() < end:
                if draw.random() < HOSTILE:
                    await self._hostile(client, draw, phase)
                else:
                    await self._good(client, draw, phase)
                await asyncio.sleep(draw.uniform(0, 2 * PAUSE))

    async def _good(self, client: httpx2.AsyncClient, draw: random.Random, phase: Phase) -> None:
        number = draw.randrange(_MEMORIES)
        body: dict[str, Any]
        if draw.random() < 0.2:
            path, body = "/api/memory", {"content": f"{secrets.token_hex(8)} is a build of service {number}"}
        else:
            path, body = "/api/recall", {"query": f"port of service {number}", "top_k": 5}
        started = time.monotonic()
        try:
            answer = await client.post(path, json={**body, "bank": BANK}, headers=self._bearer)
        except httpx2.HTTPError as error:
            phase.wrong.append(f"{path}: {type(error).__name__}")
            return
        ended = time.monotonic()
        phase.outcomes[str(answer.status_code)] += 1
        if answer.is_success:
            phase.times.append(1000 * (ended - started))
            if answer.status_code == 201 and answer.json()["memory_id"]:
                self._acknowledged.append(answer.json()["memory_id"])
        elif not self._is_excused(answer, started, ended):
            phase.wrong.append(f"{path}: {answer.status_code} {answer.text[:200]}")

    def _is_excused(self, answer: httpx2.Response, started: float, ended: float) -> bool:
        """Whether it says that the database is not there, while it was not."""
        if self._down is None or answer.status_code != 503 or answer.json()["error"]["code"] != "database_unavailable":
            return False
        return ended >= self._down[0] and started <= self._down[1] + RECOVERY

    async def _hostile(self, client: httpx2.AsyncClient, draw: random.Random, phase: Phase) -> None:
        kind = draw.randrange(len(_ATTACKS) + 2)
        sent: bytes | AsyncIterator[bytes]
        method, path, sent, expected = _ATTACKS[kind] if kind < len(_ATTACKS) else ("POST", "/api/recall", b"{}", {401})
        headers = {"Content-Type": "application/json", "Authorization": "Bearer wrong" * 1000}
        if kind != len(_ATTACKS):
            headers |= self._bearer
        if kind > len(_ATTACKS):
            sent, expected = _trickle(), {400}
        try:
            answer = await client.request(method, path, content=sent, headers=headers)
        except httpx2.HTTPError as error:
            phase.wrong.append(f"attack {kind}: {type(error).__name__}")
            return
        phase.outcomes[f"hostile {answer.status_code}"] += 1
        if answer.status_code not in expected and not (self._down and answer.status_code == 503):
            phase.wrong.append(f"attack {kind}: {answer.status_code} {answer.text[:200]}")

    async def _served_again(self, phase: Phase) -> None:
        """Waits until a good request is served, at most for as long after the database's return as that may take."""
        assert self._down is not None  # noqa: S101
        async with httpx2.AsyncClient(base_url=self._address, timeout=30) as client:
            while True:
                answer = await client.post("/api/recall", json={"query": "port", "bank": BANK}, headers=self._bearer)
                late = time.monotonic() - self._down[1]
                if answer.is_success or late > RECOVERY:
                    break
                await asyncio.sleep(0.1)
        if not answer.is_success:
            phase.wrong.append(f"{late:.0f} s after the database's return: {answer.status_code} {answer.text[:200]}")

    async def _kill(self) -> None:
        """Kills the database in the middle of the phase, and starts it two seconds later."""
        await asyncio.sleep(self._seconds / 3)
        with psycopg.connect(self._url) as connection:
            ((data,),) = connection.execute("SHOW data_directory").fetchall()
        postmaster = int((Path(data) / "postmaster.pid").read_text().split()[0])
        began = time.monotonic()
        self._down = began, began + 60
        os.kill(
            postmaster, signal.SIGQUIT
        )  # ends at once and at any point, as after a failure: it recovers from its log
        await asyncio.sleep(2)
        await asyncio.to_thread(embedded.start, self._directory)
        self._down = began, time.monotonic()


async def _trickle() -> AsyncIterator[bytes]:
    for piece in (b'{"query"', b": ", b'"por', b"t"):
        yield piece
        await asyncio.sleep(0.5)


def _resident(pid: int) -> float:
    """MiB of a process that are in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


@contextlib.contextmanager
def _server(url: str, token: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server in a process of its own, and its address."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HINDSIGHT_")}
    environment |= {
        "HINDSIGHT_DATABASE_URL": url,
        "HINDSIGHT_BANK": BANK,
        "HINDSIGHT_EMBEDDING_PROVIDER": "none",
        "HINDSIGHT_LLM_PROVIDER": "none",
        "HINDSIGHT_LOG_FORMAT": "json",
        "HINDSIGHT_PORT": "0",
        "HINDSIGHT_TOKEN": token,
    }
    command = [sys.executable, "-m", "hindsight.http_server"]
    with (
        tempfile.NamedTemporaryFile("w+") as log,
        subprocess.Popen(  # noqa: S603 ours
            command, env=environment, stderr=log
        ) as process,
    ):
        try:
            yield _running(Path(log.name), process), process
        finally:
            process.terminate()


def _running(log: Path, process: subprocess.Popen[bytes]) -> str:
    """The address of a server, once its log tells it."""
    while process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if "running on http" in line:
                return str(json.loads(line)["message"].split()[2])
        time.sleep(0.1)
    raise HindsightError(f"the server did not start: {log.read_text(encoding='utf-8')[-1000:]}")


def lines(served: Served) -> Iterator[RenderableType]:
    """The report for people."""
    yield (
        f"{served.clients} clients, a tenth of the requests hostile; "
        f"{served.requests_a_second:.0f} good requests a second; {served.cores} cores"
    )
    shown = {
        name: ", ".join(f"{percentile} {times[percentile]:.1f} ms" for percentile in ("p50", "p95", "p99"))
        for name, times in (("one client", served.alone), ("all clients", served.together))
    }
    yield pairs_table(
        {
            **shown,
            **{
                f"answers, {name}": ", ".join(f"{count} × {outcome}" for outcome, count in sorted(outcomes.items()))
                for name, outcomes in served.outcomes.items()
            },
            "the server's memory": f"{served.memory[0]:.0f} MiB at first, {served.memory[-1]:.0f} MiB in the end",
            "acknowledged memories": str(served.acknowledged),
        }
    )
    yield from verdicts(served.invariants)
