"""`hindsight eval --format poison`: public sets of attacks, as cases of `evaluation_defence`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hindsight.errors import InvalidArgument
from hindsight.evaluation_defence import Case


def read_poison(path: Path) -> list[Case]:
    """The cases of a public set. Raises InvalidArgument where it can't be read or is of no form that is known.

    Known are AWS's test cases of memory poisoning (an agent stores them, and names no source), BIPIA's attacks (a
    tool stores each) and PoisonedRAG's (documents: all passages of a question). Nothing else is in the bank, and each
    text is asked for by itself, PoisonedRAG's by its question: it is as easy as can be for the attack.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cases = list(_cases(content))
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"{path} is not in the format poison: {type(error).__name__}: {error}") from None
    if not cases:
        raise InvalidArgument(f"{path} holds no case")
    return cases


def _cases(content: Any) -> Iterator[Case]:
    if isinstance(content, list):
        for number, row in enumerate(content):
            attack = row["category"] != "BENIGN"
            yield _case(f"aws-{number}", row["category"].lower(), [row["writeContent"]], None, attack=attack)
        return
    for key, rows in content.items():
        if isinstance(rows, list):
            for number, text in enumerate(rows):
                yield _case(f"{key}-{number}", key, [text], "tool")
        else:
            yield _case(rows["id"], "passages", rows["adv_texts"], "document", query=rows["question"])


def _case(name: str, kind: str, texts: list[str], source: str | None, *, query: str = "", attack: bool = True) -> Case:
    steps: tuple[dict[str, Any], ...] = tuple(
        {"content": text, **({"source": source} if source else {})} for text in texts
    )
    return Case(
        id=name,
        kind=kind,
        language="en",
        split="public",
        attack=attack,
        before=(),
        steps=steps,
        query=query or texts[0],
    )
