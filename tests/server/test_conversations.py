"""Conversations over HTTP: turns, the desk of a session, the queue, and memories that come by themselves."""

from __future__ import annotations

import time

from processes import start_http

from tests.endpoint import ScriptedEndpoint


def test_what_was_said_is_kept_distilled_by_the_server_and_cited(fresh_url, directory):
    server = start_http(directory, database_url=fresh_url, bank="alice", worker="true", worker_poll="0.05")
    turns = [
        {"role": "user", "content": "记住：测试环境的SSH端口是49222", "turn_id": "m1"},
        {"role": "assistant", "content": "好的。", "turn_id": "m2"},
    ]
    logged = server.ask("POST", "/api/turns", {"session_id": "s1", "turns": turns})
    assert [turn["outcome"] for turn in logged.json] == ["logged", "logged"]
    again = server.ask("POST", "/api/turns", {"session_id": "s1", "turns": turns})
    assert [turn["outcome"] for turn in again.json] == ["logged already", "logged already"]
    assert server.ask("POST", "/api/session/s1/close").json == {"session_id": "s1", "state": "closed"}
    deadline = time.monotonic() + 20
    found = []
    while not found and time.monotonic() < deadline:
        found = [one for one in server.ask("POST", "/api/recall", {"query": "49222"}).json if one["type"] != "summary"]
        time.sleep(0.05)
    (memory,) = found
    (source,) = server.ask("GET", f"/api/memory/{memory['memory_id']}/sources").json
    assert (source["session_id"], source["sequence"], source["content"]) == ("s1", 1, turns[0]["content"])
    assert server.end() == 0


def test_a_desk_takes_values_and_gives_them_back_with_the_last_turns(http, bank):
    path = f"/api/session/s1/desk?bank={bank}"
    assert http.ask("POST", path, {"key": "plan", "value": {"step": 2}, "ttl": "1 hour"}).status == 200
    http.ask("POST", "/api/turns", {"bank": bank, "session_id": "s1", "turns": {"role": "user", "content": "Go on."}})
    desk = http.ask("GET", path).json
    assert (desk["values"], [turn["content"] for turn in desk["turns"]]) == ({"plan": {"step": 2}}, ["Go on."])
    http.ask("POST", path, {"key": "plan", "value": None})
    assert http.ask("GET", path).json["values"] == {}
    assert http.ask("GET", f"{path}&max_tokens=0").error["code"] == "HM004"


def test_what_waits_is_shown(http, bank):
    http.ask("POST", "/api/turns", {"bank": bank, "session_id": "s1", "turns": [{"role": "user", "content": "Hello."}]})
    (waiting,) = http.ask("GET", f"/api/queue?bank={bank}").json
    assert (waiting["session_id"], waiting["state"], waiting["waiting"]) == ("s1", "waiting", 1)


def test_bad_turns_are_refused_with_what_is_right(http, bank):
    for turns in ("text", [1], {"role": "user"}, [{"role": "user", "content": "x", "mood": "good"}]):
        told = http.ask("POST", "/api/turns", {"bank": bank, "session_id": "s1", "turns": turns})
        assert told.status == 400, turns
    assert "turn_id" in told.error["hint"]
    assert http.ask("POST", f"/api/session/nobody/close?bank={bank}").status == 404


def test_a_language_model_that_hangs_does_not_keep_the_server_from_ending(fresh_url, directory):
    with ScriptedEndpoint() as endpoint:
        endpoint.delay = 100
        model = {"llm_base_url": endpoint.url, "llm_model": "m"}
        server = start_http(directory, database_url=fresh_url, bank="alice", worker="true", worker_poll="0.05", **model)
        turn = {"role": "user", "content": "Remember that the SSH port is 2222."}
        server.ask("POST", "/api/turns", {"session_id": "s1", "turns": [turn]})
        deadline = time.monotonic() + 20
        while not endpoint.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        assert endpoint.requests
        assert server.end() == 0  # within 20 seconds, of which it is patient for 10


def test_a_session_may_have_a_slash_in_its_id(http, bank):
    path = f"/api/session/conv-26%2Fsession_1/desk?bank={bank}"
    assert http.ask("POST", path, {"key": "plan", "value": "步骤二"}).status == 200
    assert http.ask("GET", path).json["values"] == {"plan": "步骤二"}
    assert http.ask("POST", f"/api/session/conv-26/session_1/close?bank={bank}").json["state"] == "closed"
