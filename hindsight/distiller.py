"""Distilling by a language model: turns of a conversation go in, a few sentences that are worth keeping come out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from hindsight.config import Settings
from hindsight.distilled import TYPES, Distilled, Found, Known, Reading, Turn
from hindsight.errors import ConfigurationError
from hindsight.language_model import LanguageModel, language_model_from
from hindsight.model_endpoint import EndpointFailure, Usage

__all__ = ["Distilled", "Distiller", "Found", "Known", "Turn", "distiller_from", "instructions_from"]

_LONGEST_TURN = 6000  # characters of a turn that are sent: its beginning, and its last quarter
_LONGEST_BEFORE = 1000  # of one that is only context
_MOST_BEFORE = 10  # turns of context
_MOST_SENT = 24_000  # characters of turns in one question
_MOST_SPLITS = 2  # times that turns are halved because an answer to them was cut off

_TEXT = {"type": "string"}
_OPTIONAL_TEXT = {"type": ["string", "null"]}
_TEXTS = {"type": "array", "items": _TEXT}
_FLAG = {"type": "boolean"}
_NUMBER = {"type": "number"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object, as strict servers want it: every property is required, and no other allowed."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_MEMORY = _object(
    {
        "turns": {"type": "array", "items": {"type": "integer"}},
        "content": _TEXT,
        "type": {"type": "string", "enum": list(TYPES)},
        "said": _FLAG,
        "confidence": _NUMBER,
        "importance": _NUMBER,
        "is_correction": _FLAG,
        "tags": _TEXTS,
        "entities": _TEXTS,
        "slot": _OPTIONAL_TEXT,
        "at": _OPTIONAL_TEXT,
        "relation": {"type": "string", "enum": ["none", "same", "evolved", "contradicts"]},
        "known": {"type": ["integer", "null"]},
    }
)
SCHEMA = _object({"memories": {"type": "array", "items": _MEMORY}, "summary": _OPTIONAL_TEXT})
"""The JSON schema of an answer."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What one question is made of."""

    turns: Sequence[Turn]
    before: Sequence[Turn]
    known: Sequence[Known]
    noted: Sequence[str]
    is_ending: bool


class Distiller:
    """Asks a language model for the memories in turns. Safe for several threads."""

    def __init__(self, model: LanguageModel, instructions: str) -> None:
        self._model = model
        self._instructions = instructions

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model.name

    def distil(
        self, turns: list[Turn], before: list[Turn], known: list[Known], *, is_ending: bool, within: float
    ) -> Distilled:
        """The memories in `turns`, in at most `within` seconds; at the ending a summary as well.

        before: turns that came before, for what the new ones refer to. known: memories of the bank that are about the
        same, shown under small numbers. Turns whose text, or whose answer, is too long for one call are halved.
        Raises EndpointFailure; whether the same may succeed later, how much later, and what was spent, it says.
        """
        if not turns:
            return Distilled()
        task = _Task(turns, before[-_MOST_BEFORE:], known, (), is_ending)
        return self._distil(task, time.monotonic() + within, _MOST_SPLITS)

    def _distil(self, task: _Task, deadline: float, splits: int) -> Distilled:
        is_one = len(task.turns) == 1
        if not is_one and sum(min(len(turn.content), _LONGEST_TURN) for turn in task.turns) > _MOST_SENT:
            return self._halved(task, deadline, splits, Distilled())
        left = max(0.001, deadline - time.monotonic())
        answer = self._model.ask(self._instructions, _question(task), SCHEMA, left)
        spent = Distilled(
            prompt_tokens=answer.usage.prompt_tokens, completion_tokens=answer.usage.completion_tokens, calls=1
        )
        if answer.is_cut and not is_one and splits:
            return self._halved(task, deadline, splits - 1, spent)
        items = answer.value.get("memories")
        if not isinstance(items, list):
            raise self._model.unusable(answer.usage, "without a list of memories")
        if answer.is_cut and not items:
            raise self._model.unusable(answer.usage, "that is cut off before it says anything")
        reading = Reading(task.turns, task.before, task.known, self._instructions)
        memories = reading.memories(items)
        summary = reading.summary(answer.value.get("summary")) if task.is_ending else None
        notes = [f"the answer is cut off after {len(items)} memories"] if answer.is_cut else []
        notes += [
            f"turn {turn.sequence}: {_LONGEST_TURN} of its {len(turn.content)} characters were read"
            for turn in task.turns
            if len(turn.content) > _LONGEST_TURN
        ]
        return replace(spent, memories=memories, summary=summary, refused=notes + reading.refused)

    def _halved(self, task: _Task, deadline: float, splits: int, spent: Distilled) -> Distilled:
        """The first half, then the second, which is told what was found in the first."""
        middle = len(task.turns) // 2
        for begin, end in ((0, middle), (middle, len(task.turns))):
            half = replace(
                task,
                turns=task.turns[begin:end],
                before=[*task.before, *task.turns[:begin]][-_MOST_BEFORE:],
                noted=[*task.noted, *(memory.content for memory in spent.memories)],
                is_ending=task.is_ending and end == len(task.turns),
            )
            try:
                spent = _joined(spent, self._distil(half, deadline, splits))
            except EndpointFailure as failure:
                usage = Usage(spent.prompt_tokens, spent.completion_tokens)
                failure.usage = usage + (failure.usage or Usage())
                raise
        return spent


def distiller_from(settings: Settings) -> Distiller | None:
    """The distiller, where `settings` name a language model.

    Raises ConfigurationError for a prompt that can't be read.
    """
    model = language_model_from(settings)
    return Distiller(model, instructions_from(settings, "distil")) if model else None


def instructions_from(settings: Settings, task: str) -> str:
    """The instructions for a task, distil or reflect: of the file that `settings` name, else those that come with it.

    Raises ConfigurationError for a file that can't be read.
    """
    given: Path | None = getattr(settings, f"{task}_prompt")
    if given is None:
        return (files("hindsight") / "prompts" / f"{task}.md").read_text(encoding="utf-8")
    name = f"HINDSIGHT_{task.upper()}_PROMPT"
    try:
        instructions = given.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{name}, {given}, can't be read: {error}") from None
    if not instructions.strip():
        raise ConfigurationError(f"{name}, {given}, is empty")
    return instructions


def _question(task: _Task) -> dict[str, Any]:
    known = [
        {"number": number, "type": one.type, "content": one.content, **({"slot": one.slot} if one.slot else {})}
        for number, one in enumerate(task.known, 1)
    ]
    return {
        "before": [_told(turn, _LONGEST_BEFORE) for turn in task.before],
        "known": known,
        **({"noted": list(task.noted)} if task.noted else {}),
        "is_ending": task.is_ending,
        "turns": [_told(turn, _LONGEST_TURN) for turn in task.turns],
    }


def _told(turn: Turn, longest: int) -> dict[str, Any]:
    content = turn.content
    if len(content) > longest:
        end = longest // 4
        left_out = len(content) - longest
        content = f"{content[: longest - end]} […{left_out} characters are left out…] {content[-end:]}"
    at = {"at": turn.occurred_at.isoformat(timespec="minutes")} if turn.occurred_at else {}
    return {"turn": turn.sequence, "role": turn.role, **at, "content": content}


def _joined(first: Distilled, second: Distilled) -> Distilled:
    held = {memory.content.casefold() for memory in first.memories}
    return Distilled(
        memories=[*first.memories, *(one for one in second.memories if one.content.casefold() not in held)],
        summary=second.summary or first.summary,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        refused=[*first.refused, *second.refused],
        calls=first.calls + second.calls,
    )
