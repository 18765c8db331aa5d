"""Reflecting on a bank: by a language model where there is one, and by rules; bounded in time and tokens."""

from __future__ import annotations

import asyncio
import logging
import time

from hindsight.client import AsyncHindsight
from hindsight.errors import HindsightError
from hindsight.model_endpoint import EndpointFailure, Usage, in_the_background
from hindsight.reflector import Proposed, Reflector
from hindsight.results import Insight, ToReflect

log = logging.getLogger("hindsight.worker")

PURPOSE = "reflect"
"""What the calls are counted as in the bank's usage."""
SECONDS = 120.0
"""How long reflecting on a bank may take; what is left is for the next time."""


async def reflect(
    client: AsyncHindsight, bank: str, reflector: Reflector | None = None, *, budget: int | None = None
) -> tuple[list[Insight], list[str]]:
    """Reflects on what is new in a bank, and returns what became of each insight, and what went wrong.

    client: acts for whoever may write there. budget: tokens that the bank may use in a day. What failed for a time is
    looked at again the next time, by the model: rules go on without it.
    """
    deadline = time.monotonic() + SECONDS
    found, problems = await _by_model(client, bank, reflector, budget, deadline) if reflector else ([], [])
    while True:
        insights = await client.reflect(bank)
        found += [insight for insight in insights if insight.outcome != "more"]
        if not insights or insights[-1].outcome != "more":
            break
        if time.monotonic() > deadline:
            problems.append("the time is over: the rest is for the next time")
            break
    return found, problems


async def _by_model(
    client: AsyncHindsight, bank: str, reflector: Reflector, budget: int | None, deadline: float
) -> tuple[list[Insight], list[str]]:
    """What a model concludes, group by group, until nothing is left, or the time or the tokens are."""
    found: list[Insight] = []
    problems: list[str] = []
    while time.monotonic() < deadline:
        shown = await client.to_reflect(bank)
        if shown.groups:
            if await client.tokens_left(bank, budget) == 0:
                problems.append(f"the {budget} tokens of today are used up: HINDSIGHT_LLM_DAILY_TOKENS sets how many")
                return found, problems
            try:
                proposed = await _ask(client, bank, reflector, shown, max(0.001, deadline - time.monotonic()))
            except EndpointFailure as failure:
                problems.append(str(failure))
                if failure.is_temporary or failure.status is not None:
                    return found, problems  # they are shown again, when it answers
                proposed = Proposed()  # an answer that is none: the same question would have the same
            problems += proposed.refused
            for one in proposed.proposals:
                try:
                    kept = await client.propose_insight(
                        bank, one.content, one.derived_from, confidence=one.confidence, tags=one.tags
                    )
                except HindsightError as error:  # of this one alone
                    problems.append(f"not kept, {error}: {one.content}")
                    continue
                if kept.outcome == "refused":
                    problems.append(f"not kept, {'; '.join(kept.reasons)}: {one.content}")
                elif kept.outcome != "known":
                    found.append(kept)
        if shown.until is not None:
            await client.note_reflection(bank, shown.until)
        if shown.is_done or shown.until is None:
            break
    return found, problems


async def _ask(client: AsyncHindsight, bank: str, reflector: Reflector, shown: ToReflect, within: float) -> Proposed:
    usage, failures = Usage(), 0
    try:
        proposed = await asyncio.wrap_future(in_the_background(lambda: reflector.reflect(shown.groups, within)))
        usage = proposed.usage
        return proposed
    except EndpointFailure as failure:
        usage, failures = failure.usage or Usage(), 1
        raise
    finally:
        used = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        await client.note_usage(bank, PURPOSE, reflector.model, **used, failures=failures)
