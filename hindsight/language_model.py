"""The language model: one question, one answer, and the JSON that is in it, whatever is said around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hindsight.config import Settings, is_switched_off
from hindsight.model_endpoint import EndpointFailure, ModelEndpoint

NOT_CONFIGURED = "HINDSIGHT_LLM_MODEL, and HINDSIGHT_LLM_BASE_URL or HINDSIGHT_LLM_API_KEY"
"""The settings that a language model needs, for an error."""

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_MOST_READ = 20_000  # characters of an answer


class LanguageModel:
    """A chat model at an OpenAI-compatible endpoint. Safe for several threads."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self._endpoint = endpoint
        self._takes_temperature = True

    def answer(self, instructions: str, question: Any, within: float) -> str:
        """What the model says to a question, which is sent as JSON, in at most `within` seconds.

        Raises EndpointFailure, whose message holds nothing of the question or the answer.
        """
        body = {
            "model": self._endpoint.model,
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": json.dumps(question, ensure_ascii=False)},
            ],
        }
        try:
            answer = self._ask(body, within)
        except EndpointFailure as failure:
            # Models that reason refuse to be told how; others answer the same question differently without it.
            if not self._takes_temperature or failure.status != 400 or "temperature" not in failure.said:
                raise
            self._takes_temperature = False
            answer = self._ask(body, within)
        try:
            said = answer["choices"][0]["message"]["content"]  # type: ignore[index]
        except (TypeError, KeyError, IndexError):
            said = None
        if not isinstance(said, str):
            raise self.unusable()
        return said

    def unusable(self) -> EndpointFailure:
        """The failure of an answer that is not what was asked for."""
        return EndpointFailure(f"{self._endpoint.place} gave an answer that can't be used")

    def _ask(self, body: dict[str, Any], within: float) -> object:
        temperature = {"temperature": 0} if self._takes_temperature else {}
        return self._endpoint.post("/chat/completions", {**body, **temperature}, within=within)


def language_model_from(settings: Settings) -> LanguageModel | None:
    """The language model that `settings` name; None where they name none, or lack a part of it."""
    key = settings.llm_api_key
    is_named = settings.llm_model and (settings.llm_base_url or key)
    if not is_named or is_switched_off(settings.llm_provider):
        return None
    return LanguageModel(
        ModelEndpoint(
            "HINDSIGHT_LLM",
            base_url=settings.llm_base_url,
            api_key=key.get_secret_value() if key else None,
            model=settings.llm_model,
            timeout=30,
        )
    )


def json_lists(answer: str) -> Iterator[list[Any]]:
    """The JSON lists in an answer, outermost ones, as they come; what the model thought aloud does not count."""
    text = _THOUGHT.sub("", answer[:_MOST_READ])
    decoder = json.JSONDecoder()
    place = text.find("[")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
            yield value
        except (ValueError, RecursionError):
            end = place + 1
        place = text.find("[", end)
