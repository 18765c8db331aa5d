"""The MCP server: six tools over the memory service, and the guidance that tells a model when to use them.

`python -m hindsight.mcp_server` serves one client over standard input and output.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC
from importlib.metadata import version
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from fastmcp.tools.function_tool import FunctionTool
from mcp_types import ToolAnnotations
from pydantic_core import to_jsonable_python

from hindsight.arguments import perform, schema_of
from hindsight.config import Settings, load_settings
from hindsight.errors import HindsightError
from hindsight.guidance import CONFIRM, FORGET, GUIDANCE, HISTORY, RECALL, STORE, UPDATE
from hindsight.refusals import INTERNAL, is_internal, refusal
from hindsight.request_id import request_id
from hindsight.results import Context, Event
from hindsight.server_log import log_to_standard_error
from hindsight.service import MemoryService, log
from hindsight.stdio_input import RewrittenLines, restored


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """One tool: its names (the first always, the others with `settings.tool_aliases`), its text, its hints.

    unlisted: arguments that are taken and not shown, because whoever runs the server has decided on them.
    """

    names: tuple[str, ...]
    method: str
    description: str
    annotations: ToolAnnotations
    unlisted: tuple[str, ...] = ()


TOOLS = (
    ToolPlan(
        ("memory_store", "memory_write", "write_memory"),
        "store",
        STORE,
        ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False),
        unlisted=("derived_from",),
    ),
    ToolPlan(
        ("memory_recall", "search_memory"),
        "recall",
        RECALL,
        ToolAnnotations(read_only_hint=True, open_world_hint=False),
        unlisted=("context", "rerank", "rewrite"),
    ),
    ToolPlan(
        ("memory_update", "update_memory"),
        "update",
        UPDATE,
        ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
    ),
    ToolPlan(
        ("memory_forget",),
        "forget",
        FORGET,
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
    ),
    ToolPlan(
        ("memory_confirm",),
        "confirm",
        CONFIRM,
        ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
    ),
    ToolPlan(
        ("memory_history",),
        "history",
        HISTORY,
        ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
)
"""The tools, with the names that other memory servers use."""


class MemoryTool(FunctionTool):
    """A call of the memory service as a tool, as lenient with its arguments and as plain in its errors as REST."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Runs the call. Raises ToolError with the sentence that the client may read."""
        try:
            return answer(await perform(self.fn, self.name, restored(arguments)))
        except HindsightError as error:
            told = refusal(error)
            if is_internal(told):
                log.exception("%s failed", self.name)
            raise ToolError(str(told), log_level=logging.DEBUG) from None
        except Exception:
            log.exception("%s failed", self.name)
            named = request_id.get()
            said = f"{INTERNAL.message} (request {named})" if named else INTERNAL.message
            raise ToolError(said, log_level=logging.DEBUG) from None


def answer(result: Any) -> ToolResult:
    """A result as structured content, and as text.

    The text is the block of what was recalled, a line for each event of a history, and else the same JSON, short.
    """
    structured = to_jsonable_python(result)
    if isinstance(result, list):
        return ToolResult(content=life(result), structured_content={"events": structured})
    if isinstance(result, Context):
        text = result.block or "Nothing relevant is remembered."
    else:
        text = json.dumps(_compact(structured), ensure_ascii=False, separators=(",", ":"))
    return ToolResult(content=text, structured_content=structured)


def life(events: list[Event]) -> str:
    """A memory's events, each with what it changed on lines of its own. Values are JSON: none can leave its line."""
    lines = []
    for event in events:
        why = f": {_quoted(event.reason)}" if event.reason else ""
        lines.append(f"{event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC {event.action} by {event.principal}{why}")
        before, after = event.before or {}, event.after or {}
        for name in [*before, *(after.keys() - before.keys())] if before else after:
            values = [_quoted(values[name]) for values in (before, after) if values.get(name) not in (None, [], {})]
            if values:
                lines.append(f"  {name}: {' → '.join(values)}{'' if name in after else ' → nothing'}")
    return "\n".join(lines)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _compact(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items() if item not in (None, [], {})}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def build_server(settings: Settings, service: MemoryService | None = None) -> FastMCP:
    """The MCP server, for any transport. It opens `service` (by default one of its own) while it serves."""
    memory = service or MemoryService(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastMCP) -> AsyncIterator[MemoryService]:
        async with memory.opened():
            yield memory

    server = FastMCP(
        "hindsight",
        instructions=GUIDANCE,
        version=version("hindsight-memory"),
        lifespan=lifespan,
        mask_error_details=True,
    )
    for plan in TOOLS:
        for name in plan.names if settings.tool_aliases else plan.names[:1]:
            server.add_tool(_tool(getattr(memory, plan.method), name, plan, settings))

    @server.prompt(
        name="memory_guidance", description="When to recall, store, correct and forget: for a system prompt."
    )
    def memory_guidance() -> str:
        return GUIDANCE

    return server


def _tool(call: Callable[..., Awaitable[Any]], name: str, plan: ToolPlan, settings: Settings) -> FunctionTool:
    tool = MemoryTool.from_function(
        call, name=name, description=plan.description, annotations=plan.annotations, output_schema=None
    )
    tool.parameters = schema_of(call)
    for argument in plan.unlisted:
        if argument != "context" or not settings.rewrite:  # which rewriting alone reads
            tool.parameters["properties"].pop(argument, None)
    return tool


# ---- standard input and output ------------------------------------------------------------------------------


def main() -> None:
    """Serves one client over standard input and output, until the input ends or SIGTERM or SIGINT comes.

    Only JSON-RPC goes to standard output: whatever else writes there, logs, warnings and libraries, writes to
    standard error. Raises HindsightError when the server can't start.
    """
    with _standard_output_taken() as wire:
        _take_standard_input()
        settings = load_settings()
        log_to_standard_error(settings.log_format)
        asyncio.run(_serve(settings, wire))


async def _serve(settings: Settings, wire: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _end, settings)
    service = MemoryService(settings)
    async with service.opened():
        server = build_server(settings, service)
        os.dup2(wire, 1)  # the transport takes it from here, and diverts it again while it serves
        try:
            await server.run_stdio_async(show_banner=False)
        finally:
            sys.stdout.flush()
            os.dup2(2, 1)


@contextlib.contextmanager
def _standard_output_taken() -> Iterator[int]:
    """Descriptor 1 becomes standard error; yields a duplicate of what it was."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    try:
        yield wire
    finally:
        sys.stdout.flush()
        os.close(wire)


def _take_standard_input() -> None:
    """sys.stdin becomes the rewritten lines; descriptor 0 becomes empty for whatever else reads it."""
    lines = RewrittenLines(os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(lines), encoding="utf-8")


def _end(settings: Settings) -> None:
    """Ends at once, in order. What was acknowledged is committed; a thread that waits for input can't be joined."""
    if settings.database_url is None:
        from hindsight import embedded

        embedded.stop()
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except HindsightError as error:
        print(f"hindsight: {error}", file=sys.stderr)
        sys.exit(69)
