"""Files that are imported: by lines, or by the items of a JSON array, so that no large file is in memory whole."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from hindsight.errors import InvalidArgument

_CHUNK = 1 << 16
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
_IN_ZIP = "conversations.json"
"""What the exports of ChatGPT and Claude are called in their zip files."""


class Source:
    """A file, plain, gzipped, or a zip with a `conversations.json`. Each reading begins anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._raw: IO[bytes] | None = None
        with self._opened() as stream:
            self.head = stream.read(_CHUNK)

    def position(self) -> int:
        """How many bytes of the file have been read: of the compressed one where it is compressed."""
        return 0 if self._raw is None or self._raw.closed else self._raw.tell()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank, with their numbers from 1."""
        with self._opened() as stream:
            for number, line in enumerate(stream, 1):
                text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if text.strip():
                    yield number, text

    def items(self) -> Iterator[tuple[int, Any]]:
        """The items of a JSON array with their numbers from 1. Raises InvalidArgument where it is no JSON."""
        buffer, at, number, needed = "", 0, 0, 0
        with self._opened() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig")
            try:
                buffer = text.read(_CHUNK)
                at = _after(buffer, _SPACE.match(buffer).end(), "[")  # type: ignore[union-attr]
                while True:
                    at = _SPACE.match(buffer, at).end()  # type: ignore[union-attr]
                    if at < len(buffer) and buffer[at] == "," and number:
                        at = _SPACE.match(buffer, at + 1).end()  # type: ignore[union-attr]
                    if at < len(buffer) and buffer[at] == "]":
                        return
                    try:
                        item, end = _DECODER.raw_decode(buffer, at)
                    except ValueError:
                        # Cut off, most likely. Each time twice as much is read: a large item is not tried often.
                        needed = max(_CHUNK, 2 * (len(buffer) - at))
                        more = text.read(needed)
                        if not more:
                            raise
                        buffer, at = buffer[at:] + more, 0
                        continue
                    number += 1
                    yield number, item
                    at = end
            except UnicodeDecodeError as error:
                raise InvalidArgument(f"{self.path} is not UTF-8: {error.reason} after item {number}") from None
            except (ValueError, RecursionError) as error:
                raise InvalidArgument(f"{self.path} is not JSON after item {number}: {error}") from None

    def whole(self) -> Any:
        """All of it as one JSON value. Raises InvalidArgument."""
        with self._opened() as stream:
            try:
                return json.loads(stream.read().decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise InvalidArgument(f"{self.path} is not JSON: {error}") from None

    def _opened(self) -> _Stream:
        return _Stream(self)


class _Stream:
    """A file, opened and unpacked. Raises InvalidArgument where it can't be read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._inner: list[IO[bytes]] = []

    def __enter__(self) -> IO[bytes]:
        path = self._source.path
        try:
            raw = path.open("rb")
            self._inner.append(raw)
            self._source.size = path.stat().st_size
            self._source._raw = raw
            begin = raw.read(4)
            raw.seek(0)
            if begin[:2] == b"\x1f\x8b":
                self._inner.append(cast(IO[bytes], gzip.GzipFile(fileobj=raw)))
            elif begin == b"PK\x03\x04":
                archive = zipfile.ZipFile(raw)
                names = [name for name in archive.namelist() if name.rpartition("/")[2] == _IN_ZIP]
                if not names:
                    raise InvalidArgument(f"{path} is a zip file without {_IN_ZIP}", hint="Unpack it and name the file")
                self._inner.append(archive.open(names[0]))
        except (OSError, zipfile.BadZipFile) as error:
            self.__exit__()
            raise InvalidArgument(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None
        return self._inner[-1]

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        for stream in reversed(self._inner):
            stream.close()
        if isinstance(error, OSError | EOFError | zlib.error | zipfile.BadZipFile):
            why = getattr(error, "strerror", None) or error
            raise InvalidArgument(f"{self._source.path} can't be read to its end: {why}") from None


def _after(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"it does not begin with {mark}")
    return at + 1
