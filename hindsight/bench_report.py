"""What `hindsight bench` shows: its figures as tables, its times as a plot."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from hindsight.bench import CONNECTIONS, SMALL_BANK, Report
from hindsight.tables import pairs_table, plain_table

_NAMES = {
    "ours": "recall",
    "bare": "bare HNSW query, LIMIT 40",
    "textbook": "textbook hybrid: RRF of HNSW and ts_rank",
    "small bank": f"recall in a bank of {SMALL_BANK} in the same table",
    "small bank, server": "the same, in the database alone",
    "round trip": "a round trip that does nothing",
    "ours, dead rows": "recall, with the dead rows",
    "ours, no dead rows": "recall, without them, in turn with it",
    "ours, no hop": "recall that follows no links",
    "ours, one hop": "one, in turn with it",
    "ours, two hops": "two, in turn with it",
}


def lines(report: Report) -> Iterator[RenderableType]:
    """The report for people."""
    yield (
        f"{report.memories} memories, {report.queries} queries, one connection; PostgreSQL {report.postgresql}, "
        f"pgvector {report.pgvector}, {report.cores} cores"
        + (f"; then {report.dead_rows} dead rows more" if report.dead_rows else "")
        + (f"; then {report.links} links" if report.links else "")
    )
    yield _table("milliseconds", {_NAMES[name]: times for name, times in report.latency.items()})
    yield _table("ratio", report.ratios)
    yield pairs_table(
        {
            "recall@10 of the vector channel": f"{report.vector_recall_at_10:.3f} of an exact scan",
            f"throughput, {CONNECTIONS} connections": f"{report.queries_per_second:.0f} recalls a second",
            "time": ", ".join(f"{step} {seconds:.1f} s" for step, seconds in report.load.items()),
            "size": ", ".join(f"{name} {size / 2**20:.0f} MB" for name, size in report.sizes.items()),
        }
    )


def plot(report: Report, path: Path) -> None:
    """Draws, for each query, the part of its runs that took at most so many milliseconds."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name, times in report.samples.items():
        if name != "round trip":
            axes.plot(sorted(times), [(n + 1) / len(times) for n in range(len(times))], label=_NAMES[name])
    axes.set(xscale="log", xlabel="milliseconds", ylabel="part of the queries", title=f"{report.memories} memories")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, format="png", dpi=150)


def _table(title: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    table = plain_table()
    table.add_column(title)
    for name in ("p50", "p95", "p99"):
        table.add_column(name, justify="right")
    for name, values in rows.items():
        table.add_row(name, *(f"{values[p]:.2f}" for p in ("p50", "p95", "p99")))
    return table
