"""Distilling by a language model: what it is told of a session, and what it found as the database takes it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from anyio.to_thread import run_sync

from hindsight.client import AsyncHindsight
from hindsight.distiller import Distiller, Known, Turn
from hindsight.results import ClaimedSession

SECONDS = 120.0
"""How long the model may take for a session."""
MOST_KNOWN = 12
"""Memories that it is shown, so that it says which are told again, and which hold no more."""
_LONGEST_QUERY = 2000  # characters of the turns that those are looked up by


async def by_model(
    client: AsyncHindsight, distiller: Distiller, session: ClaimedSession
) -> tuple[list[dict[str, Any]], str | None]:
    """What a model finds in a session's turns, as `distil` takes it, and its summary where the session ends.

    Raises EndpointFailure.
    """
    turns = _turns(session.turns)
    said = "\n".join(turn.content for turn in turns)[-_LONGEST_QUERY:]
    owner = client.acting_for(session.owner)
    similar = await owner.recall(session.bank_name, said, top_k=MOST_KNOWN) if said.strip() else []
    known = [Known(memory.memory_id, memory.content, memory.type, memory.slot) for memory in similar]
    before = _turns(session.before)
    found = await run_sync(lambda: distiller.distil(turns, before, known, is_ending=session.is_ending, within=SECONDS))
    context = {turn.sequence: previous.content for previous, turn in itertools.pairwise([*before, *turns])}
    memories = [
        {
            **{name: value for name, value in dataclasses.asdict(memory).items() if value is not None},
            "context": context.get(min(memory.turns, default=0)),
        }
        for memory in found.memories
    ]
    return memories, found.summary


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
