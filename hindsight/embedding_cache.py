"""Embeddings kept in a SQLite file, so that measuring the same texts again embeds nothing."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from hindsight.embedding import Embedder
from hindsight.errors import InvalidArgument


class CachedEmbedder:
    """An embedder that looks a text up in `path` before it asks `inner`. Vectors are kept in single precision.

    For commands that run to their end, which may embed in threads: a server's cache of queries is the database's.
    """

    def __init__(self, inner: Embedder, path: Path) -> None:
        self.inner = inner
        self.model = inner.model
        self.floor, self.recall_threshold = inner.floor, inner.recall_threshold
        self.merge_threshold = inner.merge_threshold
        self._lock = threading.Lock()
        try:
            self._file = sqlite3.connect(path, check_same_thread=False)  # used under the lock
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS embedding (model TEXT, side TEXT, digest BLOB, vector BLOB NOT NULL, "
                "PRIMARY KEY (model, side, digest)) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise InvalidArgument(f"{path} can't be used as a cache of embeddings: {error}") from None

    @property
    def dimensions(self) -> int:
        return self.inner.dimensions

    def query(self, text: str) -> list[float]:
        return self._cached("query", [text], lambda missing: [self.inner.query(text) for text in missing])[0]

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return self._cached("passage", texts, self.inner.passages)

    def close(self) -> None:
        self._file.close()

    def _cached(
        self, side: str, texts: Sequence[str], embed: Callable[[Sequence[str]], list[list[float]]]
    ) -> list[list[float]]:
        with self._lock:
            return self._kept(side, texts, embed)

    def _kept(
        self, side: str, texts: Sequence[str], embed: Callable[[Sequence[str]], list[list[float]]]
    ) -> list[list[float]]:
        keys = {text: (self.model, side, hashlib.sha256(text.encode()).digest()) for text in texts}
        found = {text: vector for text, key in keys.items() if (vector := self._look_up(key))}
        missing = [text for text in keys if text not in found]
        if missing:
            found |= zip(missing, embed(missing), strict=True)
            rows = [(*keys[text], array("f", found[text]).tobytes()) for text in missing]
            with self._file:
                self._file.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?, ?, ?)", rows)
        return [found[text] for text in texts]

    def _look_up(self, key: tuple[str, str, bytes]) -> list[float] | None:
        statement = "SELECT vector FROM embedding WHERE model = ? AND side = ? AND digest = ?"
        row = self._file.execute(statement, key).fetchone()
        return array("f", row[0]).tolist() if row else None
