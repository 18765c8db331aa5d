"""SQL, the client, MCP (stdio and HTTP) and REST reach the same functions: whoever stores, each recalls the same, with the same score."""

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from processes import environment, start_http

from hindsight import AsyncHindsight, Settings
from hindsight.calls import vector
from hindsight.embedding import LocalEmbedder
from tests.conftest import Database

USERS = ["sql", "client", "stdio", "http", "rest"]
MEMORIES = {
    "sql": "The staging server is in Leipzig",
    "client": "用户偏好用 docker compose 而不是 docker run",
    "stdio": "Nightly backups run at 02:30 UTC",
    "http": "外币汇率换算接口每天凌晨更新一次",
    "rest": "Error ERR-7731 means the token has expired",
}
QUERIES = {
    "sql": "Where is the staging server?",
    "client": "docker compose 还是 docker run",
    "stdio": "When do the backups run?",
    "http": "汇率多久更新一次",
    "rest": "ERR-7731",
}
embedder = LocalEmbedder()


class Users:
    """Each user's way to store and to recall, as `memory_id → score`."""

    def __init__(
        self, db: Database, client: AsyncHindsight, stdio: Client[Any], http: Client[Any], rest: Any, bank: str
    ) -> None:
        self.db, self.client, self.stdio, self.http, self.rest, self.bank = db, client, stdio, http, rest, bank

    async def store(self, user: str, content: str) -> str:
        if user == "sql":
            (embedding,) = embedder.passages([content])
            row = self.db.one(
                "store", bank=self.bank, content=content, embedding=vector(embedding), model=embedder.model
            )
            return str(row["memory_id"])
        if user == "client":
            return str((await self.client.store(self.bank, content)).memory_id)
        if user == "rest":
            return str(self.rest.ask("POST", "/api/memory", {"bank": self.bank, "content": content}).json["memory_id"])
        mcp: Client[Any] = getattr(self, user)
        result = await mcp.call_tool("memory_store", {"bank": self.bank, "content": content})
        return str(result.structured_content["memory_id"])

    async def recall(self, user: str, query: str) -> dict[str, float]:
        if user == "sql":
            rows = self.db.call(
                "recall", bank=self.bank, query=query, embedding=vector(embedder.query(query)), model=embedder.model
            )
            return {str(row["memory_id"]): row["score"] for row in rows}
        if user == "client":
            return {str(found.memory_id): found.score for found in await self.client.recall(self.bank, query)}
        if user == "rest":
            return {
                item["memory_id"]: item["score"]
                for item in self.rest.ask("POST", "/api/recall", {"bank": self.bank, "query": query}).json
            }
        mcp: Client[Any] = getattr(self, user)
        result = await mcp.call_tool("memory_recall", {"bank": self.bank, "query": query})
        return {item["memory_id"]: item["score"] for item in result.structured_content["memories"]}


@pytest.fixture
async def users(db: Database, shared_url: str, directory: Any) -> AsyncIterator[Users]:
    bank = f"bank-{uuid.uuid4().hex[:10]}"
    given = {"database_url": shared_url, "embedding_provider": "local", "bank": bank}
    db.call(
        "register_model", model=embedder.model, dimensions=embedder.dimensions, floor=embedder.floor,
        recall_threshold=embedder.recall_threshold, merge_threshold=embedder.merge_threshold,
    )  # fmt: skip
    # Nothing fades here, so that a score asked for a moment later is the same to the last digit.
    db.call("create_bank", bank=bank, decay_rate=0)
    server = start_http(directory, **given)
    transport = StdioTransport(
        sys.executable, ["-m", "hindsight.mcp_server"], env=environment(**given), cwd=str(directory), keep_alive=False
    )
    client = await AsyncHindsight.connect(shared_url, settings=Settings(embedding_provider="local"))
    async with client, Client(transport) as stdio, Client(f"{server.url}/mcp") as http:
        yield Users(db, client, stdio, http, server, bank)
    server.end()


async def test_what_one_user_stores_each_of_the_others_recalls_with_the_same_score(users: Users) -> None:
    ids = {user: await users.store(user, MEMORIES[user]) for user in USERS}
    for writer in USERS:
        found = {reader: await users.recall(reader, QUERIES[writer]) for reader in USERS}
        assert next(iter(found["sql"])) == ids[writer], writer
        for reader in USERS:
            assert found[reader] == pytest.approx(found["sql"], abs=1e-9), (writer, reader)
    assert [await users.store(user, MEMORIES["sql"]) for user in USERS] == [ids["sql"]] * 5, (
        "the same text is one memory"
    )
