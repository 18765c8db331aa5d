"""What `GET /metrics` tells, in Prometheus' form. Labels are names of routes and calls, and codes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from sqlalchemy.pool import Pool, QueuePool
from starlette.requests import Request
from starlette.responses import Response

from hindsight.refusals import refusal

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

REQUESTS = Counter("hindsight_requests_total", "Requests answered.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "hindsight_request_seconds", "From a request to the end of its answer.", ["method", "route"], buckets=_SECONDS
)
IN_PROGRESS = Gauge("hindsight_requests_in_progress", "Requests at work.")
CALLS = Counter(
    "hindsight_calls_total",
    "Calls of the memory by MCP tools and REST routes. code: ok, or the error's.",
    ["call", "code"],
)
CALL_SECONDS = Histogram("hindsight_call_seconds", "What a call of the memory took.", ["call"], buckets=_SECONDS)
CONNECTIONS = Gauge("hindsight_database_connections", "Connections of the pool that are in use.")
POOL_SIZE = Gauge("hindsight_database_connections_most", "Connections that the pool may open (HINDSIGHT_POOL_SIZE).")


@contextlib.contextmanager
def counted(call: str) -> Iterator[None]:
    """Counts a call of the memory, its time and how it ended."""
    started = time.perf_counter()
    code = "ok"
    try:
        yield
    except Exception as error:
        code = refusal(error).code
        raise
    finally:
        CALLS.labels(call, code).inc()
        CALL_SECONDS.labels(call).observe(time.perf_counter() - started)


def observe_pool(pool: Pool) -> None:
    """Lets the figures of connections be those of a pool."""
    assert isinstance(pool, QueuePool)  # noqa: S101  # what engine.py asks for
    CONNECTIONS.set_function(pool.checkedout)
    POOL_SIZE.set(pool.size())


async def metrics(_: Request) -> Response:
    """`GET /metrics`."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
