"""The JSON in what a language model says: in a code fence, after its thoughts, in prose, with slips, or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>|<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE)
_MOST_READ = 20_000  # characters of an answer to somebody who waits
_LONGEST = 1_000_000  # characters of any answer
_DEEPEST = 50  # containers in one another
_MOST_TRIES = 1000  # brackets at which JSON may begin
_BEGIN = re.compile(r"[{\[]")

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff\u00a0]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"[-+.\deE]+")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_PLAIN = {quote: re.compile(rf"[^\\{quote}]+") for quote in "\"'"}
_AFTER_TEXT = re.compile(r"\s*(?:[,:}\]]|\Z)")  # what follows the quotation mark that ends a text
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def without_thoughts(answer: str) -> str:
    """An answer without what the model thought aloud before it."""
    return _THOUGHT.sub("", answer)


def json_lists(answer: str) -> Iterator[list[Any]]:
    """The JSON lists in an answer, outermost ones, as they come; what the model thought aloud does not count."""
    text = without_thoughts(answer[:_MOST_READ])
    decoder = json.JSONDecoder()
    place = text.find("[")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
            yield value
        except (ValueError, RecursionError):
            end = place + 1
        place = text.find("[", end)


def json_values(answer: str) -> Iterator[tuple[dict[str, Any] | list[Any], bool]]:
    """The objects and lists in an answer, outermost ones, each with whether it is cut off.

    Read as Python or JavaScript would as well: single quotation marks, commas before a bracket, True and None,
    comments, line breaks in a text. Of one that is cut off, what is whole is there: the whole items of its lists.
    """
    text = answer[:_LONGEST].strip()
    for _ in range(2):  # JSON may stand in a JSON text
        try:
            whole = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            break
        if isinstance(whole, dict | list):
            yield whole, False
            return
        text = whole if isinstance(whole, str) else ""
    text = without_thoughts(text)
    place = 0
    for _ in range(_MOST_TRIES):
        begin = _BEGIN.search(text, place)
        if begin is None:
            return
        reader = _Reader(text, begin.start())
        try:
            value = reader.outermost()
        except ValueError:
            place = begin.start() + 1
            continue
        place = reader.place
        yield value, reader.is_cut


class _Cut(Exception):  # noqa: N818
    """The text ends in the middle of a value."""


class _Reader:
    """Reads one value from `place` on, which is then behind it. Raises ValueError where there is none."""

    def __init__(self, text: str, place: int) -> None:
        self._text = text
        self.place = place
        self.is_cut = False

    def outermost(self) -> dict[str, Any] | list[Any]:
        if self._text[self.place] == "[":
            return self._list(1)
        found: dict[str, Any] = {}
        try:
            self._fill(found, 1)
        except _Cut:
            if not found:
                raise self._refusal() from None
            self.is_cut = True
        return found

    def _value(self, depth: int) -> Any:
        mark = self._next()
        if mark == "{":
            found: dict[str, Any] = {}
            self._fill(found, depth + 1)
            return found
        if mark == "[":
            return self._list(depth + 1)
        if mark in _PLAIN:
            return self._string(mark)
        if word := _WORD.match(self._text, self.place):
            if word.end() == len(self._text):
                raise _Cut
            if word.group() not in _WORDS:
                raise self._refusal()
            self.place = word.end()
            return _WORDS[word.group()]
        if number := _NUMBER.match(self._text, self.place):
            if number.end() == len(self._text):
                raise _Cut  # 12 may be the beginning of 123
            self.place = number.end()
            said = number.group().lstrip("+")
            return float(said) if re.search("[.eE]", said) else int(said)
        raise self._refusal()

    def _fill(self, found: dict[str, Any], depth: int) -> None:
        """Reads an object; what is whole is in `found` also when it is cut off."""
        self._descend(depth)
        while True:
            mark = self._next()
            if mark == "}":
                self.place += 1
                return
            if mark not in _PLAIN:
                raise self._refusal()
            key = self._string(mark)
            if self._next() != ":":
                raise self._refusal()
            self.place += 1
            found[key] = self._value(depth)
            self._separate("}")

    def _list(self, depth: int) -> list[Any]:
        """Reads a list; one that is cut off has its whole items."""
        self._descend(depth)
        items: list[Any] = []
        try:
            while self._next() != "]":
                items.append(self._value(depth))
                self._separate("]")
            self.place += 1
        except _Cut:
            self.is_cut = True
            self.place = len(self._text)
        return items

    def _string(self, quote: str) -> str:
        self.place += 1
        parts = []
        while self.place < len(self._text):
            if plain := _PLAIN[quote].match(self._text, self.place):
                parts.append(plain.group())
                self.place = plain.end()
                continue
            if self._text[self.place] == "\\":
                parts.append(self._escaped())
                continue
            self.place += 1
            if quote == '"' or _AFTER_TEXT.match(self._text, self.place):
                # Two halves of one character may come as two escapes.
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            parts.append(quote)  # an apostrophe
        raise _Cut

    def _escaped(self) -> str:
        mark = self._text[self.place + 1 : self.place + 2]
        if mark == "u":
            digits = self._text[self.place + 2 : self.place + 6]
            if re.fullmatch("[0-9a-fA-F]{4}", digits):
                self.place += 6
                return chr(int(digits, 16))
            if self.place + 6 > len(self._text):
                raise _Cut
        self.place += 2
        return _ESCAPES.get(mark, mark)

    def _separate(self, end: str) -> None:
        """A comma, or the end of the container, which is left there."""
        mark = self._next()
        if mark == ",":
            self.place += 1
        elif mark != end:
            raise self._refusal()

    def _next(self) -> str:
        """The next character that is no space."""
        space = _SPACE.match(self._text, self.place)
        self.place = space.end() if space else self.place
        if self.place >= len(self._text):
            raise _Cut
        return self._text[self.place]

    def _descend(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise self._refusal()
        self.place += 1

    def _refusal(self) -> ValueError:
        return ValueError(f"no JSON at {self.place}")
