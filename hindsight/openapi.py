"""The OpenAPI description of the REST routes, made from the calls that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter

from hindsight.arguments import schema_of

if TYPE_CHECKING:
    from hindsight.rest import Operation

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": ["string", "null"]},
                "request_id": {"type": "string"},
            },
        }
    },
}


def described(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of REST operations.

    Arguments are described in their plain form; the servers take others as well (docs/mcp.md).
    """
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for one in operations:
        paths.setdefault(one.path.replace(":path}", "}"), {})[one.method.lower()] = _described(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hindsight", "version": version("hindsight-memory"), "description": "Memory for agents."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _described(one: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    given = schema_of(one.call)
    properties, required = dict(given["properties"]), set(given.get("required", ()))
    in_path = re.findall(r"{(\w+)", one.path)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": properties.pop(name, {"type": "string"})}
        for name in in_path
    ]
    required -= set(in_path)
    found: dict[str, Any] = {
        "operationId": f"{one.method.lower()}_{one.call.__name__}_{one.name}",
        "summary": (one.call.__doc__ or "").partition("\n")[0],
    }
    if one.of_one is not None:
        properties["memory_id"] = {"type": "string", "description": "Of this one only."}
    if one.has_body:
        found["requestBody"] = {
            "required": one.needs_body,
            "content": {
                "application/json": {
                    "schema": {"type": "object", "properties": properties, "required": sorted(required)}
                }
            },
        }
    else:
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema, "explode": False}
            for name, schema in properties.items()
        ]
    return {
        **found,
        "parameters": parameters,
        "responses": {
            str(one.status): {
                "description": "Done.",
                "content": {"application/json": {"schema": _result(one, schemas)}},
            },
            **{
                status: {
                    "description": "Refused.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
                for status in ("4XX", "503")
            },
        },
    }


def _result(one: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of what an operation answers; the types that it refers to go to `schemas`."""
    kinds = [one.result or get_type_hints(call)["return"] for call in (one.call, one.of_one) if call is not None]
    found = []
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        found.append(schema)
    return found[0] if len(found) == 1 else {"anyOf": found}
