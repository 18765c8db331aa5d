"""Transcripts and dumps as records to import: turns of sessions, memories, and what is wrong."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, get_args

from hindsight.calls import STORE_ARGUMENTS
from hindsight.chat_exports import chatgpt_turns, claude_turns, locomo_turns, moment
from hindsight.errors import InvalidArgument
from hindsight.memory_dumps import mcp_memory, mem0_memory
from hindsight.sources import Source

Format = Literal["jsonl", "chatgpt", "claude", "mem0", "mcp-memory", "locomo"]
FORMATS: dict[Format, str] = {
    "jsonl": "one turn a line (session_id, role, content, …), an archive, or hindsight export",
    "chatgpt": "conversations.json of ChatGPT's export",
    "claude": "conversations.json of Claude's export",
    "mem0": "a list of mem0's memories, or its {results: […]}",
    "mcp-memory": "the JSONL of the MCP reference memory server",
    "locomo": "LoCoMo's conversations",
}
_TURN_KEYS = (
    "session_id", "role", "content", "occurred_at", "turn_id", "sequence", "tool_calls", "metadata", "logged_at",
    "distilled_at",
)  # fmt: skip
_HEAD = 16  # hexadecimal digits of a digest that stands for a text


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as `log_turns` takes it, with its session, and its place in the file, for people."""

    place: str
    session_id: str
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dumped:
    """A memory as `store` takes it, and what it is known by when it comes again: its dump and its id there."""

    place: str
    given: Mapping[str, Any]
    document: str | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What can't be imported, and why."""

    place: str
    reason: str


Record = Turn | Dumped | Problem


def detect(source: Source) -> Format:
    """The format of a file, by its content. Raises InvalidArgument, naming those that are known."""
    first, is_item = _first(source)
    for format, is_it in _SIGNS.items():
        if isinstance(first, dict) and is_it(first) and (is_item or format != "mem0"):
            return format
    known = "; ".join(f"{format}: {what}" for format, what in FORMATS.items())
    raise InvalidArgument(f"{source.path} is of no format that is known", hint=f"Known are {known}")


def read(source: Source, format: Format) -> Iterator[Record]:
    """The records of a file, in its order; a line or an item that is wrong becomes a Problem, and the rest goes on."""
    if format == "jsonl":
        yield from _lines(source, _Numbering(source))
        return
    if format == "mcp-memory":
        for number, line in source.lines():
            yield from _each(f"line {number}", partial(_mcp_line, line), _dumped("mcp-memory"))
        return
    noun = "memory" if format == "mem0" else "conversation"
    for number, item in _items(source):
        place = f"{noun} {number}"
        if format == "mem0":
            yield from _each(place, partial(_one_of_mem0, item), _dumped("mem0"))
        else:
            yield from _each(place, partial(_CONVERSATIONS[format], item), _as_turn)


def _mcp_line(line: bytes) -> Iterator[tuple[str | None, dict[str, Any]]]:
    return mcp_memory(json.loads(line))


def _one_of_mem0(item: Any) -> list[tuple[str | None, dict[str, Any]]]:
    return [mem0_memory(item)]


_SIGNS: dict[Format, Callable[[dict[str, Any]], bool]] = {
    "chatgpt": lambda first: "mapping" in first,
    "claude": lambda first: "chat_messages" in first,
    "locomo": lambda first: isinstance(first.get("conversation"), dict),
    "mcp-memory": lambda first: first.get("type") in ("entity", "relation"),
    "mem0": lambda first: "memory" in first and ("id" in first or "user_id" in first) and "role" not in first,
    "jsonl": lambda first: bool({"role", "table", "memory"} & first.keys()),
}
_CONVERSATIONS: dict[str, Callable[[Any], Iterator[tuple[str, str, dict[str, Any]]]]] = {
    "chatgpt": chatgpt_turns,
    "claude": claude_turns,
    "locomo": locomo_turns,
}
assert set(FORMATS) == set(_SIGNS) == set(get_args(Format))  # noqa: S101


def _first(source: Source) -> tuple[Any, bool]:
    """The first item of an array or of {results: […]}, or else the first line, or a file that is one object."""
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return next((item for _, item in source.items()), None), True
    for _, line in source.lines():
        try:
            first = json.loads(line)
        except (ValueError, RecursionError):
            try:
                first = source.whole()
            except InvalidArgument:
                return None, False
        if isinstance(first, dict) and isinstance(first.get("results"), list):
            return next(iter(first["results"]), None), True
        return first, False
    return None, False


def _items(source: Source) -> Iterator[tuple[int, Any]]:
    """The items of an array, of {results: […]}, or of a file that is one item."""
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return source.items()
    whole = source.whole()
    is_wrapped = isinstance(whole, dict) and isinstance(whole.get("results"), list)
    return enumerate(whole["results"] if is_wrapped else [whole], 1)


def _each(place: str, made: Callable[[], Any], record: Callable[[str, Any], Record]) -> Iterator[Record]:
    """The records that are made of a line or an item; what keeps them from being made is a Problem."""
    try:
        for one in made():
            yield record(place, one)
    except UnicodeDecodeError as error:
        yield Problem(place, f"is not UTF-8: {error.reason} at byte {error.start}")
    except json.JSONDecodeError as error:
        yield Problem(place, f"is not JSON: {error.msg} at column {error.colno}")
    except KeyError as error:
        yield Problem(place, f"has no {error.args[0]!r}")
    except (TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        yield Problem(place, str(error))


def _as_turn(place: str, made: tuple[str, str, dict[str, Any]]) -> Record:
    session_id, message, given = made
    return Turn(f"{place}, {message}", session_id, given)


def _dumped(document: str) -> Callable[[str, Any], Record]:
    def record(place: str, made: tuple[str | None, dict[str, Any]]) -> Record:
        item, given = made
        content = str(given["content"])
        return Dumped(place, given, document, item or hashlib.sha256(content.encode()).hexdigest()[:_HEAD])

    return record


class _Numbering:
    """Ids for what a file gives none: by place and content, so that they come out the same again.

    A file without sessions is one session: its name, and what its first two lines hold.
    """

    def __init__(self, source: Source) -> None:
        self._turns = Counter[str]()
        self._source = source
        self._session: str | None = None

    def session(self) -> str:
        if self._session is None:
            begin = b"".join(line.strip() for (number, line), _ in zip(self._source.lines(), range(2), strict=False))
            name = self._source.path.name.partition(".")[0]
            self._session = f"{name[:150]}-{hashlib.sha256(begin).hexdigest()[:_HEAD]}"
        return self._session

    def turn(self, session_id: str, given: Mapping[str, Any]) -> str:
        self._turns[session_id] += 1
        said = [given.get(name) for name in ("role", "content", "tool_calls", "occurred_at")]
        text = json.dumps(said, ensure_ascii=False, sort_keys=True, default=str)
        return f"{self._turns[session_id]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:_HEAD]}"


def _lines(source: Source, numbering: _Numbering) -> Iterator[Record]:
    is_array = source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    for number, line in source.items() if is_array else source.lines():
        place = f"{'item' if is_array else 'line'} {number}"
        yield from _each(place, partial(_own, line, numbering), _as_own)


def _as_own(place: str, made: tuple[str | None, dict[str, Any], str | None, str | None]) -> Record:
    session_id, given, document, item = made
    return Dumped(place, given, document, item) if session_id is None else Turn(place, session_id, given)


def _own(line: Any, numbering: _Numbering) -> Iterator[tuple[str | None, dict[str, Any], str | None, str | None]]:
    """A line of our own: a turn with its session, or a memory with what it is known by."""
    if isinstance(line, bytes):
        line = json.loads(line)
    if not isinstance(line, dict):
        raise TypeError(f"is not a JSON object but {line!r:.50}")
    table = line.get("table")
    if table not in (None, "turn", "memory"):
        return  # hindsight export tells all of a bank; turns and live memories come back
    if table == "memory" or (table is None and "role" not in line and "memory" in line):
        yield from _own_memory(line)
        return
    given = {name: value for name, value in line.items() if value is not None and name != "table"}
    if unknown := given.keys() - set(_TURN_KEYS):
        raise ValueError(f"a turn has no {sorted(unknown)[0]!r}: it has {', '.join(_TURN_KEYS)}")
    for name in ("role", "content", "session_id", "turn_id"):
        if name in given and not isinstance(given[name], str):
            raise ValueError(f"{name} is not a text but {given[name]!r:.50}")
    session_id = given.pop("session_id", None) or numbering.session()
    for name in ("occurred_at", "logged_at", "distilled_at"):
        if name in given:
            given[name] = moment(given[name], name)
    if "turn_id" not in given and "sequence" not in given:
        given["turn_id"] = numbering.turn(session_id, given)
    yield session_id, given, None, None


def _own_memory(line: dict[str, Any]) -> Iterator[tuple[None, dict[str, Any], str | None, str | None]]:
    is_gone = any(line.get(name) for name in ("deleted_at", "superseded_by", "archived_at", "completed_at"))
    is_gone = is_gone or line.get("pending_reason") not in (None, "low confidence")  # confidence says that by itself
    expires_at = line.get("expires_at")
    if is_gone or (expires_at and datetime.fromisoformat(moment(expires_at, "expires_at")) <= datetime.now(UTC)):
        return
    given = {name: value for name, value in line.items() if name in STORE_ARGUMENTS and value is not None}
    given["content"] = line["content"] if line.get("table") else line["memory"]
    # When it was said, else stored: what was forgotten or corrected since then does not come back.
    if said := line.get("occurred_at") or line.get("created_at"):
        given["occurred_at"] = moment(said, "occurred_at")
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata is no JSON object but {metadata!r:.50}")
    if "insight" in metadata and line.get("type") == "hypothesis":
        return  # without its links it would outlive what it quotes: reflecting makes it anew
    if "document" in metadata:
        yield None, given, str(metadata["document"]), str(metadata.get("place"))
        return
    item = line.get("memory_id") or line.get("id")
    yield None, given, "hindsight" if item else None, str(item) if item else None
