"""An endpoint of a model in the style of OpenAI's: its address, key, time limit and retries, and how a call fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import openai

Result = TypeVar("Result")

OPENAI_BASE_URL = "https://api.openai.com/v1"
_LATE_CALLS = 32  # calls with a limit that may go on at once, those that nobody waits for any more included

_LONGEST_WAIT = 86400.0  # seconds that an endpoint may ask to wait

_free = threading.BoundedSemaphore(_LATE_CALLS)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of calls: as the endpoint counts them, else estimated from the length of the texts."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


class EndpointFailure(Exception):  # noqa: N818
    """A call of an endpoint failed. The message holds nothing that the endpoint said; `quoted` does.

    status: HTTP's, where one came. is_temporary: the same call may succeed later. retry_after: not before so many
    seconds. usage: the tokens that were spent on it, where some were.
    """

    def __init__(
        self,
        what: str,
        advice: str = "",
        *,
        said: str = "",
        status: int | None = None,
        is_temporary: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(_sentence(what, advice))
        self.said = said
        self.status = status
        self.is_temporary = is_temporary
        self.retry_after = retry_after
        self.usage: Usage | None = None
        self.advice = advice
        self.quoted = _sentence(f"{what}: {said}" if said else what, advice)


class ModelEndpoint:
    """One model at an OpenAI-compatible endpoint; safe for several threads. The SDK is loaded by the first call.

    `setting`: how the names of its settings begin, for errors: HINDSIGHT_EMBEDDING. `base_url` None is OpenAI's;
    without a key others get a placeholder. `timeout` in seconds for each try; `retries` more tries after a timeout, a
    connection error, 429 or 5xx. `place` names model and address without what is secret in the URL.
    """

    def __init__(
        self,
        setting: str,
        *,
        base_url: str | None,
        api_key: str | None,
        model: str | None,
        timeout: float,
        retries: int = 0,
    ) -> None:
        self.model = model
        self._setting = setting
        self._base_url = base_url or OPENAI_BASE_URL
        self._key = api_key
        self._timeout = timeout
        self._retries = retries
        address = urlsplit(self._base_url)
        at = f"{address.hostname}{f':{address.port}' if address.port else ''}{address.path}"
        self.place = f"{model} at {at}" if model else at

    def post(self, path: str, body: dict[str, Any], *, within: float | None = None) -> object:
        """The JSON that the endpoint answers. Raises EndpointFailure.

        within: seconds that the whole call may take, with one try and whatever hangs: a name that is not resolved, an
        answer that comes in drops. The caller goes on then; the call itself ends by its own time limit.
        """
        if within is None:
            return self._post(self._client, path, body, self._timeout, f"Is {self._setting}_TIMEOUT long enough?")
        client = self._client.with_options(timeout=within, max_retries=0)
        try:
            return _in_time(within, lambda: self._post(client, path, body, within, ""))
        except TimeoutError:
            raise self._late(within, "") from None

    def without_key(self, message: str) -> str:
        """What somebody said, cut to 300 characters."""
        return (message.replace(self._key, "***") if self._key else message)[:300]

    @cached_property
    def _client(self) -> openai.OpenAI:
        import openai  # a second to import, which only those who use it should pay

        return openai.OpenAI(
            base_url=self._base_url,
            api_key=self._key or "no-key",
            timeout=self._timeout,
            max_retries=self._retries,
        )

    def _post(self, client: openai.OpenAI, path: str, body: dict[str, Any], seconds: float, advice: str) -> object:
        import openai

        try:
            return client.post(path, cast_to=object, body=body)
        except openai.APITimeoutError:
            raise self._late(seconds, advice) from None
        except openai.APIConnectionError as error:
            raise EndpointFailure(
                f"{self.place} can't be reached",
                f"Is {self._setting}_BASE_URL right, and the server running?",
                said=self.without_key(str(error.__cause__ or error)),
                is_temporary=True,
            ) from None
        except openai.APIStatusError as error:
            raise self._refusal(error.status_code, error.message, _retry_after(error.response.headers)) from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise EndpointFailure(
                f"{self.place} gave an answer that can't be read", said=self.without_key(str(error))
            ) from None

    def _late(self, seconds: float, advice: str) -> EndpointFailure:
        return EndpointFailure(f"{self.place} did not answer within {seconds:g} seconds", advice, is_temporary=True)

    def _refusal(self, status: int, message: str, retry_after: float | None) -> EndpointFailure:
        is_temporary = status in (408, 409, 429) or status >= 500
        match status:
            case 401 | 403:
                advice = f"Check {self._setting}_API_KEY"
            case 404:
                advice = f"Check {self._setting}_BASE_URL (it ends with /v1 mostly) and {self._setting}_MODEL"
            case 429:
                advice = "Too many calls, or no quota left: try again later"
            case _:
                advice = "Try again later" if status >= 500 else ""
        return EndpointFailure(
            f"{self.place} answered {status}",
            advice,
            said=self.without_key(message),
            status=status,
            is_temporary=is_temporary,
            retry_after=retry_after,
        )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an endpoint asks to wait: a number, or until a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return min(max(seconds, 0.0), _LONGEST_WAIT) if seconds == seconds else None  # it may be NaN
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - datetime.now(UTC)).total_seconds(), 0.0), _LONGEST_WAIT)


def in_the_background(call: Callable[[], Result]) -> Future[Result]:
    """What a call will return or raise, from a thread that no exit waits for: an endpoint may hang for minutes."""
    outcome: Future[Result] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="hindsight-endpoint", daemon=True).start()
    return outcome


def _in_time(seconds: float, call: Callable[[], Result]) -> Result:
    """What `call` returns or raises, or TimeoutError after `seconds`. It runs in a thread that no exit waits for."""
    if not _free.acquire(timeout=seconds):
        raise TimeoutError
    outcome = in_the_background(call)
    outcome.add_done_callback(lambda _: _free.release())
    return outcome.result(seconds)


def _sentence(what: str, advice: str) -> str:
    return f"{what}. {advice}" if advice else what
