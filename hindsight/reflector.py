"""Reflecting by a language model: groups of memories go in, what follows from several of them together comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hindsight.config import Settings
from hindsight.distilled import one_line, quoted, unit, usable_labels, whole
from hindsight.distiller import instructions_from
from hindsight.language_model import LanguageModel, language_model_from
from hindsight.model_endpoint import Usage

_LONGEST = 500  # characters of a memory that are shown
_LONGEST_INSIGHT = 400  # characters
_MOST = 20  # insights of one answer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "insights": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "notes": {"type": "array", "items": {"type": "integer"}},
                    "confidence": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["content", "notes", "confidence", "tags"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["insights"],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An insight as a model proposes it, with the memories that it cites."""

    content: str
    derived_from: list[UUID]
    confidence: float | None
    tags: list[str]


@dataclass(frozen=True, slots=True)
class Proposed:
    """What one answer proposes. refused: a sentence for each thing that was not taken as the model gave it."""

    proposals: list[Proposal] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class Reflector:
    """Asks a language model for what follows from groups of memories. Safe for several threads."""

    def __init__(self, model: LanguageModel, instructions: str) -> None:
        self._model = model
        self._instructions = instructions

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model.name

    def reflect(self, groups: Sequence[Sequence[dict[str, Any]]], within: float) -> Proposed:
        """What follows from the groups of `to_reflect`, in at most `within` seconds.

        The model sees small numbers in the place of ids. Raises EndpointFailure, which says what was spent.
        """
        memories = [memory for group in groups for memory in group]
        answer = self._model.ask(self._instructions, _question(groups), SCHEMA, within)
        items = answer.value.get("insights")
        if not isinstance(items, list):
            raise self._model.unusable(answer.usage, "without a list of insights")
        proposed = Proposed(usage=answer.usage)
        if answer.is_cut:
            proposed.refused.append(f"the answer is cut off after {len(items)} insights")
        for item in items[:_MOST]:
            try:
                proposed.proposals.append(self._proposal(item if isinstance(item, dict) else {}, memories))
            except ValueError as error:
                proposed.refused.append(f"not kept, {error}: {quoted(item)}")
        if len(items) > _MOST:
            proposed.refused.append(f"{len(items) - _MOST} more insights than {_MOST} are not looked at")
        return proposed

    def _proposal(self, item: dict[str, Any], memories: Sequence[dict[str, Any]]) -> Proposal:
        content = one_line(item.get("content"))
        if len(content) > _LONGEST_INSIGHT:
            raise ValueError(f"it has more than {_LONGEST_INSIGHT} characters")
        if content in self._instructions:
            raise ValueError("it repeats an example of the instructions")
        given = item.get("notes")
        numbers = dict.fromkeys(whole(number) for number in (given if isinstance(given, list) else []))
        if any(number is None or not 1 <= number <= len(memories) for number in numbers):
            raise ValueError("it cites notes that are not there")
        if len(numbers) < 2:
            raise ValueError("it cites fewer than two notes")
        return Proposal(
            content=content,
            derived_from=[UUID(memories[number - 1]["memory_id"]) for number in numbers if number is not None],
            confidence=unit(item.get("confidence")),
            tags=usable_labels(item.get("tags")),
        )


def reflector_from(settings: Settings) -> Reflector | None:
    """The reflector, where `settings` name a language model.

    Raises ConfigurationError for a prompt that can't be read.
    """
    model = language_model_from(settings)
    return Reflector(model, instructions_from(settings, "reflect")) if model else None


def _question(groups: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
    number = 0
    shown_groups = []
    for group in groups:
        notes = []
        for memory in group:
            number += 1
            note = {"number": number, "at": memory["said_at"], "type": memory["type"]}
            notes.append({**note, "note": memory["content"][:_LONGEST]})
        shown_groups.append(notes)
    return {"groups": shown_groups}
