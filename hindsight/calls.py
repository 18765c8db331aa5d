"""How a call of Python becomes a call of SQL, and an error of PostgreSQL one of ours. Shared by both clients."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError

from hindsight.errors import (
    BY_SQLSTATE,
    AccessDenied,
    DatabaseError,
    DatabaseUnavailable,
    HindsightError,
    InvalidArgument,
    InvalidContent,
    SchemaMissing,
    TimedOut,
)

Aid = TypeVar("Aid")

Moment = datetime | str
"""A time: aware, naive (taken as UTC), or ISO 8601 text (UTC where it names no zone)."""
Labels = Sequence[str] | str
"""Tags or entities: a list, or text as language models send it: "a, b" or '["a", "b"]'."""

Duration = timedelta | float | str
"""A length of time: a timedelta, seconds, or text as PostgreSQL takes it: "7 days", "12 hours", "P1M"."""
Identifiers = Sequence[UUID | str] | UUID | str
"""Ids of memories: a list, one, or text with commas between them."""

MOST_QUERIES = 9
"""How many queries one recall takes."""
STORE_VECTORS = {"store", "update_memory", "claim_unembedded", "begin_reembedding", "distil"}
"""Functions that take a model, which must be in the registry first."""

RETRIED = {"40001", "40P01"}
"""SQLSTATEs of a transaction that lost a race and may simply run again: serialization failure, deadlock."""

_TEXTS = {
    "bank",
    "content",
    "query",
    "type",
    "session_id",
    "source",
    "slot",
    "context",
    "reason",
    "role",
    "relation",
    "message",
    "on_conflict",
    "finding",
    "turn_id",
    "key",
    "mode",
    "summary",
    "error",
    "task",
    "purpose",
    "policy",
    "document",
    "principal",
    "rights",
    "name",
}
_NEEDED = {"bank", "memory_id", "from_id", "to_id", "memory_ids", "message", "role", "finding"}
_NEEDED_BY = {
    "entity": {"name"},
    "store": {"content"},
    **{name: {"session_id", "claim"} for name in ("extend_claim", "release_session")},
    "grant_access": {"principal", "rights"},
    "revoke_access": {"principal"},
    "create_token": {"name", "principal"},
    "revoke_token": {"name"},
    "distil": {"session_id", "claim", "sequences", "memories"},
    "log_turn": {"session_id", "content"},
    "log_turns": {"session_id", "turns"},
    **{name: {"session_id"} for name in ("close_session", "working_get")},
    "working_set": {"session_id", "key"},
    "extract_turns": {"turns"},
    "claim_upkeep": {"task", "every"},
    "note_audit": {"findings"},
    "note_reflection": {"until"},
    "propose_insight": {"content", "derived_from"},
    "note_usage": {"purpose", "model"},
    "imported": {"document"},
    "month_lines": {"month"},
    "archive_month": {"month", "files"},
    "redact": {"content"},
    **{name: {"model"} for name in ("claim_unembedded", "begin_reembedding")},
    "set_embeddings": {"model", "versions", "embeddings"},
    "embeddings_failed": {"model", "error"},
    "diff": {"since"},
    "set_policy": {"type"},
    "set_screening": {"screening"},
    "set_thresholds": {"model"},
    "set_index": {"model"},
    **{name: {"reason"} for name in ("forget", "forget_matching", "forget_bank", "erase_memory", "erase_bank")},
}
"""Arguments without a default, in every function and in some: None leaves an argument out, and these can't be."""
_OF_ALL_BANKS = {"claim_session", "queue", "distil_waiting"}
_WHOLE_NUMBERS = {
    "top_k",
    "hops",
    "max_tokens",
    "sequence",
    "expected_version",
    "most",
    "after_turns",
    "working_turns",
    "findings",
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "failures",
    "budget",
    "max_hops",
}
_FLAGS = {"include_pending", "dry_run", "is_ending", "take_over", "without_failed"}
_JSON = ("metadata", "tool_calls", "aliases", "turns", "before", "memories", "value", "patterns", "files")
_DURATIONS = ("ttl", "lease", "after_idle", "every", "idle")
_EXPRESSIONS = {
    **{name: f"CAST(:{name} AS jsonb)" for name in _JSON},
    # as text: asyncpg takes no text for an interval
    **{name: f"CAST(CAST(:{name} AS text) AS interval)" for name in _DURATIONS},
    "month": "CAST(CAST(:month AS text) AS date)",
}

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

OTHER_NAMES = {
    "limit": "top_k",
    "k": "top_k",
    "n": "top_k",
    "n_results": "top_k",
    "token_budget": "max_tokens",
    "user_id": "bank",
    "agent_id": "bank",
    "namespace": "bank",
    "text": "content",
    "memory": "content",
    "data": "content",
    "messages": "content",
    "threshold": "min_score",
    "filters": "types, tags, all_tags, no_tags, since, until, session_id, entities or metadata",
    "filter": "types, tags, all_tags, no_tags, since, until, session_id, entities or metadata",
    "type": "types",
    "tag": "tags",
    "category": "type",
    "categories": "types",
    "run_id": "session_id",
    "thread_id": "session_id",
    "id": "memory_id",
    "timestamp": "occurred_at",
    "at": "as_of or valid_at",
    "start": "since",
    "end": "until",
    "expires_in": "ttl",
    "replaces": "supersedes",
    "why": "reason",
}
"""What other memory systems call an argument, and what it is called here."""


def reject_unknown(call: str, unknown: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises InvalidArgument for an argument that `call` does not take, and names the right one."""
    for name in unknown:
        other = OTHER_NAMES.get(name, "")
        is_taken = any(word in known or word == "bank" for word in re.findall(r"\w+", other))
        meant = [other] if is_taken else difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {meant[0]}" if meant else f"It takes {', '.join(known)}"
        raise InvalidArgument(f"{call} takes no argument {name!r}", hint=hint)


def labels(value: Labels | None, argument: str = "tags") -> list[str] | None:
    """Tags or entities as a list. Text is a JSON list, or names with commas between them."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            parsed = json.loads(value) if value.lstrip().startswith("[") else None
        except (ValueError, RecursionError):
            parsed = None
        value = parsed if isinstance(parsed, list) else value.replace("，", ",").split(",")
    found = [item.strip() if isinstance(item, str) else item for item in value]
    if not all(isinstance(item, str) for item in found):
        raise InvalidArgument(f"{argument} must be texts, got {value!r}")
    return [item for item in found if item]


def moment(value: Moment | None, argument: str) -> datetime | None:
    """An aware time. Without a zone it is UTC; `until` a day, as text, is the end of that day."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            is_day = re.fullmatch(r"\d{4}-\d\d-\d\d", value.strip())
            value = datetime.fromisoformat(value.strip())
            if is_day and argument == "until":
                value = datetime.combine(value, time.max)
        if not isinstance(value, datetime):
            raise TypeError
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(
            f"{argument} is not a time: {value!r}",
            hint="Give a datetime, or ISO 8601 text: 2026-03-01T09:30:00+08:00",
        ) from None


def identifier(value: UUID | str, argument: str = "memory_id") -> UUID:
    """A UUID, also as the citation `[m:<id>]`; or InvalidArgument."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(str(value).strip().strip("[]").removeprefix("m:"))
    except ValueError:
        raise InvalidArgument(
            f"{argument} is not a UUID: {value!r}", hint="recall and store return the ids of memories"
        ) from None


def identifiers(value: Identifiers | None, argument: str = "memory_ids") -> list[UUID] | None:
    """Ids of memories as a list of UUIDs."""
    if value is None:
        return None
    if isinstance(value, str):
        value = labels(value, argument) or []
    return [identifier(one, argument) for one in ([value] if isinstance(value, UUID) else value)]


def duration(value: Duration, argument: str = "ttl") -> str:
    """A length of time in PostgreSQL's words."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidArgument(
            f"{argument} is not a length of time: {value!r}", hint="Give a timedelta, seconds, or a text: '7 days'"
        )
    return f"{value} seconds"


def stated(reason: str | None, what: str) -> str:
    """The reason for taking memories away. Raises InvalidArgument where there is none: it is all that a review has."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidArgument(f"{what} needs a reason", hint="Say why in a few words; it stays in the history")
    return reason


def chosen(argument: str, asked: bool | None, aid: Aid | None, by_default: bool, unconfigured: str) -> Aid | None:
    """The reranker or rewriter that a call uses: as it asks, else as the settings say.

    Raises InvalidArgument where it is asked for and there is none; `unconfigured` says what to set.
    """
    if asked not in (None, True, False):
        raise InvalidArgument(f"{argument} must be true or false, got {asked!r}")
    if asked and aid is None:
        raise InvalidArgument(f"{argument} is asked for, but nothing is configured that could do it", hint=unconfigured)
    return aid if (by_default if asked is None else asked) else None


def banks_of(bank: str | Sequence[str]) -> dict[str, Any]:
    """The argument that names one bank, or several, as the functions of each take it."""
    if isinstance(bank, list | tuple) and all(isinstance(one, str) for one in bank):
        return {"banks": list(bank)}
    return {"bank": bank}


def conversation(context: str | Sequence[str] | None) -> str:
    """The lines of a conversation as one text."""
    lines: Sequence[Any] = context if isinstance(context, list | tuple) else [] if context is None else [context]
    if not all(isinstance(line, str) for line in lines):
        raise InvalidArgument(f"context must be a text or lines of text, got {type(context).__name__}")
    return "\n".join(lines)


def number(value: Any, argument: str) -> float:
    """A number, also as text."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{argument} must be a number, got {value!r}", hint="Give a number such as 0.8") from None


def json_text(value: Any, argument: str) -> str:
    """A value as JSON; times and UUIDs as their text.

    Raises InvalidArgument for what would come back as something else (a set, bytes, an object), with its place.
    """
    return json.dumps(_plain(value, argument), ensure_ascii=False)


def _plain(value: Any, path: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(inner, f"{path}[{place}]") for place, inner in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidArgument(f"{path} has a key that is no text: {key!r}", hint="JSON has texts as keys")
        return {key: _plain(inner, f"{path}.{key}") for key, inner in value.items()}
    kind = f"the number {value}" if isinstance(value, float) else f"a {type(value).__name__}"
    raise InvalidArgument(
        f"{path} is {kind}, which JSON has no form for",
        hint="Give objects, lists, texts, numbers, true, false or null",
    )


def vector(embedding: Sequence[float] | None) -> str | None:
    """pgvector's text form."""
    return None if embedding is None else "[" + ",".join(map(repr, embedding)) + "]"


def call(function: str, arguments: Mapping[str, Any]) -> tuple[TextClause, dict[str, Any]]:
    """`SELECT * FROM hindsight.<function>(…)` in named notation. None is left out: the function's default.

    Times, labels, ids and lengths of time may come in any of their forms, and are converted by the argument's name.
    """
    refuse_unstorable(arguments)
    given: dict[str, Any] = {}
    terms = []
    for name, value in arguments.items():
        if value is None:
            if (name in _NEEDED and function not in _OF_ALL_BANKS) or name in _NEEDED_BY.get(function, ()):
                raise InvalidArgument(f"{function} needs {name}, got None")
            continue
        if name not in _JSON and isinstance(value, int) and not -(2**31) <= value < 2**31:
            raise InvalidArgument(f"{name} is out of range: {value}")
        if name in _TEXTS and not isinstance(value, str):
            raise InvalidArgument(f"{name} must be a text, got {value!r}")
        if name in _WHOLE_NUMBERS and (isinstance(value, bool) or not isinstance(value, int)):
            raise InvalidArgument(f"{name} must be a whole number, got {value!r}")
        if name in _FLAGS and not isinstance(value, bool):
            raise InvalidArgument(f"{name} must be true or false, got {value!r}")
        given[name] = _FORMS[name](value, name) if name in _FORMS else value
        terms.append(f"{name} => {_EXPRESSIONS.get(name, f':{name}')}")
    return text(f"SELECT * FROM hindsight.{function}({', '.join(terms)})"), given  # noqa: S608 names are ours


_FORMS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(_JSON, json_text),
    **dict.fromkeys(
        (
            "confidence",
            "importance",
            "min_confidence",
            "min_score",
            "diversity",
            "weight",
            "decay_rate",
            "floor",
            "recall_threshold",
            "merge_threshold",
            "seconds",
        ),
        number,
    ),
    **dict.fromkeys(
        (
            "types",
            "tags",
            "all_tags",
            "no_tags",
            "entities",
            "clear",
            "states",
            "checks",
            "allowed",
            "modes",
            "kinds",
            "banks",
        ),
        labels,
    ),
    **dict.fromkeys(("since", "until", "as_of", "valid_at", "occurred_at", "expires_at"), moment),
    **dict.fromkeys(("memory_id", "other_id", "from_id", "to_id", "supersedes"), identifier),
    **dict.fromkeys(("memory_ids", "derived_from"), identifiers),
    **dict.fromkeys(_DURATIONS, duration),
}
"""The form that the database takes, by the name of an argument."""


def of_transaction(
    *, seconds: float | None, principal: str | None, scope: Mapping[str, Any] | None, request: str | None
) -> TextClause | None:
    """The settings of a transaction, in one statement: seconds for each statement, whom a service acts for and
    within what (banks, rights), the request that its events name. None where there is nothing to set.
    """
    values = {
        "statement_timeout": None if seconds is None else str(round(seconds * 1000)),
        "hindsight.principal": principal,
        "hindsight.scope": json.dumps(scope) if scope else None,
        "hindsight.request_id": request,
    }
    given = [(name, value) for name, value in values.items() if value is not None]
    if not given:
        return None
    setting = ", ".join(f"pg_catalog.set_config('{name}', :v{place}, true)" for place, (name, _) in enumerate(given))
    return text(f"SELECT {setting}").bindparams(**{f"v{place}": value for place, (_, value) in enumerate(given)})


def refuse_unstorable(arguments: Mapping[str, Any]) -> None:
    """Raises InvalidContent for a NUL or a lone surrogate anywhere in what is sent: PostgreSQL holds neither."""
    for argument, value in arguments.items():
        try:
            texts = list(_texts(value))
        except RecursionError:
            raise InvalidArgument(f"{argument} is nested too deep, or holds itself") from None
        for found in texts:
            if match := _UNSTORABLE.search(found):
                kind = "NUL character" if match.group() == "\0" else "lone surrogate"
                raise InvalidContent(
                    f"{argument} holds a {kind} (U+{ord(match.group()):04X}) at offset {match.start()}",
                    hint="Remove it, or decode the source again as UTF-8",
                )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of a driver's error, under whatever SQLAlchemy has wrapped it in."""
    return getattr(_driver_error(error), "sqlstate", None)


def translated(error: BaseException) -> HindsightError:
    """Our error for one of the driver's: the class of its SQLSTATE, with its message and hint, without SQL."""
    driver = _driver_error(error) or error
    code = getattr(driver, "sqlstate", None) or ""
    diagnosis = getattr(driver, "diag", driver)  # psycopg keeps the fields apart, asyncpg on the error itself
    message = getattr(diagnosis, "message_primary", None) or getattr(diagnosis, "message", None) or str(driver)
    hint = getattr(diagnosis, "message_hint", None) or getattr(diagnosis, "hint", None)
    if code in BY_SQLSTATE:
        return BY_SQLSTATE[code](message, hint=hint)
    if code == "42501":  # the login lacks a role of the schema, or its role may not do this
        return AccessDenied(
            message, hint="The role hindsight_reader may call what reads, hindsight_app also what writes", sqlstate=code
        )
    if code[:2] == "22":  # data exceptions: a value out of range, malformed, …
        return InvalidArgument(message, hint=hint or _HINTS.get(code), sqlstate=code)
    if code == "3F000":
        return SchemaMissing("the database has no schema hindsight yet. Run: hindsight migrate")
    if not code and isinstance(
        driver, ValueError | TypeError | AttributeError | OverflowError | psycopg.DataError
    ):  # a value the driver can't take
        return InvalidArgument(f"a value can't pass between Python and the database: {_first_line(driver)}")
    if code == "57014":
        return TimedOut(f"the database stopped the call ({_first_line(driver)})")
    if not code or code[:2] in ("08", "28", "3D", "53", "57"):
        return DatabaseUnavailable(f"the database can't be reached: {_first_line(driver)}")
    return DatabaseError(message, hint=hint, sqlstate=code)


_HINTS = dict.fromkeys(("22007", "22008", "22015"), "A length of time is a timedelta, seconds, or a text: '7 days'")
"""For PostgreSQL's errors of format and range of times: only lengths of time are sent as they came."""


def _driver_error(error: BaseException) -> BaseException | None:
    """The innermost error of the driver: SQLAlchemy wraps it, and asyncpg's once more, without its hint."""
    found: BaseException | None = error.orig if isinstance(error, DBAPIError) else error
    while found is not None and (inner := found.__cause__) is not None:
        found = inner
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


STORE_ARGUMENTS = [
    "content",
    "type",
    "tags",
    "session_id",
    "confidence",
    "importance",
    "source",
    "slot",
    "entities",
    "context",
    "occurred_at",
    "expires_at",
    "ttl",
    "metadata",
    "supersedes",
    "derived_from",
]
RECALL_ARGUMENTS = [
    "top_k",
    "types",
    "tags",
    "all_tags",
    "no_tags",
    "since",
    "until",
    "session_id",
    "entities",
    "metadata",
    "min_confidence",
    "min_score",
    "hops",
    "diversity",
    "include_pending",
    "as_of",
    "valid_at",
    "context",
    "rerank",
    "rewrite",
]
FORGET_ARGUMENTS = ["types", "tags", "all_tags", "session_id", "source", "since", "until", "dry_run"]
UPDATE_ARGUMENTS = [
    "content",
    "type",
    "tags",
    "confidence",
    "importance",
    "slot",
    "entities",
    "context",
    "occurred_at",
    "expires_at",
    "metadata",
    "clear",
    "reason",
    "expected_version",
]


def stored_arguments(bank: str, memory: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `store` from a mapping, checked."""
    refuse_unstorable(memory)
    reject_unknown(
        "store", {name: value for name, value in memory.items() if name not in STORE_ARGUMENTS}, STORE_ARGUMENTS
    )
    content = memory.get("content", "")
    if not isinstance(content, str):
        raise InvalidArgument(f"content must be a text, got {content!r}")
    return {**memory, "bank": bank, "content": content}
