"""`hindsight eval --format redaction`: is what is personal or secret found, and nothing else?"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from hindsight.errors import InvalidArgument
from hindsight.sync_client import Hindsight
from hindsight.tables import plain_table

PLACEHOLDER = re.compile(r"\[([a-z_]+):[0-9]+\]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text, and the (kind, value) of each secret in it, in their order; the value as it stands there."""

    split: str
    language: str
    text: str
    secrets: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Kind:
    """How many secrets of a kind there are, how many of them were found, and how much was taken for one and is none.

    Found is a secret whose every character, and no other, has become a placeholder of its kind.
    """

    split: str
    kind: str
    secrets: int = 0
    right: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float | None:
        return self.right / self.secrets if self.secrets else None

    @property
    def precision(self) -> float | None:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None


@dataclass(slots=True)
class RedactionReport:
    """`missed` and `mistaken`: text, kind and value of what was not found, and of what is no secret."""

    kinds: list[Kind] = field(default_factory=list)
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    mistaken: list[tuple[str, str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        kinds = [{**asdict(one), "recall": one.recall, "precision": one.precision} for one in self.kinds]
        return {**asdict(self), "kinds": kinds}


def read_sentences(path: Path) -> list[Sentence]:
    """The sentences of a file of JSON lines. Raises InvalidArgument where it can't be read or is of another format."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        sentences = [
            Sentence(
                str(row["split"]),
                str(row["language"]),
                str(row["text"]),
                tuple((str(one["kind"]), str(one["value"])) for one in row["secrets"]),
            )
            for row in map(json.loads, filter(None, lines))
        ]
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(f"{path} is not in the format redaction: {type(error).__name__}: {error}") from None
    if not sentences:
        raise InvalidArgument(f"{path} holds no sentence")
    return sentences


def evaluate_redaction(sentences: Sequence[Sentence], client: Hindsight) -> RedactionReport:
    """Redacts each sentence, of all kinds."""
    report = RedactionReport()
    kinds: dict[tuple[str, str], Kind] = {}
    for sentence in sentences:
        labelled = Counter(sentence.secrets)
        redacted = Counter(replaced(sentence.text, client.redact(sentence.text)))
        for which, counted in (("secrets", labelled), ("right", labelled & redacted), ("wrong", redacted - labelled)):
            for (kind, _), count in counted.items():
                for key in ((sentence.split, kind), (sentence.split, "all")):
                    one = kinds.setdefault(key, Kind(*key))
                    setattr(one, which, getattr(one, which) + count)
        report.missed += [(sentence.text, *one) for one in (labelled - redacted).elements()]
        report.mistaken += [(sentence.text, *one) for one in (redacted - labelled).elements()]
    report.kinds = [kinds[key] for key in sorted(kinds, key=lambda key: (key[0], key[1] == "all", key[1]))]
    return report


def replaced(text: str, redacted: str) -> list[tuple[str, str]]:
    """The (kind, value) of each placeholder: what stands in the text between what stayed."""
    stayed, kinds = PLACEHOLDER.split(redacted)[::2], PLACEHOLDER.findall(redacted)
    match = re.fullmatch("(.+?)".join(map(re.escape, stayed)), text, re.DOTALL)
    return list(zip(kinds, match.groups() if match else [text] * len(kinds), strict=True))


def redaction_table(kinds: Iterable[Kind]) -> Table:
    """Recall and precision of each kind and split."""
    table = plain_table()
    for name in ("split", "kind", "secrets", "found", "mistaken", "recall", "precision"):
        table.add_column(name, justify="left" if name in ("split", "kind") else "right")
    for one in kinds:
        rates = ("" if rate is None else f"{rate:.3f}" for rate in (one.recall, one.precision))
        table.add_row(one.split, one.kind, str(one.secrets), str(one.right), str(one.wrong), *rates)
    return table
