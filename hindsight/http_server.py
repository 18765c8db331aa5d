"""The HTTP server: MCP at /mcp (streamable HTTP) and /sse, REST under /api, /health, /metrics; one app, one client."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import sys
from types import FrameType
from typing import Never

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from hindsight.config import Settings, load_settings
from hindsight.errors import ConfigurationError, HindsightError
from hindsight.http_guards import BodyLimit, Observed, RateLimit
from hindsight.mcp_server import build_server
from hindsight.rest import BearerToken, http_refused, rest_routes
from hindsight.server_log import log_to_standard_error
from hindsight.service import MemoryService, log


def build_app(settings: Settings, service: MemoryService | None = None) -> Starlette:
    """The ASGI app. Its lifespan opens `service` (by default one of its own), which all its routes share.

    Requests that reach a loopback address must name a loopback host, and come from no other origin, so that
    no web page can talk to the server through the browser of whoever runs it. With `settings.token`, every route
    but /health demands it.
    """
    memory = service or MemoryService(settings)
    server = build_server(settings, memory)
    routes: list[BaseRoute] = []
    guards = [Middleware(Observed, routes=routes, most=settings.concurrency)]
    if settings.token:  # never an empty one
        guards.append(Middleware(BearerToken, token=settings.token.get_secret_value()))
    if settings.rate_limit:
        guards.append(Middleware(RateLimit, rate=settings.rate_limit, has_tokens=settings.token is not None))
    guards.append(Middleware(BodyLimit))
    app = server.http_app(
        path="/mcp",
        transport="http",
        stateless_http=True,  # a client goes on after a restart of the server as if nothing had happened
        json_response=True,
        host_origin_protection="auto",
        middleware=guards,
    )
    events = server.http_app(path="/sse", transport="sse", host_origin_protection=False)  # guarded by the outer app
    app.router.routes.extend([*events.routes, *rest_routes(memory)])
    routes += app.router.routes
    app.add_exception_handler(HTTPException, http_refused)
    return app


def serve(settings: Settings | None = None) -> None:
    """Serves on `settings.host` and `settings.port` until SIGTERM or SIGINT, then ends in order.

    Raises ConfigurationError when the host is not loopback and no token is set, and DatabaseUnavailable when the
    database is not there within `settings.connect_timeout`.
    """
    settings = settings or load_settings()
    refuse_open_door(settings)
    log_to_standard_error(settings.log_format)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    service = MemoryService(settings)
    listener = _listen(settings)
    async with service.opened():
        host, port = listener.getsockname()[:2]
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        log.info("running on http://%s with /mcp, /sse, /api, /health and /metrics", address)
        config = uvicorn.Config(
            build_app(settings, service),
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,  # its lines would hold what addresses say; ours have the route
            lifespan="on",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        await uvicorn.Server(config).serve(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    """The socket of the server, taken before anything else is opened. Raises ConfigurationError when it is in use."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        return socket.create_server((settings.host.strip("[]"), settings.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigurationError(
            f"can't listen on {settings.host}, port {settings.port}: {error.strerror}. "
            "Choose another port with HINDSIGHT_PORT"
        ) from None


def refuse_open_door(settings: Settings) -> None:
    """Raises ConfigurationError when others could reach the server, and no token keeps them out."""
    if not is_loopback(settings.host) and not settings.token:
        raise ConfigurationError(
            f"HINDSIGHT_HOST is {settings.host}, which other machines can reach: set HINDSIGHT_TOKEN to a long random "
            "text (openssl rand -hex 32), or HINDSIGHT_HOST to 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. A name other than localhost may be any machine's."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _end(_: int, __: FrameType | None) -> Never:
    raise SystemExit(0)  # unwinds, so that the connections are closed and the embedded server is let go


if __name__ == "__main__":
    try:
        serve()
    except HindsightError as error:
        print(f"hindsight: {error}", file=sys.stderr)
        sys.exit(69)
