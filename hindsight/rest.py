"""The REST routes, and what stands before every route of the HTTP server: the token and the limit of a body."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Never

from pydantic_core import to_jsonable_python
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hindsight.arguments import perform
from hindsight.errors import HindsightError
from hindsight.refusals import INTERNAL, Refusal, is_internal, refusal
from hindsight.results import Forgotten, Memory
from hindsight.service import MemoryService

log = logging.getLogger("hindsight.server")

LARGEST_BODY = 2 * 1024 * 1024
"""Bytes of a request's body at most."""
WARNINGS = "Hindsight-Warnings"
"""The header of a recall that went without a step: a JSON list of sentences, in ASCII."""
HEALTH_TIMEOUT = 5.0
"""Seconds in which the database must answer `GET /health`."""
_LARGEST_DRAINED = 16 * LARGEST_BODY

Endpoint = Callable[[Request], Awaitable[Response]]


class Refused(Exception):  # noqa: N818
    """A request that can't be served, for a reason that HTTP knows."""

    def __init__(self, told: Refusal) -> None:
        super().__init__(told.message)
        self.told = told


def rest_routes(service: MemoryService) -> list[Route]:
    """`/health`, and the routes of `/api`: `GET` for what reads by address, `POST` for what is asked or done."""

    async def store(request: Request) -> Response:
        return _json(await perform(service.store, "store", await _sent(request)), 201)

    async def recall(request: Request) -> Response:
        found = await perform(service.recall, "recall", await _sent(request))
        # Beside the list, not around it: what is read as a list stays one where a step was left out.
        return _json(found.memories, headers={WARNINGS: json.dumps(found.warnings)} if found.warnings else None)

    def posted(name: str, call: Callable[..., Awaitable[Any]], *, may_be_empty: bool = True) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return _json(await perform(call, name, await _sent(request, may_be_empty=may_be_empty)))

        return endpoint

    def read(name: str, call: Callable[..., Awaitable[Any]]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return _json(await perform(call, name, _parameters(request)))

        return endpoint

    async def forget(request: Request) -> Response:
        sent = await _sent(request)
        return _json(await perform(service.forget if "memory_id" in sent else service.forget_matching, "forget", sent))

    async def memory(request: Request) -> Response:
        found: Memory | Forgotten
        match request.method:
            case "PATCH":
                found = await perform(service.update, "update", await _sent(request))
            case "DELETE":
                found = await perform(service.forget, "forget", await _sent(request, may_be_empty=True))
            case _:
                found = await perform(service.get, "get", _parameters(request))
        return _json(found)

    async def desk(request: Request) -> Response:
        if request.method == "POST":
            return _json(await perform(service.working_set, "desk", await _sent(request)))
        return _json(await perform(service.working_get, "desk", _parameters(request)))

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

    return [
        Route("/health", health, methods=["GET"]),
        Route("/api/memory", _told(store), methods=["POST"]),
        Route("/api/recall", _told(recall), methods=["POST"]),
        Route("/api/context", _told(posted("context", service.recall, may_be_empty=False)), methods=["POST"]),
        Route("/api/should_recall", _told(posted("should_recall", service.should_recall)), methods=["POST"]),
        Route("/api/forget", _told(forget), methods=["POST"]),
        Route("/api/maintain", _told(posted("maintain", service.maintain)), methods=["POST"]),
        Route("/api/turns", _told(posted("turns", service.log_turns, may_be_empty=False)), methods=["POST"]),
        Route("/api/queue", _told(read("queue", service.queue)), methods=["GET"]),
        Route("/api/session/{session_id:path}/close", _told(posted("close", service.close_session)), methods=["POST"]),
        Route("/api/session/{session_id:path}/desk", _told(desk), methods=["GET", "POST"]),
        Route("/api/pending", _told(read("pending", service.pending)), methods=["GET"]),
        Route("/api/state", _told(read("state", service.state)), methods=["GET"]),
        Route("/api/diff", _told(read("diff", service.diff)), methods=["GET"]),
        Route("/api/memory/{memory_id}", _told(memory), methods=["GET", "PATCH", "DELETE"]),
        Route("/api/memory/{memory_id}/confirm", _told(posted("confirm", service.confirm)), methods=["POST"]),
        Route("/api/memory/{memory_id}/restore", _told(posted("restore", service.restore)), methods=["POST"]),
        Route("/api/memory/{memory_id}/sources", _told(read("sources", service.sources)), methods=["GET"]),
        Route("/api/memory/{memory_id}/history", _told(read("history", service.history)), methods=["GET"]),
    ]


def refused(told: Refusal, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as every route answers it: {"error": {"code", "message", "hint"}}."""
    error = {"code": told.code, "message": told.message, "hint": told.hint}
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


class BodyLimit:
    """ASGI middleware: refuses a body of more than `most` bytes, and reads others whole.

    What is too much is read and thrown away, up to a limit, since few clients read an answer while they send.
    """

    def __init__(self, app: ASGIApp, most: int = LARGEST_BODY) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return await self._app(scope, receive, send)
        messages: deque[Message] = deque()
        size = 0
        while True:
            message = await receive()
            size += len(message.get("body", b""))
            if size <= self._most:
                messages.append(message)
            if message["type"] != "http.request" or not message.get("more_body", False) or size > _LARGEST_DRAINED:
                break
        if size > self._most:
            told = Refusal(
                status=413,
                code="too_large",
                message=f"the body has more than {self._most} bytes",
                hint="Send less, in several requests",
            )
            headers = {"Connection": "close"} if size > _LARGEST_DRAINED else None
            return await refused(told, headers)(scope, receive, send)

        async def replayed() -> Message:
            return messages.popleft() if messages else await receive()

        return await self._app(scope, replayed, send)
