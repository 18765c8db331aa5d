"""Servers as processes of their own, and requests to them over real HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

FOREIGN = ("HINDSIGHT_", "FASTMCP_", "OPENAI_", "EMBEDDING_", "LLM_", "DATABASE_URL", "POSTGRES_URL")


def environment(**settings: str) -> dict[str, str]:
    """This process's environment, with no settings but those given (HINDSIGHT_ is put before), and without a worker."""
    settings = {"worker": "false", **settings}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **{f"HINDSIGHT_{name.upper()}": value for name, value in settings.items()}}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found


@dataclass
class HttpServer:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends a request with a JSON body (bytes as they are)."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode())
        connection.close()
        return answer

    def end(self, number: int = 15) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


def start_http(directory: Path, **settings: str) -> HttpServer:
    """Starts a server on a free port, and waits until it listens."""
    settings = {"port": "0", "embedding_provider": "none", **settings}
    process = subprocess.Popen(
        [sys.executable, "-m", "hindsight.http_server"],
        cwd=directory,
        env=environment(**settings),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "running on http" in line:
            server = HttpServer(process, int(line.split("running on http://")[1].split()[0].rsplit(":", 1)[1]), lines)
            threading.Thread(target=lambda: lines.extend(process.stderr or []), daemon=True).start()
            return server
    raise AssertionError("".join(lines))


def new_bank() -> str:
    return f"bank-{uuid.uuid4().hex[:10]}"
