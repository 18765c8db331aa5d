"""Filling a database for `hindsight bench`: rows by COPY, the index of vectors built after them."""

from __future__ import annotations

import contextlib
import itertools
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from psycopg import Connection, sql

from hindsight.bench_data import CHUNK, DIMENSIONS, Vectors, VectorSpace, halfvec_binary

MODEL = "bench"

# The functions store one memory each, with its checks and its event. A benchmark of reading fills the table at once.
_STAGE = "CREATE TEMP TABLE incoming (content text, embedding halfvec)"
_COPY = "COPY incoming FROM STDIN (FORMAT binary)"
_INSERT = """
    INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, confidence, importance,
      metadata, language, created_at, confirmed_at, confirmations, changed_at, deleted_at, superseded_by, model_id,
      embedding)
    SELECT b.bank_id, gen_random_uuid(), 1, i.content, 'fact', '{}', '{}', 0.9, 0.5, '{}', b.language, now(), now(), 0,
      now(), CASE WHEN %(dead)s AND i.is_forgotten THEN now() END,
      CASE WHEN %(dead)s AND NOT i.is_forgotten THEN gen_random_uuid() END, b.model_id, i.embedding
    FROM (SELECT *, row_number() OVER () %% 2 = 0 AS is_forgotten FROM incoming) AS i
    JOIN hindsight.bank AS b ON b.name = %(bank)s
"""
_EMPTY = "TRUNCATE incoming"
_COUNT = "SELECT count(*) FROM hindsight.memory JOIN hindsight.bank USING (bank_id) WHERE name = 'large'"
# Nothing is embedded through the functions, which would make the model the banks'.
_ADOPT = "UPDATE hindsight.bank SET model_id = %s"
_INDEX = (
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'hindsight' AND indexname LIKE 'memory_embedding_%'"
)
_WARM = """
    SELECT pg_prewarm(c.oid) FROM pg_class AS c
    WHERE c.oid IN ('hindsight.memory'::regclass, 'hindsight.link'::regclass)
       OR c.oid IN (SELECT i.indexrelid FROM pg_index AS i
                    WHERE i.indrelid IN ('hindsight.memory'::regclass, 'hindsight.link'::regclass))
"""
_SIZES = """
    SELECT 'table', pg_table_size('hindsight.memory')
    UNION ALL
    SELECT CASE WHEN i.indexrelid::regclass::text LIKE '%memory_embedding_%' THEN 'vector index'
                WHEN i.indexrelid::regclass::text LIKE '%memory_words_idx' THEN 'word index'
                ELSE 'other indexes' END,
           sum(pg_relation_size(i.indexrelid))::bigint
    FROM pg_index AS i WHERE i.indrelid = 'hindsight.memory'::regclass GROUP BY 1
"""


def sizes(connection: Connection[Any]) -> dict[str, int]:
    """Bytes of the table of memories and of its indexes."""
    return dict(connection.execute(_SIZES).fetchall())


class Load:
    """A load in progress. `seconds`: what each step took; making the data is not counted."""

    def __init__(self, connection: Connection[Any], space: VectorSpace, advance: Callable[[int], None]) -> None:
        self._connection = connection
        self._space = space
        self._advance = advance
        self._index = ("", "")  # name and definition
        self.seconds: dict[str, float] = {}
        connection.execute(_STAGE)

    def create_banks(self) -> int:
        """Makes the banks "large" and "small" and their model, whose index `build_index` makes. Returns its id."""
        call = "SELECT hindsight.register_model(%s, %s)"
        ((model_id,),) = self._connection.execute(call, (MODEL, DIMENSIONS)).fetchall()
        for bank in ("large", "small"):
            self._connection.execute("SELECT hindsight.create_bank(%s)", (bank,))
        self._connection.execute(_ADOPT, (model_id,))
        (self._index,) = self._connection.execute(_INDEX).fetchall()
        return int(model_id)

    def is_done(self, memories: int) -> bool:
        """Whether the bank "large" was loaded before, with so many memories."""
        return self._connection.execute(_COUNT).fetchall() == [(memories,)]

    def vectors(self, bank: str, count: int, start: int = 0) -> Vectors:
        """The vectors of a bank's memories from `start` on, a multiple of CHUNK; at most CHUNK of them."""
        return self._space.sample(count, seed=start + (1 if bank == "small" else 0))

    def fill(self, bank: str, texts: Iterable[str], is_dead: bool = False, offset: int = 0) -> None:
        """Stores memories that say `texts`: live ones, or dead ones, of which half are forgotten, half superseded."""
        remaining = iter(texts)
        if not is_dead:
            self._drop_index()
        for start in itertools.count(offset, CHUNK):
            if not (part := list(itertools.islice(remaining, CHUNK))):
                break
            rows = _binary_rows(part, self.vectors(bank, len(part), start))
            with self._timed("load"):
                with self._connection.cursor().copy(_COPY) as copy:
                    copy.write(rows)
                self._connection.execute(_INSERT, {"bank": bank, "dead": is_dead})
                self._connection.execute(_EMPTY)
            self._advance(len(part))

    def build_index(self, m: int | None = None, ef_construction: int | None = None) -> float:
        """Builds the index of vectors, anew where there is one. Returns the seconds that it took."""
        _, definition = self._index
        if m is not None:
            definition = re.sub(
                r"WITH \(.*?\)", f"WITH (m = {m:d}, ef_construction = {ef_construction:d})", definition, count=1
            )
        self._drop_index()
        before = self.seconds.get("index of vectors", 0)
        with self._timed("index of vectors"):
            self._connection.execute(definition)
        return self.seconds["index of vectors"] - before

    def _drop_index(self) -> None:
        name, _ = self._index
        self._connection.execute(sql.SQL("DROP INDEX IF EXISTS hindsight.{}").format(sql.Identifier(name)))

    def maintain(self) -> None:
        """What an operator lets run, VACUUM ANALYZE and hindsight.maintain for each bank, and a checkpoint."""
        with self._timed("vacuum and analyze"):
            self._connection.execute("VACUUM ANALYZE hindsight.memory")
        with self._timed("maintain"):
            for bank in ("large", "small"):
                self._connection.execute("SELECT * FROM hindsight.maintain(%s)", (bank,))
        self._connection.execute("CHECKPOINT")

    def warm(self) -> None:
        """Reads the table and its indexes into memory, where a server that has run for a while has them."""
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        self._connection.execute(_WARM)

    @contextlib.contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[step] = self.seconds.get(step, 0) + time.perf_counter() - started


def _binary_rows(texts: Sequence[str], vectors: Vectors) -> bytes:
    """Rows of (text, halfvec) in the binary format of COPY: 384 numbers a row as text would be most of the time."""
    rows = [b"PGCOPY\n\xff\r\n\0" + bytes(8)]
    for text, embedding in zip(texts, halfvec_binary(vectors), strict=True):
        content = text.encode()
        rows.append(
            struct.pack(f">hi{len(content)}si{len(embedding)}s", 2, len(content), content, len(embedding), embedding)
        )
    rows.append(struct.pack(">h", -1))
    return b"".join(rows)
