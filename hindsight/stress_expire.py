"""`hindsight stress --expire`: upkeep of a bank of which a tenth has expired; how long a writer beside it waits."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection
from rich.console import Console, RenderableType
from rich.progress import Progress

from hindsight.stress_beside import BANK, BesideWriter, watched
from hindsight.stress_check import Invariant, verdicts
from hindsight.stress_waits import SlowCall
from hindsight.tables import pairs_table, plain_table

SERVER = {
    "shared_buffers": "1GB",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "4GB",
    "log_lock_waits": "on",
    "deadlock_timeout": "100ms",  # and whoever waits longer for a lock is logged
    "dynamic_shared_memory_type": "mmap",  # a container's /dev/shm is too small for a parallel build
}
"""The parameters of the server that it is measured in."""
WAIT = 100.0  # milliseconds that a writer may wait for a lock, ever; and in all, 99 times of 100
BATCH = 100  # memories of one sweep: its default
_WORDS = 20_000
_SLOTTED = 100  # of so many memories one has a slot
_ALONE = 40.0  # seconds for which the writer is timed without the upkeep, at most
_CHUNK = 10_000  # memories loaded at once
_LOADERS = 2

_STAGE = "CREATE TEMP TABLE incoming (number integer, content text, slot text, is_expired boolean)"
_COPY = "COPY incoming FROM STDIN"
# Loaded as they would stand after a while: each with the event of its storing. Without embeddings: upkeep reads none.
_INSERT = """
    WITH loaded AS (
      INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, slot, confidence,
        importance, metadata, language, created_at, confirmed_at, confirmations, changed_at, expires_at)
      SELECT b.bank_id, gen_random_uuid(), 1, i.content, 'fact', '{}', '{}', i.slot, 0.9, 0.6, '{}', b.language,
        now(), now(), 0, now(), CASE WHEN i.is_expired THEN now() - i.number * interval '1 millisecond' END
      FROM incoming AS i JOIN hindsight.bank AS b ON b.name = 'large'
      RETURNING bank_id, memory_id, content
    )
    SELECT count(*) FROM loaded CROSS JOIN LATERAL
      hindsight._leave_event(bank_id, 'stored', memory_id, NULL, NULL, jsonb_build_object('content', content)) AS event
"""
_WORD_INDEX = "SELECT pg_get_indexdef('hindsight.memory_words_idx'::regclass)"
_DROP = "DROP INDEX hindsight.memory_words_idx"  # built after the load, which is quicker
_READY = ["VACUUM ANALYZE hindsight.memory", "CHECKPOINT"]
_LEFT = """
    SELECT count(*) FILTER (WHERE archived_at IS NULL AND expires_at <= now()),
           count(*) FILTER (WHERE archived_at IS NOT NULL)
    FROM hindsight.memory AS m JOIN hindsight.bank AS b USING (bank_id) WHERE b.name = 'large'
"""
# The log of the server, which hindsight.embedded_server calls so.
LOGGED = """
    SELECT count(*) FROM regexp_matches(pg_read_file('server.log'), %s, 'g')
    WHERE current_setting('log_lock_waits')::boolean
"""


@dataclass(slots=True)
class Upkeep:
    """What was measured.

    alone, beside: the writer's waits without and with the upkeep, kind → count and, in milliseconds, p50, p99, longest,
    and the longest wait for a lock, as far as it was seen. slowest_alone, slowest: the slowest calls, and what they
    waited for. logged: how often the server says that the writer waited for a lock over 100 ms.
    tasks: what upkeep did → how many. seconds: load, maintain (counting words, sealing, the first sweep), sweeps.
    memory_bytes: anonymous memory of the upkeep's backend before, and at most; None where /proc does not tell.
    """

    memories: int
    expired: int
    cores: int | None
    alone: dict[str, dict[str, float]] = field(default_factory=dict)
    beside: dict[str, dict[str, float]] = field(default_factory=dict)
    slowest_alone: list[SlowCall] = field(default_factory=list)
    slowest: list[SlowCall] = field(default_factory=list)
    logged: int = 0
    tasks: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    swept_per_second: float = 0.0
    memory_bytes: tuple[int, int] | None = None
    invariants: list[Invariant] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not any(invariant.broken for invariant in self.invariants)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


def expire(url: str, memories: int, most_ms: float | None = WAIT) -> Upkeep:
    """Fills a migrated database, lets the writer work alone, then beside the upkeep until nothing is left to put away.

    most_ms: how long the writer may wait for a lock, and in all (99th percentile); None measures only.
    """
    upkeep = Upkeep(memories, memories // 10, os.cpu_count())
    with (
        psycopg.connect(url, autocommit=True) as connection,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        started = time.monotonic()
        _load(url, connection, memories, progress)
        upkeep.seconds["load"] = time.monotonic() - started
        writer = BesideWriter(url, connection, memories)
        working = progress.add_task("the writer alone", total=None)
        with watched(url, writer):
            writer.work(time.monotonic() + min(_ALONE, memories / 1000))
        upkeep.alone, upkeep.slowest_alone = writer.waits()
        progress.update(working, description="upkeep beside the writer", total=upkeep.expired)
        with watched(url, writer):
            _maintain(url, upkeep, writer, lambda done: progress.update(working, completed=done))
        upkeep.beside, upkeep.slowest = writer.waits()
        ((left, archived),) = connection.execute(_LEFT).fetchall()
        if most_ms is not None:
            ((upkeep.logged,),) = connection.execute(LOGGED, (f"process {writer.pid} still waiting for",)).fetchall()
    writer.close()
    met = sorted(f"{kind} {sqlstate}" for kind, sqlstate in writer.tally.refused)
    slow, locked = (
        [
            f"{kind}: {waits[figure]:.0f} ms"
            for kind, waits in upkeep.beside.items()
            if most_ms is not None and waits[figure] >= most_ms
        ]
        for figure in ("p99", "lock")
    )
    locked = [*locked, *([f"the server logged {upkeep.logged} longer waits"] if upkeep.logged else [])]
    upkeep.invariants = [
        Invariant("everything that had expired was put away", [f"{left} are left"] if left else []),
        Invariant("nothing else was put away", [f"{archived} were"] if archived != upkeep.expired else []),
        Invariant("the writer was refused nothing", met),
        *(
            []
            if most_ms is None
            else [
                Invariant(f"the writer waits under {most_ms:.0f} ms for a lock", locked),
                Invariant(f"its calls take under {most_ms:.0f} ms (p99)", slow),
            ]
        ),
    ]
    return upkeep


def lines(upkeep: Upkeep) -> Iterator[RenderableType]:
    """The report for people."""
    yield f"{upkeep.memories} memories, {upkeep.expired} of them expired; {upkeep.cores} cores"
    table = plain_table()
    table.add_column("the writer's waits, ms")
    for name in ("count", "p50", "p99", "longest", "lock", "alone: count", "p50", "p99", "longest", "lock"):
        table.add_column(name, justify="right")
    for kind, waits in upkeep.beside.items():
        figures = [waits, upkeep.alone.get(kind, {})]
        cells = [f"{part.get(name, 0):.{digits}f}" for part in figures for name, digits in _DIGITS.items()]
        table.add_row(kind, *cells)
    yield table
    size = upkeep.memory_bytes
    yield pairs_table(
        {
            "logged by the server": f"{upkeep.logged} waits of the writer for a lock over 100 ms",
            "slowest beside": _slowest(upkeep.slowest),
            "slowest alone": _slowest(upkeep.slowest_alone),
            "upkeep did": ", ".join(f"{task}: {count}" for task, count in upkeep.tasks.items()),
            "time": ", ".join(f"{step} {seconds:.1f} s" for step, seconds in upkeep.seconds.items()),
            "swept": f"{upkeep.swept_per_second:.0f} memories a second, {BATCH} in a transaction",
            "memory of its backend": f"{size[1] >> 20} MB at most, {size[0] >> 20} before" if size else "unknown",
        }
    )  # fmt: skip
    yield from verdicts(upkeep.invariants)


_DIGITS = {"count": 0, "p50": 1, "p99": 1, "longest": 1, "lock": 1}


def _slowest(calls: list[SlowCall]) -> str:
    return "; ".join(
        f"{call.kind} {call.milliseconds:.0f} ms ({', '.join(f'{wait} {ms:.0f}' for wait, ms in call.waits.items())})"
        for call in calls
    )


def _load(url: str, connection: Connection[Any], memories: int, progress: Progress) -> None:
    connection.execute("SELECT hindsight.create_bank(%s)", (BANK,))
    ((word_index,),) = connection.execute(_WORD_INDEX).fetchall()
    connection.execute(_DROP)
    loading = progress.add_task("loading", total=memories)

    def load(first: int) -> None:
        with psycopg.connect(url, autocommit=True) as loader:
            loader.execute(_STAGE)
            for start in range(first, memories, _LOADERS * _CHUNK):
                part = range(start, min(start + _CHUNK, memories))
                with loader.cursor().copy(_COPY) as copy:
                    for row in _rows(part):
                        copy.write_row(row)
                loader.execute(_INSERT)
                loader.execute("TRUNCATE incoming")
                progress.advance(loading, len(part))

    with ThreadPoolExecutor(_LOADERS) as pool:
        list(pool.map(load, range(0, _LOADERS * _CHUNK, _CHUNK)))
    progress.update(loading, description="building the index of words")
    for statement in [word_index, *_READY]:
        connection.execute(statement)


def _rows(numbers: range) -> Iterator[tuple[int, str, str | None, bool]]:
    """Sentences of some words, the common ones in many of them; every tenth memory has expired, some have slots."""
    draw = random.Random(numbers[0])  # noqa: S311 for data, not for secrets
    for number in numbers:
        words = " ".join(f"w{int(_WORDS ** draw.random())}" for _ in range(8))
        slot = f"slot.{number}" if number // 10 % (_SLOTTED // 10) == 0 else None
        yield number, f"case {number} {words}", slot, number % 10 == 0


def _maintain(url: str, upkeep: Upkeep, writer: BesideWriter, advance: Callable[[int], None]) -> None:
    """Upkeep as a worker does it: maintain, then sweeps until nothing is left, each in a transaction of its own."""
    stop = threading.Event()
    tasks = Counter[str]()
    with psycopg.connect(url, autocommit=True) as connection, ThreadPoolExecutor(2) as pool:
        before = _anonymous_memory(connection.info.backend_pid)
        sampling = pool.submit(_peak_memory, connection.info.backend_pid, stop)
        writing = pool.submit(writer.work, stop)
        try:
            started = time.monotonic()
            tasks.update(dict(connection.execute("SELECT * FROM hindsight.maintain(%s)", (BANK,)).fetchall()))
            maintained = time.monotonic()
            first = tasks["expired"]
            while swept := connection.execute("SELECT * FROM hindsight.sweep(%s, %s)", (BANK, BATCH)).fetchall():
                tasks.update(dict(swept))
                advance(tasks["expired"])
            ended = time.monotonic()
        finally:
            stop.set()
        writing.result()
        peak = sampling.result()
    upkeep.tasks = dict(tasks)
    upkeep.seconds |= {"maintain": maintained - started, "sweeps": ended - maintained}
    upkeep.swept_per_second = (tasks["expired"] - first) / (ended - maintained)
    upkeep.memory_bytes = None if before is None or peak is None else (before, max(before, peak))


def _peak_memory(pid: int, stop: threading.Event) -> int | None:
    peak = _anonymous_memory(pid)
    while peak is not None and not stop.wait(0.02):
        peak = max(peak, _anonymous_memory(pid) or 0)
    return peak


def _anonymous_memory(pid: int) -> int | None:
    """Bytes of a process that are its own, without the buffers that all share."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), None)
