"""`hindsight embed` and `hindsight reembed`: embedding what waits, whatever the endpoint refuses and whenever they are broken off."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hindsight import AsyncHindsight, Conflict, Hindsight
from hindsight.config import Settings
from hindsight.embedding_work import embed_batch
from hindsight.endpoint import EndpointEmbedder
from hindsight.errors import ConfigurationError, EmbeddingUnavailable, ModelMismatch
from tests.endpoint import Reply, Request, ScriptedEndpoint, hash_vector

CONTENTS = [f"第{number}条记忆：接口 {number} 每天更新" for number in range(20)] + [
    f"memory {number} says something else" for number in range(20)
]
BAD = "the endpoint takes offence at this"


class Picky(ScriptedEndpoint):
    """An endpoint that refuses a batch with a bad text in it, and keeps which texts it embedded."""

    def __init__(self, dimensions: int, bad: str = BAD, delay: float = 0.0) -> None:
        super().__init__(dimensions)
        self.bad = bad
        self.delay = delay
        self.is_down = False
        self.embedded: Counter[str] = Counter()

    def reply_to(self, request: Request) -> Reply:
        if self.is_down:
            return Reply.error(503, "down for maintenance")
        texts = request.body["input"]
        if self.bad in texts:
            return Reply.error(400, "input rejected")
        self.embedded.update(text for text in texts if text != "dimensions")  # which asks for the size of the vectors
        reply = Reply.vectors([hash_vector(text, self.dimensions) for text in texts])
        reply.delay = self.delay
        return reply


@pytest.fixture
def old() -> Iterator[Picky]:
    with Picky(8) as endpoint:
        yield endpoint


@pytest.fixture
def new() -> Iterator[Picky]:
    with Picky(12) as endpoint:
        yield endpoint


@pytest.fixture
def names() -> tuple[str, str]:
    return f"old-{uuid.uuid4().hex[:6]}", f"new-{uuid.uuid4().hex[:6]}"


def settings(endpoint: ScriptedEndpoint, model: str) -> Settings:
    return Settings(
        embedding_provider="openai",
        embedding_base_url=endpoint.url,
        embedding_model=model,
        embedding_retries=0,
        embedding_batch_size=7,
    )


@pytest.fixture
def bank(shared_url: str, old: Picky, names: tuple[str, str]) -> str:
    """A bank of forty memories with vectors of the old model."""
    name = f"bank-{uuid.uuid4().hex[:8]}"
    with Hindsight.connect(shared_url, settings=settings(old, names[0])) as memory:
        memory.create_bank(name)
        memory.store_many(name, [{"content": content, "importance": 0.6} for content in CONTENTS])
    return name


class Program:
    """`hindsight` as a process of its own."""

    def __init__(self, url: str, tmp_path: Path, bank: str, endpoint: ScriptedEndpoint, model: str) -> None:
        self.tmp_path = tmp_path
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HINDSIGHT_", "OPENAI_"))},
            "DATABASE_URL": url,
            "HINDSIGHT_BANK": bank,
            "HINDSIGHT_EMBEDDING_PROVIDER": "openai",
            "HINDSIGHT_EMBEDDING_BASE_URL": endpoint.url,
            "HINDSIGHT_EMBEDDING_MODEL": model,
            "HINDSIGHT_EMBEDDING_RETRIES": "0",
            "HINDSIGHT_EMBEDDING_BATCH_SIZE": "7",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "hindsight.cli", *arguments],
            env=self.environment, cwd=self.tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


def finds_all(url: str, bank: str, endpoint: ScriptedEndpoint, model: str) -> bool:
    """Whether each memory is first, by meaning alone, when its text is asked for."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT content FROM hindsight.recall(%s, embedding => %s::vector, model => %s, top_k => 1, hops => 0)"
        return all(
            connection.execute(query, (bank, str(hash_vector(content, endpoint.dimensions)), model)).fetchall()
            == [(content,)]
            for content in CONTENTS
        )


def test_reembed_changes_the_model_while_the_bank_goes_on_answering(
    shared_url: str, tmp_path: Path, bank: str, old: Picky, new: Picky, names: tuple[str, str]
) -> None:
    new.delay = 0.2
    program = Program(shared_url, tmp_path, bank, new, "the configured one is not meant")
    running = program.start("reembed", "--model", names[1], "--batch-size", "7", "--keep-old", "--json")
    looks = 0
    while running.poll() is None:
        assert finds_all(shared_url, bank, old, names[0])
        looks += 1
    out, err = running.communicate()
    assert looks > 1
    assert json.loads(out) | {"embedded": 40, "reembedding": "switched"} == json.loads(out)
    assert names[0] in err, "queries of the old model are answered, and it says so"
    assert "40/40" in err
    assert finds_all(shared_url, bank, old, names[0])
    assert finds_all(shared_url, bank, new, names[1])
    code, out, _ = program.run("reembed", "--model", names[1])
    assert (code, out.strip()) == (0, f"0 memories embedded with {names[1]}, which the bank '{bank}' uses now")
    assert finds_all(shared_url, bank, new, names[1])
    assert set(new.embedded.values()) == {1}, "each text was embedded once"
    with (
        Hindsight.connect(shared_url, settings=settings(old, names[0])) as memory,
        pytest.raises(ModelMismatch) as caught,
    ):
        memory.recall(bank, CONTENTS[0])
    assert f'hindsight reembed --bank "{bank}" --model' in str(caught.value)
    with psycopg.connect(shared_url) as connection:
        index = "SELECT to_regclass(format('hindsight.memory_embedding_%%s_idx', model_id)) FROM hindsight.embedding_model WHERE name = %s"
        assert connection.execute(index, (names[0],)).fetchall() == [(None,)], "the old index is gone"


def test_killed_at_random_moments_it_goes_on_from_there(
    shared_url: str, tmp_path: Path, bank: str, old: Picky, new: Picky, names: tuple[str, str]
) -> None:
    new.delay = 0.1
    program = Program(shared_url, tmp_path, bank, new, names[1])
    draw = random.Random(5)
    for _ in range(4):
        running = program.start("reembed", "--batch-size", "4")
        time.sleep(draw.uniform(0.8, 2.5))
        running.send_signal(signal.SIGKILL)
        running.communicate()
        with Hindsight.connect(shared_url, settings=settings(old, names[0])) as memory:
            status = memory.embedding_status(bank)
        asked = (new, names[1]) if status.reembedding != "embedding" and status.model == names[1] else (old, names[0])
        assert finds_all(shared_url, bank, *asked), "never a moment without recall"
    code, _, err = program.run("reembed", "--batch-size", "4")
    assert code == 0, err
    assert finds_all(shared_url, bank, new, names[1])
    assert set(new.embedded) == set(CONTENTS)
    assert new.embedded.total() <= 40 + 4 * 4, "what was made stayed: of each run one batch may be made again"


def test_two_at_once_share_the_work(
    shared_url: str, tmp_path: Path, bank: str, new: Picky, names: tuple[str, str]
) -> None:
    new.delay = 0.2
    program = Program(shared_url, tmp_path, bank, new, names[1])
    running = [program.start("reembed", "--batch-size", "4", "--json") for _ in range(2)]
    reports = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert all(report["embedded"] >= 4 for report in reports), reports
    assert new.embedded.total() <= 40 + 8, "but for the last batch of each, which the other may take over"
    assert finds_all(shared_url, bank, new, names[1])


def test_given_up_it_leaves_the_bank_as_it_was(
    shared_url: str, tmp_path: Path, bank: str, old: Picky, new: Picky, names: tuple[str, str]
) -> None:
    with Hindsight.connect(shared_url, settings=settings(new, names[1])) as memory:
        memory.register_model()
        memory._value("begin_reembedding", bank=bank, model=names[1])
        memory.embed_waiting(bank, 10)
    program = Program(shared_url, tmp_path, bank, new, names[1])
    code, out, _ = program.run("reembed", "--status", "--json")
    assert code == 0
    status = json.loads(out)
    assert (status["reembedding"], status["other_model"], status["embedded"], status["waiting"]) == (
        "embedding", names[1], 10, 30,
    )  # fmt: skip
    assert program.run("reembed", "--cancel")[:2] == (0, "given up: 10 new vectors are gone\n")
    assert program.run("reembed", "--cancel")[0] == 4
    assert program.run("reembed", "--cancel", "--status")[0] == 2
    assert finds_all(shared_url, bank, old, names[0])


def test_a_refused_text_stands_alone_with_its_error_and_blocks_no_other(
    shared_url: str, tmp_path: Path, names: tuple[str, str], new: Picky
) -> None:
    bank = f"bank-{uuid.uuid4().hex[:8]}"
    with Hindsight.connect(shared_url, settings=Settings(embedding_provider="none")) as memory:
        memory.create_bank(bank)
        memory.store_many(bank, [{"content": content, "importance": 0.6} for content in [*CONTENTS[:12], BAD]])
    program = Program(shared_url, tmp_path, bank, new, names[1])
    code, out, err = program.run("embed", "--json")
    assert (code, json.loads(out)) == (
        1, {"bank": bank, "model": names[1], "embedded": 12, "waiting": 1, "failed": 1},
    )  # fmt: skip
    assert "input rejected" in err
    new.bad = ""
    code, out, _ = program.run("embed")
    assert (code, out) == (0, f"1 memories embedded with {names[1]}\n")
    assert new.embedded == Counter([*CONTENTS[:12], BAD])


def test_reembed_stops_at_a_refused_text_unless_told_to_switch_without_it(
    shared_url: str, names: tuple[str, str], bank: str, old: Picky, new: Picky
) -> None:
    old.bad = "nothing"
    with Hindsight.connect(shared_url, settings=settings(old, names[0])) as memory:
        memory.store(bank, BAD)
    with Hindsight.connect(shared_url, settings=settings(new, names[1])) as memory:
        with pytest.raises(Conflict, match=r"1 memories can't be embedded.*input rejected"):
            memory.reembed(bank)
        assert memory.embedding_status(bank).model == names[0]
        assert memory.reembed(bank, without_refused=True) == 0
        assert memory.embedding_status(bank).model == names[1]
        new.bad = "nothing"
        assert memory.recall(bank, BAD)[0].content == BAD, "its words find it"
        assert memory.recall(bank, BAD)[0].semantic is None


def test_an_endpoint_that_is_down_loses_nothing_and_the_same_command_goes_on(
    shared_url: str, tmp_path: Path, bank: str, new: Picky, names: tuple[str, str]
) -> None:
    new.delay = 0.2
    program = Program(shared_url, tmp_path, bank, new, names[1])
    running = program.start("reembed", "--batch-size", "4")
    while not new.embedded:
        time.sleep(0.01)
    new.is_down = True
    _, err = running.communicate(timeout=120)
    assert running.returncode == 69
    assert "the same command goes on from there" in err
    new.is_down = False
    made = new.embedded.total()
    assert program.run("reembed")[0] == 0
    assert new.embedded.total() == 40
    assert 0 < made < 40


def test_memories_stored_meanwhile_by_services_of_the_old_model_are_embedded_before_the_switch(
    shared_url: str, bank: str, old: Picky, new: Picky, names: tuple[str, str]
) -> None:
    new.delay = 0.05
    stop = threading.Event()
    stored: list[str] = []

    def serve() -> None:
        with Hindsight.connect(shared_url, settings=settings(old, names[0])) as service:
            while not stop.is_set():
                content = f"stored meanwhile {len(stored)}"
                try:
                    service.store(bank, content, importance=0.6)
                except ModelMismatch:  # the bank has switched, and settles
                    return
                stored.append(content)
                stop.wait(0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with Hindsight.connect(shared_url, settings=settings(new, names[1])) as memory:
            memory.reembed(bank, 5)
            stop.set()
            thread.join()
            memory.embed_pending(bank)
            status = memory.embedding_status(bank)
            assert (status.model, status.waiting, status.memories) == (names[1], 0, 40 + len(stored))
            assert len(stored) > 1
            assert all(memory.recall(bank, content)[0].semantic == pytest.approx(1, abs=0.01) for content in stored[:5])
    finally:
        stop.set()


def test_without_a_model_there_is_nothing_to_embed_by(shared_url: str, bank: str) -> None:
    with Hindsight.connect(shared_url, settings=Settings(embedding_provider="none")) as memory:
        with pytest.raises(ConfigurationError):
            memory.reembed(bank)
        assert memory.embed_waiting(bank).claimed == 0


def test_the_async_client_embeds_a_batch_at_a_time(shared_url: str, new: Picky, names: tuple[str, str]) -> None:
    asyncio.run(_embeds_a_batch_at_a_time(shared_url, new, names[1]))


async def _embeds_a_batch_at_a_time(shared_url: str, new: Picky, model: str) -> None:
    bank = f"bank-{uuid.uuid4().hex[:8]}"
    async with await AsyncHindsight.connect(shared_url, settings=Settings(embedding_provider="none")) as memory:
        await memory.create_bank(bank)
        await memory.store_many(bank, [{"content": content, "importance": 0.6} for content in CONTENTS[:10]])
    async with await AsyncHindsight.connect(shared_url, settings=settings(new, model)) as memory:
        counts = await memory.embed_waiting(bank, 4)
        assert (counts.claimed, counts.embedded, counts.refused, counts.error) == (4, 4, 0, None)
        new.is_down = True
        counts = await memory.embed_waiting(bank, 4)
        assert (counts.claimed, counts.embedded, counts.unreached) == (4, 0, 4)
        assert "down for maintenance" in (counts.error or "")
        assert (await memory.embedding_status(bank)).failed == 4
        with pytest.raises(EmbeddingUnavailable):
            await memory.embed_pending(bank)
        new.is_down = False
        assert await memory.embed_pending(bank) == 6


class TestABatch:
    def embedder(self, endpoint: ScriptedEndpoint) -> EndpointEmbedder:
        return EndpointEmbedder(base_url=endpoint.url, model="m", retries=0)

    def test_halving_finds_each_guilty_text_in_few_calls(self, new: Picky) -> None:
        texts = [f"text {number}" for number in range(64)]
        texts[37] = BAD
        batch = embed_batch(self.embedder(new), texts)
        assert list(batch.refused) == [37]
        assert sorted(batch.vectors) == [place for place in range(64) if place != 37]
        assert batch.vectors[5] == pytest.approx(hash_vector("text 5", 12))
        assert len(new.requests) <= 2 * 6 + 1

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_what_is_wrong_with_the_endpoint_is_held_against_no_text(self, new: Picky, status: int) -> None:
        new.reply_to = lambda _: Reply.error(status, "no")  # type: ignore[method-assign]
        batch = embed_batch(self.embedder(new), ["one", "two"])
        assert (batch.vectors, batch.refused) == ({}, {})
        assert str(status) in (batch.unreachable or "")
        assert len(new.requests) == 1

    def test_where_every_text_is_refused_it_is_not_about_the_texts(self, new: Picky) -> None:
        new.reply_to = lambda _: Reply.error(400, "unknown parameter")  # type: ignore[method-assign]
        batch = embed_batch(self.embedder(new), [f"text {number}" for number in range(64)])
        assert batch.refused == {}
        assert "unknown parameter" in (batch.unreachable or "")
        assert len(new.requests) < 16

    def test_no_text_asks_nothing(self, new: Picky) -> None:
        batch: Any = embed_batch(self.embedder(new), [])
        assert (batch.vectors, batch.refused, batch.unreachable, new.requests) == ({}, {}, None, [])
