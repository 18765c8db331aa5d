"""The command `hindsight eval`: how good what the database does is, by labelled data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast

from cyclopts import Parameter

from hindsight.command import AsJson, show
from hindsight.config import load_settings
from hindsight.database import database_url
from hindsight.dataset import Format, read_corpora
from hindsight.distiller import distiller_from
from hindsight.embedding_cache import CachedEmbedder
from hindsight.engine import sync_engine
from hindsight.errors import ConfigurationError, InvalidArgument
from hindsight.evaluation import Channel, evaluate
from hindsight.evaluation_audit import evaluate_audit, verdict_table
from hindsight.evaluation_conversations import (
    by_model,
    evaluate_conversations,
    extraction_table,
    read_conversations,
    rules,
)
from hindsight.evaluation_defence import Case, defence_table, evaluate_defence, read_cases
from hindsight.evaluation_pairs import evaluate_pairs, read_pairs
from hindsight.evaluation_poison import read_poison
from hindsight.evaluation_redaction import evaluate_redaction, read_sentences, redaction_table
from hindsight.language_model import NOT_CONFIGURED
from hindsight.sync_client import Hindsight
from hindsight.tables import groups_table, quality_table, visible
from hindsight.throwaway import throwaway_database

Labelled = Literal["pairs", "audit", "redaction", "conversations", "defence", "poison"]


def eval_recall(
    file: Annotated[Path, Parameter(help="The data set.")],
    /,
    *,
    format: Annotated[
        Format | Labelled,
        Parameter(
            help="What the file is: LoCoMo's JSON, SQuAD's, lines of labelled pairs (stored in turn, or audited), "
            "of sentences to redact, of conversations with what is worth keeping of them, of attacks on a memory, or a "
            "public set of attacks (poison)."
        ),
    ],
    channels: Annotated[
        list[Channel] | None, Parameter(help="What to measure; by default all.", consume_multiple=True)
    ] = None,
    as_turns: Annotated[
        bool, Parameter(help="Log the passages as turns, and let a worker distil them verbatim, instead of storing.")
    ] = False,
    hops: Annotated[
        int | None, Parameter(help="Links that recall follows one after the other: 0, 1 or 2; 1 by default.")
    ] = None,
    model: Annotated[
        str | None, Parameter(help="Of conversations: ask this language model, not the rules; HINDSIGHT_LLM_….")
    ] = None,
    cache: Annotated[Path | None, Parameter(help="A file to keep embeddings in, for the next run.")] = None,
    here: Annotated[bool, Parameter(help="Use the configured database; the banks eval-… stay there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how much of the evidence for a data set's questions recall finds, and what each channel finds alone.

    Or, of pairs of sentences, which are merged, or what an audit says; of sentences, what is redacted; of
    conversations, how much of what is worth keeping is extracted, and what else; of attacks, how many are believed,
    and how much that is honest is held back. It runs in an embedded PostgreSQL of
    its own, with the configured embedding model.
    """
    run = _Run(file, cache, here, as_json, model)
    if format in _LABELLED:
        if channels or as_turns or hops is not None:
            raise InvalidArgument(f"{format} have no channels, turns and hops", hint="Leave the options out")
        _LABELLED[cast(Labelled, format)](run)
        return
    corpora = read_corpora(file, cast(Format, format))
    settings = load_settings()
    with run.client() as (url, client):
        report = evaluate(corpora, client, url, settings, channels, as_turns=as_turns, hops=hops)
    heading = f"{report.memories} memories, {report.questions} questions, {report.model or 'no embedding model'}"
    timing = f"one question is embedded in {report.embedding_ms:.1f} ms (median)" if report.embedding_ms else ""
    show(as_json, report.as_dict(), heading, quality_table(report.quality, report.sql_ms), timing)


@dataclass(frozen=True, slots=True)
class _Run:
    """What every evaluation is told."""

    file: Path
    cache: Path | None
    here: bool
    as_json: bool
    model: str | None

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        if self.here:
            yield database_url(load_settings())
            return
        with throwaway_database("eval") as (url, _):
            yield url

    @contextlib.contextmanager
    def client(self, *, keeps_embeddings: bool = False) -> Iterator[tuple[str, Hindsight]]:
        """A client. keeps_embeddings: texts come again and again, and are embedded once also without a cache."""
        with self.database() as url, Hindsight.connect(url, settings=load_settings()) as client:
            if client.embedder and (self.cache or keeps_embeddings):
                client.embedder = CachedEmbedder(client.embedder, self.cache or Path(":memory:"))
            yield url, client


def _pairs(run: _Run) -> None:
    pairs = read_pairs(run.file)
    with run.client(keeps_embeddings=True) as (url, client):
        report = evaluate_pairs(pairs, client, url, load_settings())
    wrong = [visible(f"merged, but {pair.label}: {pair.one} | {pair.other}") for pair in report.wrong]
    heading = f"{len(pairs)} pairs, {report.model or 'no embedding model'}"
    show(run.as_json, report.as_dict(), heading, groups_table(report.groups), *wrong)


def _audit(run: _Run) -> None:
    pairs = read_pairs(run.file)
    with run.client() as (_, client):
        found = evaluate_audit(pairs, client)
    show(run.as_json, found.as_dict(), found.model or "no embedding model", verdict_table(found))


def _redaction(run: _Run) -> None:
    sentences = read_sentences(run.file)
    with run.client() as (_, client):
        found = evaluate_redaction(sentences, client)
    faults = [visible(f"missed {kind} {value}: {text}") for text, kind, value in found.missed]
    faults += [visible(f"no {kind} {value}: {text}") for text, kind, value in found.mistaken]
    show(run.as_json, found.as_dict(), f"{len(sentences)} sentences", redaction_table(found.kinds), *faults)


def _conversations(run: _Run) -> None:
    conversations = read_conversations(run.file)
    if run.model is not None:
        distiller = distiller_from(load_settings(llm_model=run.model))
        if distiller is None:
            raise ConfigurationError(f"there is no language model to ask: set {NOT_CONFIGURED}")
        report = evaluate_conversations(conversations, by_model(distiller))
    else:
        with run.database() as url, contextlib.closing(sync_engine(url, load_settings()).connect()) as connection:
            report = evaluate_conversations(conversations, rules(connection))
    wrong = [visible(f"wrong, {place}: {found.type}: {found.content}") for place, found in report.wrong]
    missed = [
        visible(f"missed, {place}: {', '.join(keep.types)}: {' … '.join(keep.holds)}") for place, keep in report.missed
    ]
    failed = [visible(f"failed, {place}: {error}") for place, error in report.failed]
    heading = f"{len(conversations)} conversations, by {run.model or 'rules'}"
    show(run.as_json, report.as_dict(), heading, extraction_table(report.groups), *wrong, *missed, *failed)


def _defence(run: _Run) -> None:
    _attacked(run, read_cases(run.file))


def _poison(run: _Run) -> None:
    _attacked(run, read_poison(run.file))


def _attacked(run: _Run, cases: list[Case]) -> None:
    with run.client(keeps_embeddings=True) as (_, client):
        report = evaluate_defence(cases, client)
        model = client.embedder.model if client.embedder else "no embedding model"
    believed = [visible(f"believed, {one.id}: {one.steps[0]['content']}") for one in report.believed]
    held = [visible(f"held back, {one.id}: {'; '.join(why)}: {one.steps[0]['content']}") for one, why in report.held]
    show(run.as_json, report.as_dict(), f"{len(cases)} cases, {model}", defence_table(report.kinds), *believed, *held)


_LABELLED: dict[str, Callable[[_Run], None]] = {
    "pairs": _pairs,
    "audit": _audit,
    "redaction": _redaction,
    "conversations": _conversations,
    "defence": _defence,
    "poison": _poison,
}
