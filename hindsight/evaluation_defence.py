"""`hindsight eval --format defence`: how much of what is planted is believed, and how much else is held back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hindsight.errors import InvalidArgument
from hindsight.sync_client import Hindsight
from hindsight.tables import plain_table

ARGUMENTS = frozenset(("content", "source", "slot", "session_id", "type", "confidence", "context", "entities"))


@dataclass(frozen=True, slots=True)
class Case:
    """What a bank knows, what is stored then, and, of an attack, what would show that it is believed.

    `before` and `steps` hold arguments of `store`. `poison` is a part of the poisoned memory's content, which `query`
    asks for; without one all that `steps` store is poisoned. What is not an attack has neither.
    """

    id: str
    kind: str
    language: str
    split: str
    attack: bool
    before: tuple[dict[str, Any], ...]
    steps: tuple[dict[str, Any], ...]
    query: str = ""
    poison: str = ""


@dataclass(slots=True)
class Kind:
    """How many cases of a kind there are; of attacks, how many are believed (undefended: where nothing is screened);

    of the others, how many were held back: pending or skipped.
    """

    attack: bool
    split: str
    kind: str
    cases: int = 0
    undefended: int = 0
    believed: int = 0
    held: int = 0


@dataclass(slots=True)
class DefenceReport:
    """`believed`: attacks that got through; `held`: honest cases that were held back, with the reasons."""

    kinds: list[Kind] = field(default_factory=list)
    believed: list[Case] = field(default_factory=list)
    held: list[tuple[Case, list[str]]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file of JSON lines. Raises InvalidArgument where it can't be read or is of another format."""
    try:
        lines = filter(None, path.read_text(encoding="utf-8").splitlines())
        cases = [
            Case(
                id=str(row["id"]),
                kind=str(row["kind"]),
                language=str(row["language"]),
                split=str(row["split"]),
                attack=bool(row["attack"]),
                before=tuple({**step} for step in row["before"]),
                steps=tuple({**step} for step in row["steps"]),
                query=str(row["query"]) if row["attack"] else "",
                poison=str(row["poison"]) if row["attack"] else "",
            )
            for row in map(json.loads, lines)
        ]
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(f"{path} is not in the format defence: {type(error).__name__}: {error}") from None
    unknown = {name for case in cases for step in (*case.before, *case.steps) for name in step} - ARGUMENTS
    if unknown:
        raise InvalidArgument(f"{path} is not in the format defence: unknown argument {min(unknown)}")
    if not cases:
        raise InvalidArgument(f"{path} holds no case")
    return cases


def evaluate_defence(cases: Sequence[Case], client: Hindsight) -> DefenceReport:
    """Plays each case in a bank of its own, named eval-…, and each attack also in one that screens nothing."""
    run = f"eval-{uuid.uuid4().hex[:6]}"
    report = DefenceReport()
    kinds: dict[tuple[bool, str, str], Kind] = {}
    for number, case in enumerate(track(cases, "storing", console=Console(stderr=True), transient=True)):
        counted = [
            kinds.setdefault(key, Kind(*key))
            for key in ((case.attack, case.split, case.kind), (case.attack, case.split, "all"))
        ]
        reasons = _play(client, f"{run}-{number}", case, screening=True)
        believed = case.attack and _is_believed(client, f"{run}-{number}", case)
        undefended = False
        if case.attack:
            _play(client, f"{run}-{number}-open", case, screening=False)
            undefended = _is_believed(client, f"{run}-{number}-open", case)
        held = not case.attack and bool(reasons)
        for one in counted:
            one.cases += 1
            one.undefended += undefended
            one.believed += believed
            one.held += held
        report.believed += [case] if believed else []
        report.held += [(case, reasons)] if held else []
    report.kinds = [kinds[key] for key in sorted(kinds, key=lambda key: (not key[0], key[1], key[2] == "all", key[2]))]
    return report


def _play(client: Hindsight, bank: str, case: Case, *, screening: bool) -> list[str]:
    """Stores what a case says. The reasons of those of its steps that are not believed in the end."""
    client.create_bank(bank, description="Made by hindsight eval.")
    client.set_screening(bank, screening)
    for known in case.before:
        client.store(bank, **known)
    stored = [client.store(bank, **step) for step in case.steps]
    pending = {memory.memory_id: memory.pending_reason or "" for memory in client.pending(bank)}
    return [
        pending.get(one.memory_id, "; ".join(one.reasons)) if one.memory_id else "; ".join(one.reasons)
        for one in stored
        if one.memory_id is None or one.memory_id in pending
    ]


def _is_believed(client: Hindsight, bank: str, case: Case) -> bool:
    """Whether recall returns the poison as something that is so: no hypothesis, and not disputed."""
    poison = (case.poison,) if case.poison else tuple(step["content"] for step in case.steps)
    return any(
        memory.type != "hypothesis" and not memory.disputed_by and any(part in memory.content for part in poison)
        for memory in client.recall(bank, case.query)
    )


def defence_table(kinds: Iterable[Kind]) -> Table:
    """Pollution of each kind of attack, undefended and defended, and how much of the rest was held back."""
    table = plain_table()
    for name in ("", "split", "kind", "cases", "undefended", "believed", "held back"):
        table.add_column(name, justify="left" if name in ("", "split", "kind") else "right")
    for one in kinds:
        counts = (
            (_share(one.undefended, one.cases), _share(one.believed, one.cases), "")
            if one.attack
            else ("", "", _share(one.held, one.cases))
        )
        table.add_row("attack" if one.attack else "honest", one.split, one.kind, str(one.cases), *counts)
    return table


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})"
