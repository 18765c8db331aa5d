"""The arguments that clients and language models send: the forms each is taken in, and other names for it.

A call is an async function whose parameters are annotated with the kinds below. MCP tools and REST routes both
run it with `perform`, so that both take the same things and refuse the same things in the same words.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from fastmcp.tools.function_tool import FunctionTool
from fastmcp.utilities.types import get_cached_typeadapter
from pydantic import BeforeValidator, ValidationError
from pydantic.json_schema import SkipJsonSchema

from hindsight.calls import labels, reject_unknown
from hindsight.errors import InvalidArgument
from hindsight.metrics import counted

Result = TypeVar("Result")

OTHER_SPELLINGS = {"type_filter": ("types",), "memory_type": ("type", "types")}
"""Names that existing clients use, and what they are called here: the first that the call takes."""

_RANGE_ENDS = {
    "since": ("since", "start", "from", "after"),
    "until": ("until", "end", "to", "before"),
}

_DEEPEST = 64

# ---- the forms of one argument --------------------------------------------------------------------------


def _text(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"must be text, got {_shown(value)}")


def _word(value: Any) -> Any:
    found = _text(value)
    return found.strip() if isinstance(found, str) else found


def _type(value: Any) -> Any:
    found = _word(value)
    return found.lower() if isinstance(found, str) else found


def _labels(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        value = labels(value) or []
    if not isinstance(value, list | tuple) or any(isinstance(item, dict | list | bool | None) for item in value):
        raise ValueError(f"must be a list of texts, got {_shown(value)}")
    return labels([str(item) for item in value])


def _types(value: Any) -> Any:
    found = _labels(value)
    return None if found is None else [item.lower() for item in found]


def _number(value: Any, kind: str = "a number such as 0.8") -> Any:
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"must be {kind}, got {_shown(value)}")
    return number


def _whole(value: Any) -> Any:
    number = _number(value, "a whole number such as 10")
    if number is None:
        return None
    if number != int(number):
        raise ValueError(f"must be a whole number such as 10, got {_shown(value)}")
    if abs(number) >= 2**31:
        raise ValueError(f"is far too large: {_shown(value)}")
    return int(number)


def _flag(value: Any) -> Any:
    spelled = str(value).strip().lower()
    if spelled in ("true", "yes", "on", "1"):
        return True
    if spelled in ("false", "no", "off", "0"):
        return False
    raise ValueError(f"must be true or false, got {_shown(value)}")


def _object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"must be a JSON object, got {_shown(value)}") from None
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"must be a JSON object, got {_shown(value)}")
    if not _is_shallow(value):
        raise ValueError(f"is nested more than {_DEEPEST} levels deep")
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("holds a number that JSON has no form for (NaN or infinity)") from None
    return value


def _objects(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"must be a list of JSON objects, got {_shown(value)}")
    return [_object(item) for item in value]


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inner = [item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer)]
        level = [item for item in inner if isinstance(item, dict | list)]
    return not level


# SkipJsonSchema keeps a tool's schema flat: the null that models may send is taken, and no anyOf tells of it.
Required = Annotated[str, BeforeValidator(_text)]
Text = Annotated[str | SkipJsonSchema[None], BeforeValidator(_text)]
Word = Annotated[str | SkipJsonSchema[None], BeforeValidator(_word)]
Identifier = Annotated[str, BeforeValidator(_word)]
Type = Annotated[str | SkipJsonSchema[None], BeforeValidator(_type)]
Types = Annotated[list[str] | SkipJsonSchema[None], BeforeValidator(_types)]
LabelList = Annotated[list[str] | SkipJsonSchema[None], BeforeValidator(_labels)]
Number = Annotated[float | SkipJsonSchema[None], BeforeValidator(lambda value: _number(value))]
Whole = Annotated[int | SkipJsonSchema[None], BeforeValidator(_whole)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Choice = Annotated[bool | SkipJsonSchema[None], BeforeValidator(_flag)]
Identifiers = Annotated[list[str] | SkipJsonSchema[None], BeforeValidator(_labels)]
JsonObjects = Annotated[list[dict[str, Any]], BeforeValidator(_objects)]
JsonObject = Annotated[dict[str, Any] | SkipJsonSchema[None], BeforeValidator(_object)]


# ---- the arguments of one call --------------------------------------------------------------------------


def schema_of(call: Callable[..., Awaitable[Any]]) -> dict[str, Any]:
    """The JSON schema of a call's arguments, flat: neither the null defaults, which contradict the plain types, nor the
    ban on other names, since some are taken silently."""
    schema = FunctionTool.from_function(call, output_schema=None).parameters
    schema.pop("additionalProperties", None)
    for argument in schema["properties"].values():
        if "default" in argument and argument["default"] is None:
            del argument["default"]
    return schema


async def perform(call: Callable[..., Awaitable[Result]], name: str, sent: Mapping[str, Any]) -> Result:
    """Runs a call with what a client sent. `name` is what the client knows the call as.

    Null and blank text mean that an argument was left out, unless the call needs it. Raises InvalidArgument,
    which names the argument, and for an unknown one the right one.
    """
    with counted(call.__name__):
        try:
            pending = get_cached_typeadapter(call).validate_python(_arguments(call, name, sent))
        except ValidationError as error:
            raise InvalidArgument("; ".join(_complaints(name, error))) from None
        return await pending  # type: ignore[no-any-return]  # what the call returns


def _arguments(call: Callable[..., Any], name: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """What was sent, under the names that the call takes, without what is absent."""
    parameters = inspect.signature(call).parameters
    needed = {key for key, parameter in parameters.items() if parameter.default is parameter.empty}
    given: dict[str, Any] = {}
    for spelled, value in sent.items():
        for key, part in _renamed(spelled, value, parameters):
            if part is None or (key not in needed and isinstance(part, str) and not part.strip()):
                continue
            if key in given and given[key] != part:
                raise InvalidArgument(f"{name} got {key} twice, the second time as {spelled}", hint="Send one of them")
            given[key] = part
    reject_unknown(name, {key: value for key, value in given.items() if key not in parameters}, list(parameters))
    return given


def _renamed(name: str, value: Any, parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if name == "time_range" and name not in parameters and "since" in parameters:
        yield from _range(value).items()
        return
    if name in parameters:
        yield name, value
    else:
        yield next((key for key in OTHER_SPELLINGS.get(name, ()) if key in parameters), name), value


def _range(value: Any) -> dict[str, Any]:
    """since and until of a time range: {"start": …, "end": …}, [A, B], or "A/B"; either end may be left out."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = ""
    if isinstance(value, str) and value.count("/") == 1:
        value = value.split("/")
    if isinstance(value, list | tuple) and len(value) == 2:
        value = dict(zip(("since", "until"), value, strict=True))
    if value is None:
        return {}
    ends = {spelled: end for end, spellings in _RANGE_ENDS.items() for spelled in spellings}
    if not isinstance(value, dict) or not value.keys() <= ends.keys():
        raise InvalidArgument(
            f"time_range is not a range of times: {_shown(value)}",
            hint='Give since and until, or time_range as {"start": "2026-03-01", "end": "2026-04-01"}',
        )
    return {ends[key]: None if end == ".." else end for key, end in value.items()}


def _complaints(name: str, error: ValidationError) -> Iterator[str]:
    for found in error.errors(include_url=False, include_input=False):
        argument = str(found["loc"][0]) if found["loc"] else "an argument"
        if found["type"] == "missing_argument":
            yield f"{name} needs {argument}"
        else:
            yield f"{argument} {found['msg'].removeprefix('Value error, ')}"


def _shown(value: Any) -> str:
    try:
        shown = repr(value)
    except RecursionError:
        shown = f"a deep {type(value).__name__}"
    return shown if len(shown) <= 80 else shown[:77] + "…"
