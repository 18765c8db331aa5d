"""What an operator tunes of an embedding model: thresholds and the index of its vectors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Database


@pytest.fixture
def toy(db: Database) -> str:
    name = f"toy-{uuid.uuid4().hex[:8]}"
    db.call("register_model", model=name, dimensions=3)
    return name


@pytest.fixture
def app(shared_url: str, login: Callable[..., str]) -> Iterator[Database]:
    database = Database(login(shared_url, "hindsight_app"))
    yield database
    database.close()


def refused(work: Callable[[], object]) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        work()
    return caught.value


def registered(db: Database, model: str) -> dict[str, Any]:
    (row,) = [row for row in db.call("models") if row["model"] == model]
    return row


def index_of(db: Database, model: str) -> dict[str, Any]:
    """The model's index: its file, its options, and the m that it was built with, from pgvector's first page."""
    db.rows("CREATE EXTENSION IF NOT EXISTS pageinspect")
    (row,) = db.rows(
        """
        SELECT c.relfilenode AS file, c.reloptions AS options, i.indisvalid AS valid,
               get_byte(p.page, 24 + 12) + 256 * get_byte(p.page, 24 + 13) AS m
        FROM hindsight.embedding_model AS r
        JOIN pg_class AS c ON c.oid = ('hindsight.memory_embedding_' || r.model_id || '_idx')::regclass
        JOIN pg_index AS i ON i.indexrelid = c.oid
        CROSS JOIN LATERAL get_raw_page(c.oid::regclass::text, 0) AS p(page)
        WHERE r.name = %s
        """,
        (model,),
    )
    return row


class TestThresholds:
    def test_the_next_recall_goes_by_the_new_threshold(self, db: Database, bank: str, toy: str) -> None:
        for content, embedding in (("喜欢深烘咖啡", "[1,0,0]"), ("The cat sleeps", "[0.6,0.8,0]")):
            db.call("store", bank=bank, content=content, embedding=embedding, model=toy)
        assert db.contents(bank, embedding="[1,0,0]") == ["喜欢深烘咖啡", "The cat sleeps"]
        db.call("set_thresholds", model=toy, recall_threshold=0.7)
        assert db.contents(bank, embedding="[1,0,0]") == ["喜欢深烘咖啡"]
        db.call("set_thresholds", model=toy, recall_threshold=0.55)
        assert db.contents(bank, embedding="[1,0,0]") == ["喜欢深烘咖啡", "The cat sleeps"]

    def test_the_next_recall_scores_by_the_new_floor(self, db: Database, bank: str, toy: str) -> None:
        db.call("store", bank=bank, content="one", embedding="[0.6,0.8,0]", model=toy)
        assert db.one("recall", bank=bank, embedding="[1,0,0]")["semantic"] == pytest.approx(0.6, abs=1e-3)
        db.call("set_thresholds", model=toy, floor=0.2)
        assert db.one("recall", bank=bank, embedding="[1,0,0]")["semantic"] == pytest.approx(0.5, abs=1e-3)

    def test_what_is_not_given_stays(self, db: Database, toy: str) -> None:
        before = registered(db, toy)
        db.call("set_thresholds", model=toy, merge_threshold=0.99)
        assert registered(db, toy) == before | {"merge_threshold": 0.99}

    @pytest.mark.parametrize(
        "values",
        [
            {"floor": 0.6},
            {"recall_threshold": 0.9},
            {"merge_threshold": 1.01},
            {"floor": -1.1},
            {"floor": float("nan")},
            {"recall_threshold": float("inf")},
        ],
    )
    def test_thresholds_that_do_not_rise_are_refused_and_change_nothing(
        self, db: Database, toy: str, values: dict[str, float]
    ) -> None:
        before = registered(db, toy)
        error = refused(lambda: db.call("set_thresholds", model=toy, **values))
        assert error.sqlstate == "HM004"
        assert "must rise" in str(error.diag.message_primary)
        assert registered(db, toy) == before

    def test_an_unknown_model_is_refused_with_the_names_of_the_known(self, db: Database, toy: str) -> None:
        error = refused(lambda: db.call("set_thresholds", model="没有", floor=0.1))
        assert error.sqlstate == "HM012"
        assert toy in str(error.diag.message_hint)


class TestWhoMay:
    @pytest.mark.parametrize("function", ["set_thresholds", "set_index"])
    def test_only_an_operator_changes_what_serves_every_bank(
        self, db: Database, app: Database, toy: str, function: str
    ) -> None:
        error = refused(lambda: app.call(function, model=toy))
        assert error.sqlstate == "HM003"
        assert "hindsight_owner" in str(error.diag.message_hint)
        db.call(function, model=toy)

    def test_an_operator_who_acts_for_somebody_else_may_not(self, db: Database, toy: str) -> None:
        with db.connection.transaction():
            db.rows("SET LOCAL hindsight.principal = 'agent-7'")
            with pytest.raises(psycopg.Error) as caught, db.connection.transaction():
                db.call("set_thresholds", model=toy, floor=0.1)
        assert caught.value.sqlstate == "HM003"

    def test_everybody_who_reads_sees_the_registry(self, app: Database, toy: str) -> None:
        assert registered(app, toy)["recall_threshold"] == 0.5


class TestTheIndex:
    def test_a_model_is_registered_with_its_index_settings(self, db: Database) -> None:
        name = f"toy-{uuid.uuid4().hex[:8]}"
        db.call("register_model", model=name, dimensions=3, m=5, ef_construction=11, ef_search=7)
        row = registered(db, name)
        assert (row["m"], row["ef_construction"], row["ef_search"]) == (5, 11, 7)
        assert index_of(db, name) | {"file": 0} == {
            "file": 0, "options": ["m=5", "ef_construction=11"], "valid": True, "m": 5,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"m": 1}, "between 2 and 100, got 1"),
            ({"m": 101}, "between 2 and 100, got 101"),
            ({"ef_construction": 3}, "between 4 and 1000, got 3"),
            ({"ef_construction": 1001}, "between 4 and 1000, got 1001"),
            ({"m": 70}, "at least twice m: got 128 for m 70"),
            ({"ef_construction": 47}, "at least twice m: got 47 for m 24"),
            ({"ef_search": 0}, "between 1 and 1000, got 0"),
            ({"ef_search": 1001}, "between 1 and 1000, got 1001"),
        ],
    )
    def test_numbers_that_pgvector_cannot_build_are_refused_with_a_hint(
        self, db: Database, toy: str, values: dict[str, int], said: str
    ) -> None:
        before = registered(db, toy), index_of(db, toy)
        for call in (
            lambda: db.call("set_index", model=toy, **values),
            lambda: db.call("register_model", model=f"toy-{uuid.uuid4().hex[:8]}", dimensions=3, **values),
        ):
            error = refused(call)
            assert error.sqlstate == "HM004"
            assert said in str(error.diag.message_primary)
            assert error.diag.message_hint
        assert (registered(db, toy), index_of(db, toy)) == before

    def test_m_builds_the_index_anew_and_ef_search_does_not(self, db: Database, bank: str, toy: str) -> None:
        db.call("store", bank=bank, content="one", embedding="[1,0,0]", model=toy)
        before = index_of(db, toy)
        assert db.call("set_index", model=toy, ef_search=200) == []
        assert index_of(db, toy) == before
        assert db.call("set_index", model=toy, m=32) == []
        after = index_of(db, toy)
        assert (after["m"], after["options"]) == (32, ["m=32", "ef_construction=128"])
        assert after["file"] != before["file"]
        row = registered(db, toy)
        assert (row["m"], row["ef_construction"], row["ef_search"]) == (32, 128, 200)
        assert db.contents(bank, embedding="[1,0,0]") == ["one"]

    def test_the_statements_it_returns_build_the_index_outside_of_a_transaction(
        self, db: Database, bank: str, toy: str
    ) -> None:
        db.call("store", bank=bank, content="记忆", embedding="[1,0,0]", model=toy)
        before = index_of(db, toy)
        statements = [row["set_index"] for row in db.call("set_index", model=toy, m=24, build_now=False)]
        assert index_of(db, toy)["m"] == before["m"] == 24, "as it was built, until they run"
        left_behind = statements[0].split()[-1]  # by a build that was broken off
        db.rows(f"CREATE INDEX {left_behind.split('.')[1]} ON hindsight.memory (bank_id)")
        for statement in statements:
            db.rows(statement)
        after = index_of(db, toy)
        assert (after["m"], after["valid"]) == (24, True)
        assert after["file"] != before["file"]
        assert db.value("SELECT to_regclass(%s)", (left_behind,)) is None
        assert db.contents(bank, embedding="[1,0,0]") == ["记忆"]


class TestSampling:
    def test_live_embedded_memories_of_the_bank_are_drawn_each_once(self, db: Database, bank: str, toy: str) -> None:
        stored = {
            text: db.one("store", bank=bank, content=text, embedding="[1,0,0]", model=toy)["memory_id"]
            for text in (*(f"memory {n}" for n in range(20)), "记忆", "忘掉")
        }
        db.call("forget", bank=bank, memory_id=stored.pop("忘掉"), reason="asked to")
        db.call("store", bank=bank, content="without a vector")
        db.call("store", bank=bank, content="doubtful", confidence=0.1, embedding="[1,0,0]", model=toy)
        db.call("store", bank=bank, content="over", embedding="[1,0,0]", model=toy)
        db.rows("UPDATE hindsight.memory SET expires_at = now() WHERE content = 'over'")
        other = f"bank-{uuid.uuid4().hex[:10]}"
        db.call("create_bank", bank=other)
        db.call("store", bank=other, content="elsewhere", embedding="[1,0,0]", model=toy)
        drawn = db.call("sample_memories", bank=bank, most=1000)
        assert {row["content"]: row["memory_id"] for row in drawn} == stored
        assert len(drawn) == len(stored)
        assert {row["embedding"] for row in drawn} == {"[1,0,0]"}

    def test_each_sample_is_another_and_every_memory_has_its_turn(self, db: Database, bank: str, toy: str) -> None:
        for number in range(10):
            db.call("store", bank=bank, content=f"memory {number}", embedding="[1,0,0]", model=toy)
        samples = [
            frozenset(row["content"] for row in db.call("sample_memories", bank=bank, most=5)) for _ in range(60)
        ]
        assert {len(sample) for sample in samples} == {5}
        assert len(set(samples)) > 3
        assert len(frozenset().union(*samples)) == 10

    @pytest.mark.parametrize("most", [0, -1, 10_001, None])
    def test_a_sample_has_limits(self, db: Database, bank: str, most: int | None) -> None:
        assert refused(lambda: db.call("sample_memories", bank=bank, most=most)).sqlstate == "HM004"

    def test_a_bank_without_rights_or_of_another_model_is_refused(
        self, db: Database, app: Database, bank: str, toy: str
    ) -> None:
        db.call("store", bank=bank, content="one", embedding="[1,0,0]", model=toy)
        assert refused(lambda: app.call("sample_memories", bank=bank)).sqlstate == "HM001"
        assert refused(lambda: db.call("sample_memories", bank=bank, model="other")).sqlstate == "HM011"
