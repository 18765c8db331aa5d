"""The writers of `hindsight stress`: each a connection, with a random mix of all that can be done to memories."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from hindsight.calls import RETRIED, vector

MODEL = "stress"
DIMENSIONS = 4
ATTEMPTS = 10  # as the clients: a transaction that lost a race runs again
EXPECTED = {"HM002", "HM004", "HM006"}
"""SQLSTATEs of answers that a writer can act on: the memory is gone, another kind of memory, or changed meanwhile."""

# Few contents and few slots, so that writers meet. Each slot has several values that contradict each other.
_CONTENTS = [f"The build number {number} is green" for number in range(20)] + [
    f"第 {number} 号服务器在上海机房" for number in range(20)
]
_SLOTS = [f"project.{name}" for name in ("database", "port", "language", "owner", "region", "编辑器")]
_VALUES = ["PostgreSQL", "MySQL 8.0", "MySQL 8.4", "上海", "北京"]
_SPELLINGS = ["{}", "{}.", "{}!", "  {} 。"]  # the same words, of another digest: merged by meaning
_TYPES = ["fact", "fact", "preference", "decision", "todo", "temporary", "hypothesis", "knowledge"]
_SOURCES = ["user", "tool", "document", "inferred", None]
_TAGS = [f"tag-{number}" for number in range(100)]
_READS = {"get", "neighbours", "recall"}
_CASTS = {"embedding": "::vector", "derived_from": "::uuid[]"}


@dataclass(slots=True)
class Write:
    """One acknowledged call: what was given, what came back, and when it ran (time.monotonic)."""

    function: str
    given: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    started: float
    ended: float


@dataclass(slots=True)
class Tally:
    """What one writer did and met."""

    writes: list[Write] = field(default_factory=list)
    milliseconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # kind of operation, SQLSTATE
    retried: Counter[tuple[str, str]] = field(default_factory=Counter)


class Known:
    """The memories that writers of a bank know of; the oldest are let go, so that writers meet at the others."""

    def __init__(self) -> None:
        self.recent: deque[UUID] = deque(maxlen=200)
        self.pending: deque[UUID] = deque(maxlen=50)
        self.todo: deque[UUID] = deque(maxlen=50)
        self.gone: deque[UUID] = deque(maxlen=50)


class Writer:
    """A connection that runs transactions, counts what they meet, and keeps what was acknowledged."""

    def __init__(self, url: str, number: int, banks: Mapping[str, Known], can_erase: bool) -> None:
        self.tally = Tally()
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        self._random = random.Random(number)  # noqa: S311 for data, not for secrets
        self._number = number
        self._tokens = 0
        self._banks = banks
        self._operations: dict[Callable[[str, Known], None], float] = {
            self._store: 40, self._store_many: 8, self._update: 14, self._forget: 7, self._forget_matching: 1,
            self._restore: 6, self._confirm: 6, self._reject: 3, self._complete: 3, self._link: 4, self._unlink: 2,
            self._recall: 3, self._erase: 0.05 if can_erase else 0,  # it looks through the whole bank
        }  # fmt: skip

    def close(self) -> None:
        self._connection.close()

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set."""
        while not stop.is_set():
            bank = self._random.choice(list(self._banks))
            (operation,) = self._random.choices(list(self._operations), list(self._operations.values()))
            operation(bank, self._banks[bank])

    def call(self, kind: str, function: str, **given: Any) -> list[dict[str, Any]]:
        """The rows of one call in a transaction of its own; none when it was refused."""
        return (self._transaction(kind, [(function, given)]) or [[]])[0]

    def _transaction(self, kind: str, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[list[dict[str, Any]]] | None:
        started = time.monotonic()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if len(calls) == 1:
                    found = [self._rows(*calls[0])]
                else:
                    with self._connection.transaction():
                        found = [self._rows(*one) for one in calls]
            except psycopg.Error as error:
                met = (kind, error.sqlstate or type(error).__name__)
                if error.sqlstate not in RETRIED or attempt == ATTEMPTS:
                    self.tally.refused[met] += 1
                    return None
                self.tally.retried[met] += 1
                time.sleep(self._random.uniform(0, 0.02 * attempt))
                continue
            ended = time.monotonic()
            self.tally.milliseconds[kind].append(1000 * (ended - started))
            self.tally.writes += [
                Write(function, given, rows, started, ended)
                for (function, given), rows in zip(calls, found, strict=True)
                if function not in _READS
            ]
            return found
        raise AssertionError("unreachable")

    def _rows(self, function: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        terms = ", ".join(f"{name} => %({name})s{_CASTS.get(name, '')}" for name in given)
        statement = f"SELECT * FROM hindsight.{function}({terms})"  # noqa: S608 names are ours
        return self._connection.execute(statement, given).fetchall()

    # ---- the operations ---------------------------------------------------------------------------------------

    def _store(self, bank: str, known: Known) -> None:
        given = self._memory(bank, known)
        self._learn(known, given, self.call("store", "store", **given))

    def _store_many(self, bank: str, known: Known) -> None:
        """A batch in one transaction. One of ten comes in any order, and may deadlock with another: it runs again."""
        batch = [self._memory(bank, known) for _ in range(self._random.randint(2, 8))]
        if self._random.random() < 0.9:
            batch.sort(key=lambda given: (not _takes_turns(given), given.get("slot") or "", given["content"]))
        stored = self._transaction("store_many", [("store", given) for given in batch])
        for given, rows in zip(batch, stored or [], strict=False):
            self._learn(known, given, rows)

    def _update(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(known.recent)) is None:
            return
        draw = self._random
        given: dict[str, Any] = draw.choice(
            [
                {"content": f"{draw.choice(_CONTENTS)}, as writer {self._number} saw it"},
                {"content": draw.choice(_CONTENTS)},
                {"tags": [draw.choice(_TAGS)]},
                {"confidence": draw.choice([0.4, 0.8, 0.95])},
                {"slot": draw.choice(_SLOTS)},
                {"clear": ["slot"]},
            ]
        )
        if draw.random() < 0.5:
            found = self.call("get", "get", bank=bank, memory_id=memory_id)
            if not found:
                return
            given["expected_version"] = found[0]["version"]
        self.call("update", "update_memory", bank=bank, memory_id=memory_id, metadata=self._token(), **given)

    def _forget(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(known.recent)) is not None:
            self.call("forget", "forget", bank=bank, memory_id=memory_id, reason="stress")
            known.gone.append(memory_id)

    def _forget_matching(self, bank: str, known: Known) -> None:
        tag = self._random.choice(_TAGS)
        for row in self.call("forget_matching", "forget_matching", bank=bank, reason="stress", tags=[tag]):
            known.gone.append(row["memory_id"])

    def _restore(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(known.gone)) is not None:
            self.call("restore", "restore", bank=bank, memory_id=memory_id)

    def _confirm(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(self._random.choice([known.pending, known.recent]))) is not None:
            self.call("confirm", "confirm", bank=bank, memory_id=memory_id)

    def _reject(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(known.pending)) is not None:
            self.call("reject", "reject", bank=bank, memory_id=memory_id)
            known.gone.append(memory_id)

    def _complete(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(known.todo)) is not None:
            self.call("complete", "complete", bank=bank, memory_id=memory_id)

    def _link(self, bank: str, known: Known) -> None:
        one, other = self._drawn(known.recent), self._drawn(known.recent)
        if one is not None and one != other:
            relation = self._random.choice(["related", "derived_from"])
            weight = self._random.choice([0.5, 1.0])
            self.call("link", "link", bank=bank, from_id=one, to_id=other, relation=relation, weight=weight)

    def _unlink(self, bank: str, known: Known) -> None:
        if (memory_id := self._drawn(known.recent)) is not None:
            linked = self.call("neighbours", "neighbours", bank=bank, memory_id=memory_id)
            for other in [row["memory_id"] for row in linked if row["direction"] == "to"][:1]:
                self.call("unlink", "unlink", bank=bank, from_id=memory_id, to_id=other)

    def _recall(self, bank: str, known: Known) -> None:
        query = self._random.choice(_CONTENTS)
        found = [row["memory_id"] for row in self.call("recall", "recall", bank=bank, query=query)]
        self.call("note_recall", "note_recall", bank=bank, memory_ids=found)

    def _erase(self, bank: str, known: Known) -> None:
        """A memory of the writer's own: what else would go with it, no answer says."""
        content = f"a secret {uuid4()}"
        for row in self.call("store", "store", bank=bank, content=content, importance=0.6, metadata=self._token()):
            self.call("erase_memory", "erase_memory", bank=bank, memory_id=row["memory_id"], reason="stress")

    # ---- what they are given ----------------------------------------------------------------------------------

    def _memory(self, bank: str, known: Known) -> dict[str, Any]:
        """The arguments of a store: a duplicate, a value of a slot, the same in other words, or something new."""
        draw = self._random
        given: dict[str, Any] = {
            "bank": bank,
            "content": draw.choice(_CONTENTS),
            "type": draw.choice(_TYPES),
            "source": draw.choice(_SOURCES),
            "confidence": draw.choice([None, None, 0.4, 0.7, 0.9, 0.95]),
            "tags": [draw.choice(_TAGS)],
            "metadata": self._token(),
        }
        kind = draw.random()
        if kind < 0.35:
            slot = draw.choice(_SLOTS)
            given |= {"slot": slot, "content": f"{slot}: {draw.choice(_VALUES)}"}
        elif kind < 0.55:
            topic = draw.randrange(8)
            near = [float(axis == topic % DIMENSIONS) + draw.uniform(0, 0.1) for axis in range(DIMENSIONS)]
            content = draw.choice(_SPELLINGS).format(f"Topic {topic} is settled")
            given |= {"content": content, "embedding": vector(near), "model": MODEL}
        elif kind < 0.7:
            given["content"] = f"Writer {self._number} saw case {self._tokens}"
        if draw.random() < 0.3:
            given["occurred_at"] = datetime.now(UTC) - timedelta(seconds=draw.uniform(0, 20))
        if draw.random() < 0.1:
            given["ttl"] = timedelta(seconds=draw.uniform(0.05, 2))
        if draw.random() < 0.2:
            given["session_id"] = f"session-{draw.randrange(10)}"
        if draw.random() < 0.03 and given["confidence"] != 0.4:
            given["supersedes"] = self._drawn(known.recent)
        if draw.random() < 0.05:
            given["derived_from"] = [memory_id for memory_id in (self._drawn(known.recent),) if memory_id]
        return {name: value for name, value in given.items() if value is not None}

    def _token(self) -> Jsonb:
        """Metadata that no other write has: by it each acknowledged write is found again."""
        self._tokens += 1
        return Jsonb({"write": f"{self._number}-{self._tokens}"})

    def _drawn(self, memory_ids: deque[UUID]) -> UUID | None:
        return self._random.choice(memory_ids) if memory_ids else None

    def _learn(self, known: Known, given: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        for memory_id in (row["memory_id"] for row in rows if row["memory_id"]):
            known.recent.append(memory_id)
            if rows[0]["outcome"] == "pending":
                known.pending.append(memory_id)
            if given["type"] == "todo":
                known.todo.append(memory_id)


def _takes_turns(given: Mapping[str, Any]) -> bool:
    return bool({"slot", "supersedes", "derived_from"} & given.keys())
