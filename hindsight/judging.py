"""Judging: a language model says how two memories stand to each other, where the rules of an audit can't tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from hindsight.config import Settings
from hindsight.errors import ConfigurationError
from hindsight.language_model import NOT_CONFIGURED, Answer, LanguageModel, judge_model_from
from hindsight.model_endpoint import EndpointFailure, Usage
from hindsight.results import Finding, UndecidedPair
from hindsight.sync_client import Hindsight

PURPOSE = "judge"
"""What the calls are counted as in the bank's usage."""

_BATCH = 20  # pairs in one question
_LONGEST = 500  # characters of a memory that are shown
_WEIGHT = 0.5  # of a link that says what a model thinks
_RELATIONS = {
    "same": ("duplicates", "same_as", "says the same as"),
    "evolved": ("contradictions", "evolved_into", "has followed"),
    "contradicting": ("contradictions", "contradicts", "contradicts"),
    "different": (None, "differs_from", "is different from"),
}
"""For each verdict the check that its finding belongs to, the link that keeps it, and its words."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "pair": {"type": "integer"},
                    "verdict": {"type": "string", "enum": list(_RELATIONS)},
                },
                "required": ["pair", "verdict"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the newer memory of a pair stands to the older: same, evolved, contradicting or different."""

    pair: UndecidedPair
    verdict: str
    model: str

    @property
    def finding(self) -> Finding | None:
        """What an audit shows of it; None where the two differ. Its remedy, link, keeps the verdict."""
        check, _, words = _RELATIONS[self.verdict]
        if check is None:
            return None
        newer, older = _quoted(self.pair.content), _quoted(self.pair.other_content)
        detail = f"{newer} {words} {older}: judged by {self.model}"
        return Finding(
            finding=check, memory_id=self.pair.memory_id, other_id=self.pair.other_id, detail=detail, remedy="link"
        )


@dataclass(slots=True)
class Judgement:
    """What a judge said of the pairs that were undecided. problems: a sentence for each thing that went wrong."""

    model: str
    pairs: int
    verdicts: list[Verdict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Judge:
    """A language model that is asked about pairs of memories. Safe for several threads.

    seconds: that one question may take, with its tries. budget: tokens that a bank's day may cost; None: any number.
    """

    def __init__(self, model: LanguageModel, instructions: str, seconds: float, budget: int | None) -> None:
        self._model = model
        self._instructions = instructions
        self._seconds = seconds
        self._budget = budget

    def judge(self, client: Hindsight, bank: str, most: int) -> Judgement:
        """Verdicts on a bank's undecided pairs, at most so many. What it uses is counted: that needs a writer.

        A call that fails ends it: what was judged before stands, and `problems` says what is left.
        """
        left = client.tokens_left(bank, self._budget)  # asks for a writer's rights as well, before anything is spent
        pairs = client.undecided(bank, most=most)
        judgement = Judgement(self._model.name, len(pairs))
        for begin in range(0, len(pairs), _BATCH):
            unjudged = f"{len(pairs) - begin} of {len(pairs)} pairs are not judged"
            if left is not None and left <= 0:
                judgement.problems.append(f"{unjudged}: the {self._budget} tokens of the bank's day are spent")
                break
            try:
                judgement.verdicts += self._verdicts(client, bank, pairs[begin : begin + _BATCH], judgement.problems)
            except EndpointFailure as failure:
                judgement.problems.append(f"{unjudged}: {failure}")
                break
            left = client.tokens_left(bank, self._budget)
        return judgement

    def keep(self, client: Hindsight, bank: str, verdict: Verdict) -> str:
        """Links the two memories by what was judged, which changes neither. Returns linked, or left: it was so."""
        relation = _RELATIONS[verdict.verdict][1]
        ids = (verdict.pair.memory_id, verdict.pair.other_id)
        source, target = reversed(ids) if verdict.verdict == "evolved" else ids
        weight = 0 if verdict.verdict == "different" else _WEIGHT  # a link without weight is not followed by recall
        return "linked" if client.link(bank, source, target, relation, weight) else "left"

    def _verdicts(
        self, client: Hindsight, bank: str, pairs: Sequence[UndecidedPair], problems: list[str]
    ) -> list[Verdict]:
        def note(usage: Usage, failures: int) -> None:
            used = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
            client.note_usage(bank, PURPOSE, self._model.name, **used, failures=failures)

        try:
            answer = self._model.ask(self._instructions, _question(pairs), SCHEMA, self._seconds)
        except EndpointFailure as failure:
            note(failure.usage or Usage(), 1)
            raise
        note(answer.usage, 0)
        found = _read(answer, len(pairs))
        if len(found) < len(pairs):
            cut = ", which is cut off" if answer.is_cut else ""
            problems.append(f"{len(pairs) - len(found)} of {len(pairs)} pairs have no usable verdict in an answer{cut}")
        return [Verdict(pairs[place], verdict, self._model.name) for place, verdict in sorted(found.items())]


def judge_from(settings: Settings) -> Judge:
    """The judge that `settings` name. Raises ConfigurationError where there is none."""
    model = judge_model_from(settings)
    if model is None:
        raise ConfigurationError(
            f"there is no language model to judge with. Set {NOT_CONFIGURED}; or HINDSIGHT_JUDGE_MODEL and the rest"
        )
    instructions = (files("hindsight") / "prompts" / "judge.md").read_text(encoding="utf-8")
    return Judge(model, instructions, settings.llm_timeout * (settings.llm_retries + 1), settings.llm_daily_tokens)


def _question(pairs: Sequence[UndecidedPair]) -> dict[str, Any]:
    return {
        "pairs": [
            {
                "pair": number,
                "earlier": {"at": f"{pair.other_said_at:%Y-%m-%d}", "note": pair.other_content[:_LONGEST]},
                "later": {"at": f"{pair.said_at:%Y-%m-%d}", "note": pair.content[:_LONGEST]},
            }
            for number, pair in enumerate(pairs, 1)
        ]
    }


def _read(answer: Answer, count: int) -> dict[int, str]:
    """The verdicts by the places of their pairs. A number that no pair has, or that has two, counts for nothing."""
    items = answer.value.get("verdicts")
    said: dict[int, set[str]] = {}
    for item in items if isinstance(items, list) else []:
        number = item.get("pair") if isinstance(item, dict) else None
        if type(number) is int and 1 <= number <= count:
            said.setdefault(number - 1, set()).add(str(item.get("verdict")).strip().lower())
    return {place: next(iter(one)) for place, one in said.items() if len(one) == 1 and one <= set(_RELATIONS)}


def _quoted(content: str) -> str:
    """A content as the findings of SQL show it."""
    text = " ".join(content[:120].split())
    return f'"{text}…"' if len(content) > 120 else f'"{text}"'
