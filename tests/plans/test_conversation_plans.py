"""How turns and the queue of sessions are read: by which index, however many there are."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from test_plans import plans_of

from tests.conftest import Database

SESSIONS = 20_000


@pytest.fixture(scope="module")
def talkative(new_database: Any, template: str) -> Iterator[Database]:
    """20,000 sessions of five turns, all distilled but for one in a thousand; one of 3,000 turns."""
    database = Database(new_database(template))
    database.call("create_bank", bank="alice")
    database.call(
        "log_turn", bank="alice", session_id="long", role="user", content="It begins."
    )  # the month's partition
    database.rows(
        "INSERT INTO hindsight.session (bank_id, session_id, last_sequence, waiting, due_at) "
        "SELECT 1, 's' || n, 5, CASE WHEN n %% 1000 = 0 THEN 5 ELSE 0 END, CASE WHEN n %% 1000 = 0 THEN now() END "
        "FROM generate_series(1, %s) AS n",
        (SESSIONS,),
    )
    database.rows(
        "INSERT INTO hindsight.turn (bank_id, session_id, sequence, turn_id, role, content, occurred_at, logged_at, distilled_at) "
        "SELECT 1, 's' || n, t, 't' || t, 'user', 'turn ' || t, now(), now(), CASE WHEN n %% 1000 <> 0 THEN now() END "
        "FROM generate_series(1, %s) AS n, generate_series(1, 5) AS t",
        (SESSIONS,),
    )
    database.rows(
        "INSERT INTO hindsight.turn (bank_id, session_id, sequence, role, content, occurred_at, logged_at, distilled_at) "
        "SELECT 1, 'long', t, 'user', 'turn ' || t, now(), now(), now() FROM generate_series(2, 3000) AS t"
    )
    database.rows("UPDATE hindsight.session SET last_sequence = 3000 WHERE session_id = 'long'")
    database.rows("VACUUM ANALYZE hindsight.turn, hindsight.session")
    yield database
    database.close()


def read(plans: list[dict[str, Any]], *relations: str) -> int:
    """Rows of relations, by the beginning of their names, that were read."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in plans
        if node.get("Relation Name", "").startswith(relations)
    )


def no_scan(plans: list[dict[str, Any]]) -> bool:
    return not any(
        node["Node Type"] == "Seq Scan" and node["Relation Name"].startswith(("turn", "session")) for node in plans
    )


def test_a_session_that_is_due_is_claimed_by_its_index_with_its_own_turns_only(talkative: Database) -> None:
    plans = plans_of(talkative, "SELECT * FROM hindsight.claim_session()")
    assert any(node.get("Index Name") == "session_due_idx" for node in plans)
    assert no_scan(plans)
    assert read(plans, "session") <= 30
    assert read(plans, "turn") <= 30


def test_a_turn_that_was_logged_before_is_found_by_its_id_or_place(talkative: Database) -> None:
    turns = [
        {"role": "user", "content": "turn 3", "turn_id": "t3"},
        {"role": "user", "content": "turn 4", "sequence": 4},
    ]
    plans = plans_of(talkative, "SELECT * FROM hindsight.log_turns('alice', 's77', %s)", (json.dumps(turns),))
    assert no_scan(plans)
    assert read(plans, "turn") <= 10


def test_a_desk_reads_the_last_turns_and_no_others(talkative: Database) -> None:
    plans = plans_of(talkative, "SELECT * FROM hindsight.working_get('alice', 'long')")
    assert no_scan(plans)
    assert read(plans, "turn") <= 25


def test_the_queue_reads_the_sessions_that_wait(talkative: Database) -> None:
    plans = plans_of(talkative, "SELECT * FROM hindsight.queue('alice')")
    assert read(plans, "session") <= 100
