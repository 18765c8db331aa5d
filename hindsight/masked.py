"""A text, and the same text as a bank keeps it, which masks what is secret: what comes again is known by that."""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(r"\[[a-z][a-z0-9_]{0,30}:[0-9]+\]")


def is_kept_as(content: str, kept: str) -> bool:
    """Whether a text is kept so: word for word, but for placeholders ("[card:1]"), each in place of any text."""
    first, *middle = _PLACEHOLDER.split(kept)
    if not middle or content == kept:
        return content == kept
    *middle, last = middle
    place = len(first)
    if not content.startswith(first):
        return False
    for part in middle:
        place = content.find(part, place + 1)
        if place < 0:
            return False
        place += len(part)
    return content.endswith(last) and len(content) - len(last) > place
