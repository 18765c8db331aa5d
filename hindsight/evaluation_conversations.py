"""`hindsight eval --format conversations`: is what is extracted from conversations what is worth keeping of them?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table
from sqlalchemy import Connection, text

from hindsight import distilled
from hindsight.distiller import Distiller
from hindsight.errors import InvalidArgument
from hindsight.model_endpoint import EndpointFailure
from hindsight.tables import plain_table

_SECONDS = 120.0  # for a conversation
TURNS_BEFORE = 2  # that a turn is read with: a problem, and what was advised
TURN_END = "\x1e"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Keep:
    """What is worth keeping: a memory that holds all of `holds`, of one of the types, in that slot, if one is named."""

    holds: tuple[str, ...]
    types: tuple[str, ...]
    slot: str | None

    def is_kept_by(self, found: Found) -> bool:
        content = found.content.lower()
        type_ = "fact" if found.type == "hypothesis" else found.type  # a fact that was said with a doubt
        return (
            all(part.lower() in content for part in self.holds)
            and (found.type in self.types or type_ in self.types)
            and self.slot in (None, found.slot)
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, with what is worth keeping of it."""

    id: str
    language: str
    split: str
    turns: tuple[Turn, ...]
    keep: tuple[Keep, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What an extractor made of a conversation: one memory."""

    content: str
    type: str
    slot: str | None


Extractor = Callable[[Conversation], list[Found]]


@dataclass(slots=True)
class Extraction:
    """Counts of one split and language. `right`: of what was extracted. `found`: of what is worth keeping."""

    split: str
    language: str
    conversations: int = 0
    extracted: int = 0
    right: int = 0
    keep: int = 0
    found: int = 0

    @property
    def precision(self) -> float | None:
        return self.right / self.extracted if self.extracted else None

    @property
    def recall(self) -> float | None:
        return self.found / self.keep if self.keep else None


@dataclass(slots=True)
class ConversationReport:
    """`wrong`: conversation and content that matches nothing, or only what another memory has kept already.

    `failed`: conversations that a language model gave no answer to.
    """

    groups: list[Extraction] = field(default_factory=list)
    wrong: list[tuple[str, Found]] = field(default_factory=list)
    missed: list[tuple[str, Keep]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        groups = [{**asdict(one), "precision": one.precision, "recall": one.recall} for one in self.groups]
        return {**asdict(self), "groups": groups}


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a file of JSON lines. Raises InvalidArgument where it is not one, or of another format."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        conversations = [_conversation(row) for row in map(json.loads, filter(None, lines))]
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"{path} is not in the format conversations: {type(error).__name__}: {error}") from None
    if not conversations:
        raise InvalidArgument(f"{path} holds no conversation")
    return conversations


def _conversation(row: dict[str, Any]) -> Conversation:
    return Conversation(
        str(row["id"]),
        str(row["language"]),
        str(row["split"]),
        tuple(Turn(str(turn["role"]), str(turn["content"])) for turn in row["turns"]),
        tuple(
            Keep(tuple(map(str, keep["holds"])), tuple(map(str, keep["type"])), keep.get("slot"))
            for keep in row["keep"]
        ),
    )


def rules(connection: Connection) -> Extractor:
    """The rules of the database: `extract`, turn by turn."""
    statement = text("SELECT content, type, slot FROM hindsight.extract(:role, :content, :before)")

    def extracted(conversation: Conversation) -> list[Found]:
        found = []
        for place, turn in enumerate(conversation.turns):
            before = [one.content for one in conversation.turns[max(0, place - TURNS_BEFORE) : place]]
            rows = connection.execute(statement, {**asdict(turn), "before": TURN_END.join(before) or None})
            found += [Found(*row) for row in rows]
        return found

    return extracted


def by_model(distiller: Distiller) -> Extractor:
    """A language model, asked once for a whole conversation, as the worker asks it. Raises EndpointFailure."""

    def extracted(conversation: Conversation) -> list[Found]:
        turns = [distilled.Turn(number, one.role, one.content) for number, one in enumerate(conversation.turns, 1)]
        found = distiller.distil(turns, [], [], is_ending=False, within=_SECONDS)
        return [Found(one.content, one.type, one.slot) for one in found.memories]

    return extracted


def evaluate_conversations(conversations: Sequence[Conversation], extract: Extractor) -> ConversationReport:
    """Counts for each split and language, for each split, and for all of it."""
    report = ConversationReport()
    groups: dict[tuple[str, str], Extraction] = {}
    for one in conversations:
        try:
            extracted = extract(one)
        except EndpointFailure as failure:  # it counts as nothing extracted
            report.failed.append((one.id, str(failure)))
            extracted = []
        kept: set[int] = set()
        wrong = []
        for memory in extracted:
            matched = {place for place, keep in enumerate(one.keep) if keep.is_kept_by(memory)}
            wrong += [] if matched - kept else [memory]
            kept |= matched
        for key in ((one.split, one.language), (one.split, "all"), ("all", one.language), ("all", "all")):
            group = groups.setdefault(key, Extraction(*key))
            group.conversations += 1
            group.extracted += len(extracted)
            group.right += len(extracted) - len(wrong)
            group.keep += len(one.keep)
            group.found += len(kept)
        report.wrong += [(one.id, memory) for memory in wrong]
        report.missed += [(one.id, keep) for place, keep in enumerate(one.keep) if place not in kept]
    report.groups = [
        groups[key] for key in sorted(groups, key=lambda key: (key[0] == "all", key[0], key[1] == "all", key[1]))
    ]
    return report


def extraction_table(groups: Sequence[Extraction]) -> Table:
    """A line for each split and language."""
    table = plain_table()
    for name in ("split", "language", "conversations", "extracted", "right", "to keep", "found", "precision", "recall"):
        table.add_column(name, justify="left" if name in ("split", "language") else "right")
    for one in groups:
        counts = (one.conversations, one.extracted, one.right, one.keep, one.found)
        shares = ("-" if share is None else f"{share:.3f}" for share in (one.precision, one.recall))
        table.add_row(one.split, one.language, *map(str, counts), *shares)
    return table
