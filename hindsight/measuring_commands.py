"""The commands that measure: eval and bench."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hindsight import tables
from hindsight.command import AsJson, note, show
from hindsight.config import load_settings
from hindsight.database import database_url
from hindsight.dataset import Format, read_corpora
from hindsight.embedding_cache import CachedEmbedder
from hindsight.errors import InvalidArgument
from hindsight.evaluation import Channel, evaluate
from hindsight.sync_client import Hindsight
from hindsight.throwaway import throwaway_database

AtLeastOne = Annotated[int, Parameter()]


def eval_recall(
    file: Annotated[Path, Parameter(help="The data set.")],
    /,
    *,
    format: Annotated[Format, Parameter(help="What the file is: LoCoMo's JSON, or SQuAD's.")],
    channels: Annotated[
        list[Channel] | None, Parameter(help="What to measure; by default all.", consume_multiple=True)
    ] = None,
    cache: Annotated[Path | None, Parameter(help="A file to keep embeddings in, for the next run.")] = None,
    here: Annotated[bool, Parameter(help="Use the configured database; the banks eval-… stay there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how much of the evidence for a data set's questions recall finds, and what each channel finds alone.

    It runs in an embedded PostgreSQL of its own, with the configured embedding model.
    """
    corpora = read_corpora(file, format)
    settings = load_settings()
    with _database("eval", here) as url, Hindsight.connect(url, settings=settings) as client:
        if cache and client.embedder:
            client.embedder = CachedEmbedder(client.embedder, cache)
        report = evaluate(corpora, client, url, settings, channels)
    heading = f"{report.memories} memories, {report.questions} questions, {report.model or 'no embedding model'}"
    timing = f"one question is embedded in {report.embedding_ms:.1f} ms (median)" if report.embedding_ms else ""
    show(as_json, report.as_dict(), heading, tables.quality_table(report.quality, report.sql_ms), timing)


@contextlib.contextmanager
def _database(purpose: str, is_configured: bool) -> Iterator[str]:
    if is_configured:
        yield database_url(load_settings())
        return
    with throwaway_database(purpose) as (url, _):
        yield url
