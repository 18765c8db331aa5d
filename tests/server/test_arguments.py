"""Whatever a client sends, it gets an answer or an error of ours: nothing else ever comes out."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import new_bank

from hindsight.arguments import perform
from hindsight.config import Settings
from hindsight.errors import HindsightError
from hindsight.results import Memory, Recalled, Stored
from hindsight.service import MemoryService

TIMES = [
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-03-01",
    "0001-01-01",
    "9999-12-31",
    "2026-03-01T09:30Z",
    "-1",
    "20260301",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, -(2**31) - 1, 10**400])
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20)
    | st.sampled_from([*TIMES, "5", "true", "[]", "{}", "a,b", '["a"]', '{"a": 1}', "fact", "2026-01-01/", "../.."]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sent(call: Any) -> st.SearchStrategy[dict[str, Any]]:
    names = [*inspect.signature(call).parameters, "time_range", "type_filter", "memory_type", "limit"]
    return st.dictionaries(
        st.sampled_from([name for name in names if name not in ("self", "bank")]), VALUES, max_size=5
    )


@pytest.fixture(scope="session")
async def service(shared_url: str) -> Any:
    shared = Settings(database_url=shared_url, embedding_provider="none", bank=new_bank())
    async with MemoryService(shared).opened() as opened:
        yield opened


@EXAMPLES
@given(arguments=sent(MemoryService.recall))
async def test_recall_answers_or_refuses_anything(service, arguments):
    try:
        found = await perform(service.recall, "recall", arguments)
    except HindsightError as error:
        assert_sentence(error)
    else:
        assert all(isinstance(memory, Recalled) and 0 <= memory.score <= 1 for memory in found.memories)
        assert found.block.count("[m:") == len(found.citations)


@EXAMPLES
@given(arguments=sent(MemoryService.store), content=st.text(st.characters(exclude_categories=()), max_size=30))
async def test_store_keeps_or_refuses_anything_and_a_text_comes_back_as_it_was(service, arguments, content):
    arguments["content"] = content
    try:
        stored = await perform(service.store, "store", arguments)
    except HindsightError as error:
        assert_sentence(error)
    else:
        assert isinstance(stored, Stored)
        if stored.memory_id is None:
            assert (stored.outcome, len(stored.reasons)) == ("skipped", 1)
            return
        kept = await service.get(str(stored.memory_id))
        assert kept.content == content or stored.outcome == "merged"


@EXAMPLES
@given(arguments=sent(MemoryService.update))
async def test_update_changes_or_refuses_anything(service, arguments):
    stored = await service.store("the one that changes")
    arguments["memory_id"] = str(stored.memory_id)
    try:
        changed = await perform(service.update, "update", arguments)
    except HindsightError as error:
        assert_sentence(error)
    else:
        assert isinstance(changed, Memory)
        json.dumps(changed.metadata, allow_nan=False)
    await service.forget(str(stored.memory_id), "asked to")


def assert_sentence(error: HindsightError) -> None:
    """It is about the value, not about the database being down."""
    assert type(error).__name__ not in ("DatabaseUnavailable", "DatabaseError"), error
