"""What stands before every route: request ids, limits, security headers, figures, and a log without content."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from processes import HttpServer, new_bank, start_http

from hindsight.http_guards import SECURITY_HEADERS, BodyLimit, RateLimit

TOKEN = {"Authorization": "Bearer open-sesame-0123456789"}
SECRET = "the launch code is rhubarb 大黄"


def logged(server: HttpServer, text: str) -> str:
    """The line of the server's log with a text; it comes after the answer."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for line in list(server.lines):
            if text in line:
                return line
        time.sleep(0.02)
    raise AssertionError(f"no {text} in {server.log}")


# ---- request ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), [("GET", "/health"), ("POST", "/api/recall"), ("GET", "/nowhere")])
def test_every_answer_has_an_id_and_headers_that_keep_it_out_of_caches_and_frames(http, method, path):
    answer = http.ask(method, path)
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name.lower()] == value
    assert answer.headers["x-request-id"] in logged(http, answer.headers["x-request-id"])


def test_an_answer_without_a_token_has_them_as_well(guarded):
    answer = guarded.ask("GET", "/api/state")
    assert answer.status == 401
    assert {"x-request-id", "x-content-type-options"} <= set(answer.headers)


@pytest.mark.parametrize("brought", ["trace-1", "A/b:c=.+_9"])
def test_an_id_that_a_request_brings_joins_answer_log_and_event(http, bank, brought):
    answer = http.ask("POST", "/api/memory", {"content": "The port is 22", "bank": bank}, X_Request_Id=brought)
    assert answer.headers["x-request-id"] == brought
    events = http.ask("GET", f"/api/memory/{answer.json['memory_id']}/history?bank={bank}").json
    assert [event["request_id"] for event in events] == [brought]
    assert logged(http, brought).startswith("INFO hindsight.server: POST /api/memory 201 ")


async def test_a_tool_called_over_http_leaves_the_id_in_its_event(http, bank):
    transport = StreamableHttpTransport(f"{http.url}/mcp", headers={"X-Request-Id": "trace-2"})
    async with Client(transport) as client:
        stored = await client.call_tool("memory_store", {"content": "端口是 8080", "bank": bank})
        memory_id = stored.structured_content["memory_id"]
        told = await client.call_tool("memory_history", {"memory_id": memory_id, "bank": bank})
    assert [event["request_id"] for event in told.structured_content["events"]] == ["trace-2"]


@pytest.mark.parametrize("brought", ["two words", "x" * 129, '"}{', "é", "a;b"])
def test_an_id_that_could_break_a_line_is_replaced(http, brought):
    answer = http.ask("GET", "/health", X_Request_Id=brought)
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


# ---- the log and the figures ---------------------------------------------------------------------------------------


def test_neither_log_nor_figures_hold_what_was_said_or_asked_or_whose_it_is(shared_url: str, directory: Path) -> None:
    server = start_http(directory, database_url=shared_url, bank=new_bank(), log_format="json")
    bank, owner = new_bank(), "agent-7-private"
    stored = server.ask("POST", "/api/memory", {"content": SECRET, "source": owner, "bank": "no-such-bank"})
    assert stored.status == 404
    memory_id = server.ask("POST", "/api/memory", {"content": SECRET, "tags": [owner]}).json["memory_id"]
    assert server.ask("POST", "/api/recall", {"query": SECRET}).json
    assert server.ask("GET", f"/api/memory/{memory_id}?bank={bank}").status == 404
    assert server.ask("GET", f"/{owner}/rhubarb").status == 404
    figures = server.ask("GET", "/metrics")
    assert server.end() == 0
    assert figures.status == 200
    assert 'hindsight_requests_total{method="POST",route="/api/recall",status="200"} 1.0' in figures.text
    assert 'hindsight_calls_total{call="store",code="HM001"} 1.0' in figures.text
    assert 'hindsight_calls_total{call="store",code="ok"} 1.0' in figures.text
    assert 'hindsight_request_seconds_count{method="GET",route="/api/memory/{memory_id}"} 1.0' in figures.text
    assert 'route="other",status="404"} 1.0' in figures.text
    assert "hindsight_database_connections_most 10.0" in figures.text
    for text in (figures.text, server.log):
        for private in ("rhubarb", "大黄", owner, bank, memory_id, "no-such-bank"):
            assert private not in text
    records = [json.loads(line) for line in server.lines]
    (recall,) = [record for record in records if record.get("route") == "/api/recall"]
    assert (recall["method"], recall["status"], recall["level"]) == ("POST", 200, "info")
    assert recall["ms"] > 0
    assert recall["request_id"]


def test_the_figures_demand_the_token_where_there_is_one(guarded):
    assert guarded.ask("GET", "/metrics").status == 401
    assert guarded.ask("GET", "/metrics", **TOKEN).status == 200


# ---- limits --------------------------------------------------------------------------------------------------------


def asked_from(server: HttpServer, address: str, path: str = "/api/state") -> int:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20, source_address=(address, 0))
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def test_who_sends_too_much_waits_and_others_do_not(shared_url: str, directory: Path) -> None:
    server = start_http(directory, database_url=shared_url, bank=new_bank(), rate_limit="2")
    answers = [server.ask("GET", "/api/state") for _ in range(40)]
    served = sum(answer.status == 200 for answer in answers)
    late = answers[-1]
    assert 20 <= served < 40
    assert (late.status, late.error["code"], int(late.headers["retry-after"]) >= 1) == (429, "rate_limited", True)
    assert asked_from(server, "127.0.0.2") == 200
    assert server.ask("GET", "/health").status == 200
    time.sleep(1)
    assert server.ask("GET", "/api/state").status == 200
    assert server.end() == 0


async def test_each_token_has_a_rate_of_its_own_and_few_are_remembered() -> None:
    limit = RateLimit(lambda *_: None, rate=1, has_tokens=True)  # type: ignore[arg-type,return-value]
    scopes = [{"headers": [(b"authorization", f"Bearer {n}".encode())], "client": ("::1", 1)} for n in range(20_000)]
    clients = [limit._client(scope) for scope in scopes]
    assert len(set(clients)) == 20_000
    for client in clients:
        assert limit._wait(client, 0.0) <= 0
    assert len(limit._spent) == 10_000
    assert [limit._wait(clients[-1], 0.0) > 0 for _ in range(11)].count(False) == 9  # ten seconds' worth, one was spent
    assert limit._wait(clients[-1], 2.0) <= 0


async def test_a_body_that_does_not_come_is_given_up() -> None:
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    async def unreached(*_: Any) -> None:
        raise AssertionError("the body has not come")

    scope = {"type": "http", "method": "POST", "path": "/api/recall", "headers": []}
    await BodyLimit(unreached, seconds=0.05)(scope, never, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["error"]["code"] == "too_slow"


@pytest.fixture
def held(shared_url: str, directory: Path):
    """A server that takes one request at a time and a second for each statement, and a memory that somebody has locked."""
    bank = new_bank()
    server = start_http(directory, database_url=shared_url, bank=bank, concurrency="1", statement_timeout="1")
    memory_id = server.ask("POST", "/api/memory", {"content": "The port is 22"}).json["memory_id"]
    with psycopg.connect(shared_url) as connection:
        connection.execute("SELECT FROM hindsight.memory WHERE memory_id = %s FOR UPDATE", [memory_id])
        yield server, f"/api/memory/{memory_id}?reason=asked"
    assert server.end() == 0


def test_a_statement_that_takes_too_long_is_stopped_and_said_so_and_one_too_many_waits(held) -> None:
    server, path = held
    slow: list[Any] = []
    asking = threading.Thread(target=lambda: slow.append(server.ask("DELETE", path)))
    asking.start()
    time.sleep(0.4)
    refused = server.ask("GET", "/api/state")
    assert (refused.status, refused.error["code"]) == (503, "too_many_requests_at_work")
    assert refused.headers["retry-after"] == "1"
    assert server.ask("GET", "/health").status == 200
    asking.join()
    assert (slow[0].status, slow[0].error["code"]) == (503, "timed_out")
    assert slow[0].error["request_id"] == slow[0].headers["x-request-id"]
    assert server.ask("GET", "/api/state").status == 200
