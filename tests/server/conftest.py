"""Servers for the tests: one in this process, and real ones over HTTP."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from processes import HttpServer, new_bank, start_http

from hindsight.config import Settings
from hindsight.mcp_server import build_server

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """A working directory without a .env."""
    with tempfile.TemporaryDirectory(prefix="hindsight-test-") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def http(shared_url: str, directory: Path) -> Iterator[HttpServer]:
    """A server without a token."""
    server = start_http(directory, database_url=shared_url, bank=new_bank())
    yield server
    assert server.end() == 0


@pytest.fixture(scope="session")
def guarded(shared_url: str, directory: Path) -> Iterator[HttpServer]:
    """A server on every address of the machine, with the token `open-sesame-0123456789`."""
    server = start_http(
        directory, database_url=shared_url, bank=new_bank(), host="0.0.0.0", token="open-sesame-0123456789"
    )
    yield server
    assert server.end() == 0


@pytest.fixture
def settings(shared_url: str) -> Settings:
    """Settings with a bank of the test's own, which does not exist yet."""
    return Settings(database_url=shared_url, embedding_provider="none", bank=new_bank(), connect_timeout=5)


@pytest.fixture(scope="session")
async def client(shared_url: str) -> AsyncIterator[Client[Any]]:
    """An MCP client of a server in this process, which tests share."""
    shared = Settings(database_url=shared_url, embedding_provider="none", bank=new_bank())
    async with Client(build_server(shared)) as connected:
        yield connected


@pytest.fixture
def own(db: Any) -> str:
    """A bank of the test's own."""
    name = new_bank()
    db.call("create_bank", bank=name)
    return name


@pytest.fixture
def call(client: Client[Any], own: str) -> Ask:
    """Calls a tool on the test's own bank: its structured answer."""

    async def called(tool: str, **arguments: Any) -> Any:
        return (await client.call_tool(tool, {"bank": own, **arguments})).structured_content

    return called


@pytest.fixture
def refused(client: Client[Any], own: str) -> Ask:
    """Calls a tool that refuses: its sentence."""

    async def called(tool: str, **arguments: Any) -> str:
        result = await client.call_tool(tool, {"bank": own, **arguments}, raise_on_error=False)
        assert result.is_error, result.structured_content
        return str(result.content[0].text)

    return called
