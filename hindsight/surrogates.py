"""Lone surrogates in the input of the stdio server, which must be refused by name and at once.

JSON can spell half of a character: `"\\ud800"`, what a cut emoji leaves. The MCP library's parser takes no line that
holds one, and answers nothing, so that the client would wait for ever. So each is rewritten before the parser sees
it, as two NULs and its number, and restored in the arguments of the tool. Nobody else's text is changed by that: a
NUL is refused as well.
"""

from __future__ import annotations

import io
import os
import re
from typing import Any

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|u([dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|.)",  # any other escape
    re.DOTALL,
)
_REWRITTEN = re.compile("\0\0([dD][89a-fA-F][0-9a-fA-F]{2})")


def rewritten(line: bytes) -> bytes:
    """A line of JSON without lone surrogates."""
    return _ESCAPE.sub(lambda found: rb"\u0000\u0000" + found[1] if found[1] else found[0], line)


def restored(value: Any) -> Any:
    """A value of parsed JSON with the lone surrogates that it was sent with."""
    if isinstance(value, str):
        return _REWRITTEN.sub(lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, dict):
        return {restored(key): restored(item) for key, item in value.items()}
    return [restored(item) for item in value] if isinstance(value, list) else value


class RewrittenLines(io.RawIOBase):
    """The lines of a descriptor, rewritten. It has no fileno: what reads it must not go around it."""

    def __init__(self, descriptor: int) -> None:
        self._source = os.fdopen(descriptor, "rb")
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Reads what is left of a line, else of the next one; 0 at the end of the input."""
        if not self._ready:
            self._ready = memoryview(rewritten(self._source.readline()))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
