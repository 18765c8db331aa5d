"""The REST routes, and the token that stands before every route of the HTTP server."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Any, Never

from pydantic_core import to_jsonable_python
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hindsight.arguments import perform
from hindsight.errors import HindsightError
from hindsight.metrics import metrics
from hindsight.openapi import described
from hindsight.refusals import INTERNAL, Refusal, is_internal, refusal
from hindsight.request_id import request_id
from hindsight.results import Context, Recalled
from hindsight.service import MemoryService

log = logging.getLogger("hindsight.server")

WARNINGS = "Hindsight-Warnings"
"""The header of a recall that went without a step: a JSON list of sentences, in ASCII."""
HEALTH_TIMEOUT = 5.0
"""Seconds in which the database must answer `GET /health`."""

Endpoint = Callable[[Request], Awaitable[Response]]


class Refused(Exception):  # noqa: N818
    """A request that can't be served, for a reason that HTTP knows."""

    def __init__(self, told: Refusal) -> None:
        super().__init__(told.message)
        self.told = told


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a route, and the call of the service that it makes.

    name: what the client knows the call as, in errors. of_one: the call instead where a memory_id is sent. answer:
    what makes the answer of what the call returns, and result its type, where they are not what is usual.
    """

    method: str
    path: str
    name: str
    call: Callable[..., Awaitable[Any]]
    _: KW_ONLY
    status: int = 200
    needs_body: bool = False
    of_one: Callable[..., Awaitable[Any]] | None = None
    answer: Callable[[Any], Response] | None = None
    result: Any = None

    async def answered(self, request: Request) -> Response:
        """Makes the call with what a request sends. Raises Refused and HindsightError."""
        sent = await _sent(request, may_be_empty=not self.needs_body) if self.has_body else _parameters(request)
        call = self.of_one if self.of_one is not None and "memory_id" in sent else self.call
        found = await perform(call, self.name, sent)
        return self.answer(found) if self.answer else _json(found, self.status)

    @property
    def has_body(self) -> bool:
        """Whether the arguments may stand in a body; else they stand in the address."""
        return self.method != "GET"


def operations(service: MemoryService) -> list[Operation]:
    """What `/api` offers, by path: `GET` for what reads by address, `POST` for what is asked or done."""
    a_memory, a_session = "/api/memory/{memory_id}", "/api/session/{session_id:path}"
    return [
        Operation("POST", "/api/memory", "store", service.store, status=201, needs_body=True),
        Operation(
            "POST", "/api/recall", "recall", service.recall, needs_body=True, answer=_recalled, result=list[Recalled]
        ),
        Operation("POST", "/api/context", "context", service.recall, needs_body=True),
        Operation("POST", "/api/should_recall", "should_recall", service.should_recall),
        Operation("POST", "/api/forget", "forget", service.forget_matching, needs_body=True, of_one=service.forget),
        Operation("POST", "/api/maintain", "maintain", service.maintain),
        Operation("POST", "/api/turns", "turns", service.log_turns, needs_body=True),
        Operation("GET", "/api/queue", "queue", service.queue),
        Operation("POST", f"{a_session}/close", "close", service.close_session),
        Operation("GET", f"{a_session}/desk", "desk", service.working_get),
        Operation("POST", f"{a_session}/desk", "desk", service.working_set, needs_body=True),
        Operation("GET", "/api/pending", "pending", service.pending),
        Operation("GET", "/api/state", "state", service.state),
        Operation("GET", "/api/diff", "diff", service.diff),
        Operation("GET", a_memory, "get", service.get),
        Operation("PATCH", a_memory, "update", service.update, needs_body=True),
        Operation("DELETE", a_memory, "forget", service.forget),
        Operation("POST", f"{a_memory}/confirm", "confirm", service.confirm),
        Operation("POST", f"{a_memory}/restore", "restore", service.restore),
        Operation("GET", f"{a_memory}/sources", "sources", service.sources),
        Operation("GET", f"{a_memory}/history", "history", service.history),
    ]


def rest_routes(service: MemoryService) -> list[Route]:
    """`/health`, `/metrics`, the routes of `/api`, and `/openapi.json`, which describes those."""

    async def health(_: Request) -> Response:
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT):
                await service.check()
        except TimeoutError:
            reason = f"the database did not answer within {HEALTH_TIMEOUT:g} seconds"
        except HindsightError as error:
            log.warning("GET /health: %s", error)
            told = refusal(error)
            reason = told.message if told.status == 503 else "the database refuses the server's calls"
        else:
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "unavailable", "reason": reason}, 503)

    offered = operations(service)
    description = described(offered)

    async def openapi(_: Request) -> Response:
        return JSONResponse(description)

    return [
        Route("/health", health, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
        *(_route(path, list(of_path)) for path, of_path in groupby(offered, key=lambda one: one.path)),
    ]


def _route(path: str, offered: list[Operation]) -> Route:
    by_method = {one.method: one for one in offered}

    async def answered(request: Request) -> Response:
        return await by_method["GET" if request.method == "HEAD" else request.method].answered(request)

    return Route(path, _told(answered), methods=list(by_method))


def _recalled(found: Context) -> Response:
    # Beside the list, not around it: what is read as a list stays one where a step was left out.
    return _json(found.memories, headers={WARNINGS: json.dumps(found.warnings)} if found.warnings else None)


def refused(told: Refusal, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as every route answers it: {"error": {"code", "message", "hint"}}; from 500 on also its "request_id"."""
    error = {"code": told.code, "message": told.message, "hint": told.hint}
    if told.status >= 500:
        error["request_id"] = request_id.get()  # under which the server's log tells more
    return JSONResponse({"error": error}, told.status, headers)


async def http_refused(_: Request, error: Exception) -> Response:
    """Starlette's own errors (no such route, wrong method) in the same form."""
    assert isinstance(error, HTTPException)  # noqa: S101  # registered for that class
    code = error.detail.lower().replace(" ", "_")
    told = Refusal(
        status=error.status_code, code=code, message=error.detail, hint="The routes are listed in docs/mcp.md"
    )
    return refused(told, dict(error.headers or {}))


def _told(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with its errors as answers."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as error:
            return refused(error.told)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except HindsightError as error:
            told = refusal(error)
            if is_internal(told):
                log.exception("%s %s failed", request.method, request.url.path)
            return refused(told)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return refused(INTERNAL)

    return answered


def _json(result: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(to_jsonable_python(result), status, headers)


def _parameters(request: Request) -> dict[str, Any]:
    """The arguments that the URL holds: in its query, and in its path."""
    return {**request.query_params, **request.path_params}


async def _sent(request: Request, *, may_be_empty: bool = False) -> dict[str, Any]:
    """The arguments of a request: those of its URL, and those of the JSON object in its body."""
    body = await request.body()
    if not body and may_be_empty:
        return _parameters(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise _refused(415, "unsupported_media_type", "the body must be JSON", "Send Content-Type: application/json")
    try:
        found = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _refused(400, "invalid_json", f"the body is not JSON: {error}", "It must be UTF-8") from None
    if not isinstance(found, dict):
        raise _refused(400, "invalid_json", "the body must be a JSON object", 'For example {"query": "docker"}')
    return {**found, **_parameters(request)}


def _no_number(spelled: str) -> Never:
    raise ValueError(f"{spelled} is no JSON")


def _refused(status: int, code: str, message: str, hint: str) -> Refused:
    return Refused(Refusal(status=status, code=code, message=message, hint=hint))


# ---- before every route -----------------------------------------------------------------------------------


class BearerToken:
    """ASGI middleware: every route but /health demands `Authorization: Bearer <token>`."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] == "/health"):
            return await self._app(scope, receive, send)
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), self._token):
            return await self._app(scope, receive, send)
        told = Refusal(
            status=401,
            code="unauthorized",
            message="the token is wrong" if given else "a token is needed",
            hint="Send Authorization: Bearer, with the server's HINDSIGHT_TOKEN",
        )
        challenge = 'Bearer realm="hindsight"' + (', error="invalid_token"' if given else "")
        return await refused(told, {"WWW-Authenticate": challenge})(scope, receive, send)
