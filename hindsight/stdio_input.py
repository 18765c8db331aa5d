"""What the MCP library's parser does not take from the input of the stdio server, and must be refused by name, at once.

It takes no line that holds half of a character (`"\\ud800"`, what a cut emoji leaves), nor one that is nested some 200
levels deep, and answers nothing, so that the client would wait for ever. So half characters are rewritten before the
parser sees them, as two NULs and a number, and restored in the arguments of the tool: nobody else's text is changed
by that, since a NUL is refused as well. What is nested deeper than any argument may be becomes null; what is left is
too deep all the same, and is refused.
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


_DEEPEST = 100  # more than arguments may have (arguments.py) and the message around them has
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)


def shallow(line: bytes) -> bytes:
    """A line of JSON with null for whatever is nested deeper than 100 levels."""
    if line.count(b"[") + line.count(b"{") <= _DEEPEST:
        return line
    kept, depth, end = [], 0, 0
    for token in _TOKEN.finditer(line):
        if token[1]:
            depth += 1
            if depth == _DEEPEST + 1:
                kept += [line[end : token.start()], b"null"]
        elif token[2]:
            if depth == _DEEPEST + 1:
                end = token.end()
            depth -= 1
    return b"".join([*kept, line[end:]]) if depth <= _DEEPEST else line


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
            self._ready = memoryview(rewritten(shallow(self._source.readline())))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
