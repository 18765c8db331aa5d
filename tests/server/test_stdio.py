"""The stdio server as a real process: what clients of agents start."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import environment, new_bank
from pydantic_core import from_json

from hindsight.stdio_input import restored, rewritten, shallow

NOISE = """
import atexit, logging, os, sys, warnings

atexit.register(print, "noise at the end")

import hindsight.service

class Noisy(hindsight.service.MemoryService):
    async def store(self, content: str) -> dict:
        print("noise of a tool, unflushed")
        print("noise of a tool", flush=True)
        os.write(1, b"noise past Python\\n")
        os.system("echo noise of a child")
        logging.getLogger("anything").error("noise of a log")
        warnings.warn("noise of a warning")
        return {"content": content}

hindsight.service.MemoryService = Noisy
import hindsight.mcp_server
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, force=True)
hindsight.mcp_server.main()
"""


class Wire:
    """A server process, and JSON-RPC with it, line by line."""

    def __init__(self, directory: Path, *command: str, **settings: str) -> None:
        settings = {"embedding_provider": "none", **settings}
        self.errors = directory / f"{new_bank()}.log"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *(command or ("-m", "hindsight.mcp_server"))],
                cwd=directory,
                env=environment(**settings),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.number = 0

    def __enter__(self) -> Wire:
        client = {"name": "test", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))
        answer = json.loads(self.line())
        assert answer["id"] == self.number
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=tool, arguments=arguments)["structuredContent"]

    def end(self) -> tuple[int, str]:
        """Closes the input, as a client does: the exit code, and what was still written."""
        rest, _ = self.process.communicate(timeout=20)
        return self.process.returncode, rest


@pytest.fixture(scope="module")
def wire(shared_url: str, directory: Path) -> Iterator[Wire]:
    with Wire(directory, database_url=shared_url, bank=new_bank()) as wire:
        yield wire


def test_only_json_rpc_comes_out_whatever_is_printed_logged_or_warned(shared_url, directory):
    with Wire(directory, "-c", NOISE, database_url=shared_url) as wire:
        assert wire.call("memory_store", content="安静") == {"content": "安静"}
        assert wire.end() == (0, "")
    log = wire.errors.read_text()
    for noise in (
        "of a tool, unflushed",
        "of a tool\n",
        "past Python",
        "of a child",
        "of a log",
        "of a warning",
        "at the",
    ):
        assert f"noise {noise}" in log


def test_a_line_that_is_no_json_does_not_end_the_server(wire):
    wire.send("this is not JSON")
    assert wire.call("memory_recall", query="x")["memories"] == []


def test_a_nul_and_a_lone_surrogate_are_refused_at_once(wire):
    for escape, said in (("\\u0000", "NUL character (U+0000) at offset 1"), ("\\ud800", "U+D800")):
        params = '{"name": "memory_store", "arguments": {"content": "a%s"}}' % escape  # noqa: UP031
        wire.send('{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": %s}' % params)  # noqa: UP031
        answer = json.loads(wire.line())
        assert (answer["id"], answer["result"]["isError"]) == (77, True)
        assert said in answer["result"]["content"][0]["text"]


def test_a_kill_between_two_calls_loses_nothing_that_was_acknowledged(shared_url, directory):
    bank = new_bank()
    with Wire(directory, database_url=shared_url, bank=bank) as wire:
        memory_id = wire.call("memory_store", content="SSH 端口是 49222")["memory_id"]
        wire.process.send_signal(signal.SIGKILL)
        wire.process.wait()
    with Wire(directory, database_url=shared_url, bank=bank) as wire:
        assert [m["memory_id"] for m in wire.call("memory_recall", query="49222")["memories"]] == [memory_id]
        assert wire.end() == (0, "")
        assert wire.errors.read_text() == ""  # no banner either


def test_a_signal_ends_it_at_once_though_the_input_stays_open(shared_url, directory):
    with Wire(directory, database_url=shared_url) as wire:
        wire.process.send_signal(signal.SIGTERM)
        assert wire.process.wait(10) == 0
        assert "Traceback" not in wire.errors.read_text()


def test_a_server_that_cannot_start_says_why_in_one_line(shared_url, directory):
    wire = Wire(directory, database_url="postgresql://me:sesame@127.0.0.1:9/x", connect_timeout="0")
    assert wire.end() == (69, "")
    (line,) = wire.errors.read_text().splitlines()
    assert line.startswith("hindsight: the database can't be reached")
    assert "sesame" not in line


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"a\ud83d"', "a\ud83d"),
        (rb'"\ude00\ud83d"', "\ude00\ud83d"),
        (rb'"\ud83d\ud83d\ude00"', "\ud83d😀"),
        (rb'"\\ud83d"', "\\ud83d"),
        (rb'"\\\ud83d\n"', "\\\ud83d\n"),
        (rb'"\u0000\u0000ab"', "\0\0ab"),
    ],
)
def test_a_lone_surrogate_passes_a_parser_that_takes_none(sent, arrives):
    for wrapped, expected in (
        (sent, arrives),
        (b"[{%b: [1, null, %b]}]" % (sent, sent), [{arrives: [1, None, arrives]}]),
    ):
        assert restored(from_json(rewritten(wrapped))) == expected


ODD = [
    None,
    True,
    -1,
    10**400,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "\u202e\u200b\ufeff",
    "é̂" * 50_000,
    "🇨🇳👩‍👩‍👧" * 1000,
    "'; DROP TABLE hindsight.memory; --",
    "%s %(x)s {0} ${jndi}",
    "../../etc/passwd",
    "NaN",
    "00000000-0000-0000-0000-000000000000",
    [],
    [[[[]]]],
    ["a"] * 5000,
    {},
    {"$gte": {"$gte": {}}},
    {"k" * 5000: "v"},
]


@pytest.mark.parametrize("depth", [1, 100, 101, 500, 100_000])
def test_what_is_too_deep_for_the_parser_becomes_null_and_nothing_else_changes(depth):
    deep = b"[" * depth + b"1" + b"]" * depth
    line = b'{"id": 7, "text": "[[{ \\" ]", "deep": ' + deep + b', "also": ' + deep + b', "last": [[2]]}'
    found = json.loads(shallow(line))
    assert (found["id"], found["text"], found["last"]) == (7, '[[{ " ]', [[2]])
    assert found["deep"] == found["also"]
    assert (shallow(line) == line) == (depth < 100)  # the object around it is a level of its own
    assert ("null" in json.dumps(found)) == (depth >= 100)


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_every_tool_answers_or_refuses_odd_values_of_every_argument_in_lines_of_json_rpc(shared_url, directory):
    with Wire(directory, database_url=shared_url, bank=new_bank()) as wire:
        tools = wire.ask("tools/list")["tools"]
        refused = asked = 0
        values = [*ODD, nested(60), nested(500), nested(900)]
        for tool in tools:
            sample = {"content": "The port is 22", "memory_id": str(uuid.uuid4()), "reason": "asked", "query": "port"}
            needed = {name: sample[name] for name in tool["inputSchema"].get("required", [])}
            for place, name in enumerate(tool["inputSchema"]["properties"]):
                for value in values[place % 2 :: 2]:
                    answer = wire.ask("tools/call", name=tool["name"], arguments={**needed, name: value})
                    asked += 1
                    (told,) = answer["content"]
                    if answer.get("isError"):
                        refused += 1
                        for inside in (
                            "Traceback",
                            "SELECT",
                            "sqlalchemy",
                            "asyncpg",
                            "inside the server",
                            "can't be reached",
                        ):
                            assert inside not in told["text"], (tool["name"], name, value)
                    else:
                        assert isinstance(answer["structuredContent"], dict)
        assert asked > 700
        assert 0.3 < refused / asked < 1
        assert wire.end() == (0, "")
    log = wire.errors.read_text()
    assert "Traceback" not in log
    assert "DROP TABLE" not in log
