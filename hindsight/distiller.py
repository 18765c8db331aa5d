"""placeholder"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hindsight.config import Settings


@dataclass
class Turn:
    sequence: int
    role: str
    content: str
    occurred_at: datetime | None


@dataclass
class Known:
    memory_id: UUID
    content: str
    type: str
    slot: str | None


@dataclass
class Found:
    content: str
    type: str
    confidence: float
    importance: float | None
    tags: list[str]
    entities: list[str]
    slot: str | None
    turns: list[int]
    occurred_at: datetime | None
    relation: str
    related_id: UUID | None
    source: str
    is_correction: bool


@dataclass
class Distilled:
    memories: list[Found]
    summary: str | None
    prompt_tokens: int
    completion_tokens: int
    refused: list[str]


class Distiller:
    def distil(
        self, turns: list[Turn], before: list[Turn], known: list[Known], *, is_ending: bool, within: float
    ) -> Distilled:
        raise NotImplementedError


def distiller_from(settings: Settings) -> Distiller | None:
    return None
