"""`hindsight bench`: how long recall takes in a large bank, beside the queries that it would be compared with."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from rich.console import Console
from rich.progress import Progress

from hindsight.bench_data import CHUNK, DIMENSIONS, Vectors, VectorSpace, question, synthetic_texts
from hindsight.bench_load import Load, sizes
from hindsight.calls import vector

# What is measured. The other two are what people write by hand, so they are written out here: a bare vector query,
# and the reciprocal rank fusion of pgvector's documentation, over that query and one for any of the words.
OURS = "SELECT * FROM hindsight.recall(%(bank)s, %(query)s, %(embedding)s)"
BARE = """
    SELECT memory_id FROM hindsight.live_memory WHERE model_id = {model_id}
    ORDER BY embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions}) LIMIT 40
"""
TEXTBOOK = """
    WITH by_meaning AS (
      SELECT memory_id, rank() OVER (ORDER BY embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions}))
      FROM hindsight.live_memory WHERE model_id = {model_id}
      ORDER BY embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions}) LIMIT 40
    ),
    by_words AS (
      SELECT memory_id, rank() OVER (ORDER BY ts_rank(document, words) DESC)
      FROM hindsight.live_memory,
        CAST(replace(plainto_tsquery('english', %(query)s)::text, ' & ', ' | ') AS tsquery) AS words
      WHERE document @@ words
      ORDER BY ts_rank(document, words) DESC LIMIT 40
    )
    SELECT memory_id, coalesce(1.0 / (60 + m.rank), 0) + coalesce(1.0 / (60 + w.rank), 0) AS score
    FROM by_meaning AS m FULL JOIN by_words AS w USING (memory_id)
    ORDER BY score DESC LIMIT 10
"""
NEAREST = "SELECT memory_id FROM hindsight.recall(%(bank)s, '', %(embedding)s, top_k => 10, min_score => 0)"
# Without the cast to the index's type no index answers, so every memory is compared.
EXACT = """
    SELECT memory_id FROM hindsight.live_memory WHERE model_id = {model_id}
    ORDER BY embedding <=> %(embedding)s::halfvec LIMIT 10
"""
HOPS = "SELECT * FROM hindsight.recall(%(bank)s, %(query)s, %(embedding)s, hops => {hops})"
LINKS = """
    WITH known AS MATERIALIZED (
      SELECT b.bank_id, array_agg(m.memory_id) AS ids
      FROM hindsight.live_memory AS m JOIN hindsight.bank AS b USING (bank_id)
      WHERE b.name = 'large' GROUP BY b.bank_id
    ),
    pair AS (
      SELECT n %% %(memories)s AS one, (n * 7919 + n / %(memories)s * 104729) %% %(memories)s AS other
      FROM generate_series(1, %(links)s::bigint) AS n
    )
    INSERT INTO hindsight.link (bank_id, from_id, to_id, relation, weight)
    SELECT k.bank_id, k.ids[p.one + 1], k.ids[p.other + 1], 'related', random()
    FROM known AS k, pair AS p WHERE p.one <> p.other
    ON CONFLICT DO NOTHING
"""
VERSIONS = "SELECT postgresql, pgvector FROM hindsight.versions()"
ROUND_TRIP = "SELECT %(bank)s::text, %(query)s::text, %(embedding)s::text IS NULL"

SERVER = {
    "shared_buffers": "4GB",  # as ever a quarter of the memory: a million memories and their indexes take 2.6 GB
    "maintenance_work_mem": "2GB",  # the index of vectors is built in memory, up to about a million of them
    "dynamic_shared_memory_type": "mmap",  # a container's /dev/shm is too small for a parallel build
    "max_wal_size": "4GB",
    "autovacuum": "off",  # it vacuums and analyzes itself, when nothing is timed
}
"""The parameters of the server that it is measured in."""
CONNECTIONS = 4
HOP_NAMES = ("no hop", "one hop", "two hops")
SMALL_BANK = 100
_WARM_UP = 20  # queries asked before any is timed
_COMPARED = 100  # queries whose neighbours are compared with an exact scan

Query = dict[str, Any]


@dataclass(slots=True)
class Report:
    """What was measured. Times in milliseconds, as the caller sees them over a Unix socket; sizes in bytes.

    latency: "ours", "bare" (vector query), "textbook" (hybrid), "small bank" (in the database alone: "small bank,
    server") and "round trip" → p50, p95, p99.
    ratios: ours/bare and ours/textbook → p50, p95, p99; with dead rows also "with dead/without", with links also
    "one hop/none" and "two hops/none".
    samples: the times themselves, for a plot.
    """

    memories: int
    queries: int
    cores: int | None
    postgresql: str
    pgvector: str
    load: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    ratios: dict[str, dict[str, float]] = field(default_factory=dict)
    vector_recall_at_10: float = 0.0
    queries_per_second: float = 0.0
    dead_rows: int = 0
    links: int = 0
    samples: dict[str, list[float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "samples"}


def bench(
    url: str, memories: int, queries: int, texts: Sequence[str] | None = None, dead_rows: int = 0, links: int = 0
) -> Report:
    """Fills a migrated database, unless it holds as many memories from an earlier run, and measures it.

    texts: what the memories say, synthetic where None; the vectors are synthetic always. dead_rows: superseded and
    forgotten memories that are put into the same bank afterwards, and must not slow it down. links: made between its
    memories, in a copy of the database, in which recall then follows them.
    """
    space = VectorSpace()
    texts = list(synthetic_texts(memories)) if texts is None else list(texts)
    memories = len(texts)
    with Progress(console=Console(stderr=True), transient=True) as progress, connected(url) as connection:
        postgresql, pgvector = connection.execute(VERSIONS).fetchall()[0]
        report = Report(memories, queries, os.cpu_count(), postgresql, pgvector, dead_rows=dead_rows, links=links)
        loading = progress.add_task("loading", total=memories + SMALL_BANK)
        load = Load(connection, space, lambda rows: progress.advance(loading, rows))
        model_id = load.create_banks()
        if not load.is_done(memories):
            load.fill("large", texts)
            load.fill("small", synthetic_texts(SMALL_BANK, seed=7))
            progress.update(loading, description="building the index")
            load.build_index()
            load.maintain()
        load.warm()
        report.load = load.seconds
        report.sizes = sizes(connection)

        names = {"model_id": model_id, "dimensions": DIMENSIONS}
        statements = {
            "ours": OURS, "bare": BARE.format(**names), "textbook": TEXTBOOK.format(**names), "round trip": ROUND_TRIP,
        }  # fmt: skip
        asked = questions("large", texts, load.vectors("large", min(memories, CHUNK)), space, queries)
        small = [{**query, "bank": "small"} for query in asked]
        here = {name: (connection, statement) for name, statement in statements.items()}
        report.samples = _times(here, asked, progress)
        report.samples |= _times({"small bank": (connection, OURS)}, small, progress)
        report.samples["small bank, server"] = _server_times(connection, OURS, small)
        report.vector_recall_at_10 = _vector_recall(connection, EXACT.format(**names), asked[:_COMPARED], progress)
        report.queries_per_second = _throughput(url, asked)
    if dead_rows:
        report.samples |= _times_with_dead_rows(url, space, asked, dead_rows)
    if links:
        report.samples |= _times_with_links(url, space, asked, memories, links)
    report.latency = {name: _percentiles(times) for name, times in report.samples.items()}
    report.ratios = _ratios(report.latency)
    return report


def questions(bank: str, texts: Sequence[str], vectors: Vectors, space: VectorSpace, count: int) -> list[Query]:
    """Questions for memories drawn by chance: some of the memory's words, and a vector near its own."""
    generator = random.Random(3)  # noqa: S311 for data, not for secrets
    drawn = [generator.randrange(len(vectors)) for _ in range(count)]
    near = space.near(vectors[drawn], seed=4)
    return [
        {"bank": bank, "query": question(texts[number], texts, generator), "embedding": vector(embedding.tolist())}
        for number, embedding in zip(drawn, near, strict=True)
    ]


def connected(url: str) -> Connection[Any]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=None)


def _times(
    statements: Mapping[str, tuple[Connection[Any], str]], queries: Sequence[Query], progress: Progress
) -> dict[str, list[float]]:
    """Milliseconds of each statement for each query.

    The statements in turn, so that a busy moment meets all alike; in an order drawn for each query, since the first one
    warms the caches for the next.
    """
    order, generator = list(statements), random.Random(5)  # noqa: S311
    for query in queries[:_WARM_UP]:
        for connection, statement in statements.values():
            connection.execute(statement, query).fetchall()
    times: dict[str, list[float]] = {name: [] for name in statements}
    for query in progress.track(queries, description=f"timing {', '.join(statements)}"):
        generator.shuffle(order)
        for name in order:
            connection, statement = statements[name]
            started = time.perf_counter()
            connection.execute(statement, query).fetchall()
            times[name].append((time.perf_counter() - started) * 1000)
    return times


def _server_times(connection: Connection[Any], statement: str, queries: Sequence[Query]) -> list[float]:
    """Milliseconds in the database alone, as EXPLAIN ANALYZE counts them: without parsing, planning and sending."""
    explain = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON) " + statement
    return [connection.execute(explain, query).fetchall()[0][0][0]["Execution Time"] for query in queries]


def _times_with_dead_rows(
    url: str, space: VectorSpace, queries: Sequence[Query], dead_rows: int
) -> dict[str, list[float]]:
    """Milliseconds in a copy of the database with dead rows, and in the one without, in turn."""
    with (
        Progress(console=Console(stderr=True), transient=True) as progress,
        connected(_copy(url, "with_dead_rows")) as there,
        connected(url) as here,
    ):
        adding = progress.add_task("adding dead rows", total=dead_rows)
        load = Load(there, space, lambda rows: progress.advance(adding, rows))
        load.fill("large", synthetic_texts(dead_rows, seed=11), is_dead=True, offset=10**9)
        load.maintain()
        return _times({"ours, dead rows": (there, OURS), "ours, no dead rows": (here, OURS)}, queries, progress)


def _copy(url: str, name: str) -> str:
    """The URL of a copy of the database, to which nobody may be connected."""
    with connected(make_conninfo(url, dbname="postgres")) as connection:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(str(conninfo_to_dict(url)["dbname"]))))
    return make_conninfo(url, dbname=name)


def _times_with_links(
    url: str, space: VectorSpace, queries: Sequence[Query], memories: int, links: int
) -> dict[str, list[float]]:
    """Milliseconds in a copy of the database with so many links, as they are followed, in turn."""
    with (
        Progress(console=Console(stderr=True), transient=True) as progress,
        connected(_copy(url, "with_links")) as there,
    ):
        progress.add_task("making links", total=None)
        there.execute("SET session_replication_role = replica")  # foreign keys: what is written here is right
        there.execute(LINKS, {"memories": memories, "links": links})
        there.execute("RESET session_replication_role")
        there.execute("VACUUM ANALYZE hindsight.link")
        Load(there, space, lambda rows: None).warm()
        statements = {f"ours, {name}": (there, HOPS.format(hops=hops)) for hops, name in enumerate(HOP_NAMES)}
        return _times(statements, queries, progress)


def _vector_recall(connection: Connection[Any], exact: str, queries: Sequence[Query], progress: Progress) -> float:
    """The part of the ten nearest that recall finds by the vector alone."""
    found = []
    for query in progress.track(queries, description="comparing with an exact scan"):
        nearest = {row[0] for row in connection.execute(exact, query)}
        found.append(len(nearest & {row[0] for row in connection.execute(NEAREST, query)}) / len(nearest))
    return statistics.fmean(found)


def _throughput(url: str, queries: Sequence[Query]) -> float:
    """Recalls a second, over CONNECTIONS connections at once."""

    def ask(shift: int) -> None:
        with connected(url) as connection:
            for query in [*queries[shift:], *queries[:shift]]:
                connection.execute(OURS, query).fetchall()

    started = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(ask, range(CONNECTIONS)))
    return CONNECTIONS * len(queries) / (time.perf_counter() - started)


def _percentiles(times: Iterable[float]) -> dict[str, float]:
    p50, p95, p99 = np.percentile(list(times), [50, 95, 99]).tolist()
    return {"p50": p50, "p95": p95, "p99": p99}


def _ratios(latency: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    pairs = {
        "ours/bare": ("ours", "bare"),
        "ours/textbook": ("ours", "textbook"),
        "with dead/without": ("ours, dead rows", "ours, no dead rows"),
        "one hop/none": ("ours, one hop", "ours, no hop"),
        "two hops/none": ("ours, two hops", "ours, no hop"),
    }
    return {
        name: {p: latency[one][p] / latency[other][p] for p in latency[one]}
        for name, (one, other) in pairs.items()
        if one in latency
    }
