"""The request id: what joins a request's line in the log, its events, and the error that its client was told."""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar

HEADER = "X-Request-Id"
"""Taken from a request that brings one, and sent with every answer."""

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""That of the request at work, None outside of one."""

_TAKEN = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}", re.ASCII)


def accepted(brought: str | None) -> str:
    """The id that a request brought, if it is short and plain enough for logs and headers; else a new one."""
    return brought if brought and _TAKEN.fullmatch(brought) else uuid.uuid4().hex
