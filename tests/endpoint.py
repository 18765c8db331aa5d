"""A scripted OpenAI-compatible endpoint: a real HTTP server on loopback, for the real SDK to talk to."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Request:
    """What a client sent: path, headers by lower-case name, and the JSON body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Reply:
    """What to answer. `body` is sent as JSON, text as it is; `close` hangs up instead, in the middle if there is a body;
    `delay` in seconds."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    close: bool = False

    @classmethod
    def vectors(cls, vectors: list[Any]) -> Reply:
        """An embedding answer that holds `vectors`, right or wrong."""
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        return cls({"object": "list", "data": data, "model": "scripted", "usage": {}})

    @classmethod
    def chat(cls, content: object, tokens: tuple[int, int] | None = None) -> Reply:
        """A chat completion that says `content`, a text or what is sent as JSON. tokens: of the prompt and of the answer."""
        said = content if isinstance(content, str | None) else json.dumps(content, ensure_ascii=False)
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"usage": dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True))} if tokens else {}
        return cls({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], **usage})

    @classmethod
    def relevances(cls, relevances: list[Any]) -> Reply:
        """A reranker's answer: the relevance of each document, in the order in which they were sent."""
        return cls({"results": [{"index": i, "relevance_score": value} for i, value in enumerate(relevances)]})

    @classmethod
    def error(cls, status: int, message: str = "scripted", wait: str = "0.001") -> Reply:
        """An API error. wait: Retry-After, by default at once; empty: none."""
        return cls({"error": {"message": message, "type": "scripted"}}, status, {"retry-after": wait} if wait else {})


def hash_vector(text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on nothing but the text."""
    numbers = [
        int.from_bytes(hashlib.sha256(f"{i} {text}".encode()).digest()[:4]) / 2**31 - 1 for i in range(dimensions)
    ]
    length = math.sqrt(sum(x * x for x in numbers))
    return [x / length for x in numbers]


class ScriptedEndpoint:
    """Answers each request by the next of `replies` (a Reply, or a function of the request), else by default.

    By default /embeddings gives hash vectors of `dimensions`, and status 400 for more than `max_texts`;
    /chat/completions gives the text "[]". Every request is kept in `requests`. A context manager.
    formats: the types of response_format that it takes; another one is status 400, before any reply is taken.
    """

    def __init__(
        self, dimensions: int = 8, max_texts: int = 2048, formats: Sequence[str] = ("json_schema", "json_object")
    ) -> None:
        self.dimensions = dimensions
        self.max_texts = max_texts
        self.delay = 0.0  # seconds before each answer that no reply scripts
        self.formats = formats
        self.replies: deque[Reply | Callable[[Request], Reply]] = deque()
        self.requests: list[Request] = []
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The base URL, with /v1."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def reply_to(self, request: Request) -> Reply:
        """The scripted reply, or the default."""
        wanted = request.body.get("response_format", {}).get("type")
        if wanted and wanted not in self.formats:
            return Reply.error(400, f"This response_format type is unavailable: {wanted}")
        if self.replies:
            scripted = self.replies.popleft()
            return scripted if isinstance(scripted, Reply) else scripted(request)
        if request.path.endswith("/chat/completions"):
            return Reply.chat("[]")
        if not request.path.endswith("/embeddings"):
            return Reply.error(404, f"no {request.path} here")
        texts = request.body["input"]
        if len(texts) > self.max_texts:
            return Reply.error(400, f"at most {self.max_texts} texts a call")
        dimensions = request.body.get("dimensions", self.dimensions)
        return Reply.vectors([hash_vector(text, dimensions) for text in texts])

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                endpoint.requests.append(request)
                reply = endpoint.reply_to(request)
                deadline = time.monotonic() + (reply.delay or endpoint.delay)
                while time.monotonic() < deadline and not endpoint._stopping.wait(0.01):
                    pass
                if reply.close and reply.body is None:
                    self.close_connection = True
                    return
                content = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
                self.send_response(reply.status)
                kind = "text/html" if isinstance(reply.body, str) else "application/json"
                for name, value in {"content-type": kind, **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content.encode())))
                self.end_headers()
                sent = content.encode()
                self.wfile.write(sent[: len(sent) // 2] if reply.close else sent)
                self.close_connection = self.close_connection or reply.close

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
