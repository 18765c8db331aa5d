"""Distilling by a language model: what it is told of a session, and what it found as the database takes it."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hindsight.client import AsyncHindsight
from hindsight.distiller import Distiller, Known, Turn
from hindsight.errors import EmbeddingError, ModelMismatch
from hindsight.model_endpoint import EndpointFailure, Usage, in_the_background
from hindsight.results import ClaimedSession, Recalled

log = logging.getLogger("hindsight.worker")

SECONDS = 120.0
"""How long the model may take for a session."""
MOST_KNOWN = 12
"""Memories that it is shown, so that it says which are told again, and which hold no more."""
_LONGEST_QUERY = 2000  # characters of the turns that those are looked up by


async def by_model(
    client: AsyncHindsight, distiller: Distiller, session: ClaimedSession, *, budget: int | None = None
) -> tuple[list[dict[str, Any]], str | None]:
    """What a model finds in a session's turns, as `distil` takes it, and its summary where the session ends.

    budget: tokens that the bank may use in a day. What the call used is counted, also where it fails. Raises
    EndpointFailure, also where the budget is spent.
    """
    owner = client.acting_for(session.owner)
    if await owner.tokens_left(session.bank_name, budget) == 0:
        raise EndpointFailure(
            f"the {budget} tokens of today are used up", "HINDSIGHT_LLM_DAILY_TOKENS sets how many", is_temporary=True
        )
    turns, before = _turns(session.turns), _turns(session.before)
    said = "\n".join(turn.content for turn in turns)[-_LONGEST_QUERY:]
    similar = await _similar(owner, session, said) if said.strip() else []
    known = [Known(memory.memory_id, memory.content, memory.type, memory.slot) for memory in similar]
    try:
        asked = in_the_background(
            lambda: distiller.distil(turns, before, known, is_ending=session.is_ending, within=SECONDS)
        )
        found = await asyncio.wrap_future(asked)
    except EndpointFailure as failure:
        used = failure.usage or Usage()
        await _count(owner, distiller, session, 1, used.prompt_tokens, used.completion_tokens, failures=1)
        raise
    await _count(owner, distiller, session, found.calls, found.prompt_tokens, found.completion_tokens)
    for refusal in found.refused:
        log.warning("of what a model found in a session of %s: %s", session.bank_name, refusal)
    context = {turn.sequence: previous.content for previous, turn in itertools.pairwise([*before, *turns])}
    memories = [
        {
            **{name: value for name, value in dataclasses.asdict(memory).items() if value is not None},
            "context": context.get(min(memory.turns, default=0)),
        }
        for memory in found.memories
    ]
    return memories, found.summary


async def _similar(owner: AsyncHindsight, session: ClaimedSession, said: str) -> Sequence[Recalled]:
    """The memories that are about the same; by words alone where the embedding model is another one, or away."""
    if owner.embedder is not None and session.model in (None, owner.embedder.model):
        try:
            return await owner.recall(session.bank_name, said, top_k=MOST_KNOWN)
        except (EmbeddingError, ModelMismatch) as error:
            log.warning("known memories of %s are looked up by their words: %s", session.bank_name, error)
    owner.embedder = None  # of this copy of the client
    return await owner.recall(session.bank_name, said, top_k=MOST_KNOWN)


async def _count(
    owner: AsyncHindsight,
    distiller: Distiller,
    session: ClaimedSession,
    calls: int,
    prompt_tokens: int,
    completion_tokens: int,
    failures: int = 0,
) -> None:
    if calls:
        await owner.note_usage(
            session.bank_name,
            "distil",
            distiller.model,
            calls=calls,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            failures=failures,
        )


def _turns(told: Sequence[dict[str, Any]]) -> list[Turn]:
    return [
        Turn(
            sequence=turn["sequence"],
            role=turn["role"],
            content=turn["content"],
            occurred_at=datetime.fromisoformat(turn["occurred_at"]) if "occurred_at" in turn else None,
        )
        for turn in told
    ]
