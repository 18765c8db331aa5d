"""The servers' log, on standard error: a line, or a JSON object, for each record, with the id of its request.

What it holds of a request is its route, its outcome and its time; what memories say is in no line of it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from hindsight.config import LogFormat
from hindsight.request_id import request_id

_FIELDS = ("method", "route", "status", "ms")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The line, with the request's id in its end."""
        line = super().format(record)
        named = request_id.get()
        return f"{line} [{named}]" if named else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """An object: at, level, logger, message, and where there is one request_id, error, and the request's fields."""
        found = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
            "error": self.formatException(record.exc_info) if record.exc_info else None,
            **{field: getattr(record, field, None) for field in _FIELDS},
        }
        return json.dumps({name: value for name, value in found.items() if value is not None}, ensure_ascii=False)


def log_to_standard_error(form: LogFormat = "text") -> None:
    """Sends every log of a server's process to standard error: ours from INFO on, those of libraries from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    for name in ("hindsight", "uvicorn"):
        logging.getLogger(name).setLevel(logging.INFO)
    fastmcp = logging.getLogger("fastmcp")  # it brings handlers that break lines
    fastmcp.handlers.clear()
    fastmcp.propagate = True
    fastmcp.setLevel(logging.WARNING)
