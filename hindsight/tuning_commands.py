"""The commands that tune an embedding model, for operators: calibrate and index."""

from __future__ import annotations

import statistics
from typing import Annotated

from cyclopts import Parameter
from rich.console import RenderableType
from rich.table import Table

from hindsight import calibration, tables
from hindsight.calibration import Report, Thresholds
from hindsight.command import AsJson, note, show
from hindsight.config import load_settings
from hindsight.errors import ConfigurationError, UnknownModel
from hindsight.results import Model
from hindsight.sync_client import Hindsight


def calibrate(
    *,
    bank: Annotated[str | None, Parameter(help="A bank whose memories set the floor.")] = None,
    dry_run: Annotated[bool, Parameter(help="Only show the values.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the configured embedding model's floor and thresholds, and write them to the registry.

    They hold for every bank of the model, from the next recall on. Measured on a sample of 300 short texts in Chinese
    and English; with --bank the floor is that of the bank's own memories. For members of the role hindsight_owner.
    """
    with Hindsight.connect(settings=load_settings()) as client:
        embedder = client.embedder
        if embedder is None:
            raise ConfigurationError("no embedding model is configured: set HINDSIGHT_EMBEDDING_PROVIDER")
        memories = client.sample_memories(bank) if bank is not None else []
        note(f"embedding the sample with {embedder.model} …")
        measured = calibration.measure(embedder)
        new = measured.thresholds()
        floor = calibration.bank_floor(embedder, memories) if bank is not None else None
        if floor is not None:
            new = calibration.moved(new, floor)
        new.checked(embedder.model)
        if not dry_run:
            client.register_model()
        known = {model.model: model for model in client.models()}
        old = known.get(embedder.model, embedder)
        if not dry_run:
            client.set_thresholds(
                embedder.model,
                floor=new.floor,
                recall_threshold=new.recall_threshold,
                merge_threshold=new.merge_threshold,
            )
        banks = [one for one in client.status() if one.model == embedder.model]
    report = Report(
        embedder.model,
        Thresholds(old.floor, old.recall_threshold, old.merge_threshold),
        new,
        measured,
        floor,
        memories=sum(one.live for one in banks),
        banks=len(banks),
        written=not dry_run,
    )
    show(as_json, report.as_dict(), *_lines(report))


def index(
    *,
    model: Annotated[str | None, Parameter(help="A registered model; by default the configured one.")] = None,
    m: Annotated[int | None, Parameter(help="Links of each vector, 2 to 100.")] = None,
    ef_construction: Annotated[
        int | None, Parameter(help="Candidates looked at to place a vector, 4 to 1000, at least twice m.")
    ] = None,
    ef_search: Annotated[int | None, Parameter(help="Candidates that a search keeps, 1 to 1000.")] = None,
    rebuild: Annotated[bool, Parameter(help="Build it anew, also if nothing else changes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the HNSW index of an embedding model, or change it: --m and --ef-construction build it anew.

    Meanwhile memories are stored and recalled as before; it needs room for a second index, and is quick as long as the
    index fits into maintenance_work_mem. For members of the role hindsight_owner.
    """
    settings = load_settings()
    with Hindsight.connect(settings=settings) as client:
        name = model or (client.embedder.model if client.embedder else None)
        if name is None:
            raise ConfigurationError("no embedding model is configured: name one with --model")
        shown = _registered(client, name)
        rebuilds = rebuild or m is not None or ef_construction is not None
        if rebuilds:
            note(f"building the index of {name!r} anew; what is broken off here goes on with --rebuild …")
        if rebuilds or ef_search is not None:
            m = shown.m if rebuild and m is None else m
            client.set_index(name, m=m, ef_construction=ef_construction, ef_search=ef_search)
            shown = _registered(client, name)
    show(as_json, shown, tables.pairs_table({field: str(getattr(shown, field)) for field in Model.__slots__}))


def _registered(client: Hindsight, name: str) -> Model:
    models = {model.model: model for model in client.models()}
    if name not in models:
        known = ", ".join(models) or "none yet: the first memory with an embedding does it"
        raise UnknownModel(f"unknown embedding model {name!r}", hint=f"Registered: {known}")
    return models[name]


def _lines(report: Report) -> list[RenderableType]:
    values = _table("cosine", "old", "new")
    for name in Thresholds.__slots__:
        values.add_row(name, f"{getattr(report.old, name):.3f}", f"{getattr(report.new, name):.3f}")
    pairs = _table("question", "memory", "unrelated", "answers", "answers found", "unrelated let through")
    before, after = report.old.recall_threshold, report.new.recall_threshold
    for pair in report.measured.pairs:
        pairs.add_row(
            pair.question,
            pair.memory,
            f"{statistics.median(pair.unrelated):.3f}",
            f"{statistics.median(pair.answers):.3f}",
            f"{pair.found(before):.0%} → {pair.found(after):.0%}",
            f"{pair.false(before):.2%} → {pair.false(after):.2%}",
        )
    merged = report.as_dict()
    alike = ", ".join(
        f"{merged[kind]['merged_old']:.0%} → {merged[kind]['merged_new']:.0%} {words}"
        for kind, words in (("same", "of those that say the same"), ("close", "of those that only look so"))
    )
    done = "goes" if report.written else "would go"
    return [
        f"{report.model}, on the bundled sample"
        + ("" if report.bank_floor is None else f", with the bank's floor, {report.bank_floor:.3f}"),
        values,
        "",
        pairs,
        f"from merge_threshold on: {alike}",
        f"what recall finds among {report.memories} live memories in {report.banks} banks {done} by the new values",
    ]


def _table(*names: str) -> Table:
    table = tables.plain_table()
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place == 0 or name == "memory" else "right")
    return table
