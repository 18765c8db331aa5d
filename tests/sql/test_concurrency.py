"""Writers that meet: every race has one winner, and nobody's acknowledged write is lost."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from hindsight import Conflict, Hindsight, Settings, UnknownMemory
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


def test_a_writer_that_comes_late_leaves_no_vector_of_the_old_model(db: Database, bank: str) -> None:
    old, new = (f"toy-{uuid.uuid4().hex[:6]}" for _ in range(2))
    for name in (old, new):
        db.call("register_model", model=name, dimensions=3)
    db.call("store", bank=bank, content="first", embedding="[1,0,0]", model=old)
    late, changing = Database(db.url), Database(db.url)
    with late.connection.transaction():
        late.call("store", bank=bank, content="second", embedding="[1,0,0]", model=old)
        change = threading.Thread(target=lambda: changing.call("set_bank_model", bank=bank, model=new))
        change.start()
        time.sleep(0.2)
        assert change.is_alive(), "it waits for the writer"
    change.join()
    assert {row["content"] for row in db.call("unembedded", bank=bank)} == {"first", "second"}
    late.close()
    changing.close()


def test_a_mixture_of_writers_meets_no_deadlock_and_loses_nothing(db: Database, bank: str, shared_url: str) -> None:
    """Duplicates, slots in conflict, updates and forgets by eight writers for five seconds, in batches that could deadlock."""
    settings = Settings(embedding_provider="none", pool_size=2)
    stop = time.monotonic() + 5
    acknowledged: list[list[uuid.UUID]] = [[] for _ in range(8)]

    def write(number: int) -> None:
        with Hindsight.connect(shared_url, settings=settings) as memory:
            turn = 0
            while time.monotonic() < stop:
                turn += 1
                order = 1 if number % 2 else -1
                batch = [
                    {"content": f"value {(turn + k) % 7} of {k % 3}", "slot": f"slot {k % 3}"} for k in range(4)
                ] + [{"content": f"shared {k}"} for k in range(3)]
                stored = memory.store_many(bank, batch[::order])
                acknowledged[number] += [result.memory_id for result in stored]
                # Superseded or forgotten by another writer meanwhile: an answer that a caller can act on.
                with suppress(Conflict, UnknownMemory):
                    memory.update(bank, stored[0].memory_id, tags=[f"writer-{number}"])
                if turn % 5 == 0:
                    memory.forget(bank, stored[-1].memory_id, "asked to")

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write, number) for number in range(8)]:
            future.result()

    known = {row["memory_id"] for row in db.rows(
        "SELECT memory_id FROM hindsight.memory m JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s", (bank,))}  # fmt: skip
    assert sum(map(len, acknowledged)) > 100
    assert {memory_id for ids in acknowledged for memory_id in ids} <= known
    doubles = db.rows(
        "SELECT slot FROM hindsight.live_memory m JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s AND slot IS NOT NULL "
        "GROUP BY slot HAVING count(*) > 1", (bank,))  # fmt: skip
    assert doubles == []
    versions, events = db.rows(
        "SELECT (SELECT sum(version) FROM hindsight.memory WHERE bank_id = b.bank_id) AS n FROM hindsight.bank b WHERE b.name = %s "
        "UNION ALL SELECT (SELECT count(*) FROM hindsight.event WHERE bank_id = b.bank_id AND memory_id IS NOT NULL) "
        "FROM hindsight.bank b WHERE b.name = %s", (bank, bank))  # fmt: skip
    assert versions["n"] == events["n"], "every version of every memory has its event"
