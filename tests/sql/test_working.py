"""Working memory: a session's desk, apart from what is remembered."""

import json
from typing import Any

import psycopg
import pytest

from tests.conftest import Database


def desk(db: Database, bank: str, session_id: str = "s1", **arguments: Any) -> dict[str, Any]:
    return db.one("working_get", bank=bank, session_id=session_id, **arguments)


def put(db: Database, bank: str, key: str, value: Any, ttl: str = "1 hour", session_id: str = "s1") -> None:
    db.rows("SELECT hindsight.working_set(%s, %s, %s, %s, %s)", (bank, session_id, key, json.dumps(value), ttl))


def test_a_value_is_put_replaced_and_taken_away(db: Database, bank: str) -> None:
    put(db, bank, "plan", {"step": 1})
    put(db, bank, "语言", "中文")
    put(db, bank, "plan", {"step": 2})
    assert desk(db, bank)["values"] == {"plan": {"step": 2}, "语言": "中文"}
    put(db, bank, "plan", None)
    assert desk(db, bank)["values"] == {"语言": "中文"}
    assert desk(db, bank, "s2")["values"] == {}


def test_a_value_expires_by_itself_and_maintain_takes_its_row_away(db: Database, bank: str) -> None:
    put(db, bank, "token", 7, ttl="1 millisecond")
    db.rows("SELECT pg_sleep(0.01)")
    assert desk(db, bank)["values"] == {}
    db.call("maintain", bank=bank)
    kept = "SELECT count(*) FROM hindsight.working_value w JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s"
    assert db.value(kept, (bank,)) == 0


def test_the_last_twenty_turns_are_on_the_desk_the_oldest_first(db: Database, bank: str) -> None:
    turns = [{"role": "user", "content": f"turn {number}"} for number in range(1, 26)]
    db.call("log_turns", bank=bank, session_id="s1", turns=json.dumps(turns))
    assert [turn["sequence"] for turn in desk(db, bank)["turns"]] == list(range(6, 26))
    db.call("set_distilling", bank=bank, working_turns=3)
    assert [turn["content"] for turn in desk(db, bank)["turns"]] == ["turn 23", "turn 24", "turn 25"]


@pytest.mark.parametrize(
    "said",
    ["The deployment failed again with exit code 137 on web-1. " * 5, "部署又失败了，退出码是137，机器是web-1。" * 5],
)
def test_the_desk_keeps_to_its_budget_and_has_the_last_turn_at_least(db: Database, bank: str, said: str) -> None:
    db.call("log_turns", bank=bank, session_id="s1", turns=json.dumps([{"role": "user", "content": said}] * 8))
    whole = desk(db, bank, max_tokens=100000)
    assert len(whole["turns"]) == 8
    some = desk(db, bank, max_tokens=whole["tokens"] // 2)
    assert len(some["turns"]) == 4
    assert some["tokens"] <= whole["tokens"] // 2
    least = desk(db, bank, max_tokens=30)
    assert [turn["sequence"] for turn in least["turns"]] == [8]
    assert least["tokens"] <= 30


def test_no_working_value_ever_reaches_recall(db: Database, bank: str) -> None:
    put(db, bank, "secret-plan", "zebra migration at midnight")
    db.call(
        "log_turns",
        bank=bank,
        session_id="s1",
        turns='[{"role": "user", "content": "Remember that the port is 2222."}]',
    )
    db.call("close_session", bank=bank, session_id="s1")
    db.call("distil_waiting", bank=bank)
    db.call("maintain", bank=bank)
    assert len(db.contents(bank)) >= 1
    for query in ("zebra migration at midnight", "secret-plan", "zebra", ""):
        assert not any("zebra" in content for content in db.contents(bank, query, min_score=0, include_pending=True))
    columns = db.rows(
        "SELECT m.content || coalesce(m.context, '') || m.metadata::text AS text"
        " FROM hindsight.memory AS m JOIN hindsight.bank AS b USING (bank_id) WHERE b.name = %s",
        (bank,),
    )
    assert columns
    assert not any("zebra" in row["text"] for row in columns)


def test_a_desk_that_holds_erased_content_loses_it(db: Database, bank: str) -> None:
    memory_id = db.one("store", bank=bank, content="The code of the safe is 7731.")["memory_id"]
    put(db, bank, "note", "the code of the safe is 7731")
    db.call("erase_memory", bank=bank, memory_id=memory_id, reason="at the person's request")
    assert desk(db, bank)["values"] == {}


@pytest.mark.parametrize(
    ("key", "value", "ttl", "sqlstate"),
    [("", 1, "1 hour", "HM005"), ("k", 1, "0", "HM004"), ("k", "x" * 100_001, "1 hour", "HM005")],
)
def test_bad_values_are_refused(db: Database, bank: str, key: str, value: Any, ttl: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        put(db, bank, key, value, ttl)
    assert caught.value.sqlstate == sqlstate
