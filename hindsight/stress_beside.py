"""The writer beside the upkeep of a large bank, and what each of its calls waited for."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg import Connection

from hindsight.stress_waits import SlowCall, Waits
from hindsight.stress_writer import Known, Writer

BANK = "large"
_SLOWEST = 5  # calls that are shown with what they waited for
_SAMPLE = """
    SELECT memory_id, content, slot FROM hindsight.memory AS m JOIN hindsight.bank AS b USING (bank_id)
    WHERE b.name = 'large' AND (expires_at IS NOT NULL) = %s ORDER BY memory_id LIMIT %s
"""


class BesideWriter(Writer):
    """A writer among memories that are put away: it stores what is new, says expired things again, takes their slots,
    updates and confirms."""

    def __init__(self, url: str, connection: Connection[Any], memories: int) -> None:
        super().__init__(url, 0, {BANK: Known()}, can_erase=False)
        self.watch: Waits | None = None
        self._kinds: list[str] = []  # of the tally's writes
        most = max(memories // 20, 100)
        living = connection.execute(_SAMPLE, (False, most)).fetchall()
        expired = connection.execute(_SAMPLE, (True, most)).fetchall()
        self._living: list[UUID] = [memory_id for memory_id, _, _ in living]
        slotted = [slot for _, _, slot in expired if slot]
        # Half are said again without the upkeep, the others beside it.
        self._again = iter([content for _, content, slot in expired if not slot])
        self._slots = itertools.cycle(slotted or ["slot"])

    def work(self, until: float | threading.Event) -> None:
        """The operations in turn, until a moment or an event."""
        draw = random.Random(self._number)  # noqa: S311 for data, not for secrets
        for turn in itertools.count():
            if until.is_set() if isinstance(until, threading.Event) else time.monotonic() > until:
                return
            living = draw.choice(self._living)
            match turn % 5:
                case 0:
                    self.call(
                        "store, new", "store", bank=BANK, content=f"a new case {time.monotonic_ns()}", importance=0.6
                    )
                case 1 if content := next(self._again, None):
                    self.call("store, expired content", "store", bank=BANK, content=content, importance=0.6)
                case 2:
                    content = f"another value {time.monotonic_ns()}"
                    self.call(
                        "store, expired slot",
                        "store",
                        bank=BANK,
                        content=content,
                        slot=next(self._slots),
                        importance=0.6,
                    )
                case 3:
                    self.call("update", "update_memory", bank=BANK, memory_id=living, tags=[f"seen-{turn}"])
                case 4:
                    self.call("confirm", "confirm", bank=BANK, memory_id=living)

    @property
    def pid(self) -> int:
        return self._connection.info.backend_pid

    def call(self, kind: str, function: str, **given: Any) -> list[dict[str, Any]]:
        written = len(self.tally.writes)
        rows = super().call(kind, function, **given)
        self._kinds += [kind] * (len(self.tally.writes) - written)
        return rows

    def waits(self) -> tuple[dict[str, dict[str, float]], list[SlowCall]]:
        """The waits since the last time this was asked, by kind, and the slowest calls."""
        calls = self.watch.calls(self._kinds, self.tally.writes) if self.watch else []
        found = {
            kind: {
                "count": len(times),
                "p50": _part(times, 0.5),
                "p99": _part(times, 0.99),
                "longest": max(times),
                "lock": max((call.lock for call in calls if call.kind == kind), default=0.0),
            }
            for kind, times in sorted(self.tally.milliseconds.items())
        }
        self.tally.milliseconds.clear()
        self.tally.writes.clear()
        self._kinds.clear()
        return found, calls[:_SLOWEST]


@contextmanager
def watched(url: str, writer: BesideWriter) -> Iterator[None]:
    """What the writer waits for is looked at meanwhile."""
    stop = threading.Event()
    writer.watch = Waits(url, writer.pid)
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(writer.watch.run, stop)
        try:
            yield
        finally:
            stop.set()
        watching.result()


def _part(times: list[float], part: float) -> float:
    return sorted(times)[min(int(part * len(times)), len(times) - 1)]
