"""`hindsight stress --reembed`: a bank changes its embedding model under constant recall, and what must hold."""

from __future__ import annotations

import os
import random
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import psycopg
from psycopg import Connection
from rich.console import Console, RenderableType
from rich.progress import Progress

from hindsight.calls import vector
from hindsight.config import Settings
from hindsight.stress import percentiles
from hindsight.stress_check import Invariant, verdicts
from hindsight.sync_client import Hindsight
from hindsight.tables import pairs_table

BANK = "large"
DIMENSIONS = 384
READERS = 2
PAUSE = 0.02  # seconds between two recalls of a reader, and between two memories of the writer times ten
SLOWEST = 2.0  # times the plain embedding
MISSED = 0.001  # of the recalls; a comparison of vectors of two models would miss nearly all

# Loaded at once, without embeddings: what is measured is how they come.
_INSERT = """
    INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, confidence, importance,
      metadata, language, created_at, confirmed_at, confirmations, changed_at)
    SELECT b.bank_id, gen_random_uuid(), 1, t.content, 'fact', '{}', '{}', 0.9, 0.6, '{}', b.language, now(), now(), 0,
      now()
    FROM unnest(%s::text[]) AS t(content) JOIN hindsight.bank AS b ON b.name = 'large'
"""
_RECALL = "SELECT content FROM hindsight.recall('large', embedding => %s::vector, model => %s, top_k => 3, hops => 0)"
_STORE = "SELECT hindsight.store('large', %s, importance => 0.6, embedding => %s::vector, model => %s)"
_PHASE = "SELECT reembedding FROM hindsight.embedding_status('large')"
_MIXED = """
    SELECT count(*) FILTER (WHERE m.model_id IS DISTINCT FROM b.model_id) FROM hindsight.current_memory AS m
    JOIN hindsight.bank AS b USING (bank_id) WHERE b.name = 'large'
"""


class MadeUp:
    """A model whose vectors depend on the text alone, in clusters whose variance falls from axis to axis, as that of
    embeddings does: so an index finds its way in them. It costs next to nothing, or, of memories, the time that an
    endpoint would take (`seconds` a text).
    """

    floor = 0.0
    recall_threshold = 0.5
    merge_threshold = 0.999

    def __init__(self, model: str) -> None:
        self.model = model
        self.dimensions = DIMENSIONS
        self.seconds = 0.0
        self._scale = 1 / np.sqrt(np.arange(1, DIMENSIONS + 1))

    def query(self, text: str) -> list[float]:
        return self._vector(text)

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        time.sleep(self.seconds * len(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        seed = zlib.crc32(f"{self.model} {text}".encode())
        centre = np.random.default_rng(zlib.crc32(f"{self.model} {seed % 500}".encode())).standard_normal(DIMENSIONS)
        found = (centre + 0.9 * np.random.default_rng(seed).standard_normal(DIMENSIONS)) * self._scale
        unit: list[float] = (found / np.linalg.norm(found)).tolist()
        return unit


OLD, NEW = MadeUp("made-up-old"), MadeUp("made-up-new")


@dataclass(slots=True)
class Reembedding:
    """What was measured.

    seconds: plain (embedding the same texts the first time, with nobody beside), embedding (with the index of the new
    vectors), switch, settling. recalls: step → count, and in milliseconds p50, p95, p99.
    """

    memories: int
    cores: int | None
    seconds: dict[str, float] = field(default_factory=dict)
    recalls: dict[str, dict[str, float]] = field(default_factory=dict)
    stored: int = 0
    invariants: list[Invariant] = field(default_factory=list)

    @property
    def total(self) -> float:
        return sum(seconds for step, seconds in self.seconds.items() if step != "plain")

    @property
    def holds(self) -> bool:
        return not any(invariant.broken for invariant in self.invariants)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "times_plain": self.total / self.seconds["plain"], "holds": self.holds}


class _Beside:
    """Readers and a writer that work while the model changes, and go over to the new one after the switch."""

    def __init__(self, url: str, contents: list[str]) -> None:
        self._url = url
        self._contents = contents
        self._late: list[str] = []  # stored meanwhile: found by the new model, whoever stored them
        self.step = "before"
        self.stop = threading.Event()
        self.is_switched = threading.Event()
        self.changed_over = threading.Semaphore(0)
        self.times: dict[str, list[float]] = {}
        self.wrong: list[str] = []
        self.errors: list[str] = []
        self.stored = 0

    def read(self, number: int) -> None:
        draw = random.Random(number)  # noqa: S311 for data, not for secrets
        embedder = OLD
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self.stop.wait(PAUSE):
                if embedder is OLD and self.is_switched.is_set():
                    embedder = NEW
                    self.changed_over.release()
                known = self._late if embedder is NEW and self._late and draw.random() < 0.2 else self._contents
                content, step = draw.choice(known), self.step
                started = time.perf_counter()
                found = self._asked(connection, _RECALL, (vector(embedder.query(content)), embedder.model))
                self.times.setdefault(step, []).append(1000 * (time.perf_counter() - started))
                if found is not None and (not found or found[0][0] != content):
                    self.wrong.append(f"{step}, {embedder.model}: {content!r} → {found[:1]}")

    def write(self) -> None:
        embedder = OLD
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self.stop.wait(10 * PAUSE):
                if embedder is OLD and self.is_switched.is_set():
                    embedder = NEW
                    self.changed_over.release()
                content = f"stored meanwhile {self.stored}"
                if self._asked(connection, _STORE, (content, vector(embedder.query(content)), embedder.model)) is None:
                    continue
                self.stored += 1
                # What the old model's vector came with after the switch waits for another one: it is not asked for.
                if embedder is NEW or self._asked(connection, _PHASE, ()) == [("embedding",)]:
                    self._late.append(content)

    def _asked(self, connection: Connection[Any], statement: str, parameters: Sequence[Any]) -> list[Any] | None:
        try:
            return connection.execute(statement, parameters).fetchall()
        except psycopg.Error as error:
            self.errors.append(f"{self.step}: {error.sqlstate} {error}")
            return None


def reembed(url: str, memories: int, most_times: float | None = SLOWEST, *, embedding_ms: float = 0) -> Reembedding:
    """Embeds a bank by one made-up model, then by another while memories are recalled and stored.

    embedding_ms: what either takes for a memory. most_times: how many times the plain embedding the change may take;
    None measures only.
    """
    change = Reembedding(memories, os.cpu_count())
    OLD.seconds = NEW.seconds = embedding_ms / 1000
    settings = Settings(embedding_provider="none")
    with (
        psycopg.connect(url, autocommit=True) as connection,
        Hindsight.connect(url, settings=settings) as client,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        contents = _load(connection, client, memories)
        bar = progress.add_task("plain embedding", total=memories)
        client.embedder = OLD
        change.seconds["plain"] = _timed(
            lambda: client.embed_pending(BANK, progress=lambda _, n: progress.advance(bar, n))
        )
        client.maintain(BANK)
        connection.execute("VACUUM ANALYZE hindsight.memory")
        beside = _Beside(url, contents)
        with ThreadPoolExecutor(READERS + 1) as pool:
            work = [pool.submit(beside.read, number) for number in range(READERS)] + [pool.submit(beside.write)]
            try:
                time.sleep(min(5, memories / 1000))
                _change(url, settings, beside, change, progress)
                beside.step = "after"
                time.sleep(min(5, memories / 1000))
            finally:
                beside.stop.set()
            for one in work:
                one.result()
        ((mixed,),) = connection.execute(_MIXED).fetchall()
    change.stored = beside.stored
    change.recalls = {step: {"count": len(times), **percentiles(times)} for step, times in beside.times.items()}
    times = change.total / change.seconds["plain"]
    slow = [f"{times:.2f} times"] if most_times is not None and times > most_times else []
    change.invariants = [
        Invariant("no recall and no store failed", beside.errors[:5]),
        Invariant(
            f"the memory with the text that was asked for came first, at every moment, but for {MISSED:.1%} that an "
            "approximate index misses",
            beside.wrong[:5] if len(beside.wrong) > MISSED * sum(map(len, beside.times.values())) else [],
        ),
        Invariant("in the end every memory has a vector of the bank's model", [f"{mixed} have not"] if mixed else []),
        *(
            []
            if most_times is None
            else [Invariant(f"it takes at most {most_times:g} times the plain embedding", slow)]
        ),
    ]
    return change


def lines(change: Reembedding) -> Iterator[RenderableType]:
    """The report for people."""
    yield (
        f"{change.memories} memories, {change.stored} stored meanwhile; {READERS} readers and a writer; "
        f"{change.cores} cores"
    )
    yield pairs_table(
        {
            "time": ", ".join(f"{step} {seconds:.1f} s" for step, seconds in change.seconds.items())
            + f": {change.total / change.seconds['plain']:.2f} times the plain embedding",
            **{
                f"recalls, {step}": f"{figures['count']:.0f}; "
                + ", ".join(f"{name} {figures[name]:.1f} ms" for name in ("p50", "p95", "p99"))
                for step, figures in change.recalls.items()
            },
        }
    )
    yield from verdicts(change.invariants)


def _load(connection: Connection[Any], client: Hindsight, memories: int) -> list[str]:
    draw = random.Random(0)  # noqa: S311 for data, not for secrets
    contents = [
        f"case {number} " + " ".join(f"w{int(20_000 ** draw.random())}" for _ in range(8)) for number in range(memories)
    ]
    client.create_bank(BANK)
    for start in range(0, memories, 10_000):
        connection.execute(_INSERT, (contents[start : start + 10_000],))
    connection.execute("VACUUM ANALYZE hindsight.memory")
    return contents


def _change(url: str, settings: Settings, beside: _Beside, change: Reembedding, progress: Progress) -> None:
    """The change as an operator makes it whose services go over one by one: up to the switch, then the rest."""
    began = embedded = time.monotonic()
    bar = progress.add_task("embedding anew, beside recall", total=change.memories)

    def told(step: str, done: int) -> None:
        nonlocal embedded
        if step == "embedding" and not beside.is_switched.is_set():
            embedded = time.monotonic()
        beside.step = {"switching": "switched", "settling": "settling"}.get(step, beside.step)
        progress.advance(bar, done)

    with Hindsight.connect(url, settings=settings) as client:
        client.embedder = NEW
        beside.step = "embedding"
        client.reembed(BANK, keep_old=True, progress=told)
        switched = time.monotonic()
        beside.is_switched.set()
        for _ in range(READERS + 1):
            beside.changed_over.acquire()
        time.sleep(min(5, change.memories / 1000))
        progress.update(bar, description="settling", completed=0)
        settling = time.monotonic()
        client.reembed(BANK, progress=told)
        ended = time.monotonic()
    change.seconds |= {"embedding": embedded - began, "switch": switched - embedded, "settling": ended - settling}


def _timed(work: Any) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started
