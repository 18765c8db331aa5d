"""`hindsight bench --embedding`: how fast the worker embeds, beside the embedding model alone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

from hindsight.bench_data import synthetic_texts
from hindsight.config import Settings
from hindsight.errors import ConfigurationError
from hindsight.sync_client import Hindsight
from hindsight.worker import drain

BATCH = 100
"""Texts that the worker embeds at a time."""
STORED = 500  # memories in one transaction


@dataclass(frozen=True, slots=True)
class EmbeddingSpeed:
    """Memories a second: of the model alone, in batches, and of the worker, which also claims and keeps them."""

    model: str
    memories: int
    alone: float
    worker: float

    @property
    def ratio(self) -> float:
        return self.worker / self.alone

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


def embedding_speed(url: str, settings: Settings, memories: int) -> EmbeddingSpeed:
    """Times both on the same texts, the model alone before and after. Raises ConfigurationError without a model."""
    with Hindsight.connect(url, settings=settings) as client:
        embedder = client.embedder
        if embedder is None:
            raise ConfigurationError("no embedding model is configured: set HINDSIGHT_EMBEDDING_PROVIDER")
        texts = list(synthetic_texts(memories))
        embedder.passages(texts[:BATCH])  # loads it
        client.register_model()
        client.create_bank("bench")
        client.embedder = None
        for start in range(0, memories, STORED):
            client.store_many("bench", [{"content": one, "importance": 0.5} for one in texts[start : start + STORED]])

        def alone() -> float:
            began = time.perf_counter()
            for start in range(0, memories, BATCH):
                embedder.passages(texts[start : start + BATCH])
            return time.perf_counter() - began

        before = alone()
        began = time.perf_counter()
        asyncio.run(drain(url, settings, embedder))
        worked = time.perf_counter() - began
        plain = (before + alone()) / 2
        (bank,) = [one for one in client.status() if one.bank == "bench"]
    assert bank.unembedded == 0  # noqa: S101  # else nothing was measured
    return EmbeddingSpeed(embedder.model, memories, memories / plain, memories / worked)


def lines(speed: EmbeddingSpeed) -> list[str]:
    """For people."""
    return [
        f"{speed.memories} memories, {speed.model}",
        f"the model alone, {BATCH} at a time: {speed.alone:.0f} a second",
        f"the worker: {speed.worker:.0f} a second, {speed.ratio:.2f} of that",
    ]
