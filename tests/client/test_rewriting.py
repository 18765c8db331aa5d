"""Rewriting: a question that leans on the conversation finds what it is about; where it fails, it is asked as it is."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hindsight import ConfigurationError, Hindsight, InvalidArgument, InvalidContent, Recalled, Settings
from tests.endpoint import Reply, ScriptedEndpoint

KEY = "sk-s3kr1t"
CONTENTS = ["The staging server takes SSH on port 49222", "生产服务器的SSH端口是22", "Alice prefers tea"]
SECRET = "the password is swordfish"


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as scripted:
        yield scripted


@pytest.fixture
def connect(shared_url: str, endpoint: ScriptedEndpoint) -> Iterator[Callable[..., Hindsight]]:
    """Opens a client that searches words, with the scripted language model, closed after the test."""
    opened: list[Hindsight] = []

    def make(**more: Any) -> Hindsight:
        given = {"llm_base_url": endpoint.url, "llm_api_key": KEY, "llm_model": "gemma", "rewrite_timeout": 5, **more}
        opened.append(Hindsight.connect(shared_url, settings=Settings(embedding_provider="none", **given)))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def full_bank(connect: Callable[..., Hindsight]) -> str:
    client = connect()
    bank = f"bank-{uuid.uuid4().hex[:8]}"
    client.create_bank(bank)
    client.store_many(bank, [{"content": content} for content in CONTENTS])
    return bank


def contents(found: list[Recalled]) -> list[str]:
    return [memory.content for memory in found]


def test_a_pronoun_finds_what_it_stands_for_in_both_languages(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    client = connect(rewrite=True)
    endpoint.replies.append(Reply.chat('["SSH port of the staging server", "生产服务器 SSH 端口"]'))
    asked = "那个是多少？"
    assert client.recall(full_bank, asked, rewrite=False) == []
    found = client.recall(full_bank, asked, context=["user: 我要连 staging server", "assistant: 好的"])
    assert set(contents(found)) == set(CONTENTS[:2])
    assert found.warnings == []
    (request,) = endpoint.requests
    question = json.loads(request.body["messages"][1]["content"])
    assert question == {"conversation": "user: 我要连 staging server\nassistant: 好的", "question": asked}


def test_each_memory_has_the_score_of_the_query_that_it_answers_best(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    client = connect()
    queries = ["which port?", "SSH port of the staging server", "tea"]
    best: dict[str, float] = {}
    for query in queries:
        for memory in client.recall(full_bank, query):
            best[memory.content] = max(best.get(memory.content, 0), memory.score)
    endpoint.replies.append(Reply.chat(json.dumps(queries[1:])))
    found = client.recall(full_bank, queries[0], rewrite=True)
    assert {memory.content: memory.score for memory in found} == pytest.approx(best, abs=1e-6)
    assert [memory.score for memory in found] == sorted((memory.score for memory in found), reverse=True)
    endpoint.replies.append(Reply.chat(json.dumps(queries[1:])))
    assert contents(client.recall(full_bank, queries[0], rewrite=True, top_k=1)) == contents(found)[:1]


def test_the_question_itself_is_always_asked(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    endpoint.replies.append(Reply.chat('["something else"]'))
    assert CONTENTS[2] in contents(connect(rewrite=True).recall(full_bank, "what tea does Alice prefer?"))


@pytest.mark.parametrize(
    ("said", "searched"),
    [
        ('["tea", "SSH", "端口", "a fourth"]', ["tea", "SSH", "端口"]),
        ('```json\n["tea"]\n```', ["tea"]),
        ('<think>["no"]</think> Sure: ["tea"]', ["tea"]),
        ('{"queries": ["tea"]}', ["tea"]),
        ('["Alice?", " alice? ", "tea", "tea", "", "  ", "a\\u0000b", "' + "x" * 600 + '"]', ["tea"]),
        ('["two\\nlines"]', ["two lines"]),
        ("[]", []),
    ],
)
def test_the_queries_are_taken_from_whatever_is_said_around_them(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, said: str, searched: list[str]
) -> None:
    client = connect(rewrite=True)
    endpoint.replies.append(Reply.chat(said))
    assert client._rewriter is not None
    assert client._rewriter.queries("Alice?") == ["Alice?", *searched]


@pytest.mark.parametrize(
    "reply",
    [
        Reply.chat("I don't know"),
        Reply.chat("[1, 2]"),
        Reply.chat('["tea", 1]'),
        Reply.chat('["tea"'),
        Reply({}),
        Reply.error(500, f"{KEY} {SECRET}"),
        Reply.error(401, f"{KEY} {SECRET}"),
        Reply(close=True),
    ],
)
def test_where_it_fails_the_query_is_searched_as_it_is_with_a_warning(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str, reply: Reply
) -> None:
    endpoint.replies.append(reply)
    found = connect(rewrite=True).recall(full_bank, "Alice tea", context=SECRET)
    assert contents(found) == [CONTENTS[2]]
    (warning,) = found.warnings
    assert warning.startswith("The query was not rewritten: gemma at 127.0.0.1:")
    assert not any(secret in warning for secret in (KEY, SECRET, "Alice"))


def test_a_language_model_that_is_late_is_not_waited_for(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    endpoint.replies.append(Reply({}, delay=10))
    started = time.monotonic()
    found = connect(rewrite=True, rewrite_timeout=0.3).recall(full_bank, "Alice tea")
    assert time.monotonic() - started < 3
    assert contents(found) == [CONTENTS[2]]
    assert "within 0.3 seconds" in found.warnings[0]


def test_no_query_is_not_rewritten(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    assert len(connect(rewrite=True).recall(full_bank)) == 3
    assert endpoint.requests == []


def test_asking_where_no_language_model_is_configured_says_what_to_set(
    connect: Callable[..., Hindsight], full_bank: str
) -> None:
    with pytest.raises(InvalidArgument, match="HINDSIGHT_LLM_MODEL, and HINDSIGHT_LLM_BASE_URL"):
        connect(llm_model=None).recall(full_bank, "tea", rewrite=True)
    with pytest.raises(ConfigurationError, match=r"HINDSIGHT_REWRITE is true.*HINDSIGHT_LLM_MODEL"):
        connect(llm_model=None, rewrite=True)


@pytest.mark.parametrize(
    ("context", "error", "says"),
    [
        (5, InvalidArgument, "context must be a text"),
        ([1], InvalidArgument, "context must be a text"),
        ("a\0b", InvalidContent, "context holds a NUL"),
        (["ok", "\ud83d"], InvalidContent, "context holds a lone surrogate"),
    ],
)
def test_a_context_that_is_no_text_is_refused(
    connect: Callable[..., Hindsight], full_bank: str, context: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        connect().recall(full_bank, "tea", context=context)


def test_of_a_long_conversation_the_end_is_sent(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    connect(rewrite=True).recall(full_bank, "tea", context=["早" * 10_000, "the last line"])
    question = json.loads(endpoint.requests[0].body["messages"][1]["content"])
    assert len(question["conversation"]) == 4000
    assert question["conversation"].endswith("\nthe last line")


def test_a_rewritten_query_is_reranked_with_all_its_readings_and_two_failures_are_two_warnings(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, full_bank: str
) -> None:
    client = connect(rewrite=True, rerank=True, rerank_base_url=endpoint.url, rerank_timeout=5)
    endpoint.replies.extend([Reply.chat('["SSH port"]'), Reply.relevances([0.1, 0.2])])
    found = client.recall(full_bank, "哪个端口？")
    assert [memory.relevance for memory in found] == [0.2, 0.1]
    assert endpoint.requests[1].body["query"] == "哪个端口？\nSSH port"
    endpoint.replies.extend([Reply.error(500), Reply.error(500)])
    warnings = client.recall(full_bank, "SSH port 端口", min_score=0).warnings
    assert [warning.partition(":")[0] for warning in warnings] == [
        "The query was not rewritten",
        "The results have their plain order",
    ]
