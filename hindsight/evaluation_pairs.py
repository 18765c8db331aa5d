"""`hindsight eval --format pairs`: are two sentences that say the same merged, and only they?"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from sqlalchemy import text

from hindsight.config import Settings
from hindsight.engine import sync_engine
from hindsight.errors import InvalidArgument
from hindsight.sync_client import Hindsight


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences with a label: same, or whatever else they are to one another."""

    label: str
    language: str
    split: str
    one: str
    other: str


@dataclass(slots=True)
class Group:
    """What became of the second sentences of pairs of one kind, stored after the first ones.

    `merged`: without a slot. With a slot in common: `merged_in_slot`, `superseding` and `superseded`; of the rest one
    was not worth keeping. `evolved`: taken for two versions of one thing, of which the first stays answerable by date.
    """

    split: str
    label: str
    language: str
    pairs: int = 0
    merged: int = 0
    merged_in_slot: int = 0
    superseding: int = 0
    superseded: int = 0
    evolved: int = 0


@dataclass(slots=True)
class PairReport:
    """`wrong`: the pairs that were merged and are not the same."""

    model: str | None
    groups: list[Group] = field(default_factory=list)
    wrong: list[Pair] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file of JSON lines. Raises InvalidArgument where it can't be read or is of another format."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        pairs = [
            Pair(**{name: str(row[name]) for name in Pair.__slots__}) for row in map(json.loads, filter(None, lines))
        ]
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(f"{path} is not in the format pairs: {type(error).__name__}: {error}") from None
    if not pairs:
        raise InvalidArgument(f"{path} holds no pair")
    return pairs


def evaluate_pairs(pairs: Sequence[Pair], client: Hindsight, url: str, settings: Settings) -> PairReport:
    """Stores each pair in two banks of its own, named eval-…: without a slot, and in one slot."""
    run = f"eval-{uuid.uuid4().hex[:6]}"
    report = PairReport(client.embedder.model if client.embedder else None)
    if client.embedder:
        client.embedder.passages([sentence for pair in pairs for sentence in (pair.one, pair.other)])
    groups: dict[tuple[str, str, str], Group] = {}
    engine = sync_engine(url, settings)
    with engine.connect() as connection:
        for number, pair in enumerate(track(pairs, "storing", console=Console(stderr=True), transient=True)):
            key = pair.split, pair.label, pair.language
            group = groups.setdefault(key, Group(*key))
            group.pairs += 1
            if _outcome(client, f"{run}-{number}", pair) == "merged":
                group.merged += 1
                report.wrong += [pair] if pair.label != "same" else []
            in_slot = _outcome(client, f"{run}-{number}-slot", pair, slot="eval")
            group.merged_in_slot += in_slot == "merged"
            group.superseding += in_slot == "superseding"
            group.superseded += in_slot == "superseded"
            evolves = connection.execute(text("SELECT hindsight._evolves(:one, :other)"), asdict(pair))
            group.evolved += bool(evolves.scalar())
    engine.dispose()
    report.groups = [groups[key] for key in sorted(groups)]
    return report


def _outcome(client: Hindsight, bank: str, pair: Pair, slot: str | None = None) -> str:
    client.create_bank(bank, description="Made by hindsight eval.")
    client.store(bank, pair.one, slot=slot)
    return client.store(bank, pair.other, slot=slot).outcome
