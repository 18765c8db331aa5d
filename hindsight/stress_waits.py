"""What a backend waits for, read again and again from pg_stat_activity: was a slow call waiting for a lock?"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from hindsight.stress_writer import Write

EVERY = 0.002  # seconds between two looks
LOCK = "Lock"
"""Waits for a row, a transaction or an advisory lock: for another session, in PostgreSQL's own words."""
_LOOK = """
    SELECT CASE state WHEN 'active' THEN coalesce(wait_event_type || ':' || wait_event, 'running') ELSE 'its client' END
    FROM pg_catalog.pg_stat_activity WHERE pid = %s
"""


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call: its kind, how long it took, and what it waited for, as far as that was seen; in milliseconds."""

    kind: str
    milliseconds: float
    waits: dict[str, float]

    @property
    def lock(self) -> float:
        """How long it waited for locks."""
        return sum(spent for wait, spent in self.waits.items() if wait.startswith(f"{LOCK}:"))


class Waits:
    """The waits of one backend, sampled from a connection of its own until stopped.

    How long it waited for a processor is the kernel's count, where /proc has it.
    """

    def __init__(self, url: str, pid: int) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._pid = pid
        self._times: list[float] = []
        self._waits: list[str] = []
        self._without_a_core: list[float] = []  # milliseconds, since the backend started

    def run(self, stop: threading.Event) -> None:
        """Looks until `stop` is set. What lasts shorter than the time between two looks may not be seen."""
        while not stop.wait(EVERY):
            before = time.monotonic()
            row = self._connection.execute(_LOOK, (self._pid,)).fetchone()
            self._times.append((before + time.monotonic()) / 2)
            self._waits.append(row[0] if row else "gone")
            self._without_a_core.append(self._run_queue())
        self._connection.close()

    def calls(self, kinds: Sequence[str], writes: Sequence[Write]) -> list[SlowCall]:
        """Each call with what its backend waited for, the slowest first."""
        found = [
            SlowCall(kind, 1000 * (write.ended - write.started), self._within(write.started, write.ended))
            for kind, write in zip(kinds, writes, strict=True)
        ]
        return sorted(found, key=lambda call: -call.milliseconds)

    def _run_queue(self) -> float:
        try:
            return int(Path(f"/proc/{self._pid}/schedstat").read_text().split()[1]) / 1e6
        except OSError:
            return 0.0

    def _within(self, started: float, ended: float) -> dict[str, float]:
        """A look stands for the time until the next one."""
        spent: defaultdict[str, float] = defaultdict(float)
        first, last = max(bisect_right(self._times, started) - 1, 0), bisect_right(self._times, ended)
        for place in range(first, last):
            until = self._times[place + 1] if place + 1 < len(self._times) else ended
            spent[self._waits[place]] += 1000 * max(min(until, ended) - max(self._times[place], started), 0)
        if spent["running"] and last < len(self._times):
            spent["no core free"] = min(self._without_a_core[last] - self._without_a_core[first], spent["running"])
            spent["running"] -= spent["no core free"]
        return {wait: spent[wait] for wait in sorted(spent, key=lambda wait: -spent[wait]) if spent[wait] > 0}
