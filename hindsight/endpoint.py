"""An OpenAI-compatible embedding endpoint, whose answers are checked before they are used."""

from __future__ import annotations

from collections.abc import Sequence

from hindsight.errors import ConfigurationError, EmbeddingDenied, EmbeddingError, EmbeddingUnavailable
from hindsight.model_endpoint import EndpointFailure, ModelEndpoint
from hindsight.vectors import MODEL_DEFAULTS, UNKNOWN_MODEL, check_text, check_vectors

ENDPOINT_MODEL = "text-embedding-3-small"
ENDPOINT_TEXT_BYTES = 8191  # a token has at least one byte, so OpenAI's 8,192 tokens are never exceeded


class EndpointEmbedder:
    """An OpenAI-compatible endpoint, called `batch_size` texts at a time.

    `dimensions` is sent only if given; else it is the model's known size, or asked for by a first call.
    `timeout` in seconds for each try; `retries` more tries after a timeout, a connection error, 429 or 5xx.
    `base_url` None is OpenAI's, which needs a key; others get a placeholder without one.
    Of a text, the first 8,191 bytes of UTF-8 are sent.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        model: str = ENDPOINT_MODEL,
        dimensions: int | None = None,
        batch_size: int = 64,
        timeout: float = 30,
        retries: int = 2,
    ) -> None:
        if base_url is None and not api_key:
            raise ConfigurationError(
                "OpenAI's embedding endpoint needs a key: set HINDSIGHT_EMBEDDING_API_KEY, "
                "or HINDSIGHT_EMBEDDING_BASE_URL for another endpoint"
            )
        defaults = MODEL_DEFAULTS.get(model, UNKNOWN_MODEL)
        self.model = model
        self.floor = defaults.floor
        self.recall_threshold = defaults.recall_threshold
        self.merge_threshold = defaults.merge_threshold
        self._asked_dimensions = dimensions
        self._dimensions = dimensions or defaults.dimensions
        self._batch_size = batch_size
        self._endpoint = ModelEndpoint(
            "HINDSIGHT_EMBEDDING",
            base_url=base_url,
            api_key=api_key,
            model=model,
            timeout=timeout,
            retries=retries,
        )
        self._place = self._endpoint.place

    @property
    def dimensions(self) -> int:
        """Numbers in a vector. Calls the endpoint once if the model's size is not known."""
        if self._dimensions is None:
            self.query("dimensions")
        assert self._dimensions is not None  # noqa: S101  # query() learned it
        return self._dimensions

    def query(self, text: str) -> list[float]:
        """The vector of a question, `dimensions` numbers."""
        return self.passages([text])[0]

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of memories, `dimensions` numbers for each text; all of them, or an error."""
        prepared = [check_text(text).encode()[:ENDPOINT_TEXT_BYTES].decode(errors="ignore") for text in texts]
        vectors: list[list[float]] = []
        for start in range(0, len(prepared), self._batch_size):
            batch = prepared[start : start + self._batch_size]
            found = check_vectors(self._embeddings(batch), len(batch), self._dimensions, self._place)
            self._dimensions = len(found[0])
            vectors.extend(found)
        return vectors

    def _embeddings(self, texts: list[str]) -> list[Sequence[float]]:
        """What the endpoint says the vectors of `texts` are, by their `index`."""
        # "float": some compatible servers don't know the SDK's default, base64.
        body: dict[str, object] = {"model": self.model, "input": texts, "encoding_format": "float"}
        if self._asked_dimensions is not None:
            body["dimensions"] = self._asked_dimensions
        answer = self._post(body)
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise EmbeddingError(
                f"{self._place}: expected {{'data': [{{'index': …, 'embedding': […]}}, …]}}, "
                f"got {self._endpoint.without_key(str(answer))[:100]!r}"
            )
        indices = [item.get("index", position) for position, item in enumerate(data)]
        if sorted(map(str, indices)) != sorted(map(str, range(len(data)))):
            raise EmbeddingError(f"{self._place}: expected an index for each vector, got {str(indices)[:100]}")
        return [item.get("embedding") for _, item in sorted(zip(indices, data, strict=True), key=lambda p: p[0])]

    def _post(self, body: dict[str, object]) -> object:
        try:
            return self._endpoint.post("/embeddings", body)
        except EndpointFailure as failure:
            is_denied = failure.status in (401, 403, 404)
            kind = EmbeddingUnavailable if failure.is_temporary else EmbeddingDenied if is_denied else EmbeddingError
            is_unexplained = failure.status is not None and not (failure.is_temporary or failure.advice)
            more = (
                f". If it is about the number of texts, lower HINDSIGHT_EMBEDDING_BATCH_SIZE (now {self._batch_size})"
            )
            raise kind(failure.quoted + (more if is_unexplained else "")) from None
