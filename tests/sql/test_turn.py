"""Turns: what was said, kept as it was said."""

import json

import psycopg
import pytest

from tests.conftest import Database


def log(db: Database, bank: str, content: str, **arguments: object) -> int:
    given = {"session_id": "s1", "role": "user", **arguments}
    return int(db.one("log_turn", bank=bank, content=content, **given)["log_turn"])


def test_turns_are_numbered_within_their_session(db: Database, bank: str) -> None:
    assert [log(db, bank, text) for text in ("hello", "你好", "hello")] == [1, 2, 3]
    assert log(db, bank, "another session", session_id="s2") == 1


def test_a_turn_is_kept_byte_for_byte_with_its_tool_calls(db: Database, bank: str) -> None:
    log(db, bank, " 汇率 🚀\n", role="assistant", tool_calls='[{"name": "rate", "result": 7.1}]', metadata='{"a": 1}')
    (turn,) = db.rows(
        "SELECT t.* FROM hindsight.turn t JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s", (bank,)
    )
    assert turn["content"] == " 汇率 🚀\n"
    assert turn["tool_calls"] == [{"name": "rate", "result": 7.1}]
    assert (turn["role"], turn["metadata"]) == ("assistant", {"a": 1})


def test_logging_the_same_turn_again_changes_nothing(db: Database, bank: str) -> None:
    assert log(db, bank, "one", sequence=5) == 5
    assert log(db, bank, "one", sequence=5) == 5
    assert log(db, bank, "next") == 6
    assert db.value("SELECT turns FROM hindsight.status() WHERE bank = %s", (bank,)) == 2


def test_a_turn_with_other_tool_calls_is_another_turn(db: Database, bank: str) -> None:
    log(db, bank, "x", sequence=1, tool_calls='[{"name": "search"}]')
    with pytest.raises(psycopg.Error, match="has another turn 1"):
        log(db, bank, "x", sequence=1, tool_calls='[{"name": "delete"}]')


def test_another_turn_under_a_taken_number_is_a_conflict(db: Database, bank: str) -> None:
    log(db, bank, "one", sequence=1)
    with pytest.raises(psycopg.Error, match="session 's1' has another turn 1") as caught:
        log(db, bank, "two", sequence=1)
    assert caught.value.sqlstate == "HM006"


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [({"content": " "}, "HM005"), ({"content": "x", "role": ""}, "HM005"), ({"content": "x", "sequence": 0}, "HM004"), ({"content": "x", "sequence": 2**31 - 1}, "HM004"),
     ({"content": "x", "session_id": ""}, "HM005"), ({"content": "x" * 1_000_001, "tool_calls": "[]"}, "HM005"), ({"content": "x", "metadata": "[]"}, "HM004")],
)  # fmt: skip
def test_bad_input_is_refused(db: Database, bank: str, arguments: dict[str, object], sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        log(db, bank, **arguments)  # type: ignore[arg-type]
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "user", "content": [{"type": "text", "text": "我喜欢茶"}]},
        {"role": ["user"], "content": "I like tea."},
        {"role": "user", "content": {"text": "I like tea."}},
    ],
)
def test_content_in_parts_is_refused_and_not_kept_as_json(db: Database, bank: str, turn: dict[str, object]) -> None:
    with pytest.raises(psycopg.Error, match="must be a text") as caught:
        db.call("log_turns", bank=bank, session_id="s1", turns=json.dumps([turn]))
    assert caught.value.sqlstate == "HM004"


def test_a_turn_of_tool_calls_alone_needs_no_words(db: Database, bank: str) -> None:
    assert log(db, bank, "", role="assistant", tool_calls='[{"name": "search"}]') == 1
