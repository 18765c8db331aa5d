"""Whatever is done to a bank: its memories' states are sound, and the past is answered as it was."""

import os
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.conftest import Database

STATES = ("live", "pending", "expired", "superseded", "archived", "deleted")
ANSWERS = ("HM002", "HM004", "HM005", "HM006")
"""What a caller may be told: gone, not as asked, taken. Anything else is a fault."""

contents = st.sampled_from([
    "the ssh port is 22", "the ssh port is 2222", "MySQL 8.0 is the database", "MySQL 8.4 is the database",
    "数据库是 MySQL 8.4", "用户住在杭州", "用户住在上海", "alice lives in Kiel", "call the dentist", "the backup runs at two",
])  # fmt: skip
vectors = st.sampled_from([None, "[1,0,0]", "[1,0.1,0]", "[0,1,0]", "[0.5,0.5,0.5]"])
slots = st.sampled_from([None, None, "port", "database", "home"])
types = st.sampled_from(["fact", "preference", "decision", "todo", "temporary", "hypothesis", "summary"])
confidences = st.sampled_from([None, None, 0.0, 0.3, 0.6, 0.9, 1.0])
days_ago = st.sampled_from([None, None, 0, 1, 400, -2])
picks = st.integers(0, 11)
"""Which memory: the nth of those that a call is meant for; 0: one of all. What is drawn may not depend on what the database answers."""

stores = st.tuples(st.just("store"), st.fixed_dictionaries({
    "content": contents, "type": types, "slot": slots, "confidence": confidences, "embedding": vectors, "days": days_ago,
    "source": st.sampled_from([None, "user", "inferred", "tool"]), "session_id": st.sampled_from([None, "s1", "s2"]),
    "importance": st.sampled_from([None, 0.1, 0.9]), "tags": st.sampled_from([None, ["a"], ["a", "b"]]),
    "ttl": st.sampled_from([None, None, None, "1 ms", "15 ms", "60 ms", "100 s"]),
}))  # fmt: skip
calls = st.one_of(
    stores,
    st.tuples(st.just("store"), st.fixed_dictionaries(
        {"content": contents, "type": types, "slot": slots, "days": days_ago, "supersedes": picks})),
    st.tuples(st.just("store"), st.fixed_dictionaries(
        {"content": contents, "type": st.just("summary"), "confidence": confidences, "derived_from": picks})),
    st.tuples(st.just("update"), st.fixed_dictionaries(
        {"memory_id": picks, "content": st.none() | contents, "confidence": confidences, "slot": slots,
         "clear": st.sampled_from([None, None, ["slot"], ["expires_at"]])})),
    st.tuples(st.just("forget"), st.fixed_dictionaries({"memory_id": picks})),
    st.tuples(st.just("restore"), st.fixed_dictionaries({"memory_id": picks})),
    st.tuples(st.just("decide"), st.fixed_dictionaries(
        {"memory_id": picks, "function": st.sampled_from(["confirm", "reject", "complete"])})),
    st.tuples(st.just("forget_matching"), st.sampled_from(
        [{"types": ["decision"]}, {"tags": ["b"]}, {"session_id": "s1"}, {"source": "tool"}])),
    st.tuples(st.just("link"), st.fixed_dictionaries(
        {"from_id": picks, "to_id": picks, "relation": st.sampled_from(["related", "derived_from"])})),
    st.tuples(st.just("unlink"), st.fixed_dictionaries({"from_id": picks, "to_id": picks})),
    st.tuples(st.just("set_policy"), st.fixed_dictionaries(
        {"type": types, "on_conflict": st.sampled_from(["overwrite", "history", "confident"]),
         "ttl": st.sampled_from([None, "0", "20 ms"])})),
    st.tuples(st.just("pass_time"), st.fixed_dictionaries({"seconds": st.sampled_from([0.002, 0.02]), "sweeps": st.booleans()})),
    st.tuples(st.just("look"), st.just({})),
)  # fmt: skip
QUERIES: list[dict[str, Any]] = [
    {"query": "which port has ssh, and which database runs the backup for alice in 杭州?", "min_score": 0},
    {"query": ""},
    {"query": "", "valid_at": datetime.now(UTC) - timedelta(days=100)},
    {"query": "MySQL database", "embedding": "[1,0.2,0]", "include_pending": True, "min_score": 0},
]
"""What is asked at some moments, and again as of them."""
SHOWN = ("memory_id", "content", "type", "confidence", "channels", "tags", "entities", "slot", "session_id", "source", "metadata",
         "occurred_at", "created_at", "confirmed_at", "completed_at", "valid_to", "pending_reason")  # fmt: skip


PARTS = ("score", "similarity", "semantic", "lexical", "activation", "decay", "weight")


def by_id(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> dict[uuid.UUID, list[Any]]:
    return {row["memory_id"]: [row[column] for column in columns] for row in rows}


class Life(RuleBasedStateMachine):
    """One bank, done to as callers do; every rule may be refused with an answer, and leaves the bank sound."""

    db: Database

    @initialize(first=st.lists(stores, min_size=5, max_size=5))
    def open_a_bank(self, first: list[tuple[str, dict[str, Any]]]) -> None:
        self.bank = f"life-{uuid.uuid4().hex[:10]}"
        self.db.call("create_bank", bank=self.bank)
        self.bank_id = self.db.value("SELECT bank_id FROM hindsight.bank WHERE name = %s", (self.bank,))
        self.moments: list[tuple[datetime, list[list[dict[str, Any]]]]] = []
        self.held: list[tuple[datetime, dict[uuid.UUID, str]]] = []
        for call in first:
            self.do(call)

    @rule(call=calls)
    def do(self, call: tuple[str, dict[str, Any]]) -> None:
        """One rule, not one for each call: Hypothesis would leave most of them out of most runs."""
        name, arguments = call
        getattr(self, name)(**arguments)

    def nth(self, pick: int, *states: str) -> uuid.UUID:
        meant = list(states) if pick and states else list(STATES)
        rows = self.db.call("state", bank=self.bank, states=meant)
        return rows[pick % len(rows)]["memory_id"] if rows else uuid.uuid4()

    def attempt(self, function: str, **arguments: Any) -> None:
        try:
            self.db.call(function, bank=self.bank, **arguments)
        except psycopg.Error as error:
            if error.sqlstate not in ANSWERS:
                raise

    def store(self, **arguments: Any) -> None:
        if (days := arguments.pop("days", None)) is not None:
            arguments["occurred_at"] = self.db.value("SELECT clock_timestamp() - make_interval(days => %s)", (days,))
        if arguments.get("embedding"):
            arguments["model"] = "life"
        if "supersedes" in arguments:
            arguments["supersedes"] = self.nth(arguments["supersedes"], "live", "pending", "expired")
        if "derived_from" in arguments:
            arguments["derived_from"] = [self.nth(arguments["derived_from"], "live", "pending")]
        self.attempt("store", **arguments)

    def update(self, memory_id: int, **arguments: Any) -> None:
        self.attempt("update_memory", memory_id=self.nth(memory_id, "live", "pending"), **arguments)

    def forget(self, memory_id: int) -> None:
        self.attempt("forget", memory_id=self.nth(memory_id, "live", "superseded", "pending"), reason="asked to")

    def restore(self, memory_id: int) -> None:
        self.attempt("restore", memory_id=self.nth(memory_id, "deleted"), reason="a mistake")

    def decide(self, memory_id: int, function: str) -> None:
        state = "live" if function == "complete" else "pending"
        self.attempt(function, memory_id=self.nth(memory_id, state), reason="said so")

    def forget_matching(self, **filters: Any) -> None:
        self.attempt("forget_matching", reason="asked to", **filters)

    def link(self, from_id: int, to_id: int, relation: str) -> None:
        self.attempt("link", from_id=self.nth(from_id, "live"), to_id=self.nth(to_id, "live"), relation=relation)

    def unlink(self, from_id: int, to_id: int) -> None:
        self.attempt("unlink", from_id=self.nth(from_id, "live"), to_id=self.nth(to_id, "live"))

    def set_policy(self, **arguments: Any) -> None:
        self.attempt("set_policy", **arguments)

    def pass_time(self, seconds: float, sweeps: bool) -> None:
        self.db.rows("SELECT pg_sleep(%s)", (seconds,))
        if sweeps:
            self.attempt("sweep")

    def look(self) -> None:
        """Remembers what recall gives now, between two readings of the clock: what expires between them is not compared."""
        started = self.db.value("SELECT clock_timestamp()")
        answers = [self.db.call("recall", bank=self.bank, top_k=50, **query, **self.model(query)) for query in QUERIES]
        then: datetime = self.db.value("SELECT clock_timestamp()")
        if not self.db.rows(
            "SELECT 1 FROM hindsight.memory WHERE bank_id = %s AND expires_at BETWEEN %s AND %s",
            (self.bank_id, started, then),
        ):
            self.moments.append((then, answers))
            self.held.append(
                (then, {row["memory_id"]: row["content"] for row in self.db.call("state", bank=self.bank, as_of=then)})
            )

    def model(self, query: dict[str, Any]) -> dict[str, Any]:
        return {"model": "life"} if "embedding" in query else {}

    @invariant()
    def every_memory_has_one_state_and_status_counts_them(self) -> None:
        (row,) = self.db.rows("""
            WITH shown AS MATERIALIZED (SELECT * FROM hindsight.state(%(bank)s, statement_timestamp(), %(states)s))
            SELECT (SELECT array_agg(memory_id ORDER BY memory_id) FROM shown) AS shown,
                   (SELECT array_agg(memory_id ORDER BY memory_id) FROM shown WHERE state = 'live') AS live,
                   (SELECT jsonb_object_agg(state, n) FROM (SELECT state, count(*) AS n FROM shown GROUP BY state) AS c) AS counted,
                   (SELECT array_agg(memory_id ORDER BY memory_id) FROM hindsight.memory WHERE bank_id = %(bank_id)s) AS kept,
                   (SELECT array_agg(memory_id ORDER BY memory_id) FROM hindsight.state(%(bank)s)) AS live_now,
                   (SELECT array_agg(memory_id ORDER BY memory_id) FROM hindsight.live_memory
                    WHERE bank_id = %(bank_id)s AND (expires_at IS NULL OR expires_at > statement_timestamp())) AS believed,
                   (SELECT to_jsonb(s) FROM hindsight.status() AS s WHERE bank = %(bank)s) AS status
        """, {"bank": self.bank, "bank_id": self.bank_id, "states": list(STATES)})  # fmt: skip
        assert row["shown"] == row["kept"], "each has one state, and all have one"
        assert row["live"] == row["live_now"] == row["believed"]
        assert {state: row["status"][state] for state in STATES} == {
            state: (row["counted"] or {}).get(state, 0) for state in STATES
        }

    @invariant()
    def a_slot_and_a_content_have_one_live_memory(self) -> None:
        live = self.db.rows("SELECT content, slot FROM hindsight.state(%s)", (self.bank,))
        assert max(Counter(row["content"] for row in live).values(), default=1) == 1
        assert max(Counter(row["slot"] for row in live if row["slot"]).values(), default=1) == 1

    @invariant()
    def what_stands_on_something_forgotten_is_not_believed_unless_somebody_confirmed_it(self) -> None:
        leaks = self.db.rows("""
            SELECT m.content, e.content AS forgotten FROM hindsight.live_memory AS m
            JOIN hindsight.link AS l ON l.bank_id = m.bank_id AND l.from_id = m.memory_id
            JOIN hindsight.memory AS e ON e.bank_id = l.bank_id AND e.memory_id = l.to_id
            WHERE m.bank_id = %s AND l.relation = 'derived_from' AND l.removed_at IS NULL AND e.deleted_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM hindsight.event AS v
                              WHERE v.bank_id = m.bank_id AND v.memory_id = m.memory_id AND v.action = 'confirmed')
        """, (self.bank_id,))  # fmt: skip
        assert leaks == []

    def teardown(self) -> None:
        self.look()
        for then, answers in self.moments:
            for query, answer in zip(QUERIES, answers, strict=True):
                again = self.db.call("recall", bank=self.bank, top_k=50, as_of=then, **query, **self.model(query))
                assert by_id(again, SHOWN) == by_id(answer, SHOWN)
                then_and_now = by_id(answer, PARTS), by_id(again, PARTS)
                assert all(
                    then_and_now[1][key] == pytest.approx(parts, abs=1e-6) for key, parts in then_and_now[0].items()
                )
        for (since, before), (until, after) in zip(self.held, self.held[1:], strict=False):
            self.explained(since, before, until, after)
        unsound = self.db.rows("""
            WITH turning_point AS (
              SELECT changed_at AS at FROM hindsight.memory WHERE bank_id = %(bank_id)s UNION
              SELECT changed_at FROM hindsight.memory_version WHERE bank_id = %(bank_id)s)
            SELECT t.at, s.* FROM turning_point AS t CROSS JOIN LATERAL (
              SELECT count(*) <> (SELECT count(*) FROM hindsight.memory WHERE bank_id = %(bank_id)s AND created_at <= t.at) AS is_incomplete,
                     count(*) <> count(DISTINCT s.memory_id) AS has_two_states,
                     count(s.slot) FILTER (WHERE s.state = 'live') <> count(DISTINCT s.slot) FILTER (WHERE s.state = 'live') AS has_two_values,
                     count(*) FILTER (WHERE s.state IN ('live', 'pending'))
                       <> count(DISTINCT s.content) FILTER (WHERE s.state IN ('live', 'pending')) AS has_it_twice
              FROM hindsight.state(%(bank)s, t.at, %(states)s) AS s) AS s
            WHERE is_incomplete OR has_two_states OR has_two_values OR has_it_twice
        """, {"bank": self.bank, "bank_id": self.bank_id, "states": list(STATES)})  # fmt: skip
        assert unsound == [], "at every moment there was"
        versions = self.db.value("SELECT sum(version) FROM hindsight.memory WHERE bank_id = %s", (self.bank_id,))
        events = self.db.value(
            "SELECT count(*) FROM hindsight.event WHERE bank_id = %s AND memory_id IS NOT NULL AND action NOT IN ('linked', 'unlinked', 'skipped')",
            (self.bank_id,),
        )  # fmt: skip
        assert events == (versions or 0), "every version of every memory has its event"

    def explained(
        self, since: datetime, before: dict[uuid.UUID, str], until: datetime, after: dict[uuid.UUID, str]
    ) -> None:
        """What differs between two states is what diff tells."""
        lines = self.db.call("diff", bank=self.bank, since=since, until=until)
        assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
        assert all(since < line["at"] <= until for line in lines)
        told: dict[str, set[uuid.UUID]] = {}
        for line in lines:
            told.setdefault(line["change"], set()).add(line["memory_id"])
            if line["change"] == "corrected" and line["related_id"]:
                told.setdefault("replaced", set()).add(line["related_id"])

        def of(*changes: str) -> set[uuid.UUID]:
            return set().union(*(told.get(change, set()) for change in changes))

        assert after.keys() - before.keys() <= of("learned", "corrected", "believed", "restored")
        assert before.keys() - after.keys() <= of("forgotten", "replaced", "doubted", "expired", "archived")
        assert {key for key in before.keys() & after.keys() if before[key] != after[key]} <= of(
            "corrected", "believed", "restored"
        )


def test_any_sequence_of_operations_leaves_a_sound_bank_whose_past_answers_as_it_did(db: Database) -> None:
    db.call("register_model", model="life", dimensions=3)
    Life.db = db
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=int(os.environ.get("LIFE_EXAMPLES", "8")),
            stateful_step_count=int(os.environ.get("LIFE_STEPS", "30")),
            derandomize="LIFE_EXAMPLES" not in os.environ,
            deadline=None,
            phases=(Phase.generate,),  # what fails is thirty steps, which one can read; making them fewer takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
