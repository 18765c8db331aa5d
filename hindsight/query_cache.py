"""Embeddings of queries, kept in this process for some minutes, and made once where several ask at the same moment."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from hindsight.calls import vector
from hindsight.embedding import Embedder

_Key = tuple[str, bytes]

LARGEST = 500  # of 1,536 dimensions each is 30 kB of text


class QueryCache:
    """The vectors of one client's queries, in the text form that PostgreSQL takes. Safe for several threads.

    seconds: how long a vector is kept. Of a query only the digest is. Beyond `largest` the oldest goes.
    """

    def __init__(self, seconds: float, largest: int = LARGEST, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._largest = largest
        self._clock = clock
        self._kept: dict[_Key, tuple[float, str]] = {}  # the oldest first: each lives equally long
        self._made: dict[_Key, Future[str]] = {}
        self._lock = threading.Lock()

    def get(self, model: str, query: str) -> str | None:
        """The vector, if it is here."""
        with self._lock:
            return self._find(_key(model, query))

    def keep(self, model: str, query: str, embedding: str) -> None:
        """Keeps a vector from now on."""
        with self._lock:
            key = _key(model, query)
            self._kept.pop(key, None)
            self._kept[key] = (self._clock() + self.seconds, embedding)
            while self._kept and (len(self._kept) > self._largest or self._is_expired(next(iter(self._kept)))):
                del self._kept[next(iter(self._kept))]

    def drop(self, model: str, query: str) -> None:
        """Forgets a vector that proved to be none."""
        with self._lock:
            self._kept.pop(_key(model, query), None)

    def embed(self, embedder: Embedder, query: str) -> tuple[str, bool]:
        """The vector, and whether this call made it: who asks while another embeds the same waits for that one.

        Raises EmbeddingError, for all who wait.
        """
        key = _key(embedder.model, query)
        with self._lock:
            if (found := self._find(key)) is not None:
                return found, False
            making = self._made.get(key)
            if making is None:
                mine = self._made[key] = Future[str]()
        if making is not None:
            return making.result(), False
        try:
            made = vector(embedder.query(query)) or ""
            self.keep(embedder.model, query, made)
            mine.set_result(made)
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._made[key]
        return made, True

    def _find(self, key: _Key) -> str | None:
        return self._kept[key][1] if key in self._kept and not self._is_expired(key) else None

    def _is_expired(self, key: _Key) -> bool:
        return self._kept[key][0] <= self._clock()


def _key(model: str, query: str) -> _Key:
    return model, hashlib.sha256(query.encode()).digest()
