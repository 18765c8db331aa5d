"""A query that was asked a moment ago is not embedded again: in one client, in another one, and whatever happens between."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hindsight import AsyncHindsight, EmbeddingError, Hindsight, InvalidEmbedding, Recalled, Settings, embedded
from hindsight.database import migrate
from hindsight.embedded_server import Server
from hindsight.query_cache import QueryCache
from tests.conftest import Database
from tests.endpoint import Reply, ScriptedEndpoint


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(dimensions=8) as scripted:
        yield scripted


@pytest.fixture
def model() -> str:
    return f"toy-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def connect(shared_url: str, endpoint: ScriptedEndpoint, model: str) -> Iterator[Callable[..., Hindsight]]:
    """Opens a client of the scripted endpoint, closed after the test."""
    opened: list[Hindsight] = []

    def make(url: str = shared_url, **settings: Any) -> Hindsight:
        opened.append(Hindsight.connect(url, settings=settings_of(endpoint, model, **settings)))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


def settings_of(endpoint: ScriptedEndpoint, model: str, **more: Any) -> Settings:
    given = {"embedding_model": model, "embedding_retries": 0, **more}
    return Settings(embedding_provider="openai", embedding_base_url=endpoint.url, **given)


def asked(endpoint: ScriptedEndpoint) -> list[str]:
    """The texts that the endpoint was asked to embed, and forgets them."""
    texts = [text for request in endpoint.requests for text in request.body["input"]]
    endpoint.requests.clear()
    return texts


def filled(client: Hindsight, endpoint: ScriptedEndpoint) -> str:
    """A bank with two memories."""
    bank = f"bank-{uuid.uuid4().hex[:8]}"
    client.create_bank(bank)
    client.store_many(bank, [{"content": "外币汇率换算接口每天凌晨更新一次"}, {"content": "Alice prefers tea"}])
    asked(endpoint)
    return bank


def parts(found: list[Recalled]) -> list[tuple[Any, ...]]:
    return [(memory.content, memory.semantic, memory.similarity) for memory in found]


@pytest.mark.parametrize("query", ["汇率什么时候更新", "what does Alice drink?"])
def test_a_query_is_embedded_once_and_the_scores_stay_the_same(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, query: str
) -> None:
    first = connect()
    bank = filled(first, endpoint)
    fresh = first.recall(bank, query, min_score=0)
    assert asked(endpoint) == [query]
    again = first.recall(bank, query, min_score=0)
    elsewhere = connect().recall(bank, query, min_score=0)
    assert asked(endpoint) == [], "neither here nor from another client of the same database"
    assert parts(fresh) == parts(again) == parts(elsewhere)
    assert all(semantic is not None for _, semantic, _ in parts(fresh))
    first.recall(bank, query + "!")
    assert asked(endpoint) == [query + "!"]


def test_what_was_stored_meanwhile_is_found_since_results_are_not_kept(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint
) -> None:
    client = connect()
    bank = filled(client, endpoint)
    before = client.recall(bank, "tea", min_score=0)
    client.store(bank, "Bob drinks tea too")
    assert len(client.recall(bank, "tea", min_score=0)) == len(before) + 1


def test_with_zero_seconds_every_recall_asks_the_model(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, db: Database
) -> None:
    client = connect(query_cache_seconds=0)
    bank = filled(client, endpoint)
    before = db.value("SELECT count(*) FROM hindsight.query_embedding")
    client.recall(bank, "tea")
    client.recall(bank, "tea")
    assert asked(endpoint) == ["tea", "tea"]
    assert db.value("SELECT count(*) FROM hindsight.query_embedding") == before


def test_another_model_is_asked_itself(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, model: str
) -> None:
    client = connect()
    client.recall(filled(client, endpoint), "tea")
    other = connect(embedding_model=f"{model}-other")
    bank = filled(other, endpoint)
    other.recall(bank, "tea")
    assert asked(endpoint) == ["tea"]


def test_another_login_is_answered_by_its_own_model_not_by_what_somebody_put_there(
    connect: Callable[..., Hindsight],
    endpoint: ScriptedEndpoint,
    shared_url: str,
    login: Callable[..., str],
    model: str,
) -> None:
    alice, mallory = connect(login(shared_url, "hindsight_app")), Database(login(shared_url, "hindsight_app"))
    bank = filled(alice, endpoint)
    mallory.call("cache_embedding", model=model, query="tea", embedding="[1,0,0,0,0,0,0,0]")
    alice.recall(bank, "tea")
    assert asked(endpoint) == ["tea"]
    mallory.close()


def test_the_same_question_asked_by_many_at_once_is_embedded_once(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint
) -> None:
    client = connect()
    bank = filled(client, endpoint)
    endpoint.replies.append(lambda request: Reply(endpoint.reply_to(request).body, delay=0.5))
    found: list[list[Recalled]] = []
    threads = [
        threading.Thread(target=lambda: found.append(client.recall(bank, "汇率", min_score=0))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert asked(endpoint) == ["汇率"]
    assert len({str(parts(one)) for one in found}) == 1
    assert len(found) == 8


async def test_tasks_that_ask_the_same_wait_for_one_and_others_do_not_wait(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, shared_url: str, model: str
) -> None:
    bank = await asyncio.to_thread(lambda: filled(connect(), endpoint))
    async with await AsyncHindsight.connect(shared_url, settings=settings_of(endpoint, model)) as client:
        endpoint.replies.append(lambda request: Reply(endpoint.reply_to(request).body, delay=1))
        slow = [asyncio.create_task(client.recall(bank, "汇率", min_score=0)) for _ in range(4)]
        while not endpoint.requests:
            await asyncio.sleep(0.01)
        await client.recall(bank, "tea")
        assert not any(task.done() for task in slow), "another question is not held up"
        await asyncio.gather(*slow)
        assert asked(endpoint) == ["汇率", "tea"]


def test_a_failure_is_told_to_all_who_wait_and_the_next_one_asks_again(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint
) -> None:
    client = connect()
    bank = filled(client, endpoint)
    endpoint.replies.append(Reply.error(500))
    with pytest.raises(EmbeddingError):
        client.recall(bank, "tea")
    assert client.recall(bank, "tea", min_score=0)
    assert asked(endpoint) == ["tea", "tea"]


def test_a_vector_of_another_size_is_refused_and_kept_nowhere(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint
) -> None:
    bank = filled(connect(), endpoint)
    client = connect()
    endpoint.replies.append(Reply.vectors([[1.0] * 9]))
    with pytest.raises(InvalidEmbedding, match="has 9 dimensions"):
        client.recall(bank, "tea")
    right = connect()
    assert right.recall(bank, "tea", min_score=0)
    assert asked(endpoint) == ["tea", "tea"]


def test_in_a_read_only_database_recall_goes_on_and_this_process_remembers(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, shared_url: str, login: Callable[..., str]
) -> None:
    url = login(shared_url, "hindsight_app")
    writing = connect(url)
    bank = filled(writing, endpoint)
    with psycopg.connect(shared_url, autocommit=True) as admin:
        user = url.partition("://")[2].partition("@")[0]
        admin.execute(f"ALTER ROLE {user} SET default_transaction_read_only = on")
    reading = connect(url)
    assert reading.recall(bank, "tea", min_score=0)
    assert reading.recall(bank, "tea", min_score=0)
    assert asked(endpoint) == ["tea"]
    connect(url).recall(bank, "tea")
    assert asked(endpoint) == ["tea"], "nothing was written"


def test_a_reader_without_a_registered_model_recalls_by_words(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, db: Database, bank: str
) -> None:
    db.call("store", bank=bank, content="汇率 every night")
    client = connect()
    assert [memory.content for memory in client.recall(bank, "汇率")] == ["汇率 every night"]
    assert client.recall(bank, "汇率")
    assert asked(endpoint) == ["汇率"]


# ---- a server that crashes, and its standby ------------------------------------------------------------


@pytest.fixture
def primary() -> Iterator[Path]:
    """A server of the test's own, where root's server may go as well."""
    path = Path(tempfile.mkdtemp(prefix="hindsight-test-", dir="/tmp"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def replica() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hindsight-test-", dir="/tmp"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path, ignore_errors=True)


def test_a_crash_empties_it_and_a_standby_has_none_and_both_recall(
    connect: Callable[..., Hindsight], endpoint: ScriptedEndpoint, primary: Path, replica: Path
) -> None:
    url = embedded.start(primary)
    migrate(url)
    client = connect(url)
    bank = filled(client, endpoint)
    found = parts(client.recall(bank, "汇率", min_score=0))
    programs = embedded.installed_programs()
    running, standing_by = Server(primary, programs), Server(replica, programs)

    # A copy that follows, and can't read an unlogged table.
    (replica / "pgdata").mkdir(mode=0o700)
    shutil.chown(replica / "pgdata", *[(primary / "pgdata").stat().st_uid, (primary / "pgdata").stat().st_gid])
    socket = url.partition("?host=")[2].partition("&")[0].replace("%2F", "/")
    copied = standing_by._run("pg_basebackup", *f"-h {socket} -U postgres -c fast -R -D {replica / 'pgdata'}".split())
    assert copied.returncode == 0, copied.stderr
    (replica / "pgdata" / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # the socket's, of the first server
    asked(endpoint)
    reading = connect(embedded.start(replica))
    assert parts(reading.recall(bank, "汇率", min_score=0)) == found
    assert parts(reading.recall(bank, "汇率", min_score=0)) == found
    assert asked(endpoint) == ["汇率"], "its process remembers"
    reading.close()
    embedded.stop(replica)

    stopped = running._run("pg_ctl", *["-D", ".", "-m", "immediate", "-w", "stop"], directory=primary / "pgdata")
    assert stopped.returncode == 0, stopped.stderr
    again = connect(embedded.start(primary))
    assert parts(again.recall(bank, "汇率", min_score=0)) == found
    assert asked(endpoint) == ["汇率"], "the table was emptied"
    connect(url).recall(bank, "汇率")
    assert asked(endpoint) == [], "and filled anew"


# ---- the part in this process --------------------------------------------------------------------------


def test_a_vector_is_kept_for_its_seconds_and_a_newer_one_takes_its_place() -> None:
    now = [0.0]
    cache = QueryCache(5, clock=lambda: now[0])
    cache.keep("m", "tea", "[1]")
    now[0] = 4.9
    assert cache.get("m", "tea") == "[1]"
    cache.keep("m", "tea", "[2]")
    now[0] = 5.1
    assert (cache.get("m", "tea"), cache.get("other", "tea"), cache.get("m", "茶")) == ("[2]", None, None)
    now[0] = 9.9
    assert cache.get("m", "tea") is None


def test_the_process_keeps_a_bounded_number_the_newest() -> None:
    cache = QueryCache(300, largest=3)
    for number in range(10):
        cache.keep("m", f"问 {number}", "[1]")
    assert [number for number in range(10) if cache.get("m", f"问 {number}")] == [7, 8, 9]


def test_the_process_keeps_no_text_of_a_query() -> None:
    cache = QueryCache(300)
    cache.keep("m", "a very particular question", "[1]")
    assert "particular" not in repr(vars(cache))
