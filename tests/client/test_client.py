"""The Python clients: typed results, one exception for each SQLSTATE, the same surface in both."""

import asyncio
import inspect
import math
import re
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hindsight import (
    AsyncHindsight,
    Conflict,
    DatabaseUnavailable,
    EmbeddingError,
    Hindsight,
    InvalidArgument,
    InvalidContent,
    ModelMismatch,
    Settings,
    UnknownBank,
    UnknownMemory,
    calls,
    errors,
    sync_caller,
    sync_client,
    sync_operations,
)
from hindsight.database import migrate
from tests.conftest import Database
from tests.endpoint import Reply, ScriptedEndpoint
from tests.pooler import TransactionPooler

CIRCLE: dict[str, Any] = {}
CIRCLE["itself"] = CIRCLE
WORDS_ONLY = Settings(embedding_provider="none")


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, shared_url: str) -> Iterator[Any]:
    """Both clients behind one face: the async one is driven by a loop of its own."""
    settings = Settings(embedding_provider="local", pool_size=4)
    if request.param == "sync":
        with Hindsight.connect(shared_url, settings=settings) as memory:
            yield memory
        return
    with asyncio.Runner() as runner:
        memory = runner.run(AsyncHindsight.connect(shared_url, settings=settings))
        yield _Driven(memory, runner)
        runner.run(memory.close())


class _Driven:
    def __init__(self, memory: AsyncHindsight, runner: asyncio.Runner) -> None:
        self._memory, self._runner = memory, runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._memory, name)
        return lambda *args, **kwargs: self._runner.run(method(*args, **kwargs))


@pytest.fixture
def own_bank(client: Any) -> str:
    name = f"bank-{uuid.uuid4().hex[:10]}"
    client.create_bank(name)
    return name


def test_a_memory_goes_through_its_life(client: Any, own_bank: str) -> None:
    stored = client.store(own_bank, "用户使用 Docker Desktop on Windows", tags=["docker"], metadata={"用": [1, None]})
    assert (stored.outcome, stored.reasons) == ("stored", [])
    (found,) = client.recall(own_bank, "docker")
    assert found.memory_id == stored.memory_id
    assert found.channels == ["vector", "text"]
    assert 0 < found.score <= found.similarity <= 1
    changed = client.update(own_bank, stored.memory_id, content="用户使用 Docker Desktop on Mac", reason="new laptop")
    assert (changed.version, changed.embedded, changed.metadata) == (2, True, {"用": [1, None]})
    assert client.forget(own_bank, stored.memory_id, "asked to").outcome == "forgotten"
    assert client.recall(own_bank, "docker") == []
    assert client.restore(own_bank, str(stored.memory_id)).state == "live"
    assert [event.action for event in client.history(own_bank, stored.memory_id)] == [
        "stored", "updated", "forgotten", "restored",
    ]  # fmt: skip
    assert client.log_turn(own_bank, "s1", "user", "你好", tool_calls=[{"name": "x"}]) == 1


def test_what_is_doubted_waits_for_a_verdict(client: Any, own_bank: str) -> None:
    guess = client.store(own_bank, "用户可能在用 Linux", source="inferred", confidence=0.4)
    wrong = client.store(own_bank, "the user may be in Oslo", source="inferred", confidence=0.4)
    assert [memory.memory_id for memory in client.pending(own_bank)] == [wrong.memory_id, guess.memory_id]
    assert [memory.memory_id for memory in client.pending(own_bank, 1)] == [wrong.memory_id]
    confirmed = client.confirm(own_bank, guess.memory_id, "asked")
    assert (confirmed.state, confirmed.type, confirmed.confirmations) == ("live", "fact", 1)
    assert client.reject(own_bank, wrong.memory_id).outcome == "forgotten"
    assert client.reject(own_bank, wrong.memory_id).outcome == "already forgotten"
    assert client.pending(own_bank) == []
    todo = client.store(own_bank, "renew the permit", type="todo")
    done = client.complete(own_bank, f"[m:{todo.memory_id}]", "renewed")
    assert done.completed_at is not None
    assert client.complete(own_bank, todo.memory_id).completed_at == done.completed_at
    assert client.note_recall(own_bank, [todo.memory_id, uuid.uuid4()]) == 1
    assert client.note_recall(own_bank, []) == 0


@pytest.mark.parametrize("ttl", [timedelta(days=7), 7 * 86400, 604800.0, "7 days", "P7D", "1 week"])
def test_a_time_to_live_is_a_timedelta_seconds_or_words(client: Any, own_bank: str, ttl: Any) -> None:
    stored = client.store(own_bank, "in Tokyo until Friday", ttl=ttl)
    ends = client.get(own_bank, stored.memory_id).expires_at
    assert abs(ends - datetime.now(UTC) - timedelta(days=7)) < timedelta(hours=2)  # a zone's clocks may change


def test_a_policy_of_the_bank_decides_how_long_a_type_lives_and_who_wins_a_slot(client: Any, own_bank: str) -> None:
    client.set_policy(own_bank, "fact", ttl=timedelta(hours=1, microseconds=1), on_conflict="history", weight=0.5)
    (fact,) = [policy for policy in client.policies(own_bank) if policy.type == "fact"]
    assert (fact.ttl, fact.on_conflict, fact.weight) == (timedelta(hours=1, microseconds=1), "history", 0.5)
    client.set_policy(own_bank, "fact", ttl=0)
    (fact,) = [policy for policy in client.policies(own_bank) if policy.type == "fact"]
    assert (fact.ttl, fact.on_conflict) == (timedelta(), "history")
    for place, day in (("Berlin", "2026-01-01"), ("Kiel", "2026-03-01")):
        client.store(own_bank, f"Ada lives in {place}", slot="ada.home", confidence=0.9, occurred_at=day)
    assert [m.content for m in client.recall(own_bank, "Ada lives")] == ["Ada lives in Kiel"]
    (then,) = client.recall(own_bank, "Ada lives", valid_at="2026-02-01")
    assert (then.content, then.valid_to) == ("Ada lives in Berlin", datetime(2026, 3, 1, tzinfo=UTC))
    block = client.recall_context(own_bank, "Ada lives", valid_at="2026-02-01").block
    assert "true until 2026-03-01: Ada lives in Berlin\n" in block


def test_a_memory_names_the_one_that_it_replaces_and_those_that_it_was_made_of(client: Any, own_bank: str) -> None:
    old = client.store(own_bank, "the office is in Lyon")
    one, other = (client.store(own_bank, content) for content in ("Ada sails", "Ada swims"))
    new, summary = client.store_many(
        own_bank,
        [
            {"content": "the office moved to Nantes", "supersedes": old.memory_id},
            {"content": "Ada likes the sea", "derived_from": f"{one.memory_id}, {other.memory_id}"},
        ],
    )
    assert (new.outcome, new.related_id) == ("superseding", old.memory_id)
    linked = client.neighbours(own_bank, summary.memory_id)
    assert {link.memory_id for link in linked} == {one.memory_id, other.memory_id}
    client.forget(own_bank, one.memory_id, "asked to")
    doubted = client.get(own_bank, summary.memory_id)
    assert (doubted.state, doubted.pending_reason) == ("pending", "it stands on a forgotten memory")
    client.restore(own_bank, one.memory_id)
    assert client.get(own_bank, summary.memory_id).state == "live"
    again = client.store(own_bank, "Ada sails", derived_from=[one.memory_id])
    assert (again.outcome, again.memory_id) == ("merged", one.memory_id)


def test_memories_are_forgotten_by_filter_or_all_and_the_past_does_not_come_back(client: Any, own_bank: str) -> None:
    for day in (1, 2, 3):
        client.store(own_bank, f"第 {day} 天下雨", tags="Weather", occurred_at=f"2026-03-0{day}", source="tool")
    client.store(own_bank, "端口是 22", source="user")
    filters: dict[str, Any] = {"tags": ["weather"], "since": "2026-03-02", "until": "2026-03-02"}
    (listed,) = client.forget_matching(own_bank, "no use", **filters, dry_run=True)
    assert (listed.outcome, listed.content) == ("would be forgotten", "第 2 天下雨")
    assert (listed.tags, listed.source, listed.type) == (["weather"], "tool", "fact")
    assert len(client.recall(own_bank)) == 4
    (forgotten,) = client.forget_matching(own_bank, "no use", **filters)
    assert (forgotten.memory_id, forgotten.outcome) == (listed.memory_id, "forgotten")
    again = client.store(own_bank, "第 2 天下雨", occurred_at="2026-03-02")
    assert (again.memory_id, again.outcome) == (None, "skipped")
    assert "what was said before does not come back" in again.reasons[0]
    assert client.store(own_bank, "第 2 天下雨").outcome == "stored"
    assert client.forget_bank(own_bank, "the end") == 4
    assert client.recall(own_bank) == []


def test_maintain_puts_away_all_that_is_due_in_batches(client: Any, own_bank: str, db: Database) -> None:
    client.store_many(own_bank, [{"content": f"code {n}", "ttl": "1 hour", "importance": 0.5} for n in range(150)])
    client.store(own_bank, "this one stays")
    bank_id = db.value("SELECT bank_id FROM hindsight.bank WHERE name = %s", (own_bank,))
    db.rows(
        "UPDATE hindsight.memory SET expires_at = now() - interval '1 s' WHERE expires_at IS NOT NULL AND bank_id = %s",
        (bank_id,),
    )
    assert client.sweep(own_bank, 10) == {"expired": 10}
    assert client.maintain(own_bank)["expired"] == 140
    assert client.sweep(own_bank) == {}
    (status,) = [row for row in client.status() if row.bank == own_bank]
    assert (status.live, status.archived, status.expired) == (1, 150, 0)


def test_many_memories_are_stored_in_their_order_or_not_at_all(client: Any, own_bank: str) -> None:
    texts = ["zebra", "apple", "汇率", "mango"]
    stored = client.store_many(own_bank, [{"content": text} for text in texts])
    assert [client.get(own_bank, result.memory_id).content for result in stored] == texts
    with pytest.raises(InvalidArgument):
        client.store_many(own_bank, [{"content": "fine"}, {"content": "bad", "confidence": 3}])
    assert {m.content for m in client.recall(own_bank)} == set(texts)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda c, b: c.recall("nobody", "x"), UnknownBank, "unknown bank 'nobody'"),
        (lambda c, b: c.get(b, uuid.uuid4()), UnknownMemory, "has no memory"),
        (lambda c, b: c.get(b, "42"), InvalidArgument, "memory_id is not a UUID: '42'"),
        (lambda c, b: c.forget(b, "x" * 36, "why"), InvalidArgument, "is not a UUID"),
        (lambda c, b: c.store(b, ""), InvalidContent, "content is empty"),
        (lambda c, b: c.store(b, "x" * 100_000), InvalidContent, "at most 10000"),
        (lambda c, b: c.store(b, "a\0b"), InvalidContent, r"content holds a NUL character \(U\+0000\) at offset 1"),
        (lambda c, b: c.store(b, "a\ud83db"), InvalidContent, r"content holds a lone surrogate \(U\+D83D\) at offset 1"),
        (lambda c, b: c.store(b, "x", metadata={"k": ["\0"]}), InvalidContent, r"metadata holds a NUL"),
        (lambda c, b: c.store(b, "x", tags=["\udc00"]), InvalidContent, r"tags holds a lone surrogate"),
        (lambda c, b: c.recall(b, "a\0b"), InvalidContent, r"query holds a NUL"),
        (lambda c, b: c.log_turn(b, "s", "user", "\0"), InvalidContent, r"content holds a NUL"),
        (lambda c, b: c.recall(b, "x", limit=3), InvalidArgument, "Did you mean top_k"),
        (lambda c, b: c.recall(b, "x", min_scor=0.3), InvalidArgument, "Did you mean min_score"),
        (lambda c, b: c.store(b, "x", user_id="bob"), InvalidArgument, "Did you mean bank"),
        (lambda c, b: c.store_many(b, [{"text": "x"}]), InvalidArgument, "Did you mean content"),
        (lambda c, b: c.recall(b, "x", top_k=0), InvalidArgument, "between 1 and 1000"),
        (lambda c, b: c.recall(b, "x", since="yesterday"), InvalidArgument, "since is not a time: 'yesterday'"),
        (lambda c, b: c.recall(b, "x", since="0001-01-01T00:00:00+14:00"), InvalidArgument, "since is not a time"),
        (lambda c, b: c.recall(b, "x", top_k=10**30), InvalidArgument, "top_k is out of range"),
        (lambda c, b: c.recall(b, "x", top_k=1.5), InvalidArgument, "top_k must be a whole number, got 1.5"),
        (lambda c, b: c.store(b, 5), InvalidArgument, "content must be a text, got 5"),
        (lambda c, b: c.store_many(b, [{"content": None}]), InvalidArgument, "content must be a text"),
        (lambda c, b: c.store(b, "x", tags="[" * 100_000), InvalidContent, "tags are"),
        (lambda c, b: c.store(b, "x", type="opinion"), InvalidArgument, "Types are decision"),
        (lambda c, b: c.store(b, "x", ttl="soon"), InvalidArgument, 'type interval: "soon". A length of time is .*7 days'),
        (lambda c, b: c.store(b, "x", ttl="300000000 years"), InvalidArgument, "out of range.*7 days"),
        (lambda c, b: c.store(b, "x", confidence="high"), InvalidArgument, "confidence must be a number, got 'high'. .*0.8"),
        (lambda c, b: c.store(b, "x", importance=True), InvalidArgument, "importance must be a number, got True"),
        (lambda c, b: c.recall(b, "x", min_score=[1]), InvalidArgument, r"min_score must be a number, got \[1\]"),
        (lambda c, b: c.recall(b, "x", top_k=True), InvalidArgument, "top_k must be a whole number, got True"),
        (lambda c, b: c.store(b, "x", metadata={"a": [1, {"b": {2}}]}), InvalidArgument, r"metadata\.a\[1\]\.b is a set, .*no form.*Give"),
        (lambda c, b: c.store(b, "x", metadata={"raw": b"1"}), InvalidArgument, "metadata.raw is a bytes"),
        (lambda c, b: c.store(b, "x", metadata={"e": object()}), InvalidArgument, "metadata.e is a object"),
        (lambda c, b: c.store(b, "x", metadata={"n": math.nan}), InvalidArgument, "metadata.n is the number nan"),
        (lambda c, b: c.store(b, "x", metadata={"价格": math.inf}), InvalidArgument, "metadata.价格 is the number inf"),
        (lambda c, b: c.store(b, "x", metadata={1: 2}), InvalidArgument, "metadata has a key that is no text: 1"),
        (lambda c, b: c.store(b, "x", metadata=CIRCLE), InvalidArgument, "metadata is nested too deep, or holds itself"),
        (lambda c, b: c.update(b, uuid.uuid4(), metadata={"s": {1}}), InvalidArgument, "metadata.s is a set"),
        (lambda c, b: c.recall(b, "x", metadata={"s": {1}}), InvalidArgument, "metadata.s is a set"),
        (lambda c, b: c.log_turn(b, "s", "user", "x", tool_calls=[object()]), InvalidArgument, r"tool_calls\[0\] is a object"),
        (lambda c, b: c.set_tags(b, aliases={"a": {"b"}}), InvalidArgument, "aliases.a is a set"),
        (lambda c, b: c.forget(b, None, "why"), InvalidArgument, "forget needs memory_id, got None"),
        (lambda c, b: c.forget(None, uuid.uuid4(), "why"), InvalidArgument, "forget needs bank, got None"),
        (lambda c, b: c.link(b, uuid.uuid4(), None), InvalidArgument, "link needs to_id, got None"),
        (lambda c, b: c.diff(b, None), InvalidArgument, "diff needs since, got None"),
        (lambda c, b: c.set_policy(b, None), InvalidArgument, "set_policy needs type, got None"),
        (lambda c, b: c.log_turn(b, None, "user", "x"), InvalidArgument, "log_turn needs session_id, got None"),
        (lambda c, b: c.should_recall(b, None), InvalidArgument, "should_recall needs message, got None"),
        (lambda c, b: c.note_recall(b, None), InvalidArgument, "note_recall needs memory_ids, got None"),
        (lambda c, b: c.store(b, "x", ttl=float("nan")), InvalidArgument, "ttl is not a length of time: nan"),
        (lambda c, b: c.store(b, "x", ttl=True), InvalidArgument, "ttl is not a length of time: True"),
        (lambda c, b: c.store(b, "x", ttl=timedelta(0)), InvalidArgument, "ttl must lie between"),
        (lambda c, b: c.store(b, "x", ttl="7 days", expires_at="2999-01-01"), InvalidArgument, "are two ends"),
        (lambda c, b: c.store(b, "x", supersedes="42"), InvalidArgument, "supersedes is not a UUID: '42'"),
        (lambda c, b: c.store(b, "x", supersedes=uuid.uuid4()), UnknownMemory, "has no memory"),
        (lambda c, b: c.store(b, "x", derived_from=["42"]), InvalidArgument, "derived_from is not a UUID: '42'"),
        (lambda c, b: c.store(b, "x", derived_from=uuid.uuid4()), UnknownMemory, "has no memory"),
        (lambda c, b: c.store(b, "x", replaces=uuid.uuid4()), InvalidArgument, "Did you mean supersedes"),
        (lambda c, b: c.forget(b, uuid.uuid4(), None), InvalidArgument, "forget needs a reason"),
        (lambda c, b: c.forget(b, uuid.uuid4(), " "), InvalidArgument, "forget needs a reason"),
        (lambda c, b: c.forget_matching(b, "", tags="a"), InvalidArgument, "forget_matching needs a reason"),
        (lambda c, b: c.forget_matching(b, "why"), InvalidArgument, "forget_matching needs a filter"),
        (lambda c, b: c.forget_matching(b, "why", tags=[]), InvalidArgument, "a filter of forget_matching is empty"),
        (lambda c, b: c.forget_matching(b, "why", types="opinion"), InvalidArgument, "unknown type 'opinion'"),
        (lambda c, b: c.forget_matching(b, "why", tag="a"), InvalidArgument, "Did you mean tags"),
        (lambda c, b: c.forget_matching(b, "why", tags="a", dry_run="no"), InvalidArgument, "must be true or false"),
        (lambda c, b: c.forget_bank("nobody", "why"), UnknownBank, "unknown bank"),
        (lambda c, b: c.erase_memory(b, uuid.uuid4(), ""), InvalidArgument, "erase_memory needs a reason"),
        (lambda c, b: c.erase_bank(b, None), InvalidArgument, "erase_bank needs a reason"),
        (lambda c, b: c.set_policy(b, "opinion", weight=0.5), InvalidArgument, "unknown type 'opinion'"),
        (lambda c, b: c.set_policy(b, "fact", on_conflict="toss"), InvalidArgument, "unknown policy 'toss'"),
        (lambda c, b: c.set_policy(b, "fact", ttl="-1 day"), InvalidArgument, "ttl must lie between 0"),
        (lambda c, b: c.set_policy(b, "fact", ttl="infinity"), InvalidArgument, "ttl must lie between 0"),
        (lambda c, b: c.pending(b, 0), InvalidArgument, "most must lie between"),
        (lambda c, b: c.sweep(b, most=1.5), InvalidArgument, "most must be a whole number"),
        (lambda c, b: c.note_recall(b, ["42"]), InvalidArgument, "memory_ids is not a UUID"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_value_and_the_way_out(
    client: Any, own_bank: str, call: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        call(client, own_bank)
    assert "SELECT" not in str(caught.value)
    assert client.recall(own_bank) == []


def test_no_argument_that_a_function_needs_can_be_left_out_as_none(db: Database) -> None:
    called = set(re.findall(r"\b(?:_rows|_value|_transaction|_tasks)\(\s*(?:\w+,\s*)?\"(\w+)\"", "".join(
        Path(str(module.__file__)).read_text() for module in (sync_client, sync_operations, sync_caller))))  # fmt: skip
    needed = {
        row["proname"]: row["needed"]
        for row in db.rows("""
            SELECT proname, proargnames[1:pronargs - pronargdefaults] AS needed FROM pg_proc
            WHERE pronamespace = 'hindsight'::regnamespace AND proname !~ '^_' AND pronargs > pronargdefaults""")
    }
    assert {"store", "forget", "diff", "resolve", "set_policy"} <= called
    for function in (
        called - {"cached_embedding", "cache_embedding", "register_model", "embed_memory"}
    ) & needed.keys():
        for argument in needed[function]:
            with pytest.raises(InvalidArgument, match=f"{function} needs {argument}, got None"):
                calls.call(function, {argument: None})


def test_times_and_ids_in_metadata_are_kept_as_their_text(client: Any, own_bank: str) -> None:
    at, identifier = datetime(2026, 3, 1, 9, 30, tzinfo=UTC), uuid.uuid4()
    given = {"at": at, "day": at.date(), "id": identifier, "list": (1, 2.5, True, None, {"键": "值"})}
    memory_id = client.store(own_bank, "x y z", metadata=given).memory_id
    assert client.get(own_bank, memory_id).metadata == {
        "at": at.isoformat(), "day": "2026-03-01", "id": str(identifier), "list": [1, 2.5, True, None, {"键": "值"}]
    }  # fmt: skip


def test_every_sqlstate_of_the_schema_has_its_own_exception(db: Database) -> None:
    sources = " ".join(row["prosrc"] or "" for row in db.rows(
        "SELECT prosrc FROM pg_proc WHERE pronamespace = 'hindsight'::regnamespace"))  # fmt: skip
    raised = {f"HM{number:03}" for number in range(1000) if f"'HM{number:03}'" in sources}
    assert raised == set(errors.BY_SQLSTATE)
    assert len(set(errors.BY_SQLSTATE.values())) == len(errors.BY_SQLSTATE)


@pytest.mark.parametrize(
    "since",
    [
        "2026-03-01", "2026-03-01T00:00:00", "2026-03-01T00:00:00Z", "2026-03-01T08:00:00+08:00", datetime(2026, 3, 1),
        datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=8))),
    ],
)  # fmt: skip
def test_a_time_without_a_zone_is_utc_and_one_with_a_zone_is_that_moment(
    client: Any, own_bank: str, since: Any
) -> None:
    client.store(own_bank, "before", occurred_at="2026-02-28T23:59:59Z")
    client.store(own_bank, "after", occurred_at="2026-03-01T00:00:00Z")
    (found,) = client.recall(own_bank, since=since)
    assert found.content == "after"
    assert found.occurred_at.utcoffset() is not None
    assert found.created_at.utcoffset() is not None


def test_a_day_as_the_end_of_a_range_is_the_whole_day(client: Any, own_bank: str) -> None:
    client.store(own_bank, "that evening", occurred_at="2026-03-31T22:00:00Z")
    client.store(own_bank, "the next day", occurred_at="2026-04-01T00:00:00Z")
    assert [found.content for found in client.recall(own_bank, until="2026-03-31")] == ["that evening"]


@pytest.mark.parametrize("tags", ["a,b", "a, b ,", '["a", "b"]', ["a", "b"], ("a", "b"), "a，b"])
def test_tags_are_taken_as_models_send_them(client: Any, own_bank: str, tags: Any) -> None:
    stored = client.store(own_bank, "x", tags=tags)
    assert client.get(own_bank, stored.memory_id).tags == ["a", "b"]
    assert len(client.recall(own_bank, all_tags=tags)) == 1


def test_the_two_clients_have_the_same_surface() -> None:
    def surface(cls: type) -> dict[str, inspect.Signature]:
        return {
            name.replace("__a", "__"): inspect.signature(member).replace(return_annotation=inspect.Signature.empty)
            for name, member in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_") or name in ("__aenter__", "__aexit__", "__enter__", "__exit__")
        }

    one, other = surface(AsyncHindsight), surface(Hindsight)
    assert one.keys() - other.keys() == {"session"}  # an agent's loop that writes behind is async
    del one["session"]
    assert one.keys() == other.keys()
    for name in one.keys() - {"__enter__", "__exit__"}:
        assert list(one[name].parameters) == list(other[name].parameters), name


def test_the_sync_client_is_what_its_generator_makes() -> None:
    from tools.generate_sync_client import MODULES, PACKAGE, generated

    for module in MODULES:
        made = (PACKAGE / f"sync_{module}.py").read_text(encoding="utf-8")
        assert generated(module) == made, "run: make generate"


class TestEmbeddings:
    def settings(self, endpoint: ScriptedEndpoint, model: str, **more: Any) -> Settings:
        return Settings(
            embedding_provider="openai",
            embedding_base_url=endpoint.url,
            embedding_model=model,
            embedding_retries=0,
            **more,
        )

    def test_another_model_than_the_banks_names_both_and_the_command_which_then_helps(self, shared_url: str) -> None:
        bank, model = f"bank-{uuid.uuid4().hex[:8]}", f"toy-{uuid.uuid4().hex[:6]}"
        with Hindsight.connect(shared_url, settings=Settings(embedding_provider="local")) as memory:
            memory.create_bank(bank)
            stored = memory.store(bank, "汇率 every night")
        with (
            ScriptedEndpoint(dimensions=12) as endpoint,
            Hindsight.connect(shared_url, settings=self.settings(endpoint, model)) as memory,
        ):
            for work in (lambda: memory.store(bank, "more"), lambda: memory.recall(bank, "汇率")):
                with pytest.raises(ModelMismatch) as caught:
                    work()
                assert "multilingual-e5-small-q4" in str(caught.value)
                assert model in str(caught.value)
                assert "hindsight reembed" in str(caught.value)
            assert memory.reembed(bank) == 1
            assert memory.get(bank, stored.memory_id).embedded
            assert memory.recall(bank, "汇率")[0].content == "汇率 every night"
            (status,) = [row for row in memory.status() if row.bank == bank]
            assert (status.model, status.dimensions, status.unembedded) == (model, 12, 0)

    @pytest.mark.parametrize(
        "reply",
        [
            Reply.vectors([[1.0] * 8]),
            Reply.vectors([[1.0] * 8, [1.0] * 7]),
            Reply.vectors([[1.0] * 8, [float("nan")] * 8]),
            Reply.vectors([[1.0] * 8, [0.0] * 8]),
            Reply.error(500),
            Reply(close=True),
        ],
    )
    def test_a_bad_answer_of_the_endpoint_stores_nothing(self, shared_url: str, reply: Reply) -> None:
        bank = f"bank-{uuid.uuid4().hex[:8]}"
        with (
            ScriptedEndpoint(dimensions=8) as endpoint,
            Hindsight.connect(
                shared_url, settings=self.settings(endpoint, f"toy-{uuid.uuid4().hex[:6]}", embedding_dimensions=8)
            ) as memory,
        ):
            memory.create_bank(bank)
            endpoint.replies.append(reply)
            with pytest.raises(EmbeddingError):
                memory.store_many(bank, [{"content": "one"}, {"content": "two"}])
            assert memory.recall(bank) == []
            assert len(memory.store_many(bank, [{"content": "one"}, {"content": "two"}])) == 2

    def test_without_a_provider_words_and_recency_still_answer(self, shared_url: str) -> None:
        bank = f"bank-{uuid.uuid4().hex[:8]}"
        with Hindsight.connect(shared_url, settings=WORDS_ONLY) as memory:
            memory.create_bank(bank)
            memory.store(bank, "外币汇率换算接口每天凌晨更新一次")
            (found,) = memory.recall(bank, "汇率换算")
            assert (found.channels, found.semantic) == (["text"], None)
            assert memory.recall(bank)[0].channels == ["recency"]
            assert memory.embed_pending(bank) == 0

    def test_what_sql_stored_without_an_embedding_gets_one_later(
        self, db: Database, bank: str, shared_url: str
    ) -> None:
        db.call("store", bank=bank, content="The cat is called Miso")
        with Hindsight.connect(shared_url, settings=Settings(embedding_provider="local")) as memory:
            assert memory.embed_pending(bank) == 1
            assert memory.embed_pending(bank) == 0
            (found,) = memory.recall(bank, "What is the name of the cat?")
            assert found.semantic is not None
            assert found.semantic > 0.3


class TestConnections:
    @pytest.fixture
    async def pooled(self, shared_url: str) -> AsyncIterator[str]:
        async with TransactionPooler(shared_url, servers=2) as pooler:
            yield pooler.url

    async def test_many_tasks_work_behind_a_pooler_in_transaction_mode(self, pooled: str) -> None:
        settings = Settings(embedding_provider="local", pool_size=8)
        async with await AsyncHindsight.connect(pooled, settings=settings) as memory:
            bank = f"bank-{uuid.uuid4().hex[:8]}"
            await memory.create_bank(bank)

            async def work(number: int) -> None:
                stored = await memory.store(bank, f"memory {number} 汇率", metadata={"n": number}, tags=["t"])
                assert (await memory.get(bank, stored.memory_id)).metadata == {"n": number}
                assert await memory.recall(bank, "汇率", metadata={"n": number})
                await memory.update(bank, stored.memory_id, importance=0.9)
                await memory.forget(bank, stored.memory_id, "asked to")

            await asyncio.gather(*(work(number) for number in range(12)))
            assert await memory.recall(bank) == []

    async def test_the_sync_client_works_behind_it_too(self, pooled: str) -> None:
        def work() -> list[str]:
            with Hindsight.connect(pooled, settings=WORDS_ONLY) as memory:
                bank = f"bank-{uuid.uuid4().hex[:8]}"
                memory.create_bank(bank)
                for number in range(10):
                    memory.store(bank, f"port {number}")
                return [found.content for found in memory.recall(bank, "port", min_score=0)]

        assert len(await asyncio.to_thread(work)) == 10

    @pytest.mark.parametrize("cls", [Hindsight])
    def test_an_unreachable_database_is_said_without_the_password(self, cls: Any) -> None:
        with cls.connect("postgresql://alice:swordfish@127.0.0.1:1/none", settings=WORDS_ONLY) as memory:
            with pytest.raises(DatabaseUnavailable) as caught:
                memory.status()
            assert "swordfish" not in str(caught.value)

    def test_a_database_without_the_schema_says_how_to_make_it(self, new_database: Any) -> None:
        with (
            Hindsight.connect(new_database(), settings=WORDS_ONLY) as memory,
            pytest.raises(DatabaseUnavailable, match="hindsight migrate"),
        ):
            memory.status()

    def test_a_statement_that_takes_too_long_is_stopped(self, shared_url: str) -> None:
        settings = Settings(embedding_provider="none", statement_timeout=0.2)
        with Hindsight.connect(shared_url, settings=settings) as memory, Hindsight.connect(shared_url) as other:
            bank = f"bank-{uuid.uuid4().hex[:8]}"
            memory.create_bank(bank)
            stored = memory.store(bank, "one")
            with other.engine.begin() as connection:
                connection.exec_driver_sql("SELECT * FROM hindsight.memory FOR UPDATE")
                with pytest.raises(DatabaseUnavailable, match="statement timeout"):
                    memory.forget(bank, stored.memory_id, "asked to")
            assert memory.forget(bank, stored.memory_id, "asked to").outcome == "forgotten"

    def test_a_store_that_failed_before_the_model_was_registered_works_once_it_can(self, new_database: Any) -> None:
        url = new_database()
        with Hindsight.connect(url, settings=Settings(embedding_provider="local")) as memory:
            with pytest.raises(DatabaseUnavailable, match="hindsight migrate"):
                memory.store("alice", "The port is 22")
            migrate(url)
            memory.create_bank("alice")
            assert memory.store("alice", "The port is 22").outcome == "stored"

    def test_a_conflict_of_versions_reaches_the_caller(self, shared_url: str) -> None:
        with Hindsight.connect(shared_url, settings=WORDS_ONLY) as memory:
            bank = f"bank-{uuid.uuid4().hex[:8]}"
            memory.create_bank(bank)
            stored = memory.store(bank, "one")
            memory.update(bank, stored.memory_id, content="two", expected_version=1)
            with pytest.raises(Conflict, match="at version 2, not 1"):
                memory.update(bank, stored.memory_id, content="three", expected_version=1)


def test_what_was_acknowledged_survives_the_death_of_the_process(shared_url: str) -> None:
    bank = f"bank-{uuid.uuid4().hex[:8]}"
    script = f"""
import os, signal, sys
from hindsight import Hindsight, Settings
memory = Hindsight.connect({shared_url!r}, settings=Settings(embedding_provider="none"))
memory.create_bank({bank!r})
for number in range(1000):
    print(memory.store({bank!r}, f"memory {{number}}").memory_id, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(25)]
    process.kill()
    process.wait()
    time.sleep(0.2)
    with Hindsight.connect(shared_url, settings=WORDS_ONLY) as memory:
        assert [memory.get(bank, memory_id).content for memory_id in acknowledged] == [f"memory {n}" for n in range(25)]


def test_a_block_holds_what_recall_found_and_follows_its_arguments(client: Any, own_bank: str) -> None:
    kept = [client.store(own_bank, f"docker 笔记 {place}", tags=["a"]).memory_id for place in range(3)]
    client.store(own_bank, "docker 笔记 untagged")
    found = client.recall_context(own_bank, "docker 笔记", tags="a", top_k=2, max_tokens=500)
    assert found.citations == [memory.memory_id for memory in found.memories]
    assert len(found.citations) == 2
    assert set(found.citations) <= set(kept)
    assert all(f"- [m:{memory.memory_id}] just now: {memory.content}\n" in found.block for memory in found.memories)
    client.forget(own_bank, f"[m:{kept[0]}]", "asked to")
    assert kept[0] not in client.recall_context(own_bank, "docker 笔记").citations
    then = found.memories[0].created_at
    assert client.recall_context(own_bank, "docker", as_of=then.isoformat()).block.count("just now") >= 1
    assert client.recall_context(own_bank, "", types="todo").block == ""
    with pytest.raises(errors.InvalidArgument, match="Did you mean top_k"):
        client.recall_context(own_bank, "docker", limit=3)
    with pytest.raises(errors.InvalidArgument, match="max_tokens must lie between"):
        client.recall_context(own_bank, "docker", max_tokens=0)


def test_several_banks_are_recalled_at_once_and_each_memory_names_its_own(client: Any, own_bank: str) -> None:
    team = f"bank-{uuid.uuid4().hex[:10]}"
    client.create_bank(team)
    client.store(own_bank, "The port of the staging server is 8022")
    client.store(team, "预发布服务器的端口是 8022")
    client.store(team, "The port of the staging server is 8022", confidence=0.7)
    found = client.recall_context([own_bank, team], ["staging port", "端口"])
    assert {(memory.bank, memory.content) for memory in found.memories} == {
        (own_bank, "The port of the staging server is 8022"),
        (team, "预发布服务器的端口是 8022"),
    }
    assert found.citations == [memory.memory_id for memory in found.memories]
    assert all(f"bank {bank}: " in found.block for bank in (own_bank, team))
    assert [memory.bank for memory in client.recall((team,), "端口", top_k=1)] == [team]
    assert [memory.bank for memory in client.recall(own_bank, "port")] == [own_bank]
    for wrong, error in (
        ([], InvalidArgument), ([own_bank, 7], InvalidArgument), (None, InvalidArgument), ([own_bank] * 21, InvalidArgument),
        ([own_bank, "no-such-bank"], UnknownBank), ([own_bank, "a\0"], InvalidContent),
    ):  # fmt: skip
        with pytest.raises(error):
            client.recall(wrong, "port")


def test_a_message_that_asks_for_memory_is_true(client: Any, own_bank: str) -> None:
    assert client.should_recall(own_bank, "还记得吗")
    advice = client.should_recall(own_bank, "谢谢")
    assert (bool(advice), advice.recall, advice.reason) == (False, False, "small talk: 谢谢")
    with pytest.raises(errors.UnknownBank):
        client.should_recall("no-such-bank", "还记得吗")
