"""What is asked of texts and vectors, whichever model embeds, and what is known of each model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hindsight.errors import EmbeddingError


@dataclass(frozen=True)
class ModelDefaults:
    """A model's vector size (None: asked for) and cosines. Where not measured, a start for calibration."""

    dimensions: int | None
    floor: float
    recall_threshold: float
    merge_threshold: float


LOCAL_MODEL = "multilingual-e5-small-q4-centred"

MODEL_DEFAULTS = {
    # Measured: hindsight calibrate.
    LOCAL_MODEL: ModelDefaults(384, -0.01, 0.29, 0.66),
    # From what users report (docs/configuration.md), not measured here: to be calibrated.
    "text-embedding-3-small": ModelDefaults(1536, 0.10, 0.35, 0.70),
    "text-embedding-3-large": ModelDefaults(3072, 0.10, 0.35, 0.70),
}
# A guess: calibrate such a model before its results are judged.
UNKNOWN_MODEL = ModelDefaults(None, 0.0, 0.50, 0.80)


def check_text(text: str) -> str:
    """`text`, if it can be embedded. Raises EmbeddingError for a blank text, a NUL and a lone surrogate."""
    if not text.strip():
        raise EmbeddingError("the text is blank: there is nothing to embed")
    nul = text.find("\0")
    if nul >= 0:
        raise EmbeddingError(f"the text holds a NUL character (U+0000) at offset {nul}: remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EmbeddingError(
            f"the text holds a lone surrogate (U+{ord(text[error.start]):04X}) at offset {error.start}, "
            "which is no character: decode the source as UTF-8, or remove it"
        ) from None
    return text


def check_vectors(
    vectors: Sequence[Sequence[float]], expected_count: int, dimensions: int | None, model: str
) -> list[list[float]]:
    """`vectors` as lists of floats, if they are what was asked of `model`.

    `dimensions`: numbers in each vector; None: as many as in the first.
    Raises EmbeddingError for another count or size, for NaN, infinity or no number, and for only zeros.
    """
    if len(vectors) != expected_count:
        raise EmbeddingError(f"{model} returned {len(vectors)} vectors for {expected_count} texts")
    checked: list[list[float]] = []
    for number, vector in enumerate(vectors):
        where = f"{model}, vector {number + 1} of {expected_count}"
        if isinstance(vector, str | bytes) or not isinstance(vector, Sequence):
            raise EmbeddingError(f"{where}: expected a list of numbers, got {type(vector).__name__}")
        size = dimensions or len(vectors[0])
        if len(vector) != size or not size:
            raise EmbeddingError(
                f"{where}: expected {size or 'some'} dimensions, got {len(vector)}; "
                "set HINDSIGHT_EMBEDDING_DIMENSIONS to the size of the model's vectors"
            )
        wrong = next((x for x in vector if not isinstance(x, int | float) or not math.isfinite(x)), None)
        if wrong is not None or None in vector:
            raise EmbeddingError(f"{where}: expected finite numbers, got {wrong!r}")
        if not any(vector):
            raise EmbeddingError(f"{where}: expected a direction, got only zeros")
        checked.append([float(x) for x in vector])
    return checked
