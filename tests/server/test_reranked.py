"""The servers take reranking and rewriting from their settings, and tell their clients what was left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from processes import HttpServer, start_http

from hindsight.config import Settings
from hindsight.mcp_server import build_server
from tests.endpoint import Reply, ScriptedEndpoint

CONTENTS = ["端口 port 22 of the old server", "端口 port 2222 of the new server"]
QUERY = "端口 port"


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as scripted:
        yield scripted


@pytest.fixture
def aided(settings: Settings, endpoint: ScriptedEndpoint) -> Settings:
    """Settings of a server that reranks and rewrites."""
    models = {"rerank": True, "rerank_base_url": endpoint.url, "rerank_model": "bge", "rerank_timeout": 5.0}
    language_model = {"rewrite": True, "llm_base_url": endpoint.url, "llm_model": "gemma", "rewrite_timeout": 5.0}
    return settings.model_copy(update={**models, **language_model})


@pytest.fixture
def http(aided: Settings, endpoint: ScriptedEndpoint, directory: Path) -> Iterator[HttpServer]:
    assert aided.database_url is not None
    names = [
        "bank",
        "rerank_base_url",
        "rerank_model",
        "rerank_timeout",
        "llm_base_url",
        "llm_model",
        "rewrite_timeout",
    ]
    given = {name: str(getattr(aided, name)) for name in names}
    server = start_http(
        directory, database_url=aided.database_url.get_secret_value(), rerank="true", rewrite="true", **given
    )
    for content in CONTENTS:
        assert server.ask("POST", "/api/memory", {"content": content}).status == 201
    yield server
    assert server.end() == 0


def answers(*relevances: float) -> list[Reply]:
    """A rewriting that adds nothing, and a reranking."""
    return [Reply.chat("[]"), Reply.relevances(list(relevances))]


async def test_a_tool_gives_the_rerankers_order_and_warnings_only_where_there_are_any(
    aided: Settings, endpoint: ScriptedEndpoint
) -> None:
    async with Client(build_server(aided)) as client:
        for content in CONTENTS:
            await client.call_tool("memory_store", {"content": content})

        async def recall(**more: Any) -> dict[str, Any]:
            result = await client.call_tool("memory_recall", {"query": QUERY, **more})
            cited = [memory["memory_id"] for memory in result.structured_content["memories"]]
            assert result.structured_content["citations"] == cited  # the block has the order of the list
            return result.structured_content

        plain = await recall(rerank=False, rewrite="no")
        assert endpoint.requests == []
        assert plain["warnings"] == []
        endpoint.replies.extend(answers(0.1, 0.7))
        reranked = await recall()
        assert [memory["content"] for memory in reranked["memories"]] == [
            memory["content"] for memory in plain["memories"]
        ][::-1]
        assert [memory["relevance"] for memory in reranked["memories"]] == [0.7, 0.1]
        assert reranked["warnings"] == []
        endpoint.replies.extend([Reply.error(500), Reply.error(500)])
        failed = await recall()
        assert len(failed["memories"]) == 2
        assert [warning.partition(":")[0] for warning in failed["warnings"]] == [
            "The query was not rewritten",
            "The results have their plain order",
        ]


async def test_a_tool_shows_the_conversation_as_a_parameter_only_where_it_is_read(
    settings: Settings, aided: Settings, endpoint: ScriptedEndpoint
) -> None:
    async with Client(build_server(aided)) as client:
        (tool,) = [tool for tool in await client.list_tools() if tool.name == "memory_recall"]
        assert tool.input_schema["properties"]["context"]["type"] == "string"
        assert not {"rerank", "rewrite"} & set(tool.input_schema["properties"])
        await client.call_tool("memory_recall", {"query": "那个端口？", "context": "我们在说 staging"})
        assert "我们在说 staging" in endpoint.requests[0].body["messages"][1]["content"]
    async with Client(build_server(settings)) as client:
        (tool,) = [tool for tool in await client.list_tools() if tool.name == "memory_recall"]
        assert not {"context", "rerank", "rewrite"} & set(tool.input_schema["properties"])


def test_rest_gives_a_list_and_the_warnings_beside_it(
    http: HttpServer, endpoint: ScriptedEndpoint, directory: Path
) -> None:
    endpoint.replies.extend(answers(0.1, 0.7))
    reranked = http.ask("POST", "/api/recall", {"query": QUERY})
    assert [memory["relevance"] for memory in reranked.json] == [0.7, 0.1]
    assert "hindsight-warnings" not in reranked.headers
    endpoint.replies.extend([Reply.chat("[]"), replace(Reply.error(500), body={"error": {"message": CONTENTS[0]}})])
    failed = http.ask("POST", "/api/recall", {"query": QUERY})
    assert failed.status == 200
    assert [memory["relevance"] for memory in failed.json] == [None, None]
    (warning,) = json.loads(failed.headers["hindsight-warnings"])
    assert warning.startswith("The results have their plain order: bge at 127.0.0.1:")
    assert any(warning in line for line in http.lines), "whoever runs the server reads it too"
    assert CONTENTS[0] not in http.log
    asked = len(endpoint.requests)
    plain = http.ask("POST", "/api/recall", {"query": QUERY, "rerank": "false", "rewrite": False})
    assert [memory["content"] for memory in plain.json] == [memory["content"] for memory in failed.json]
    assert len(endpoint.requests) == asked


async def test_asking_a_server_without_a_reranker_is_refused_with_the_setting(settings: Settings) -> None:
    async with Client(build_server(settings)) as client:
        for argument, setting in (("rerank", "HINDSIGHT_RERANK_BASE_URL"), ("rewrite", "HINDSIGHT_LLM_MODEL")):
            result = await client.call_tool("memory_recall", {"query": "x", argument: True}, raise_on_error=False)
            assert result.is_error
            assert setting in result.content[0].text
