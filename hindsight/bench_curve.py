"""`hindsight bench --curve`: what HNSW's settings buy: the neighbours that are found, against the time it takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from psycopg import Connection
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from hindsight.bench import BARE, EXACT, Query, connected, questions
from hindsight.bench_data import CHUNK, DIMENSIONS, VectorSpace, synthetic_texts
from hindsight.bench_load import Load, sizes
from hindsight.tables import plain_table

INDEXES = ((16, 64), (16, 128), (24, 128), (32, 128), (32, 256))
"""m and ef_construction of the indexes that are built in turn."""
SEARCHES = (40, 64, 100, 150, 200, 300)
"""ef_search of the searches of each."""


@dataclass(slots=True)
class Point:
    """An ef_search: recall@10 against an exact scan, and the median time of the 40 nearest, in milliseconds."""

    ef_search: int
    recall_at_10: float
    p50_ms: float


@dataclass(slots=True)
class Curve:
    """An index: how long it took to build, its bytes, and what its searches find."""

    m: int
    ef_construction: int
    build_seconds: float
    index_bytes: int
    points: list[Point] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def curves(url: str, memories: int, queries: int) -> list[Curve]:
    """Fills a migrated, empty database with synthetic vectors, and measures one index after the other."""
    space = VectorSpace()
    texts = list(synthetic_texts(memories))
    measured = []
    with Progress(console=Console(stderr=True), transient=True) as progress, connected(url) as connection:
        loading = progress.add_task("loading", total=memories)
        load = Load(connection, space, lambda rows: progress.advance(loading, rows))
        names = {"model_id": load.create_banks(), "dimensions": DIMENSIONS}
        load.fill("large", texts)
        asked = questions("large", texts, load.vectors("large", min(memories, CHUNK)), space, queries)
        exact = EXACT.format(**names)
        nearest = [_found(connection, exact, query) for query in progress.track(asked, description="scanning exactly")]
        for m, ef_construction in progress.track(INDEXES, description="building and searching"):
            seconds = load.build_index(m=m, ef_construction=ef_construction)
            curve = Curve(m, ef_construction, seconds, sizes(connection)["vector index"])
            for ef_search in SEARCHES:
                connection.execute(f"SET hnsw.ef_search = {ef_search}")
                curve.points.append(_point(connection, BARE.format(**names), ef_search, asked, nearest))
            measured.append(curve)
    return measured


def curve_table(measured: Sequence[Curve]) -> Table:
    """For people: a row for each index, recall@10 and milliseconds for each ef_search."""
    table = plain_table()
    for name in ("m", "ef_construction", "build s", "MB"):
        table.add_column(name, justify="right")
    for ef_search in SEARCHES:
        table.add_column(f"ef_search {ef_search}", justify="right")
    for curve in measured:
        found = [f"{point.recall_at_10:.3f}, {point.p50_ms:.1f}" for point in curve.points]
        build = [f"{curve.build_seconds:.0f}", f"{curve.index_bytes / 2**20:.0f}"]
        table.add_row(str(curve.m), str(curve.ef_construction), *build, *found)
    return table


def _found(connection: Connection[Any], statement: str, query: Query) -> set[Any]:
    return {row[0] for row in connection.execute(statement, query).fetchall()[:10]}


def _point(
    connection: Connection[Any], statement: str, ef_search: int, asked: Sequence[Query], nearest: Sequence[set[Any]]
) -> Point:
    """Each query twice: the first time reads what was not read before."""
    recalls, times = [], []
    for query, exact in zip(asked, nearest, strict=True):
        recalls.append(len(exact & _found(connection, statement, query)) / len(exact))
        started = time.perf_counter()
        connection.execute(statement, query).fetchall()
        times.append((time.perf_counter() - started) * 1000)
    return Point(ef_search, statistics.fmean(recalls), statistics.median(times))
