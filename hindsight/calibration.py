"""`hindsight calibrate`: an embedding model's cosines of unrelated texts, of answers and of texts that say the same.

Measured on a bundled sample in Chinese and English, where wanted moved to the floor of a bank's own memories. Each
statistic is as simple as its use allows:

- floor: the median cosine of a question and a memory that does not answer it, over all pairs of languages. It is what
  recall subtracts, so it shall be what nothing in common looks like; a median, because a few unrelated pairs of a
  sample are related after all.
- recall_threshold: the cosine that FALSE_RATE of those pairs reach. It is set by what may come back wrongly, not by
  what is found: a bank has one answer and many other memories, so a question that nothing answers finds as many as
  that rate times the bank's size.
- merge_threshold: the cosine that SAME_RATE of the pairs reach that say the same. It only chooses what is compared word
  by word: no cosine tells "room 101" from "room 102", so it need not be strict.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import mul
from pathlib import Path
from typing import Any

from hindsight.embedding import Embedder
from hindsight.errors import EmbeddingError, InvalidArgument
from hindsight.results import SampledMemory

FALSE_RATE = 0.003
SAME_RATE = 0.9
LANGUAGES = ("zh", "en")
LEAST_MEMORIES = 20  # of a bank whose floor is measured
SAMPLE = Path(__file__).with_name("calibration_sample.json")

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the registry keeps of a model: cosines, rising."""

    floor: float
    recall_threshold: float
    merge_threshold: float

    def checked(self, model: str) -> Thresholds:
        """Itself. Raises EmbeddingError where the three do not rise: such a model tells nothing apart."""
        if not -1 <= self.floor < self.recall_threshold < self.merge_threshold <= 1:
            raise EmbeddingError(
                f"{model} can't be calibrated: its cosines do not rise from unrelated texts ({self.floor}) to answers "
                f"({self.recall_threshold}) to texts that say the same ({self.merge_threshold})"
            )
        return self


@dataclass(frozen=True, slots=True)
class Cosines:
    """Of the questions in one language and the memories in one language."""

    question: str
    memory: str
    answers: list[float]
    unrelated: list[float]

    def found(self, threshold: float) -> float:
        """The share of answers from the threshold on."""
        return _share(self.answers, threshold)

    def false(self, threshold: float) -> float:
        """The share of unrelated pairs from the threshold on."""
        return _share(self.unrelated, threshold)


@dataclass(frozen=True, slots=True)
class Measured:
    """A model's cosines on the sample. `same`: of memories that say the same; `close`: that only look so."""

    pairs: list[Cosines]
    same: list[float]
    close: list[float]

    def thresholds(self) -> Thresholds:
        unrelated = [cosine for pair in self.pairs for cosine in pair.unrelated]
        return Thresholds(
            floor=round(statistics.median(unrelated), 3),
            recall_threshold=round(_quantile(unrelated, 1 - FALSE_RATE), 3),
            merge_threshold=round(_quantile(self.same, round(1 - SAME_RATE, 3)), 3),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, and what it changes. `bank_floor`: of the bank that was asked for.

    `memories`, `banks`: live memories of this model, and their banks: what recall finds of them goes by the new values.
    """

    model: str
    old: Thresholds
    new: Thresholds
    measured: Measured
    bank_floor: float | None
    memories: int
    banks: int
    written: bool

    def as_dict(self) -> dict[str, Any]:
        """Without the single cosines, with what comes of them."""
        return {
            **{name: value for name, value in asdict(self).items() if name != "measured"},
            "pairs": [
                {
                    "question": pair.question,
                    "memory": pair.memory,
                    "unrelated_median": statistics.median(pair.unrelated),
                    "answers_median": statistics.median(pair.answers),
                    **{
                        f"{share}_{when}": getattr(pair, share)(values.recall_threshold)
                        for share in ("found", "false")
                        for when, values in (("old", self.old), ("new", self.new))
                    },
                }
                for pair in self.measured.pairs
            ],
            "same": {"median": statistics.median(self.measured.same), **self._merged(self.measured.same)},
            "close": {"highest": max(self.measured.close), **self._merged(self.measured.close)},
        }

    def _merged(self, cosines: Sequence[float]) -> dict[str, float]:
        return {
            "merged_old": _share(cosines, self.old.merge_threshold),
            "merged_new": _share(cosines, self.new.merge_threshold),
        }


def measure(embedder: Embedder) -> Measured:
    """The cosines of the bundled sample. Raises EmbeddingError."""
    sample = json.loads(SAMPLE.read_text(encoding="utf-8"))
    topics, others = sample["topics"], sample["others"]
    questions = {one: [embedder.query(item["question"][one]) for item in topics + others] for one in LANGUAGES}
    memories = {one: embedder.passages([item["memory"][one] for item in topics + others]) for one in LANGUAGES}
    pairs = [
        _cosines(asked, held, questions[asked], memories[held], len(topics))
        for asked in LANGUAGES
        for held in LANGUAGES
    ]
    return Measured(pairs, *(_each(embedder, sample[kind]) for kind in ("same", "close")))


def bank_floor(embedder: Embedder, memories: Sequence[SampledMemory]) -> float:
    """The median cosine of two memories of a bank drawn at random, the one embedded as a question.

    That stands in for questions, which a bank does not hold. Raises InvalidArgument for fewer than LEAST_MEMORIES.
    """
    if len(memories) < LEAST_MEMORIES:
        raise InvalidArgument(
            f"the bank has {len(memories)} embedded memories: its floor is measured from {LEAST_MEMORIES} on",
            hint="Calibrate without --bank",
        )
    asked = [embedder.query(memory.content) for memory in memories]
    held = [_unit(memory.embedding) for memory in memories]
    return statistics.median(
        _cosine(_unit(question), memory) for n, question in enumerate(asked) for m, memory in enumerate(held) if n != m
    )


def moved(thresholds: Thresholds, floor: float) -> Thresholds:
    """Thresholds with another floor, and the recall_threshold that has the same semantic similarity over it."""
    semantic = (thresholds.recall_threshold - thresholds.floor) / (1 - thresholds.floor)
    recall_threshold = round(floor + semantic * (1 - floor), 3)
    merge_threshold = max(thresholds.merge_threshold, round((recall_threshold + 1) / 2, 3))
    return Thresholds(round(floor, 3), recall_threshold, merge_threshold)


def _cosines(asked: str, held: str, questions: Sequence[Vector], memories: Sequence[Vector], topics: int) -> Cosines:
    """Question n and memory n are about the same; from `topics` on they only pass, and nothing answers anything."""
    questions, memories = [_unit(one) for one in questions], [_unit(one) for one in memories]
    cosines = {
        (n, m): _cosine(question, memory) for n, question in enumerate(questions) for m, memory in enumerate(memories)
    }
    return Cosines(
        asked,
        held,
        answers=[cosine for (n, m), cosine in cosines.items() if n == m < topics],
        unrelated=[cosine for (n, m), cosine in cosines.items() if n != m],
    )


def _each(embedder: Embedder, texts: Sequence[Sequence[str]]) -> list[float]:
    """The cosine of each two texts, as memories."""
    first, second = (embedder.passages([pair[side] for pair in texts]) for side in (0, 1))
    return [_cosine(_unit(one), _unit(other)) for one, other in zip(first, second, strict=True)]


def _unit(vector: Vector) -> list[float]:
    length = sum(map(mul, vector, vector)) ** 0.5
    return [x / length for x in vector]


def _cosine(one: Vector, other: Vector) -> float:
    return float(sum(map(mul, one, other)))


def _share(cosines: Sequence[float], threshold: float) -> float:
    return sum(cosine >= threshold for cosine in cosines) / len(cosines)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
