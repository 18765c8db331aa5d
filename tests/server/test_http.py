"""What HTTP clients see: REST, MCP over both transports, health, the token and the limits."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from dataclasses import fields

import pytest
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from processes import environment, new_bank, start_http

from hindsight.config import Settings
from hindsight.errors import BY_SQLSTATE, ConfigurationError, DatabaseError, HindsightError
from hindsight.http_server import is_loopback, refuse_open_door
from hindsight.refusals import refusal
from hindsight.results import Context, Forgotten, Memory, Recalled, Stored

NOBODY = "00000000-0000-4000-8000-000000000000"
TOKEN = "open-sesame-0123456789"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


# ---- REST -------------------------------------------------------------------------------------------------------


def test_a_memory_is_stored_recalled_read_changed_and_forgotten(http, bank):
    body = {
        "content": "外币汇率换算接口每天凌晨更新一次",
        "type": "fact",
        "tags": ["fx"],
        "session_id": "s1",
        "confidence": 0.95,
    }
    stored = http.ask("POST", "/api/memory", {**body, "bank": bank})
    assert (stored.status, set(stored.json), stored.json["outcome"]) == (201, names(Stored), "stored")
    memory_id = stored.json["memory_id"]

    recalled = http.ask("POST", "/api/recall", {"query": "汇率换算", "bank": bank})
    assert recalled.status == 200
    (item,) = recalled.json
    assert set(item) == names(Recalled)
    assert (item["content"], item["confidence"]) == (body["content"], 0.95)
    assert 0 < item["score"] <= 1

    path = f"/api/memory/{memory_id}?bank={bank}"
    assert (set(http.ask("GET", path).json), http.ask("GET", path).json["session_id"]) == (names(Memory), "s1")
    assert http.ask("DELETE", path).error["message"] == "forget needs reason"
    assert http.ask("DELETE", f"{path}&reason=obsolete").json == {"memory_id": memory_id, "outcome": "forgotten"}
    again = http.ask("DELETE", path, {"reason": "twice"})
    assert (again.status, set(again.json), again.json["outcome"]) == (200, names(Forgotten), "already forgotten")
    assert (http.ask("GET", path).status, http.ask("GET", path).error["code"]) == (404, "HM002")
    assert http.ask("POST", "/api/recall", {"query": "汇率换算", "bank": bank}).json == []


def test_a_memory_is_changed_in_part(http, bank):
    stored = http.ask("POST", "/api/memory", {"content": "room 101", "tags": "a,b", "bank": bank}).json
    path = f"/api/memory/{stored['memory_id']}?bank={bank}"
    changed = http.ask("PATCH", path, {"content": "room 102", "reason": "moved"})
    assert (changed.status, changed.json["content"], changed.json["tags"]) == (200, "room 102", ["a", "b"])
    assert http.ask("PATCH", path, {"tags": []}).json["tags"] == []
    assert http.ask("PATCH", path, {"content": "room 103", "expected_version": 1}).status == 409
    assert http.ask("PATCH", path, {}).error["message"] == "this changes nothing"


def test_memories_are_forgotten_by_filter_after_a_dry_run_and_come_back(http, bank):
    for day in (1, 2):
        http.ask("POST", "/api/memory", {"content": f"第 {day} 天下雨", "tags": "weather", "bank": bank})
    http.ask("POST", "/api/memory", {"content": "端口是 22", "bank": bank})
    asked = {"tags": "weather", "reason": "no use", "bank": bank}
    listed = http.ask("POST", "/api/forget", {**asked, "dry_run": "true"}).json
    assert {row["outcome"] for row in listed} == {"would be forgotten"}
    done = http.ask("POST", "/api/forget", asked).json
    assert [(row["memory_id"], row["outcome"]) for row in done] == [(row["memory_id"], "forgotten") for row in listed]
    assert [row["content"] for row in http.ask("POST", "/api/recall", {"bank": bank}).json] == ["端口是 22"]
    restored = http.ask("POST", f"/api/memory/{done[0]['memory_id']}/restore?bank={bank}")
    assert restored.json["state"] == "live"
    one = http.ask("POST", "/api/forget", {"memory_id": done[0]["memory_id"], "reason": "again", "bank": bank})
    assert set(one.json) == names(Forgotten)
    assert "needs a filter" in http.ask("POST", "/api/forget", {"reason": "all", "bank": bank}).error["message"]
    assert http.ask("POST", "/api/forget", {"tags": "weather", "bank": bank}).error["message"] == "forget needs reason"


def test_what_waits_is_reviewed_and_a_life_is_told(http, bank):
    guess = {"content": "the user may be in Oslo", "source": "inferred", "confidence": 0.3, "bank": bank}
    memory_id = http.ask("POST", "/api/memory", guess).json["memory_id"]
    (waiting,) = http.ask("GET", f"/api/pending?bank={bank}&most=5").json
    assert (waiting["memory_id"], waiting["state"], set(waiting)) == (memory_id, "pending", names(Memory))
    path = f"/api/memory/{memory_id}"
    confirmed = http.ask("POST", f"{path}/confirm?bank={bank}", {"reason": "she said so"})
    assert (confirmed.status, confirmed.json["state"], confirmed.json["type"]) == (200, "live", "fact")
    assert http.ask("GET", f"/api/pending?bank={bank}").json == []
    events = http.ask("GET", f"{path}/history?bank={bank}").json
    assert [(event["action"], event["reason"]) for event in events][1:] == [("confirmed", "she said so")]
    assert http.ask("POST", f"{path}/confirm?bank={bank}", {"verdict": "wrong"}).status == 400


def test_upkeep_says_what_it_did(http, bank, db):
    http.ask("POST", "/api/memory", {"content": "parked on level 3", "ttl": "2 hours", "bank": bank})
    db.rows(
        "UPDATE hindsight.memory SET expires_at = now() - interval '1 s' WHERE bank_id = "
        "(SELECT bank_id FROM hindsight.bank WHERE name = %s)", (bank,)
    )  # fmt: skip
    done = http.ask("POST", "/api/maintain", {"bank": bank}).json
    assert done["expired"] == 1
    assert http.ask("POST", f"/api/maintain?bank={bank}").json.get("expired", 0) == 0


def test_rest_takes_the_spellings_and_forms_that_the_tools_take(http, bank):
    body = {"content": "prefers docker compose", "memory_type": "preference", "tags": "docker", "bank": bank}
    assert http.ask("POST", "/api/memory", {**body, "confidence": "0.9"}).status == 201
    asked = {"query": "docker", "type_filter": "preference", "top_k": "5", "time_range": "2020-01-01/", "bank": bank}
    assert [item["type"] for item in http.ask("POST", "/api/recall", asked).json] == ["preference"]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"query": "x", "limit": 3}, "HM004", "Did you mean top_k"),
        ({"query": "x", "top_k": 0}, "HM004", "between 1 and 1000"),
        ({"query": "x\0"}, "HM005", "NUL character (U+0000) at offset 1"),
        (b'{"query": "\\ud800"}', "HM005", "lone surrogate (U+D800) at offset 0"),
        ([], "invalid_json", "must be a JSON object"),
        (b"{'query': 1}", "invalid_json", "not JSON"),
        (b'{"top_k": NaN}', "invalid_json", "NaN is no JSON"),
        (b"\xff\xfe", "invalid_json", "not JSON"),
        (b"[" * 100_000, "invalid_json", "not JSON"),
        (b"", "invalid_json", "not JSON"),
    ],
)
def test_a_request_that_cannot_be_meant_is_a_400_that_says_why(http, body, code, said):
    answer = http.ask("POST", "/api/recall", body)
    assert (answer.status, answer.error["code"]) == (400, code)
    assert said in f"{answer.error['message']}. {answer.error['hint']}"


def test_what_is_not_there_is_a_404_in_the_same_form(http, bank):
    foreign = http.ask("POST", "/api/memory", {"content": "elsewhere", "bank": bank}).json["memory_id"]
    for method, body in (("GET", None), ("PATCH", {"content": "mine"}), ("DELETE", {"reason": "mine"})):
        answer = http.ask(method, f"/api/memory/{foreign}", body)
        unknown = http.ask(method, f"/api/memory/{NOBODY}", body)
        assert (answer.status, unknown.status) == (404, 404)
        assert answer.text.replace(foreign, NOBODY) == unknown.text
    assert http.ask("POST", "/api/recall", {"bank": "nobody"}).error["code"] == "HM001"
    assert http.ask("GET", "/api/memories").error["code"] == "not_found"
    assert http.ask("GET", "/api/memory/42").status == 400


def test_a_wrong_method_is_told_the_right_ones(http):
    answer = http.ask("PUT", "/api/memory/42", {})
    assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")
    assert {method.strip() for method in answer.headers["allow"].split(",")} >= {"GET", "PATCH", "DELETE"}
    assert http.ask("GET", "/api/recall").status == 405


def test_a_body_that_is_not_called_json_is_a_415(http):
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = http.ask("POST", "/api/memory", b'{"content": "x"}', Content_Type=kind)
        assert (answer.status, answer.error["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("path", ["/api/memory", "/mcp", "/messages/"])
def test_a_body_over_two_mebibytes_is_refused_on_every_route(http, path):
    large = b'{"content": "' + b"x" * (2 * 1024 * 1024) + b'"}'
    assert (http.ask("POST", path, large).status, http.ask("POST", path, large).error["code"]) == (413, "too_large")
    with socket.create_connection(("127.0.0.1", http.port), timeout=10) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(
            head.encode() + b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(33)) + b"0\r\n\r\n"
        )
        assert connection.recv(12) == b"HTTP/1.1 413"


def test_the_status_of_every_error_is_fixed():
    statuses = {code: refusal(kind("x")).status for code, kind in BY_SQLSTATE.items()}
    assert statuses == {
        "HM001": 404, "HM002": 404, "HM003": 403, "HM004": 400, "HM005": 400, "HM006": 409, "HM007": 422, "HM010": 422,
        "HM011": 422, "HM012": 422,
    }  # fmt: skip
    for kind in HindsightError.__subclasses__():
        assert refusal(kind("x")).status in (422, 500, 503)
    hidden = refusal(DatabaseError('relation "secret" does not exist', sqlstate="42P01"))
    assert (hidden.status, "secret" in str(hidden)) == (500, False)


# ---- health -------------------------------------------------------------------------------------------------------


def test_health_is_ok_while_the_database_answers(http):
    answer = http.ask("GET", "/health")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_health_is_503_without_a_secret_when_the_database_is_gone(server, new_database, template, directory):
    import psycopg

    url = new_database(template)
    name = url.partition("?")[0].rpartition("/")[2]
    started = start_http(directory, database_url=url, bank=new_bank())
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    answer = started.ask("GET", "/health")
    assert (answer.status, answer.json["status"]) == (503, "unavailable")
    assert answer.json["reason"].startswith("the database")
    assert name not in answer.text
    asked = started.ask("POST", "/api/recall", {})
    assert (asked.status in (500, 503), name in asked.text) == (True, False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert started.ask("GET", "/health").status == 200
    assert started.ask("POST", "/api/recall", {}).json == []
    assert started.end() == 0


def test_a_block_for_a_prompt_is_what_memory_recall_answers(http, bank):
    stored = http.ask("POST", "/api/memory", {"content": "外币汇率换算接口每天凌晨更新一次", "bank": bank})
    found = http.ask("POST", "/api/context", {"query": "汇率换算", "bank": bank, "max_tokens": "300"})
    assert (found.status, set(found.json)) == (200, names(Context))
    assert found.json["citations"] == [stored.json["memory_id"]]
    assert "just now: 外币汇率换算接口每天凌晨更新一次" in found.json["block"]
    assert http.ask("POST", "/api/context", {"max_tokens": -1, "bank": bank}).status == 400


def test_a_message_is_said_to_ask_for_memory_or_not(http, bank):
    assert http.ask("POST", "/api/should_recall", {"message": "还记得吗", "bank": bank}).json["recall"] is True
    no = http.ask("POST", "/api/should_recall", {"message": "ok", "bank": bank})
    assert no.json == {"recall": False, "reason": "small talk: ok"}
    assert "needs message" in http.ask("POST", "/api/should_recall", {"bank": bank}).error["message"]


# ---- MCP ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_both_mcp_transports_serve_what_rest_serves(http, bank, path):
    http.ask("POST", "/api/memory", {"content": "用户偏好用 docker compose 而不是 docker run", "bank": bank})
    async with Client(http.url + path) as client:
        result = await client.call_tool("memory_recall", {"query": "docker 偏好", "bank": bank})
        (memory,) = result.structured_content["memories"]
        (item,) = http.ask("POST", "/api/recall", {"query": "docker 偏好", "bank": bank}).json
        assert (memory["memory_id"], memory["content"]) == (item["memory_id"], item["content"])
        assert memory["score"] == pytest.approx(item["score"], abs=1e-6)
        told = await client.call_tool("memory_recall", {"query": "x", "limit": 3}, raise_on_error=False)
        assert "Did you mean top_k" in told.content[0].text


def test_a_request_over_streamable_http_needs_no_session(http):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body["params"] = {"name": "memory_recall", "arguments": {"query": "上次"}}
    answer = http.ask("POST", "/mcp", body, Accept="application/json, text/event-stream")
    assert answer.json["result"]["structuredContent"]["memories"] == []


# ---- who may come in ----------------------------------------------------------------------------------------------


def test_a_web_page_cannot_reach_a_loopback_server_through_a_browser(http):
    for path in ("/api/recall", "/mcp", "/health"):
        assert http.ask("POST", path, {}, Host="evil.example").status == 421
        assert http.ask("POST", path, {}, Origin="https://evil.example").status == 403
    assert http.ask("POST", "/api/recall", {}, Origin="http://localhost:3000").status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/memory"), ("POST", "/api/recall"), ("GET", f"/api/memory/{NOBODY}"), ("POST", "/mcp"),
     ("GET", "/mcp"), ("GET", "/sse"), ("POST", "/messages/"), ("GET", "/nothing"), ("GET", "/health/")],
)  # fmt: skip
def test_every_route_but_health_demands_the_token(guarded, method, path):
    for headers in ({}, bearer(""), bearer("wrong"), bearer(TOKEN[:-1]), {"Authorization": f"Basic {TOKEN[:4]}"}):
        answer = guarded.ask(method, path, {} if method == "POST" else None, **headers)
        assert (answer.status, answer.error["code"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert "sesame" not in answer.text
    assert guarded.ask("GET", "/health").status == 200


async def test_with_the_token_everything_works(guarded):
    assert guarded.ask("POST", "/api/memory", {"content": "令牌有效"}, **bearer(TOKEN)).status == 201
    for transport in (StreamableHttpTransport(f"{guarded.url}/mcp", headers=bearer(TOKEN)),
                      SSETransport(f"{guarded.url}/sse", headers=bearer(TOKEN))):  # fmt: skip
        async with Client(transport) as client:
            found = (await client.call_tool("memory_recall", {"query": "令牌"})).structured_content
            assert [memory["content"] for memory in found["memories"]] == ["令牌有效"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_a_server_that_others_can_reach_does_not_start_without_a_token(host):
    with pytest.raises(ConfigurationError, match="set HINDSIGHT_TOKEN"):
        refuse_open_door(Settings(host=host, token=None))
    refuse_open_door(Settings(host=host, token="long and random"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_a_loopback_server_needs_no_token(host):
    assert is_loopback(host)
    refuse_open_door(Settings(host=host, token=None))


def test_the_refusal_to_start_is_one_line_and_an_exit_code(directory):
    ended = subprocess.run(
        [sys.executable, "-m", "hindsight.http_server"],
        cwd=directory,
        env=environment(host="0.0.0.0"),
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ended.returncode == 69
    assert ended.stderr.startswith("hindsight: HINDSIGHT_HOST is 0.0.0.0, which other machines can reach")
    assert len(ended.stderr.splitlines()) == 1


# ---- the end ------------------------------------------------------------------------------------------------------


async def test_a_server_ends_in_order_while_clients_listen(shared_url, directory):
    started = start_http(directory, database_url=shared_url, bank=new_bank())
    async with Client(f"{started.url}/sse") as client:
        await client.list_tools()
        assert await asyncio.to_thread(started.end, 2) == 0  # SIGINT; the other servers end by SIGTERM
        assert "Traceback" not in started.log


def test_a_port_that_is_in_use_is_said_before_anything_is_served(http, shared_url, directory):
    run = subprocess.run(
        [sys.executable, "-m", "hindsight.cli", "serve", "--port", str(http.port)],
        env=environment(database_url=shared_url, embedding_provider="none"), cwd=directory, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 2
    assert f"can't listen on 127.0.0.1, port {http.port}: Address already in use" in run.stderr
