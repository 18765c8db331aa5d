"""`hindsight stress`: many writers at once on the same few memories, and what must hold whatever they do."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg
from rich.console import Console, RenderableType
from rich.progress import Progress

from hindsight.stress_check import Invariant, Watch, acknowledged_events, check
from hindsight.stress_writer import DIMENSIONS, MODEL, Known, Tally, Writer
from hindsight.tables import pairs_table, plain_table, visible

BANKS = ["stress-1", "stress-2"]
_CAN_ERASE = "SELECT 1 FROM pg_proc WHERE pronamespace = 'hindsight'::regnamespace AND proname = 'erase_memory'"
_VERSIONS = "SELECT postgresql, pgvector FROM hindsight.versions()"


@dataclass(slots=True)
class Report:
    """What the writers did and what held. Times in milliseconds, as the callers saw them, with what they had to wait.

    operations: kind → count, per_second, p50, p95, p99. refused, retried: "kind SQLSTATE" → how often.
    events: action → how many the answers account for. looks: how often doubles were looked for.
    """

    writers: int
    seconds: float
    cores: int | None
    postgresql: str
    pgvector: str
    operations: dict[str, dict[str, float]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    retried: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    looks: int = 0
    invariants: list[Invariant] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not any(invariant.broken for invariant in self.invariants)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


def stress(url: str, writers: int, seconds: float) -> Report:
    """Lets writers loose on two banks of a migrated database for so many seconds, then checks all they were told.

    Threads are enough: they wait for the database nearly all of the time.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        can_erase = _prepare(connection)
        postgresql, pgvector = connection.execute(_VERSIONS).fetchall()[0]
        watch = Watch(url)
        tallies, taken = _let_loose(url, writers, seconds, can_erase, watch)
        report = Report(writers, taken, os.cpu_count(), postgresql, pgvector, looks=watch.looks)
        report.invariants = check(connection, BANKS, tallies, watch)
    kinds = sorted({kind for tally in tallies for kind in tally.milliseconds})
    for kind in kinds:
        times = [ms for tally in tallies for ms in tally.milliseconds[kind]]
        report.operations[kind] = {"count": len(times), "per_second": len(times) / taken, **percentiles(times)}
    report.refused = _summed([tally.refused for tally in tallies])
    report.retried = _summed([tally.retried for tally in tallies])
    report.events = dict(acknowledged_events([write for tally in tallies for write in tally.writes]))
    return report


def percentiles(times: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else [*times] * 99
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}


def lines(report: Report) -> Iterator[RenderableType]:
    """The report for people."""
    yield (
        f"{report.writers} writers, {report.seconds:.0f} seconds; PostgreSQL {report.postgresql}, "
        f"pgvector {report.pgvector}, {report.cores} cores"
    )
    table = plain_table()
    table.add_column("operation")
    for name in ("acknowledged", "per second", "p50 ms", "p95 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for kind, figures in report.operations.items():
        times = (f"{figures[p]:.1f}" for p in ("p50", "p95", "p99"))
        table.add_row(kind, f"{figures['count']:.0f}", f"{figures['per_second']:.1f}", *times)
    yield table
    yield pairs_table(
        {
            "refused": _listed(report.refused),
            "run again": _listed(report.retried),
            "events": _listed(report.events),
            "looks for doubles": str(report.looks),
        }
    )
    for invariant in report.invariants:
        yield visible(f"{'BROKEN' if invariant.broken else 'holds'}: {invariant.name}")
        yield from (visible(f"  {what}") for what in invariant.broken)


def _prepare(connection: psycopg.Connection[Any]) -> bool:
    """Makes the banks and their model. Whether memories can be erased."""
    call = "SELECT hindsight.register_model(%s, %s, recall_threshold => 0.5, merge_threshold => 0.9)"
    connection.execute(call, (MODEL, DIMENSIONS))
    for bank in BANKS:
        connection.execute("SELECT hindsight.create_bank(%s)", (bank,))
    return bool(connection.execute(_CAN_ERASE).fetchall())


def _let_loose(url: str, writers: int, seconds: float, can_erase: bool, watch: Watch) -> tuple[list[Tally], float]:
    banks = {bank: Known() for bank in BANKS}
    crowd = [Writer(url, number, banks, can_erase) for number in range(writers)]
    sweeper = Writer(url, writers, banks, can_erase)
    stop = threading.Event()
    with (
        ThreadPoolExecutor(writers + 2) as pool,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        working = progress.add_task(f"{writers} writers", total=seconds)
        started = time.monotonic()
        done = [pool.submit(writer.run, stop) for writer in crowd]
        done += [pool.submit(watch.run, stop), pool.submit(_sweep, sweeper, stop)]
        try:
            while (passed := time.monotonic() - started) < seconds and not any(one.done() for one in done):
                progress.update(working, completed=passed)
                time.sleep(min(0.1, seconds - passed))
        finally:
            stop.set()
        for one in done:
            one.result()
        taken = time.monotonic() - started
    for writer in [*crowd, sweeper]:
        writer.close()
    return [writer.tally for writer in [*crowd, sweeper]], taken


def _sweep(writer: Writer, stop: threading.Event) -> None:
    """What a worker does beside them: small sweeps, and the whole upkeep once in a while."""
    turn = 0
    while not stop.wait(0.05):
        turn += 1
        bank = BANKS[turn % len(BANKS)]
        if turn % 20:
            writer.call("sweep", "sweep", bank=bank, most=50)
        else:
            writer.call("maintain", "maintain", bank=bank)


def _summed(counters: Sequence[Counter[tuple[str, str]]]) -> dict[str, int]:
    total = sum(counters, Counter[tuple[str, str]]())
    return {f"{kind} {sqlstate}": count for (kind, sqlstate), count in sorted(total.items())}


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items()) or "none"
