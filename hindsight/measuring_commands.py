"""The commands that measure speed and what holds under load: bench and stress."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from hindsight.command import AsJson, note, show
from hindsight.config import load_settings
from hindsight.errors import ConfigurationError
from hindsight.throwaway import throwaway_database


def bench_recall(
    *,
    memories: Annotated[
        int | None,
        Parameter(help="Live memories in the large bank: 100,000; with --embedding 2,000.", validator=Number(gte=100)),
    ] = None,
    queries: Annotated[int, Parameter(help="How many questions are timed.", validator=Number(gte=1))] = 200,
    file: Annotated[
        Path | None, Parameter(help="What the memories say: one a line, or a JSON list; else synthetic sentences.")
    ] = None,
    dead_rows: Annotated[
        int, Parameter(help="Superseded and forgotten memories to add, then measure again.", validator=Number(gte=0))
    ] = 0,
    links: Annotated[
        int, Parameter(help="Links to make at random, then measure recall along them.", validator=Number(gte=0))
    ] = 0,
    curve: Annotated[
        bool, Parameter(help="Instead: what HNSW's m, ef_construction and ef_search find, and how long they take.")
    ] = False,
    embedding: Annotated[
        bool, Parameter(help="Instead: how fast the worker embeds with the configured model, beside the model alone.")
    ] = False,
    keep: Annotated[
        Path | None, Parameter(help="A directory for the database, which stays; the next run there loads nothing.")
    ] = None,
    plot: Annotated[Path | None, Parameter(help="A PNG file to draw the times into; needs the extra plot.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how long recall takes in a large bank, beside a bare vector query and the textbook's hybrid query.

    It runs in an embedded PostgreSQL of its own. The vectors are synthetic; no embedding model is asked.
    """
    if not importlib.util.find_spec("numpy"):
        raise ConfigurationError("hindsight bench needs numpy: pip install numpy, or 'hindsight-memory[local]'")
    if plot and not importlib.util.find_spec("matplotlib"):
        raise ConfigurationError("--plot needs matplotlib: pip install 'hindsight-memory[plot]'")
    from hindsight import bench, bench_curve, bench_embedding, bench_report
    from hindsight.bench_data import read_texts

    if embedding:
        with throwaway_database("bench", bench.SERVER) as (url, _):
            speed = bench_embedding.embedding_speed(url, load_settings(), memories or 2000)
        show(as_json, speed.as_dict(), *bench_embedding.lines(speed))
        return
    memories = memories or 100_000
    if curve:
        with throwaway_database("bench", bench.SERVER) as (url, _):
            measured = bench_curve.curves(url, memories, queries)
        show(as_json, [one.as_dict() for one in measured], bench_curve.curve_table(measured))
        return
    texts = read_texts(file, memories) if file else None
    if texts and len(texts) < memories:
        note(f"{file} holds {len(texts)} distinct texts: measuring with as many memories")
    with throwaway_database("bench", bench.SERVER, keep) as (url, _):
        report = bench.bench(url, memories, queries, texts, dead_rows, links)
    if plot:
        bench_report.plot(report, plot)
    show(as_json, report.as_dict(), *bench_report.lines(report))


def stress_memories(
    *,
    writers: Annotated[int, Parameter(help="How many write at once.", validator=Number(gte=1, lte=80))] = 20,
    seconds: Annotated[float, Parameter(help="For how long, each phase.", validator=Number(gt=0))] = 60,
    expire: Annotated[
        bool, Parameter(help="Instead: maintain a bank of which a tenth has expired, beside a writer.")
    ] = False,
    reembed: Annotated[
        bool, Parameter(help="Instead: change a bank's embedding model under constant recall, by made-up vectors.")
    ] = False,
    http: Annotated[
        bool,
        Parameter(help="Instead: a server under many clients, some hostile, and without its database for a while."),
    ] = False,
    clients: Annotated[int, Parameter(help="With --http: how many.", validator=Number(gte=1, lte=2000))] = 200,
    embedding_ms: Annotated[
        float,
        Parameter(help="With --reembed: milliseconds that a model takes for a memory, as an endpoint would."),
    ] = 0,
    memories: Annotated[
        int | None,
        Parameter(
            help="In the bank: with --expire, by default 1,000,000; with --reembed, 50,000.", validator=Number(gte=1000)
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Let many writers at once loose on the same few memories, and check that nothing is lost, doubled or deadlocked.

    It runs in an embedded PostgreSQL of its own. Ends with 1 when something that must hold did not.
    """
    from hindsight import stress, stress_expire

    if reembed:
        if not importlib.util.find_spec("numpy"):
            raise ConfigurationError("--reembed needs numpy: pip install numpy, or 'hindsight-memory[local]'")
        from hindsight import stress_reembed

        with throwaway_database("stress", stress_expire.SERVER) as (url, _):
            change = stress_reembed.reembed(url, memories or 50_000, embedding_ms=embedding_ms)
        show(as_json, change.as_dict(), *stress_reembed.lines(change))
        return 0 if change.holds else 1
    if http:
        from hindsight import stress_http

        with throwaway_database("stress") as (url, directory):
            served = stress_http.http(url, directory, clients, seconds)
        show(as_json, served.as_dict(), *stress_http.lines(served))
        return 0 if served.holds else 1
    if expire:
        with throwaway_database("stress", stress_expire.SERVER) as (url, _):
            upkeep = stress_expire.expire(url, memories or 1_000_000)
        show(as_json, upkeep.as_dict(), *stress_expire.lines(upkeep))
        return 0 if upkeep.holds else 1
    with throwaway_database("stress") as (url, _):
        report = stress.stress(url, writers, seconds)
    show(as_json, report.as_dict(), *stress.lines(report))
    return 0 if report.holds else 1
