"""A pooler in transaction mode, as PgBouncer is: clients share a few server connections, each for one transaction.

It forwards the frontend/backend protocol and looks only at message types and at ReadyForQuery's transaction status, so
whatever a client leaves on a connection (a prepared statement, a setting) is met, or missed, by others.
"""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

PROTOCOL = 196608
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104


class TransactionPooler:
    """`async with TransactionPooler(url, servers=2) as pooler`: `pooler.url` is the way in."""

    def __init__(self, url: str, servers: int) -> None:
        parts = urlsplit(url)
        self._database = parts.path.lstrip("/")
        self._socket = Path(parse_qs(parts.query)["host"][0]) / ".s.PGSQL.5432"
        self._count = servers
        self._free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        self._greeting = b""

    async def __aenter__(self) -> Self:
        for _ in range(self._count):
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
            body = struct.pack("!i", PROTOCOL) + f"user\0postgres\0database\0{self._database}\0\0".encode()
            writer.write(struct.pack("!i", len(body) + 4) + body)
            self._greeting = b""
            while True:
                kind, message = await _message(reader)
                if kind != b"K":
                    self._greeting += message
                if kind == b"Z":
                    break
            self._free.put_nowait((reader, writer))
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}/{self._database}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        while not self._free.empty():
            self._free.get_nowait()[1].close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length, code = struct.unpack("!ii", await reader.readexactly(8))
                await reader.readexactly(length - 8)
                if code not in (SSL_REQUEST, GSS_REQUEST):
                    break
                writer.write(b"N")
            writer.write(self._greeting)
            coming = asyncio.create_task(_message(reader))
            while (await coming)[0] != b"X":
                server = await self._free.get()
                try:
                    coming = await self._transaction(coming, reader, writer, *server)
                finally:
                    self._free.put_nowait(server)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _transaction(
        self,
        coming: asyncio.Task[tuple[bytes, bytes]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> asyncio.Task[tuple[bytes, bytes]]:
        """Forwards both ways until the server is idle outside of a transaction; returns the wait for what comes next."""
        unanswered = 0
        answer = asyncio.create_task(_message(server_reader))
        while True:
            done, _ = await asyncio.wait({coming, answer}, return_when=asyncio.FIRST_COMPLETED)
            if coming in done:
                kind, message = coming.result()
                server_writer.write(message)
                unanswered += kind in (b"S", b"Q")  # Sync and Query are answered by ReadyForQuery
                coming = asyncio.create_task(_message(reader))
            if answer in done:
                kind, message = answer.result()
                writer.write(message)
                unanswered -= kind == b"Z"
                if kind == b"Z" and message[-1:] == b"I" and not unanswered:
                    return coming
                answer = asyncio.create_task(_message(server_reader))


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!i", head[1:])
    return head[:1], head + await reader.readexactly(length - 4)
