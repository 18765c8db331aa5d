"""What stands before every route of the HTTP server, besides the token: ids, limits, headers, figures, the log."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections import OrderedDict, deque

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hindsight import metrics
from hindsight.refusals import Refusal
from hindsight.request_id import HEADER, accepted, request_id
from hindsight.rest import refused

log = logging.getLogger("hindsight.server")

LARGEST_BODY = 2 * 1024 * 1024
"""Bytes of a request's body at most."""
SLOWEST_BODY = 30.0
"""Seconds in which a request's body must have come."""
BURST = 10.0
"""Seconds whose requests, at the rate that is allowed, a client may send at once."""
_LARGEST_DRAINED = 16 * LARGEST_BODY
_MOST_CLIENTS = 10_000  # whose rate is remembered

SECURITY_HEADERS = {
    "Cache-Control": "no-store",  # what somebody remembers is in no cache on the way
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Observed:
    """ASGI middleware, the outermost: gives each request its id, each answer its headers, and the log a line of both.

    The line holds the method, the route and never the address, whose ids and queries are somebody's. More than
    `most` requests at once are refused, except those of /health.
    """

    def __init__(self, app: ASGIApp, routes: list[BaseRoute], most: int) -> None:
        self._app = app
        self._routes = routes
        self._most = most
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        named = accepted(Headers(scope=scope).get(HEADER))
        before = request_id.set(named)
        method, route = scope["method"] if scope["method"] in _METHODS else "other", self._route(scope)
        status = 499  # the client went away

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = named
                for header, value in SECURITY_HEADERS.items():
                    headers.setdefault(header, value)
            await send(message)

        started = time.perf_counter()
        self._at_work += 1
        metrics.IN_PROGRESS.inc()
        try:
            if self._at_work > self._most and route != "/health":
                return await refused(_BUSY, {"Retry-After": "1"})(scope, receive, sending)
            return await self._app(scope, receive, sending)
        finally:
            self._at_work -= 1
            metrics.IN_PROGRESS.dec()
            seconds = time.perf_counter() - started
            metrics.REQUESTS.labels(method, route, status).inc()
            metrics.REQUEST_SECONDS.labels(method, route).observe(seconds)
            log.info(
                "%s %s %d %.1f ms",
                method,
                route,
                status,
                1000 * seconds,
                extra={"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 1)},
            )
            request_id.reset(before)

    def _route(self, scope: Scope) -> str:
        """The path of the route that a request means, as it is declared; `other` for what is none."""
        for route in self._routes:
            if route.matches(scope)[0] is not Match.NONE:
                return str(getattr(route, "path", "other"))
        return "other"


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_BUSY = Refusal(
    status=503,
    code="too_many_requests_at_work",
    message="the server is at work on as many requests as it takes",
    hint="Try again later",
)


class RateLimit:
    """ASGI middleware: each client may send so many requests a second, and those of `BURST` seconds at once.

    A client is its token, which an earlier middleware has found right; on a server without tokens, its address.
    """

    def __init__(self, app: ASGIApp, rate: float, has_tokens: bool) -> None:
        self._app = app
        self._rate = rate
        self._has_tokens = has_tokens
        self._spent: OrderedDict[bytes | str, float] = OrderedDict()  # client → when all that it has sent is paid for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/health":
            return await self._app(scope, receive, send)
        wait = self._wait(self._client(scope), time.monotonic())
        if wait <= 0:
            return await self._app(scope, receive, send)
        told = Refusal(
            status=429,
            code="rate_limited",
            message=f"more than {self._rate:g} requests a second",
            hint=f"Send the next one in {math.ceil(wait)} seconds",
        )
        return await refused(told, {"Retry-After": str(math.ceil(wait))})(scope, receive, send)

    def _wait(self, client: bytes | str, now: float) -> float:
        """Seconds until a client may send again; 0 lets it. Each request costs 1 / rate seconds (the generic cell rate
        algorithm, ITU-T I.371: a leaky bucket that keeps one number)."""
        spent = max(self._spent.get(client, now), now)
        wait = spent + 1 / self._rate - now - max(BURST, 1 / self._rate)
        if wait <= 0:
            self._spent[client] = spent + 1 / self._rate
            self._spent.move_to_end(client)
            if len(self._spent) > _MOST_CLIENTS:
                self._spent.popitem(last=False)
        return wait

    def _client(self, scope: Scope) -> bytes | str:
        if self._has_tokens:
            return hashlib.sha256(Headers(scope=scope).get("authorization", "").encode()).digest()
        return scope["client"][0] if scope.get("client") else ""


class BodyLimit:
    """ASGI middleware: refuses a body of more than `most` bytes, or that takes over `seconds`, and reads others whole.

    What is too much is read and thrown away, up to a limit, since few clients read an answer while they send.
    """

    def __init__(self, app: ASGIApp, most: int = LARGEST_BODY, seconds: float = SLOWEST_BODY) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return await self._app(scope, receive, send)
        messages: deque[Message] = deque()
        size = 0
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    size += len(message.get("body", b""))
                    if size <= self._most:
                        messages.append(message)
                    if message["type"] != "http.request" or not message.get("more_body") or size > _LARGEST_DRAINED:
                        break
        except TimeoutError:
            told = Refusal(
                status=408,
                code="too_slow",
                message=f"the body had not come after {self._seconds:g} seconds",
                hint="Send it faster, or in several requests",
            )
            return await refused(told, {"Connection": "close"})(scope, receive, send)
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
