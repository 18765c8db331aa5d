"""How fast an endpoint is called: how many calls at once, and how many in a minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from hindsight.model_endpoint import EndpointFailure

_MINUTE = 60.0


class Pace:
    """Turns at an endpoint, for the threads of this process. None: without that limit."""

    def __init__(self, at_once: int | None = None, a_minute: int | None = None) -> None:
        self._slots = threading.BoundedSemaphore(at_once) if at_once else None
        self._begun: deque[float] | None = deque(maxlen=a_minute) if a_minute else None
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, place: str, deadline: float) -> Iterator[None]:
        """Waits for a turn, and holds it. deadline: by time.monotonic().

        Raises EndpointFailure, a temporary one, where it does not come before the deadline.
        """
        if self._slots and not self._slots.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise EndpointFailure(f"{place} is busy with other calls of this process", is_temporary=True)
        try:
            self._wait(place, deadline)
            yield
        finally:
            if self._slots:
                self._slots.release()

    def _wait(self, place: str, deadline: float) -> None:
        """Books the next moment at which a call may begin, and waits for it."""
        if self._begun is None:
            return
        with self._lock:
            now = time.monotonic()
            is_full = len(self._begun) == self._begun.maxlen
            begins = max(now, self._begun[0] + _MINUTE) if is_full else now
            if begins >= deadline:
                raise EndpointFailure(
                    f"{place} has had its calls of this minute",
                    "More are HINDSIGHT_LLM_CALLS_PER_MINUTE",
                    is_temporary=True,
                    retry_after=begins - now,
                )
            self._begun.append(begins)
        time.sleep(begins - now)


@cache
def pace_of(place: str, at_once: int | None, a_minute: int | None) -> Pace:
    """The pace that all who call that model in this process share."""
    return Pace(at_once, a_minute)
