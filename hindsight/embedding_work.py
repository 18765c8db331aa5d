"""Embedding a batch of memories: what the model takes, and what it refuses, found by halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hindsight.embedding import Embedder
from hindsight.errors import EmbeddingDenied, EmbeddingError, EmbeddingUnavailable

CLAIM_SECONDS = 300.0
"""How long a claimed batch may take, retries included; whoever starts anew at the end takes over what is claimed."""
UNREACHABLE_SECONDS = 5.0
"""After how long a batch is tried again whose model could not be reached; doubled each time."""
REFUSED_SECONDS = 3600.0
"""After how long a text is tried again that the model refused; doubled each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCounts:
    """What became of the memories that were claimed.

    embedded: have their vector. changed: had another content by then, or were being written: they wait again.
    refused: the model refuses the text. unreached: the model could not be reached, and `error` says why.
    """

    claimed: int = 0
    embedded: int = 0
    changed: int = 0
    refused: int = 0
    unreached: int = 0
    error: str | None = None


@dataclass(slots=True)
class EmbeddedBatch:
    """The vector of each text that has one, the error of each that was refused, by their places; and whether, and why,
    the model could not be reached for the others."""

    vectors: dict[int, list[float]] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    unreachable: str | None = None


def embed_batch(embedder: Embedder, texts: Sequence[str]) -> EmbeddedBatch:
    """Embeds all that can be embedded. A batch that is refused is halved until the text that is to blame stands alone.

    Where the first texts are refused each by itself, nothing else is asked: then it is not about the texts (a wrong
    key, vectors of a wrong size), and the whole batch counts as unreached.
    """
    batch = EmbeddedBatch()
    waiting = [range(len(texts))] if texts else []
    while waiting:
        places = waiting.pop()
        try:
            made = embedder.passages([texts[place] for place in places])
        except (EmbeddingUnavailable, EmbeddingDenied) as error:
            batch.unreachable = str(error)
            return batch
        except EmbeddingError as error:
            if len(places) > 1:
                middle = places.start + len(places) // 2
                waiting += [range(middle, places.stop), range(places.start, middle)]
                continue
            batch.refused[places.start] = str(error)
            if len(texts) > _MOST_REFUSED and len(batch.refused) >= _MOST_REFUSED and not batch.vectors:
                return EmbeddedBatch(unreachable=str(error))
        else:
            batch.vectors.update(zip(places, made, strict=True))
    return batch


_MOST_REFUSED = 4
