"""Texts and vectors for `hindsight bench`, of natural distributions where none are given; the same for each seed."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hindsight.errors import InvalidArgument

Vectors = NDArray[np.float32]

DIMENSIONS = 384
CLUSTERS = 500
CHUNK = 10_000  # rows made at once
# With these two the distances to the 40 nearest grow as those of real turns and questions do under the local model
# (maximum-likelihood intrinsic dimension 18 among memories and 19 from questions; LoCoMo, centred: 17 and 21).
_SPREAD = 0.9  # of a cluster, where the distance between clusters is 1
_NOISE = 1.0  # between a question and its memory, which leaves a cosine of 0.7
_VOCABULARY = 40_000
# English's most frequent words, in their order: the parser drops them, as it does in real sentences.
_STOP_WORDS = re.findall(
    r"\w+",
    "the of and to a in is it you that he was for on are with as i his they be at this have from or had by but not "
    "what all were we when your can there an which their if do will how about then them so some her would has him "
    "into more no",
)
_SYLLABLES = [
    consonant + rest
    for consonant in "bdfghklmnprstvwz"
    for rest in ("a", "e", "i", "o", "u", "an", "en", "il", "or", "us")
]


def synthetic_texts(count: int, seed: int = 1) -> Iterator[str]:
    """Sentences of 5 to 60 words, most of them about 18, whose words follow the law of Zipf and Mandelbrot.

    The word of rank r has a probability of 1 / (r + 15)^1.2, and two words of five are stop words. So a common word
    stands in as many sentences as in the turns of LoCoMo (the 1st in 20 %, the 10th in 11 %, the 400th in 0.4 %).
    """
    generator = np.random.default_rng(seed)
    words = np.array(_words())
    of_stop_words = 1 / np.arange(1, len(_STOP_WORDS) + 1)
    of_content = 1 / (np.arange(1, _VOCABULARY + 1) + 15) ** 1.2
    probability = np.concatenate([0.4 * of_stop_words / of_stop_words.sum(), 0.6 * of_content / of_content.sum()])
    cumulative = np.cumsum(probability)
    for start in range(0, count, CHUNK):
        lengths = np.clip(generator.lognormal(2.9, 0.45, min(CHUNK, count - start)), 5, 60).astype(int)
        ranks = np.searchsorted(cumulative, generator.random(lengths.sum()))
        drawn = iter(words[np.minimum(ranks, len(words) - 1)].tolist())
        for number, length in enumerate(lengths.tolist(), start):
            # A name of its own keeps two short sentences from being the same memory.
            yield " ".join([*itertools.islice(drawn, length), _name(number)])


def read_texts(path: Path, most: int) -> list[str]:
    """The first distinct texts of a file: a JSON list of strings, else one a line."""
    try:
        whole = path.read_text(encoding="utf-8")
        found = json.loads(whole) if whole.lstrip().startswith("[") else whole.splitlines()
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{path} can't be read: {error}") from None
    texts = {" ".join(text.split())[:10_000]: None for text in found if isinstance(text, str) and text.strip()}
    if not texts:
        raise InvalidArgument(f"{path} holds no text: one a line, or a JSON list of strings")
    return list(itertools.islice(texts, most))


class VectorSpace:
    """A mixture of Gaussians on the sphere, whose variance falls from axis to axis as that of embeddings does.

    Isotropic noise would put all neighbours of a vector at one distance, and no index finds anything in that.
    """

    def __init__(self, seed: int = 2) -> None:
        generator = np.random.default_rng(seed)
        self._axes = np.linalg.qr(generator.standard_normal((DIMENSIONS, DIMENSIONS)))[0].astype(np.float32)
        self._scale = (1 / np.sqrt(np.arange(1, DIMENSIONS + 1))).astype(np.float32)
        self._centres = self._gaussian(generator, CLUSTERS)
        weight = 1 / (np.arange(CLUSTERS) + 10)
        self._weight = weight / weight.sum()

    def sample(self, count: int, seed: int) -> Vectors:
        """Unit vectors, a row for each. The clusters differ in size."""
        generator = np.random.default_rng(seed)
        centres = self._centres[generator.choice(CLUSTERS, count, p=self._weight)]
        return _unit(centres + np.float32(_SPREAD) * self._gaussian(generator, count))

    def near(self, vectors: Vectors, seed: int) -> Vectors:
        """For each vector one like it, as a question's is like its answer's: at a cosine of about 0.7."""
        noise = _unit(self._gaussian(np.random.default_rng(seed), len(vectors)))
        return _unit(vectors + np.float32(_NOISE) * noise)

    def _gaussian(self, generator: np.random.Generator, count: int) -> Vectors:
        latent = generator.standard_normal((count, DIMENSIONS), dtype=np.float32) * self._scale
        return np.asarray(latent @ self._axes, dtype=np.float32)


def question(text: str, others: Sequence[str], generator: random.Random) -> str:
    """Three to eight words of a text, the long ones rather, and one of another; of a text without spaces, 4 to 12
    characters in a row."""
    words = text.split()
    if len(words) < 4:
        length = generator.randint(4, 12)
        start = generator.randrange(max(1, len(text) - length))
        return text[start : start + length]
    drawn = sorted(words, key=lambda word: generator.random() ** (1 / len(word) ** 2))[-generator.randint(3, 8) :]
    return " ".join([*drawn, generator.choice(generator.choice(others).split())])


def halfvec_binary(vectors: Vectors) -> list[bytes]:
    """Each row in the binary form of pgvector's halfvec: dimensions, zero, half-precision numbers, big-endian."""
    header = np.array([vectors.shape[1], 0], dtype=">i2").tobytes()
    return [header + row.tobytes() for row in vectors.astype(">f2")]


def _words() -> list[str]:
    generator = random.Random(0)  # noqa: S311 for data, not for secrets
    made: dict[str, None] = {}
    while len(made) < _VOCABULARY:  # common words are short
        shortest = 2 if len(made) < 1000 else 3
        made["".join(generator.choices(_SYLLABLES, k=generator.choice([shortest, shortest, shortest + 1])))] = None
    return [*_STOP_WORDS, *made]


def _name(number: int) -> str:
    parts = []
    for _ in range(5):
        number, at = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[at])
    return "q" + "".join(parts)


def _unit(vectors: Any) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
