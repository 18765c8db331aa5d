"""A stdio server and an HTTP server at once, on one embedded PostgreSQL that neither was told to start."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from processes import environment, start_http


@pytest.fixture
def data_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hindsight-test-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def server_pid(data: Path) -> int | None:
    file = data / "pgdata" / "postmaster.pid"
    return int(file.read_text().splitlines()[0]) if file.exists() else None


async def test_they_share_the_server_and_the_memories_and_the_last_one_stops_it(data_dir, directory):
    settings = {"data_dir": str(data_dir), "embedding_provider": "none"}
    transport = StdioTransport(
        sys.executable,
        ["-m", "hindsight.mcp_server"],
        env=environment(**settings),
        cwd=str(directory),
        keep_alive=False,
    )
    async with Client(transport) as client:
        stored = await client.call_tool("memory_store", {"content": "用户使用 Docker Desktop on Windows"})
        memory_id = stored.structured_content["memory_id"]
        pid = server_pid(data_dir)

        http = start_http(directory, **settings)
        assert server_pid(data_dir) == pid is not None
        (item,) = http.ask("POST", "/api/recall", {"query": "Docker Desktop"}).json
        (memory,) = (await client.call_tool("memory_recall", {"query": "Docker Desktop"})).structured_content[
            "memories"
        ]
        assert item["memory_id"] == memory["memory_id"] == memory_id
        assert item["score"] == pytest.approx(memory["score"], abs=1e-6)

        assert http.ask("DELETE", f"/api/memory/{memory_id}?reason=asked").json["outcome"] == "forgotten"
        found = await client.call_tool("memory_recall", {"query": "Docker Desktop"})
        assert found.structured_content["memories"] == []

        kept = http.ask("POST", "/api/memory", {"content": "收到确认的记忆"}).json
        http.end(9)
        found = await client.call_tool("memory_recall", {"query": "收到确认"})
        assert [m["memory_id"] for m in found.structured_content["memories"]] == [kept["memory_id"]]
        assert server_pid(data_dir) == pid
    assert server_pid(data_dir) is None
    again = start_http(directory, **settings)
    assert [item["memory_id"] for item in again.ask("POST", "/api/recall", {}).json] == [kept["memory_id"]]
    assert again.end() == 0
    assert server_pid(data_dir) is None
