"""Public data sets for evaluation: passages in banks, and questions whose gold passages are known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from hindsight.errors import InvalidArgument

Format = Literal["locomo", "squad"]

_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""The fifth, adversarial, asks for what was never said: it has no evidence to find."""

_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_EVIDENCE = re.compile(r"D\d+:\d+")  # some strings hold two ids ("D8:6; D9:17"), some are malformed ("D")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that becomes one memory. `context`: what was said before it, in which session and when."""

    passage_id: str
    content: str
    context: str | None = None
    session_id: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of the passages that answer it, at least one, all in its bank."""

    text: str
    gold: frozenset[str]
    category: str


@dataclass(slots=True)
class Corpus:
    """The passages of one bank, with the questions asked of it."""

    name: str
    passages: list[Passage] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def read_corpora(path: Path, format: Format) -> list[Corpus]:
    """The corpora of a file. Raises InvalidArgument where it can't be read or is of another format."""
    try:
        corpora = list(_READERS[format](json.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"{path} is not in the format {format}: {type(error).__name__}: {error}") from None
    if not any(corpus.questions for corpus in corpora):
        raise InvalidArgument(f"{path} holds no question with a passage that answers it")
    return corpora


def _locomo(conversations: Any) -> Iterator[Corpus]:
    """LoCoMo (Maharana et al. 2024): a corpus for each conversation, a passage for each turn."""
    for number, item in enumerate(conversations, 1):
        corpus = Corpus(item.get("sample_id") or f"conversation-{number}")
        corpus.passages += locomo_passages(item["conversation"])
        known = {passage.passage_id for passage in corpus.passages}
        for asked in item["qa"]:
            gold = known.intersection(_EVIDENCE.findall(" ".join(asked.get("evidence") or [])))
            if gold and asked["category"] in _LOCOMO_CATEGORIES:
                category = _LOCOMO_CATEGORIES[asked["category"]]
                corpus.questions.append(Question(asked["question"], frozenset(gold), category))
        yield corpus


def locomo_passages(conversation: Any) -> Iterator[Passage]:
    """The turns of one of LoCoMo's conversations, in their order: "speaker: text [image: caption]"."""
    sessions = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    before = None
    for session in sorted(sessions, key=lambda name: int(name.removeprefix("session_"))):
        began = datetime.strptime(conversation[f"{session}_date_time"], _LOCOMO_TIME).replace(tzinfo=UTC)
        for number_in_session, turn in enumerate(conversation[session]):
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            content = f"{turn['speaker']}: {turn['text']}{caption}"
            said = began + timedelta(seconds=number_in_session)  # only the session's time is known
            yield Passage(turn["dia_id"], content, before, session, said)
            before = content


def _squad(file: Any) -> Iterator[Corpus]:
    """SQuAD (Rajpurkar et al. 2016): every passage in one corpus; a question's gold is the passage it stands under."""
    corpus = Corpus("passages")
    for article in file["data"]:
        for paragraph in article["paragraphs"]:
            passage = Passage(str(len(corpus.passages)), paragraph["context"])
            corpus.passages.append(passage)
            gold = frozenset([passage.passage_id])
            corpus.questions += [Question(asked["question"], gold, "question") for asked in paragraph["qas"]]
    yield corpus


_READERS: dict[Format, Callable[[Any], Iterator[Corpus]]] = {"locomo": _locomo, "squad": _squad}
