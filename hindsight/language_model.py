"""The language model: one question, one answer; as JSON by whatever means its endpoint has, paced and tried again."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hindsight.config import Settings, is_switched_off
from hindsight.json_answer import json_values
from hindsight.model_endpoint import EndpointFailure, ModelEndpoint, Usage
from hindsight.pacing import Pace, pace_of

NOT_CONFIGURED = "HINDSIGHT_LLM_MODEL, and HINDSIGHT_LLM_BASE_URL or HINDSIGHT_LLM_API_KEY"
"""The settings that a language model needs, for an error."""

MODES = ("json_schema", "json_object", "text")
"""How JSON is asked for, the best first: by a schema, by JSON mode, and in words."""

_IN_WORDS = "\n\nAnswer with one JSON object that follows this JSON schema, and with nothing else:\n"
_ABOUT_FORMAT = re.compile("response_format|json_schema|json_object|json mode|structured output", re.IGNORECASE)
_NOTHING = re.compile(r"\s*(?:```(?:json)?)?\s*\[\s*\]\s*(?:```)?\s*")  # an empty list that stands alone is an answer
_REFUSED_FORMAT = (400, 422, 501)
_FIRST_PAUSE = 0.5  # seconds, doubled by each try
_LONGEST_PAUSE = 20.0


@dataclass
class _Abilities:
    """What an endpoint and model were found to take, for as long as the process runs."""

    mode: int = 0
    temperature: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON object that a model answered. is_cut: it ends in the middle, and has what was whole."""

    value: dict[str, Any]
    is_cut: bool
    usage: Usage


class LanguageModel:
    """A chat model at an OpenAI-compatible endpoint. Safe for several threads.

    timeout: seconds that one try of `ask` may take. retries: its further tries after a temporary failure.
    """

    def __init__(
        self, endpoint: ModelEndpoint, *, timeout: float = 30, retries: int = 0, pace: Pace | None = None
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._retries = retries
        self._pace = pace or Pace()
        self._abilities = _abilities(endpoint.place)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._endpoint.model or "unnamed"

    def answer(self, instructions: str, question: Any, within: float) -> str:
        """What the model says to a question, which is sent as JSON, in at most `within` seconds, by one try.

        Raises EndpointFailure, whose message holds nothing of the question or the answer.
        """
        body = self._body(instructions, question)
        said = _content(self._adapted(lambda sampling: self._once({**body, **sampling}, within)))
        if said is None:
            raise self.unusable()
        return said

    def ask(self, instructions: str, question: Any, schema: Mapping[str, Any], within: float) -> Answer:
        """The JSON object that the model answers to a question, in at most `within` seconds, all tries included.

        The schema's first property may come as a bare list. What does not follow the schema otherwise is for the caller
        to refuse. Raises EndpointFailure, whose usage has the tokens that were spent; one without JSON is unusable.
        """
        deadline = time.monotonic() + within
        mode = self._abilities.mode
        while True:
            body = self._body(instructions + (_IN_WORDS + json.dumps(schema) if mode else ""), question)
            body |= _response_format(mode, schema)
            try:
                answered = self._adapted(lambda sampling, body=body: self._persistently({**body, **sampling}, deadline))
                break
            except EndpointFailure as failure:
                is_about_format = failure.status in _REFUSED_FORMAT or _ABOUT_FORMAT.search(failure.said)
                if mode == len(MODES) - 1 or not is_about_format:
                    raise
                mode += 1
        self._abilities.mode = max(mode, self._abilities.mode)
        said = _content(answered) or ""
        usage = _usage(answered, body, said)
        value, is_cut = _chosen(said, next(iter(schema["properties"])), set(schema["properties"]))
        if value is None:
            raise self.unusable(usage, "that is empty" if not said.strip() else "in which there is no JSON asked for")
        return Answer(value, is_cut, usage)

    def unusable(self, usage: Usage | None = None, what: str = "that can't be used") -> EndpointFailure:
        """The failure of an answer that is not what was asked for."""
        failure = EndpointFailure(f"{self._endpoint.place} gave an answer {what}")
        failure.usage = usage
        return failure

    def _body(self, instructions: str, question: Any) -> dict[str, Any]:
        # Written so, no text of a question can hold what ends a message for the model: <|im_end|>, </s>, <end_of_turn>.
        data = json.dumps(question, ensure_ascii=False).replace("<", "\\u003c")
        return {
            "model": self._endpoint.model,
            "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": data}],
        }

    def _adapted(self, call: Any) -> Any:
        """What a call returns with the sampling that the model takes."""
        try:
            return call({"temperature": 0} if self._abilities.temperature else {})
        except EndpointFailure as failure:
            # Models that reason refuse to be told how; others answer the same question differently without it.
            if not self._abilities.temperature or failure.status != 400 or "temperature" not in failure.said:
                raise
            self._abilities.temperature = False
            return call({})

    def _once(self, body: dict[str, Any], within: float) -> object:
        return self._endpoint.post("/chat/completions", body, within=within)

    def _persistently(self, body: dict[str, Any], deadline: float) -> object:
        """Tries again after a temporary failure, after the pause that the endpoint asks for, else an increasing one."""
        tried = 0
        while True:
            try:
                with self._pace.turn(self._endpoint.place, deadline):
                    return self._once(body, max(0.001, min(self._timeout, deadline - time.monotonic())))
            except EndpointFailure as failure:
                pause = failure.retry_after
                if pause is None:  # with jitter, so that workers that failed together do not meet again
                    pause = min(_FIRST_PAUSE * 2**tried, _LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311
                if not failure.is_temporary or tried >= self._retries or time.monotonic() + pause >= deadline:
                    raise
            tried += 1
            time.sleep(pause)


def language_model_from(settings: Settings) -> LanguageModel | None:
    """The language model that `settings` name; None where they name none, or lack a part of it."""
    key = settings.llm_api_key
    return _model(settings, "HINDSIGHT_LLM", settings.llm_base_url, key.get_secret_value() if key else None, "")


def judge_model_from(settings: Settings) -> LanguageModel | None:
    """The language model that judges: what `settings` name for it, and for the rest what they name for distilling.

    A key goes to no other address than the one that it was given for.
    """
    own = settings.judge_base_url
    key = settings.judge_api_key or (None if own else settings.llm_api_key)
    address = own or settings.llm_base_url
    secret = key.get_secret_value() if key else None
    return _model(settings, "HINDSIGHT_JUDGE", address, secret, settings.judge_model or "")


def _model(
    settings: Settings, prefix: str, base_url: str | None, key: str | None, own_name: str
) -> LanguageModel | None:
    name = own_name or settings.llm_model
    if not name or not (base_url or key) or is_switched_off(settings.llm_provider):
        return None
    endpoint = ModelEndpoint(prefix, base_url=base_url, api_key=key, model=name, timeout=settings.llm_timeout)
    return LanguageModel(
        endpoint,
        timeout=settings.llm_timeout,
        retries=settings.llm_retries,
        pace=pace_of(endpoint.place, settings.llm_concurrency, settings.llm_calls_per_minute),
    )


@cache
def _abilities(place: str) -> _Abilities:
    return _Abilities()


def _response_format(mode: int, schema: Mapping[str, Any]) -> dict[str, Any]:
    if MODES[mode] == "text":
        return {}
    named = {"json_schema": {"name": "answer", "strict": True, "schema": schema}} if mode == 0 else {}
    return {"response_format": {"type": MODES[mode], **named}}


def _content(answered: Any) -> str | None:
    """What the first choice of a completion says."""
    try:
        said = answered["choices"][0]["message"]["content"]
    except (TypeError, KeyError, IndexError):
        return None
    return said if isinstance(said, str) else None


def _chosen(said: str, first: str, keys: set[str]) -> tuple[dict[str, Any] | None, bool]:
    """The first object with a key that was asked for, and whether it is cut off; else a list, as the first property."""
    values = list(json_values(said))
    for value, is_cut in values:
        if isinstance(value, dict) and keys & set(value):
            return value, is_cut
    for value, is_cut in values:
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return {first: value}, is_cut
    return ({first: []} if _NOTHING.fullmatch(said) else None), False


def _usage(answered: Any, body: Mapping[str, Any], said: str) -> Usage:
    usage = answered.get("usage") if isinstance(answered, dict) else None
    counted = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    texts = ["".join(message["content"] for message in body["messages"]), said]
    return Usage(
        *(
            given if type(given) is int and 0 <= given < 2**31 else _estimated(text)
            for given, text in zip(counted, texts, strict=True)
        )
    )


def _estimated(text: str) -> int:
    """About how many tokens a text has: a character of Chinese, Japanese or Korean, or four others, are one."""
    wide = sum(character >= "\u2e80" for character in text)
    return wide + (len(text) - wide + 3) // 4
