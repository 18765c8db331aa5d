"""docs/mcp.md says what the servers do: every tool, parameter, spelling and route, and examples that were run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastmcp import Client

from hindsight.arguments import OTHER_SPELLINGS
from hindsight.guidance import GUIDANCE
from hindsight.mcp_server import TOOLS, build_server
from hindsight.rest import rest_routes
from hindsight.service import MemoryService

TEXT = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
ID = "2e378c49-8294-425c-ae08-9a625057d9f2"


async def test_every_tool_is_listed_with_every_parameter_and_no_other(settings):
    async with Client(build_server(settings.model_copy(update={"tools": "full"}))) as client:
        tools = await client.list_tools()
    for tool in tools:
        section = TEXT.split(f"### {tool.name}\n")[1].split("\n#")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
        assert list(rows) == list(tool.input_schema["properties"])
        for name, schema in tool.input_schema["properties"].items():
            assert schema["type"] in rows[name], name
            assert schema["description"] in rows[name], name
            assert ("needed" in rows[name]) == (name in tool.input_schema.get("required", [])), name
            for value in schema.get("enum", schema.get("items", {}).get("enum", [])):
                assert value in rows[name], name


def test_every_other_name_of_a_tool_or_an_argument_is_listed():
    for plan in TOOLS:
        assert not plan.names[1:] or f"| `{plan.names[0]}` | {', '.join(f'`{n}`' for n in plan.names[1:])} |" in TEXT
    for spelling in (*OTHER_SPELLINGS, "time_range"):
        assert f"| `{spelling}` |" in TEXT


def test_the_guidance_is_there_word_for_word():
    assert f"```text\n{GUIDANCE}\n```" in TEXT


def test_every_route_is_listed_with_every_method(settings):
    for route in rest_routes(MemoryService(settings)):
        for method in (route.methods or set()) - {"HEAD"}:
            path = route.path.replace(":path}", "}")
            assert f"`{method} {path}`" in TEXT
    for path in ("/mcp", "/sse", "/health"):
        assert f"| `{path}` |" in TEXT


def test_the_configurations_are_json():
    snippets = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert [set(json.loads(snippet)["mcpServers"]["hindsight"]) for snippet in snippets] == [
        {"command", "args", "env"},
        {"type", "url", "headers"},
    ]


def examples() -> Iterator[tuple[str, str, Any, Any]]:
    """Method, path, body and printed answer of each curl command."""
    for command, printed in re.findall(r"```console\n\$ (.*)\n(.*)\n```", TEXT):
        words = shlex.split(command)
        body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
        method = words[words.index("-X") + 1] if "-X" in words else "POST" if body else "GET"
        (path,) = [word.removeprefix("localhost:8080") for word in words if word.startswith("localhost:8080")]
        yield method, path, body, json.loads(printed)


def steady(value: Any) -> Any:
    """An answer without what differs from run to run, or with the embedding model."""
    if isinstance(value, list):
        return [steady(item) for item in value]
    if isinstance(value, dict):
        moving = ("memory_id", "bank", "embedded", "channels", "at", "principal", "request_id")
        return {key: None if key in moving or key.endswith("_at") else steady(item) for key, item in value.items()}
    return None if isinstance(value, float) else value


def test_the_examples_print_what_they_print(http, own):
    memory_id = ID
    for method, path, body, printed in examples():
        path = path.replace(ID, memory_id)
        if path != "/health":
            path += f"{'&' if '?' in path else '?'}bank={own}"
        answer = http.ask(method, path, body).json
        assert steady(answer) == steady(printed), path
        if isinstance(answer, dict):
            memory_id = answer.get("memory_id", memory_id)
