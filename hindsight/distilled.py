"""What comes out of distilling, and what a model says has to pass: nothing on trust, nothing dropped silently."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

Relation = Literal["none", "same", "evolved", "contradicts"]
Source = Literal["user", "tool", "inferred"]

TYPES = ("fact", "preference", "decision", "todo", "temporary", "knowledge", "hypothesis")
"""The types that a conversation can give; a summary has a place of its own."""

_RELATIONS: tuple[Relation, ...] = ("none", "same", "evolved", "contradicts")
_USER = {"user", "human"}
_TOOL = {"tool", "function"}
_SAID = 0.9  # the confidence of what was said, and says no other
_INFERRED = 0.6
_MOST_INFERRED = 0.7
_LONGEST = 2.0  # times the length that is asked for: a style is not worth a lost memory, a copied turn is none
_LONGEST_SUMMARY = 2000  # characters
_MOST_LABELS = 16
_LONGEST_LABEL = 100
_SLOT = re.compile(r"[\w-]+(?:[./:][\w-]+)*")
_UNUSABLE = re.compile("[\0-\x1f\x7f\ud800-\udfff]")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]|[\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session."""

    sequence: int
    role: str
    content: str
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A live memory of the bank that is shown to the model."""

    memory_id: UUID
    content: str
    type: str
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that was distilled. turns: the sequences it stands on. related_id: the known memory of `relation`.

    source: user or tool, where a turn of theirs states it, else inferred: then its confidence is 0.7 at most.
    """

    content: str
    type: str
    confidence: float
    importance: float | None
    tags: list[str]
    entities: list[str]
    slot: str | None
    turns: list[int]
    occurred_at: datetime | None
    relation: Relation
    related_id: UUID | None
    source: Source
    is_correction: bool


@dataclass(frozen=True, slots=True)
class Distilled:
    """What distilling found. refused: a sentence for each thing that was not taken as the model gave it.

    calls: how many answers of the model it took.
    """

    memories: list[Found] = field(default_factory=list)
    summary: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refused: list[str] = field(default_factory=list)
    calls: int = 0


class Reading:
    """Checks the items of one answer against what the model was shown."""

    def __init__(
        self, turns: Sequence[Turn], before: Sequence[Turn], known: Sequence[Known], instructions: str
    ) -> None:
        self._new = {turn.sequence: turn for turn in turns}
        self._shown = {turn.sequence: turn for turn in before} | self._new
        self._known = known
        self._instructions = instructions
        self.refused: list[str] = []

    def memories(self, items: Sequence[Any]) -> list[Found]:
        """The items that can be stored; what is wrong with the others is in `refused`."""
        found: dict[str, Found] = {}
        for item in items:
            try:
                memory = self._memory(item if isinstance(item, dict) else {})
            except ValueError as error:
                self.refused.append(f"not kept, {error}: {quoted(item)}")
                continue
            if found.setdefault(memory.content.casefold(), memory) is not memory:
                self.refused.append(f"not kept, it came twice: {quoted(item)}")
        return list(found.values())

    def summary(self, value: Any) -> str | None:
        """A session's summary, if there is one that can be stored."""
        if value is None or value == "":
            return None
        try:
            text = one_line(value)
            if len(text) > _LONGEST_SUMMARY:
                raise ValueError(f"it has more than {_LONGEST_SUMMARY} characters")
        except ValueError as error:
            self.refused.append(f"no summary, {error}: {quoted(value)}")
            return None
        return text

    def _memory(self, item: Mapping[str, Any]) -> Found:
        content = one_line(item.get("content"))
        type_ = str(item.get("type")).strip().lower()
        if type_ not in TYPES:
            raise ValueError(f"{type_[:40]!r} is no type of memory")
        if _length(content) > _LONGEST:
            raise ValueError("it is longer than a sentence")
        turns = self._turns(item.get("turns"))
        if content in self._instructions and not any(content in turn.content for turn in self._shown.values()):
            raise ValueError("it repeats an example of the instructions")
        roles = {turn.role.strip().lower() for turn in turns}
        stated = str(item.get("said")).lower() != "false" and type_ != "hypothesis"
        source: Source = "inferred"
        if stated and roles & _USER:
            source = "user"
        elif stated and roles & _TOOL:
            source = "tool"
        confidence = unit(item.get("confidence"))
        if source == "inferred":
            confidence = min(_INFERRED if confidence is None else confidence, _MOST_INFERRED)
        is_correction = item.get("is_correction") is True and source == "user"
        relation, related_id = self._relation(item, content)
        return Found(
            content=content,
            type="decision" if is_correction and type_ == "fact" else type_,
            confidence=_SAID if confidence is None else confidence,
            importance=unit(item.get("importance")),
            tags=usable_labels(item.get("tags")),
            entities=usable_labels(item.get("entities")),
            slot=self._slot(item.get("slot"), content),
            turns=sorted({turn.sequence for turn in turns}),
            # What was wrong has the time at which it was said: its correction is later, whenever it holds from.
            occurred_at=self._time(None if is_correction or relation == "contradicts" else item.get("at"), turns),
            relation=relation,
            related_id=related_id,
            source=source,
            is_correction=is_correction,
        )

    def _turns(self, given: Any) -> list[Turn]:
        """The turns that an item stands on: all were shown, one at least is new."""
        numbers = [whole(number) for number in (given if isinstance(given, list) else [given])]
        if not numbers or any(number not in self._shown for number in numbers):
            raise ValueError("it stands on turns that are not there")
        if not any(number in self._new for number in numbers):
            raise ValueError("it stands on earlier turns only")
        return [self._shown[number] for number in numbers if number is not None]

    def _relation(self, item: Mapping[str, Any], content: str) -> tuple[Relation, UUID | None]:
        said = item.get("relation")
        relation: Relation = next((one for one in _RELATIONS if one == said), "none")
        number = whole(item.get("known"))
        if relation != "none" and number is not None and 1 <= number <= len(self._known):
            return relation, self._known[number - 1].memory_id
        if said not in (None, "", "none"):
            self.refused.append(f"kept without its relation, which is to no memory that was shown: {quoted(content)}")
        return "none", None

    def _slot(self, given: Any, content: str) -> str | None:
        """A slot in one spelling, that of a known memory where it differs in case only."""
        if given in (None, ""):
            return None
        slot = given.strip().lower() if isinstance(given, str) else ""
        if not _SLOT.fullmatch(slot) or len(slot) > _LONGEST_LABEL:
            self.refused.append(f"kept without its slot, which is no name: {quoted(content)}")
            return None
        return next((one.slot for one in self._known if one.slot and one.slot.lower() == slot), slot)

    def _time(self, given: Any, turns: Sequence[Turn]) -> datetime | None:
        """When it was, as the model says, else when it was said; a time after that is a misreading."""
        said_at = max((turn.occurred_at for turn in turns if turn.occurred_at), default=None)
        try:
            at = datetime.fromisoformat(given.strip())
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
            is_past = at <= (said_at or datetime.now(UTC)) + timedelta(days=1)
        except (AttributeError, ValueError, OverflowError, TypeError):
            return said_at
        is_same_day = said_at is not None and len(given.strip()) <= 10 and at.date() == said_at.astimezone(UTC).date()
        return at if is_past and at.year > 1 and not is_same_day else said_at


def one_line(value: Any) -> str:
    """A text on one line. Raises ValueError for what can't be stored as one."""
    if not isinstance(value, str):
        raise ValueError("it has no text")
    text = " ".join(value.split())
    if not text:
        raise ValueError("it is empty")
    if _UNUSABLE.search(text):
        raise ValueError("it holds a character that no text may hold")
    return text


def _length(content: str) -> float:
    """The length of a sentence, as a part of what is asked for: 50 characters of Chinese, or 30 words."""
    wide = len(_WIDE.findall(content))
    words = len(_WIDE.sub(" ", content).split())
    return max(wide / 50 + words / 30, len(content) / 400)  # one word may be long


def unit(value: Any) -> float | None:
    """A number from 0 to 1. None for anything else: 90 may mean 0.9 or 9 of 10, and is no number of this kind."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def whole(value: Any) -> int | None:
    """A whole number, also as text."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value.strip()):
        return int(value)
    return value if type(value) is int else None


def usable_labels(value: Any) -> list[str]:
    """Tags or entities: texts of a usable length, each once, at most sixteen."""
    given = value if isinstance(value, list) else []
    texts = (" ".join(one.split()) for one in given if isinstance(one, str))
    usable = dict.fromkeys(text for text in texts if 0 < len(text) <= _LONGEST_LABEL and not _UNUSABLE.search(text))
    return list(usable)[:_MOST_LABELS]


def quoted(item: Any) -> str:
    """An item as a complaint shows it, on one line, at most eighty characters."""
    said = item.get("content", item) if isinstance(item, dict) else item
    text = _UNUSABLE.sub("\ufffd", " ".join(str(said).split()))
    return f"{text[:80]}…" if len(text) > 80 else text
