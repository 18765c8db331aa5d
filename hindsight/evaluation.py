"""`hindsight eval`: does recall find the passages that answer a question? With what each channel finds alone."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args
from uuid import UUID

from rich.console import Console
from rich.progress import Progress
from sqlalchemy import Connection

from hindsight.calls import call, vector
from hindsight.config import Settings
from hindsight.dataset import Corpus, Passage, Question
from hindsight.embedding import Embedder
from hindsight.engine import sync_engine
from hindsight.errors import InvalidArgument
from hindsight.sync_client import Hindsight
from hindsight.worker import drain

Channel = Literal["vector", "words", "rrf", "ours"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)

TOP_K = 20
RRF_K = 60  # as in Cormack, Clarke and Büttcher 2009
BATCH = 64  # memories stored in one transaction
_EMBEDDINGS_TIMED = 50


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over questions, in [0, 1].

    recall_at_…: the part of a question's gold passages among the first 5, 10, 20. hit_at_5: whether one of them is
    among the first 5. mrr: 1 / the rank of the first of them, 0 where none is among the first 20.
    """

    questions: int
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    hit_at_5: float
    mrr: float


@dataclass(slots=True)
class Report:
    """What was measured. `quality`: channel → category → figures, the category "all" first.

    `sql_ms`: the median time of a query in each channel, its embedding given; `embedding_ms`: of embedding a question.
    """

    memories: int
    questions: int
    model: str | None
    quality: dict[str, dict[str, Quality]] = field(default_factory=dict)
    sql_ms: dict[str, float] = field(default_factory=dict)
    embedding_ms: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate(
    corpora: Sequence[Corpus],
    client: Hindsight,
    url: str,
    settings: Settings,
    channels: Iterable[Channel] | None = None,
    *,
    as_turns: bool = False,
    hops: int | None = None,
) -> Report:
    """Loads each corpus into a bank of its own, named eval-…, and asks its questions.

    Decay and type weights are neutral there, and no threshold cuts. channels: None means every one that the client's
    embedding model, or the lack of one, allows. as_turns: the passages are logged as turns of their sessions, which a
    worker distils verbatim. hops: recall's. Raises InvalidArgument for a channel that the model does not allow.
    """
    asked = _measurable(channels, client.embedder)
    run = f"eval-{uuid.uuid4().hex[:6]}"
    report = Report(
        memories=sum(len(corpus.passages) for corpus in corpora),
        questions=sum(len(corpus.questions) for corpus in corpora),
        model=client.embedder.model if client.embedder else None,
    )
    outcomes: dict[Channel, list[tuple[Question, list[frozenset[str]]]]] = {channel: [] for channel in asked}
    times: dict[Channel, list[float]] = {channel: [] for channel in asked}
    with (
        contextlib.closing(sync_engine(url, settings).connect()) as connection,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        storing = progress.add_task("storing", total=report.memories)
        asking = progress.add_task("asking", total=report.questions)
        for number, corpus in enumerate(corpora, 1):
            bank = f"{run}-{number}-{corpus.name}"
            passages: dict[UUID, frozenset[str]] = defaultdict(frozenset)
            stored = _distil(client, bank, corpus, url, settings) if as_turns else _store(client, bank, corpus)
            for memory_id, passage_id in stored:
                passages[memory_id] |= {passage_id}
                progress.advance(storing)
            client.maintain(bank)
            while client.refresh_links(bank):
                pass
            for question in corpus.questions:
                embedding = client.embedder.query(question.text) if client.embedder else None
                for channel, (ranked, seconds) in _ask(connection, bank, question.text, embedding, asked, hops).items():
                    outcomes[channel].append((question, [passages[memory] for memory in ranked]))
                    times[channel].append(seconds)
                progress.advance(asking)
    report.quality = {channel: by_category(outcomes[channel]) for channel in asked}
    report.sql_ms = {channel: statistics.median(times[channel]) * 1000 for channel in asked}
    report.embedding_ms = _embedding_ms(client.embedder, corpora)
    return report


def by_category(outcomes: Sequence[tuple[Question, Sequence[frozenset[str]]]]) -> dict[str, Quality]:
    """The figures of all questions and of each category, from each question with what was found, best first."""
    grouped: dict[str, list[tuple[Question, Sequence[frozenset[str]]]]] = defaultdict(list)
    for outcome in outcomes:
        grouped[outcome[0].category].append(outcome)
    categories = {"all": outcomes} | (dict(sorted(grouped.items())) if len(grouped) > 1 else {})
    return {name: _quality(group) for name, group in categories.items()}


def reciprocal_rank_fusion(rankings: Iterable[Sequence[UUID]]) -> list[UUID]:
    """The union of rankings, ordered by the sum of 1 / (60 + rank); of equals, the earlier ranking's first."""
    scores: dict[UUID, float] = defaultdict(float)
    for ranking in rankings:
        for rank, found in enumerate(ranking, 1):
            scores[found] += 1 / (RRF_K + rank)
    return sorted(scores, key=lambda found: -scores[found])


def _quality(outcomes: Sequence[tuple[Question, Sequence[frozenset[str]]]]) -> Quality:
    def recall_at(k: int) -> float:
        return statistics.fmean(
            len(question.gold & frozenset[str]().union(*ranked[:k])) / len(question.gold)
            for question, ranked in outcomes
        )

    first = [
        next((rank for rank, found in enumerate(ranked[:TOP_K], 1) if found & question.gold), None)
        for question, ranked in outcomes
    ]
    return Quality(
        questions=len(outcomes),
        recall_at_5=recall_at(5),
        recall_at_10=recall_at(10),
        recall_at_20=recall_at(20),
        hit_at_5=statistics.fmean(rank is not None and rank <= 5 for rank in first),
        mrr=statistics.fmean(1 / rank if rank else 0 for rank in first),
    )


def _measurable(channels: Iterable[Channel] | None, embedder: Embedder | None) -> list[Channel]:
    """The channels in their order. Without an embedding model ours is what the words find, and has no rival."""
    measurable = CHANNELS if embedder else ("ours",)
    wanted = set(measurable if channels is None else channels)
    if lacking := wanted - set(measurable):
        raise InvalidArgument(
            f"without an embedding model there is nothing to compare: {', '.join(sorted(lacking))}",
            hint="Set HINDSIGHT_EMBEDDING_PROVIDER",
        )
    return [channel for channel in CHANNELS if channel in wanted]


def _store(client: Hindsight, bank: str, corpus: Corpus) -> Iterator[tuple[UUID, str]]:
    """Stores the passages, and says which memory holds which: equal passages become one memory."""
    client.create_bank(bank, description="Made by hindsight eval.", decay_rate=0)
    for start in range(0, len(corpus.passages), BATCH):
        passages = corpus.passages[start : start + BATCH]
        memories: list[dict[str, Any]] = [
            {
                "content": one.content,
                "context": one.context,
                "session_id": one.session_id,
                "occurred_at": one.occurred_at,
                "importance": 0.5,  # else the gate would skip some
                "metadata": {"passage_id": one.passage_id},
            }
            for one in passages
        ]
        stored = client.store_many(bank, memories)
        yield from (
            (one.memory_id, passage.passage_id)
            for one, passage in zip(stored, passages, strict=True)
            if one.memory_id is not None
        )


def _distil(client: Hindsight, bank: str, corpus: Corpus, url: str, settings: Settings) -> Iterator[tuple[UUID, str]]:
    """Logs the passages as turns, lets a worker do what is due, and says which memory stands on which."""
    client.create_bank(bank, description="Made by hindsight eval.", decay_rate=0)
    client.set_distilling(bank, mode="verbatim")
    places: dict[tuple[str, int], str] = {}
    sessions: dict[str, list[Passage]] = defaultdict(list)
    for passage in corpus.passages:
        sessions[passage.session_id or corpus.name].append(passage)
    for session_id, passages in sessions.items():
        turns = [{"role": "user", "content": one.content, "occurred_at": one.occurred_at} for one in passages]
        logged = client.log_turns(bank, session_id, turns)
        places |= {(session_id, one.sequence): said.passage_id for one, said in zip(logged, passages, strict=True)}
        client.close_session(bank, session_id)
    asyncio.run(drain(url, settings, client.embedder))
    for memory in client.state(bank):
        if memory.type != "summary":
            for source in client.sources(bank, memory.memory_id):
                yield memory.memory_id, places[source.session_id, source.sequence]


def _ask(
    connection: Connection,
    bank: str,
    query: str,
    embedding: Sequence[float] | None,
    channels: Sequence[Channel],
    hops: int | None,
) -> Mapping[Channel, tuple[list[UUID], float]]:
    """What each channel finds, best first, with the seconds that it took."""
    asked = vector(embedding)
    found: dict[Channel, tuple[list[UUID], float]] = {}
    if {"vector", "rrf"} & set(channels):
        found["vector"] = _timed_recall(connection, bank, "", asked, hops)
    if {"words", "rrf"} & set(channels):
        found["words"] = _timed_recall(connection, bank, query, None, hops)
    if "rrf" in channels:
        (by_meaning, one), (by_words, other) = found["vector"], found["words"]
        found["rrf"] = reciprocal_rank_fusion([by_meaning, by_words]), one + other
    if "ours" in channels:
        found["ours"] = _timed_recall(connection, bank, query, asked, hops)
    return {channel: found[channel] for channel in channels}


def _timed_recall(
    connection: Connection, bank: str, query: str, embedding: str | None, hops: int | None
) -> tuple[list[UUID], float]:
    given = {"bank": bank, "query": query, "embedding": embedding, "top_k": TOP_K, "min_score": 0, "hops": hops}
    statement, parameters = call("recall", given)
    started = time.perf_counter()
    rows = connection.execute(statement, parameters).mappings().all()
    seconds = time.perf_counter() - started
    connection.rollback()
    return [row["memory_id"] for row in rows], seconds


def _embedding_ms(embedder: Embedder | None, corpora: Iterable[Corpus]) -> float | None:
    """The median time of embedding a question, past any cache."""
    embedder = getattr(embedder, "inner", embedder)
    if embedder is None:
        return None
    times = []
    for question in [question for corpus in corpora for question in corpus.questions][:_EMBEDDINGS_TIMED]:
        started = time.perf_counter()
        embedder.query(question.text)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000
