"""Writers that meet: every race has one winner, and nobody's acknowledged write is lost."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import Database


def at_once(url: str, count: int, work: Callable[[Database, int], Any]) -> list[Any]:
    """What `work` returns (or raises) on `count` connections, all started together."""
    start = threading.Barrier(count)

    def run(number: int) -> Any:
        database = Database(url)
        try:
            start.wait()
            return work(database, number)
        except psycopg.Error as error:
            return error
        finally:
            database.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


class Second:
    """A connection beside `db`, whose call runs in a thread while `db` is within a transaction."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self._pool = ThreadPoolExecutor(1)
        self._running: Any = None

    def begins(self, function: str, **arguments: Any) -> None:
        self._running = self._pool.submit(self.database.call, function, **arguments)

    def waits(self, db: Database) -> bool:
        """Whether it waits for a lock, once it has come so far or is done."""
        pid = self.database.connection.info.backend_pid
        while not self._running.done():
            if db.value("SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", (pid,)):
                return True
            time.sleep(0.01)
        return False

    def result(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._running.result(timeout=30)
        return found

    def refusal(self) -> str | None:
        """The SQLSTATE that it was refused with."""
        with pytest.raises(psycopg.Error) as refused:
            self.result()
        return refused.value.sqlstate


@pytest.fixture
def second(db: Database) -> Iterator[Second]:
    beside = Second(db.url)
    yield beside
    beside.database.close()


@pytest.mark.parametrize("content", ["The database is MySQL", "数据库是 MySQL"])
def test_the_same_sentence_by_twenty_connections_is_one_live_row(db: Database, bank: str, content: str) -> None:
    results = at_once(db.url, 20, lambda d, _: d.one("store", bank=bank, content=content))
    assert Counter(row["outcome"] for row in results) == {"stored": 1, "merged": 19}
    assert len({row["memory_id"] for row in results}) == 1
    assert db.one("get", bank=bank, memory_id=results[0]["memory_id"])["confirmations"] == 19


def test_fifty_different_sentences_at_once_are_fifty_rows(db: Database, bank: str) -> None:
    results = at_once(db.url, 50, lambda d, number: d.one("store", bank=bank, content=f"sentence {number}"))
    assert Counter(row["outcome"] for row in results) == {"stored": 50}
    assert len(db.contents(bank, top_k=100)) == 50


def test_twenty_values_for_one_slot_leave_one_live_and_the_rest_superseded(db: Database, bank: str) -> None:
    results = at_once(db.url, 20, lambda d, number: d.one("store", bank=bank, content=f"port {number}", slot="port"))
    outcomes = Counter(row["outcome"] for row in results)
    assert outcomes["stored"] == 1
    assert outcomes["stored"] + outcomes["superseding"] + outcomes["superseded"] == 20
    states = Counter(db.one("get", bank=bank, memory_id=row["memory_id"])["state"] for row in results)
    assert states == {"live": 1, "superseded": 19}


def test_of_two_updates_from_the_same_version_one_is_refused(db: Database, bank: str) -> None:
    memory_id = db.one("store", bank=bank, content="one")["memory_id"]
    results = at_once(
        db.url, 8,
        lambda d, number: d.one("update_memory", bank=bank, memory_id=memory_id, content=f"by {number}", expected_version=1),
    )  # fmt: skip
    refused = [result for result in results if isinstance(result, psycopg.Error)]
    assert len(refused) == 7
    assert {error.sqlstate for error in refused} == {"HM006"}


def test_turns_logged_at_once_get_a_number_each(db: Database, bank: str) -> None:
    results = at_once(
        db.url,
        20,
        lambda d, n: d.one("log_turn", bank=bank, session_id="s", role="user", content=f"turn {n}")["log_turn"],
    )
    assert sorted(results) == list(range(1, 21))


def test_two_with_different_models_on_a_new_bank_leave_it_with_one(db: Database, bank: str) -> None:
    names = [f"toy-{uuid.uuid4().hex[:6]}-{number}" for number in range(2)]
    for name in names:
        db.call("register_model", model=name, dimensions=3)
    results = at_once(
        db.url, 10, lambda d, n: d.one("store", bank=bank, content=f"s{n}", embedding="[1,0,0]", model=names[n % 2])
    )
    models = db.rows(
        "SELECT DISTINCT m.model_id FROM hindsight.memory m JOIN hindsight.bank b USING (bank_id) WHERE name = %s",
        (bank,),
    )
    assert len(models) == 1
    assert {result.sqlstate for result in results if isinstance(result, psycopg.Error)} == {"HM011"}


def test_a_model_registered_by_many_at_once_is_one_model_with_one_index(db: Database) -> None:
    name = f"toy-{uuid.uuid4().hex[:6]}"
    results = at_once(db.url, 8, lambda d, _: d.one("register_model", model=name, dimensions=5)["register_model"])
    assert len(set(results)) == 1


# ---- pairs of writers that meet at one memory: the second waits, then answers by what the first has done ----------------


def stored(db: Database, bank: str, content: str, **arguments: Any) -> uuid.UUID:
    memory_id: uuid.UUID = db.one("store", bank=bank, content=content, **arguments)["memory_id"]
    return memory_id


def state(db: Database, bank: str, memory_id: uuid.UUID) -> str:
    return str(db.value(
        "SELECT hindsight._state(m, clock_timestamp()) FROM hindsight.memory AS m JOIN hindsight.bank AS b USING (bank_id) "
        "WHERE b.name = %s AND memory_id = %s", (bank, memory_id)))  # fmt: skip


def test_a_memory_that_many_confirm_at_once_is_confirmed_by_each(db: Database, bank: str) -> None:
    memory_id = stored(db, bank, "Alice may like tea", confidence=0.4, slot="alice.drink")
    results = at_once(db.url, 8, lambda d, _: d.one("confirm", bank=bank, memory_id=memory_id)["confirm"])
    assert results == ["live"] * 8
    memory = db.one("get", bank=bank, memory_id=memory_id)
    assert (memory["confirmations"], memory["version"]) == (8, 9)


def test_two_pending_values_of_a_slot_confirmed_at_once_leave_one_live(db: Database, bank: str) -> None:
    ids = [stored(db, bank, f"the port is {number}", confidence=0.4, slot="port") for number in range(8)]
    results = at_once(db.url, 8, lambda d, n: d.one("confirm", bank=bank, memory_id=ids[n])["confirm"])
    assert results == ["live"] * 8, "each was, when it was confirmed"
    assert Counter(state(db, bank, memory_id) for memory_id in ids) == {"live": 1, "superseded": 7}


def test_a_confirmation_that_waits_for_a_forgetting_finds_nothing(db: Database, bank: str, second: Second) -> None:
    memory_id = stored(db, bank, "Alice may like tea", confidence=0.4)
    with db.connection.transaction():
        db.call("forget", bank=bank, memory_id=memory_id, reason="test")
        second.begins("confirm", bank=bank, memory_id=memory_id)
        assert second.waits(db)
    assert second.refusal() == "HM002"


def test_a_forgetting_that_waits_for_a_confirmation_forgets(db: Database, bank: str, second: Second) -> None:
    memory_id = stored(db, bank, "Alice may like tea", confidence=0.4)
    with db.connection.transaction():
        db.call("confirm", bank=bank, memory_id=memory_id)
        second.begins("forget", bank=bank, memory_id=memory_id, reason="test")
        assert second.waits(db)
    assert second.result()[0]["outcome"] == "forgotten"
    assert state(db, bank, memory_id) == "deleted"


def test_what_is_stored_while_the_same_is_restored_is_merged_into_it(db: Database, bank: str, second: Second) -> None:
    memory_id = stored(db, bank, "服务器在上海")
    db.call("forget", bank=bank, memory_id=memory_id, reason="test")
    with db.connection.transaction():
        db.call("restore", bank=bank, memory_id=memory_id)
        second.begins("store", bank=bank, content="服务器在上海")
        assert second.waits(db)
    (row,) = second.result()
    assert (row["outcome"], row["memory_id"]) == ("merged", memory_id)


def test_a_restoring_that_waits_for_a_store_of_the_same_is_a_conflict(db: Database, bank: str, second: Second) -> None:
    memory_id = stored(db, bank, "服务器在上海")
    db.call("forget", bank=bank, memory_id=memory_id, reason="test")
    with db.connection.transaction():
        db.call("store", bank=bank, content="服务器在上海")
        second.begins("restore", bank=bank, memory_id=memory_id)
        assert second.waits(db)
    assert second.refusal() == "HM006"
    assert state(db, bank, memory_id) == "deleted"


def test_of_two_that_supersede_the_same_memory_one_is_refused(db: Database, bank: str) -> None:
    old = stored(db, bank, "The database is MySQL 8.0")
    results = at_once(
        db.url, 8, lambda d, n: d.one("store", bank=bank, content=f"The database is MySQL 8.{n + 1}", supersedes=old)
    )
    won = [result for result in results if not isinstance(result, psycopg.Error)]
    assert [row["outcome"] for row in won] == ["superseding"]
    assert {result.sqlstate for result in results if isinstance(result, psycopg.Error)} == {"HM006"}
    assert db.one("get", bank=bank, memory_id=old)["superseded_by"] == won[0]["memory_id"]
    assert len(db.contents(bank)) == 1, "the others were not stored either"


def test_a_forgetting_by_filter_beside_a_batch_takes_what_was_there(db: Database, bank: str, second: Second) -> None:
    old = [stored(db, bank, f"old {number}", tags=["x"]) for number in range(3)]
    with db.connection.transaction():
        assert db.one("store", bank=bank, content="old 1", tags=["x"])["outcome"] == "merged"
        fresh = stored(db, bank, "new", tags=["x"])
        second.begins("forget_matching", bank=bank, reason="test", tags=["x"])
        assert second.waits(db)
    assert {row["memory_id"] for row in second.result()} == set(old)
    assert {state(db, bank, memory_id) for memory_id in old} == {"deleted"}
    assert state(db, bank, fresh) == "live"


def test_a_sweep_leaves_alone_what_somebody_says_again(db: Database, bank: str, second: Second) -> None:
    memory_id = stored(db, bank, "The meeting is at nine", ttl=timedelta(seconds=0.3))
    with db.connection.transaction():
        assert (
            db.one("store", bank=bank, content="The meeting is at nine", ttl=timedelta(days=1))["outcome"] == "merged"
        )
        time.sleep(0.4)
        second.begins("sweep", bank=bank)
        assert not second.waits(db)
        assert second.result() == []
    assert db.call("sweep", bank=bank) == []
    assert state(db, bank, memory_id) == "live"


def test_what_is_said_again_while_it_is_swept_is_stored_anew(db: Database, bank: str, second: Second) -> None:
    memory_id = stored(db, bank, "The meeting is at nine", ttl=timedelta(seconds=0.1))
    time.sleep(0.2)
    with db.connection.transaction():
        assert db.call("sweep", bank=bank) == [{"task": "expired", "affected": 1}]
        second.begins("store", bank=bank, content="The meeting is at nine")
        assert second.waits(db)
    (row,) = second.result()
    assert row["outcome"] == "stored"
    assert (state(db, bank, memory_id), state(db, bank, row["memory_id"])) == ("archived", "live")


def test_two_sweeps_at_once_put_each_memory_away_once(db: Database, bank: str) -> None:
    for number in range(30):
        stored(db, bank, f"passing {number}", ttl=timedelta(milliseconds=1))
    results = at_once(db.url, 4, lambda d, _: sum(row["affected"] for row in d.call("sweep", bank=bank, most=10)))
    assert sum(results) + sum(row["affected"] for row in db.call("sweep", bank=bank)) == 30


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"content": "Alice lives in Paris"}, {"content": "Alice lives in Paris"}),
        (
            {"content": "爱丽丝住在上海", "slot": "alice.home", "session_id": "s"},
            {"content": "爱丽丝住在北京", "slot": "alice.home", "session_id": "s"},
        ),
    ],
)
def test_what_was_said_before_does_not_slip_past_a_forgetting(
    db: Database, bank: str, second: Second, held: dict[str, Any], told: dict[str, Any]
) -> None:
    memory_id = stored(db, bank, **held)
    before = datetime.now(UTC) - timedelta(minutes=5)
    with db.connection.transaction():
        db.call("forget", bank=bank, memory_id=memory_id, reason="test")
        second.begins("store", bank=bank, occurred_at=before, **told)
        assert second.waits(db)
    assert second.result()[0]["outcome"] == "skipped"
    assert db.contents(bank) == []


def test_the_same_in_other_words_is_not_merged_into_what_was_changed_meanwhile(
    db: Database, bank: str, second: Second
) -> None:
    model = f"toy-{uuid.uuid4().hex[:6]}"
    db.call("register_model", model=model, dimensions=3)
    memory_id = stored(db, bank, "The port is 101", embedding="[1,0,0]", model=model)
    again = {"content": "the port is 101!", "embedding": "[1,0,0]", "model": model}
    assert db.one("store", bank=bank, **again)["outcome"] == "merged"
    with db.connection.transaction():
        db.call(
            "update_memory", bank=bank, memory_id=memory_id, content="The port is 102", embedding="[1,0,0]", model=model
        )
        second.begins("store", bank=bank, **again)
        assert second.waits(db)
    assert second.result()[0]["outcome"] == "stored"
    assert set(db.contents(bank)) == {"The port is 102", "the port is 101!"}


# ---- upkeep beside writers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["refresh_links", "maintain"])
def test_an_erasure_waits_for_upkeep_and_locks_nothing_meanwhile(
    db: Database, bank: str, second: Second, task: str
) -> None:
    one = stored(db, bank, "Docker 主机 h7x is up")
    db.call(task, bank=bank)
    with db.connection.transaction():
        db.call(task, bank=bank)  # nothing is new: no row is locked
        second.begins("erase_memory", bank=bank, memory_id=one, reason="ticket 4711")
        assert second.waits(db)
        assert len(db.rows("SELECT 1 FROM hindsight.memory WHERE memory_id = %s FOR UPDATE NOWAIT", (one,))) == 1
    assert {row["erased"]: row["rows_erased"] for row in second.result()}["memories"] == 1


def test_reflecting_waits_for_its_turn_without_locking_the_bank(db: Database, bank: str, second: Second) -> None:
    for number, content in enumerate(("I like dark mode", "I prefer dark mode at night", "Please use dark mode 总是")):
        stored(db, bank, content, type="preference", source="user", session_id=f"s{number}")
    with db.connection.transaction():
        stored(db, bank, "The port is 22", slot="port")
        second.begins("reflect", bank=bank)
        assert second.waits(db)
        assert len(db.rows("SELECT 1 FROM hindsight.bank WHERE name = %s FOR UPDATE NOWAIT", (bank,))) == 1
    assert [row["outcome"] for row in second.result()] == ["stored"]


# ---- what was made of forgotten memories ------------------------------------------------------------------------


def test_two_restorings_at_once_leave_nothing_doubted(db: Database, bank: str, second: Second) -> None:
    sources = [stored(db, bank, content) for content in ("It rained on Monday", "周二也下了雨")]
    made = stored(db, bank, "It rained twice", derived_from=sources)
    for memory_id in sources:
        db.call("forget", bank=bank, memory_id=memory_id, reason="test")
    assert state(db, bank, made) == "pending"
    with db.connection.transaction():
        db.call("restore", bank=bank, memory_id=sources[0])
        second.begins("restore", bank=bank, memory_id=sources[1])
        assert second.waits(db)
    assert second.result()[0]["restore"] == "live"
    assert state(db, bank, made) == "live"


def test_a_restoring_and_a_forgetting_at_once_leave_it_doubted(db: Database, bank: str, second: Second) -> None:
    sources = [stored(db, bank, content) for content in ("It rained on Monday", "周二也下了雨")]
    made = stored(db, bank, "It rained twice", derived_from=sources)
    db.call("forget", bank=bank, memory_id=sources[0], reason="test")
    with db.connection.transaction():
        db.call("restore", bank=bank, memory_id=sources[0])
        second.begins("forget", bank=bank, memory_id=sources[1], reason="test")
        assert second.waits(db)
    assert second.result()[0]["outcome"] == "forgotten"
    assert state(db, bank, made) == "pending"


def test_what_is_made_of_a_memory_while_it_is_forgotten_is_refused(db: Database, bank: str, second: Second) -> None:
    source = stored(db, bank, "It rained on Monday")
    with db.connection.transaction():
        db.call("forget", bank=bank, memory_id=source, reason="test")
        second.begins("store", bank=bank, content="It rained", derived_from=[source])
        assert second.waits(db)
    assert second.refusal() == "HM002"
    assert db.contents(bank) == []


def test_a_forgetting_doubts_what_is_made_meanwhile_of_what_was_made_of_it(
    db: Database, bank: str, second: Second
) -> None:
    source = stored(db, bank, "It rained on Monday")
    made = stored(db, bank, "It rained", derived_from=[source])
    further = stored(db, bank, "The street is wet")
    with db.connection.transaction():
        db.call("link", bank=bank, from_id=further, to_id=made, relation="derived_from")
        second.begins("forget", bank=bank, memory_id=source, reason="test")
        assert second.waits(db)
    assert second.result()[0]["outcome"] == "forgotten"
    assert {state(db, bank, memory_id) for memory_id in (made, further)} == {"pending"}


# ---- nobody waits who need not, and no two calls deadlock ----------------------------------------------------------


def test_noting_a_recall_and_linking_from_a_memory_wait_for_nobody_who_changes_it(
    db: Database, bank: str, second: Second
) -> None:
    memory_id, other = stored(db, bank, "Alice lives in Paris"), stored(db, bank, "爱丽丝住在上海")
    with db.connection.transaction():
        db.call("update_memory", bank=bank, memory_id=memory_id, tags=["x"])
        for function, arguments in {
            "note_recall": {"memory_ids": [other, memory_id]},
            "link": {"from_id": memory_id, "to_id": other},
        }.items():
            second.begins(function, bank=bank, **arguments)
            assert not second.waits(db), function
            second.result()


def test_a_content_that_is_taken_is_refused_without_waiting_for_who_holds_it(
    db: Database, bank: str, second: Second
) -> None:
    first, other = stored(db, bank, "The port is 101"), stored(db, bank, "The port is 102")
    with db.connection.transaction():
        db.rows("SELECT FROM hindsight.memory WHERE memory_id = %s FOR NO KEY UPDATE", (other,))
        second.begins("update_memory", bank=bank, memory_id=first, content="The port is 102")
        assert not second.waits(db)
    assert second.refusal() == "HM006"


def test_calls_that_lock_several_memories_never_deadlock(db: Database, bank: str) -> None:
    """Each call is a transaction: no order of locks within one may meet the opposite order within another."""
    ids = [stored(db, bank, f"memory {number}", slot=f"slot {number}") for number in range(4)]
    for number in range(4):
        db.call("link", bank=bank, from_id=ids[number], to_id=ids[(number + 1) % 4], relation="derived_from")

    def work(d: Database, number: int) -> Counter[str]:
        draw = random.Random(number)
        met: Counter[str] = Counter()
        calls: list[Callable[[], Any]] = [
            lambda: d.call("forget", bank=bank, memory_id=draw.choice(ids), reason="test"),
            lambda: d.call("restore", bank=bank, memory_id=draw.choice(ids)),
            lambda: d.call("confirm", bank=bank, memory_id=draw.choice(ids)),
            lambda: d.call("link", bank=bank, from_id=ids[0], to_id=draw.choice(ids[1:]), relation="derived_from",
                           weight=draw.random()),
            lambda: d.call("link", bank=bank, from_id=draw.choice(ids[1:]), to_id=ids[0], weight=draw.random()),
            lambda: d.call("update_memory", bank=bank, memory_id=draw.choice(ids), content=f"memory {draw.randrange(4)}"),
            lambda: d.call("store", bank=bank, content=f"memory {draw.randrange(4)}", derived_from=draw.sample(ids, 2)),
            lambda: d.call("store", bank=bank, content=f"memory {draw.randrange(4)}", slot=f"slot {draw.randrange(4)}",
                           confidence=draw.choice([0.4, 0.9])),
            lambda: d.call("forget_matching", bank=bank, reason="test", types=["fact"], until=datetime.now(UTC)),
            lambda: d.call("note_recall", bank=bank, memory_ids=draw.sample(ids, 3)),
        ]  # fmt: skip
        stop = time.monotonic() + 3
        while time.monotonic() < stop:
            try:
                draw.choice(calls)()
                met["done"] += 1
            except psycopg.Error as error:
                met[str(error.sqlstate)] += 1
        return met

    met = sum(at_once(db.url, 8, work), Counter())
    assert set(met) <= {"done", "HM002", "HM004", "HM006"}, met
    assert met["done"] > 50
