"""A memory's life: doubted, confirmed, corrected, expired, forgotten and restored; and what was learned in between.

The same sentence stored again (test_store), races (test_concurrency), updating, forgetting by id and histories (test_change) and
single moments of the past (test_recall) have their tests there.
"""

import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

NEAR = "[1,0,0]"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def toy(db: Database) -> str:
    name = f"toy-{uuid.uuid4().hex[:8]}"
    db.call("register_model", model=name, dimensions=3)
    return name


@pytest.fixture
def other_bank(db: Database) -> str:
    name = f"other-{uuid.uuid4().hex[:8]}"
    db.call("create_bank", bank=name)
    return name


def store(db: Database, bank: str, content: str, **arguments: object) -> uuid.UUID:
    memory_id: uuid.UUID = db.one("store", bank=bank, content=content, **arguments)["memory_id"]
    return memory_id


def get(db: Database, bank: str, memory_id: uuid.UUID) -> dict[str, Any]:
    return db.one("get", bank=bank, memory_id=memory_id)


def now(db: Database) -> datetime:
    moment: datetime = db.value("SELECT clock_timestamp()")
    return moment


def age(db: Database, memory_id: uuid.UUID, column: str, days: float) -> None:
    """As if that much time had gone by since."""
    db.rows(
        f"UPDATE hindsight.memory SET {column} = clock_timestamp() - make_interval(secs => %s) WHERE memory_id = %s",
        (days * 86400, memory_id),
    )


def refused(db: Database, sqlstate: str, function: str, **arguments: object) -> str:
    """The message with which a call is refused."""
    with pytest.raises(psycopg.Error) as caught:
        db.call(function, **arguments)
    assert caught.value.sqlstate == sqlstate
    return f"{caught.value.diag.message_primary} {caught.value.diag.message_hint}"


# ---- what is stored again -------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["The deploy port is 8022", "部署端口是 8022"])
@pytest.mark.parametrize("source", [None, "inferred", "user"])
@pytest.mark.parametrize("with_embedding", [False, True])
def test_a_recalled_memory_that_comes_back_fifty_times_stays_one_and_gains_no_confidence_by_its_echo(
    db: Database, bank: str, toy: str, content: str, source: str | None, with_embedding: bool
) -> None:
    vector = {"embedding": NEAR, "model": toy} if with_embedding else {}
    first = store(db, bank, content, source="user", session_id="s0", confidence=0.8, **vector)
    for number in range(50):
        (recalled,) = db.contents(bank, content)
        again = db.one("store", bank=bank, content=recalled, source=source, session_id=f"s{number + 1}", **vector)
        assert (again["outcome"], again["memory_id"]) == ("merged", first)
    kept = get(db, bank, first)
    assert (kept["confidence"], kept["confirmations"]) == (0.8, 50)
    assert db.contents(bank) == [content]


@pytest.mark.parametrize(
    ("content", "again"),
    [("The deploy port is 8022", "the deploy port is 8022."), ("部署端口是 8022", "部署端口是8022。")],
)
def test_other_words_from_another_conversation_are_evidence_each_time_less_and_an_echo_is_none(
    db: Database, bank: str, toy: str, content: str, again: str
) -> None:
    first = store(db, bank, content, session_id="s0", confidence=0.7, embedding=NEAR, model=toy)

    def told(session: str, source: str) -> float:
        result = db.one("store", bank=bank, content=again, session_id=session, source=source, embedding=NEAR, model=toy)
        assert (result["outcome"], result["memory_id"]) == ("merged", first)
        confidence: float = get(db, bank, first)["confidence"]
        return confidence

    assert told("s0", "user") == 0.7, "the same conversation"
    assert told("s1", "inferred") == 0.7, "inferred from what was recalled"
    told_once, told_twice = told("s1", "user"), told("s2", "user")
    assert 0.7 < told_once < told_twice < 1
    assert told_twice - told_once < told_once - 0.7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Meet in room 101", "Meet in room 102"),
        ("The user has been to Iran", "The user has been to Tigran"),
        ("The service does retry", "The service does not retry"),
        ("The database is MySQL 8.0", "The database is MySQL 8.4"),
        ("在101室开会", "在102室开会"),
        ("用户去过伊朗", "用户去过提格兰"),
        ("用户喜欢香菜", "用户不喜欢香菜"),
        ("数据库是 MySQL 8.0", "数据库是 MySQL 8.4"),
    ],
)
def test_sentences_that_differ_in_a_number_a_name_or_a_negation_are_never_merged_though_their_vectors_are_the_same(
    db: Database, bank: str, toy: str, one: str, other: str
) -> None:
    for content in (one, other, one):
        db.call("store", bank=bank, content=content, embedding=NEAR, model=toy)
    assert set(db.contents(bank)) == {one, other}


def test_a_memory_of_another_slot_is_not_merged_though_the_words_are_nearly_the_same(
    db: Database, bank: str, toy: str
) -> None:
    store(db, bank, "The port is 22", slot="ssh.port", embedding=NEAR, model=toy)
    again = db.one("store", bank=bank, content="the port is 22.", slot="sftp.port", embedding=NEAR, model=toy)
    assert again["outcome"] == "stored"


# ---- gates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["alice probably uses Linux", "用户大概在用 Linux"])
def test_what_is_inferred_is_a_hypothesis_that_weighs_half(db: Database, bank: str, content: str) -> None:
    result = db.one("store", bank=bank, content=content, source="inferred")
    assert result["outcome"] == "stored"
    assert result["reasons"] == ["a hypothesis, not a fact: it was inferred, not said"]
    kept = get(db, bank, result["memory_id"])
    assert (kept["type"], kept["confidence"], kept["source"]) == ("hypothesis", 0.6, "inferred")
    assert db.call("recall", bank=bank, query="Linux")[0]["weight"] == 0.5


@pytest.mark.parametrize("source", [None, "user", "tool", "document"])
def test_what_is_stated_is_the_fact_that_it_says(db: Database, bank: str, source: str | None) -> None:
    kept = get(db, bank, store(db, bank, "alice uses Linux", source=source))
    assert (kept["type"], kept["confidence"]) == ("fact", 0.9)


@pytest.mark.parametrize("content", ["alice uses Linux", "用户在用 Linux"])
def test_a_statement_makes_a_fact_of_a_guess(db: Database, bank: str, content: str) -> None:
    guess = store(db, bank, content, source="inferred")
    said = db.one("store", bank=bank, content=content, source="user")
    assert (said["outcome"], said["memory_id"]) == ("merged", guess)
    assert "said now, not only inferred: a fact" in said["reasons"]
    kept = get(db, bank, guess)
    assert (kept["type"], kept["source"], kept["confidence"]) == ("fact", "user", 0.9)


def test_an_importance_that_is_given_is_kept_and_skips_nothing(db: Database, bank: str) -> None:
    for importance in (0.0, 0.1):
        memory_id = store(db, bank, f"trivial {importance}", importance=importance)
        assert get(db, bank, memory_id)["importance"] == importance


class TestBelief:
    @pytest.mark.parametrize("content", ["alice may move to Kiel", "用户可能搬去杭州"])
    def test_what_is_doubtful_waits_in_a_queue_until_somebody_confirms_it(
        self, db: Database, bank: str, content: str
    ) -> None:
        memory_id = store(db, bank, content, confidence=0.4)
        (waiting,) = db.call("pending", bank=bank)
        assert (waiting["memory_id"], waiting["state"], waiting["pending_reason"]) == (
            memory_id,
            "pending",
            "low confidence",
        )
        assert db.contents(bank, content) == []
        assert db.one("confirm", bank=bank, memory_id=memory_id, reason="alice said so")["confirm"] == "live"
        assert db.contents(bank, content) == [content]
        assert db.call("pending", bank=bank) == []
        assert get(db, bank, memory_id)["confidence"] == 0.9
        last = db.call("history", bank=bank, memory_id=memory_id)[-1]
        assert (last["action"], last["reason"]) == ("confirmed", "alice said so")

    def test_the_queue_shows_the_newest_first_and_no_more_than_asked(self, db: Database, bank: str) -> None:
        for number in range(3):
            store(db, bank, f"perhaps {number}", confidence=0.1)
        assert [row["content"] for row in db.call("pending", bank=bank, most=2)] == ["perhaps 2", "perhaps 1"]
        for most in (0, -1, 10_001, None):
            assert "most must lie between 1 and 10000" in refused(db, "HM004", "pending", bank=bank, most=most)

    def test_a_confirmed_guess_is_a_fact(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "alice uses Linux", source="inferred")
        db.call("confirm", bank=bank, memory_id=memory_id)
        kept = get(db, bank, memory_id)
        assert (kept["type"], kept["confidence"], kept["confirmations"]) == ("fact", 0.9, 1)

    @pytest.mark.parametrize(("old", "new"), [("The port is 22", "The port is 2222"), ("端口是22", "端口是2222")])
    def test_whoever_confirms_a_value_has_decided_the_slot(self, db: Database, bank: str, old: str, new: str) -> None:
        held = store(db, bank, old, slot="port", confidence=1.0)
        doubtful = store(db, bank, new, slot="port", confidence=0.3)
        db.call("confirm", bank=bank, memory_id=doubtful)
        assert db.contents(bank, "port 端口") == [new]
        assert get(db, bank, held)["superseded_by"] == doubtful

    @pytest.mark.parametrize("way", ["confirm", "said clearly"])
    def test_no_moment_is_without_a_value_when_a_doubtful_one_takes_its_slot(
        self, db: Database, bank: str, way: str
    ) -> None:
        held = store(db, bank, "The port is 22", slot="port")
        doubtful = store(db, bank, "The port is 2222", slot="port", confidence=0.3)
        if way == "confirm":
            db.call("confirm", bank=bank, memory_id=doubtful)
        else:
            db.call("store", bank=bank, content="The port is 2222", slot="port", confidence=0.9)
        ended, began = (get(db, bank, memory_id)["changed_at"] for memory_id in (held, doubtful))
        assert ended == began
        assert [row["memory_id"] for row in db.call("state", bank=bank, as_of=began)] == [doubtful]

    def test_what_is_rejected_is_forgotten_and_rejecting_twice_changes_nothing(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "alice may move", confidence=0.4)
        assert db.one("reject", bank=bank, memory_id=memory_id)["outcome"] == "forgotten"
        assert db.one("reject", bank=bank, memory_id=memory_id)["outcome"] == "already forgotten"
        assert db.call("pending", bank=bank) == []
        assert [event["action"] for event in db.call("history", bank=bank, memory_id=memory_id)] == [
            "pending",
            "rejected",
        ]
        again = db.one(
            "store", bank=bank, content="alice may move", confidence=0.9, occurred_at=now(db) - timedelta(days=1)
        )
        assert again["outcome"] == "skipped", "what was said before it was rejected does not come back"

    def test_what_is_believed_is_forgotten_not_rejected(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "alice moved")
        assert "is not pending, it is live" in refused(db, "HM004", "reject", bank=bank, memory_id=memory_id)

    def test_what_is_gone_cannot_be_confirmed(self, db: Database, bank: str) -> None:
        old, forgotten = store(db, bank, "one", slot="s"), store(db, bank, "x")
        store(db, bank, "two", slot="s")
        db.call("forget", bank=bank, memory_id=forgotten, reason="asked to")
        assert "was superseded by" in refused(db, "HM006", "confirm", bank=bank, memory_id=old)
        for missing in (forgotten, uuid.uuid4()):
            assert "has no memory" in refused(db, "HM002", "confirm", bank=bank, memory_id=missing)

    @pytest.mark.parametrize("function", ["confirm", "reject", "complete"])
    def test_a_memory_of_another_bank_looks_like_none(
        self, db: Database, bank: str, other_bank: str, function: str
    ) -> None:
        theirs, nobody = store(db, other_bank, "a secret", type="todo", confidence=0.3), uuid.uuid4()
        messages = [
            refused(db, "HM002", function, bank=bank, memory_id=memory_id).replace(str(memory_id), "…")
            for memory_id in (theirs, nobody)
        ]
        assert messages[0] == messages[1]
        assert get(db, other_bank, theirs)["version"] == 1

    def test_nobody_confirming_it_for_thirty_days_puts_it_away(self, db: Database, bank: str) -> None:
        old, young = store(db, bank, "perhaps one", confidence=0.4), store(db, bank, "perhaps two", confidence=0.4)
        age(db, old, "changed_at", 30.1)
        age(db, young, "changed_at", 29.9)
        assert db.call("sweep", bank=bank) == [{"task": "not confirmed within 30 days", "affected": 1}]
        assert get(db, bank, old)["state"] == "archived"
        assert [row["memory_id"] for row in db.call("pending", bank=bank)] == [young]
        assert "was archived" in refused(db, "HM006", "confirm", bank=bank, memory_id=old)


# ---- correction -----------------------------------------------------------------------------------------


class TestCorrection:
    @pytest.mark.parametrize(
        ("type", "policy", "wins", "dated"),
        [
            ("preference", None, True, False),
            ("decision", None, True, True),
            ("knowledge", None, True, True),
            ("fact", None, False, False),
            ("fact", "overwrite", True, False),
            ("fact", "history", True, True),
            ("decision", "confident", False, False),
        ],
    )
    @pytest.mark.parametrize(("old", "new"), [("uses tabs", "uses spaces"), ("使用制表符", "使用空格")])
    def test_a_less_confident_newer_value_of_a_slot_is_taken_by_the_policy_of_its_type_or_of_the_bank(
        self, db: Database, bank: str, type: str, policy: str | None, wins: bool, dated: bool, old: str, new: str
    ) -> None:
        if policy:
            db.call("set_policy", bank=bank, type=type, on_conflict=policy)
        first = db.one("store", bank=bank, content=old, type=type, slot="indent", confidence=1.0)["memory_id"]
        second = db.one("store", bank=bank, content=new, type=type, slot="indent", confidence=0.8)
        assert second["outcome"] == ("superseding" if wins else "superseded")
        assert second["related_id"] == first
        assert db.contents(bank) == [new if wins else old]
        assert (get(db, bank, first)["valid_to"] is not None) == dated
        assert "slot indent" in second["reasons"][0]

    def test_a_policy_holds_in_its_bank_only(self, db: Database, bank: str, other_bank: str) -> None:
        db.call("set_policy", bank=bank, type="fact", on_conflict="overwrite", ttl="1 day")
        shown = {
            name: {row["type"]: row for row in db.call("policies", bank=name)}["fact"] for name in (bank, other_bank)
        }
        assert (shown[bank]["on_conflict"], shown[bank]["ttl"]) == ("overwrite", timedelta(days=1))
        assert (shown[other_bank]["on_conflict"], shown[other_bank]["ttl"]) == ("confident", timedelta(0))
        db.call("set_policy", bank=bank, type="fact", ttl="0")
        assert {row["type"]: row for row in db.call("policies", bank=bank)}["fact"]["on_conflict"] == "overwrite"

    def test_of_equals_the_newer_stays_and_an_older_statement_told_late_does_not_win(
        self, db: Database, bank: str
    ) -> None:
        store(db, bank, "The port is 22", slot="port")
        assert db.one("store", bank=bank, content="The port is 23", slot="port")["outcome"] == "superseding"
        late = db.one("store", bank=bank, content="The port is 21", slot="port", occurred_at=LONG_AGO)
        assert late["outcome"] == "superseded"
        assert late["reasons"] == ["slot port has a newer value"]
        assert db.contents(bank) == ["The port is 23"]

    @pytest.mark.parametrize(("said", "guessed"), [("Lives in Kiel", "Lives in Bonn"), ("住在杭州", "住在上海")])
    def test_a_guess_never_takes_the_place_of_a_statement_and_a_statement_always_that_of_a_guess(
        self, db: Database, bank: str, said: str, guessed: str
    ) -> None:
        first = db.one("store", bank=bank, content=guessed, slot="home", source="inferred", confidence=1.0)
        second = db.one("store", bank=bank, content=said, slot="home", confidence=0.6)
        assert (second["outcome"], second["related_id"]) == ("superseding", first["memory_id"])
        third = db.one("store", bank=bank, content=guessed, slot="home", source="inferred", confidence=1.0)
        assert (third["outcome"], third["related_id"]) == ("superseded", second["memory_id"])
        assert db.contents(bank) == [said]

    @pytest.mark.parametrize(("old", "new"), [("SSH port is 22", "SSH port is 2222"), ("SSH端口是22", "SSH端口是2222")])
    @pytest.mark.parametrize("way", ["slot", "supersedes", "update_memory"])
    def test_a_corrected_value_stays_when_the_old_session_is_distilled_once_more(
        self, db: Database, bank: str, toy: str, old: str, new: str, way: str
    ) -> None:
        yesterday = now(db) - timedelta(days=1)
        told: dict[str, Any] = {"session_id": "old", "occurred_at": yesterday, "embedding": NEAR, "model": toy}
        told |= {"slot": "ssh.port"} if way == "slot" else {}
        first = store(db, bank, old, **told)
        if way == "update_memory":
            db.call("update_memory", bank=bank, memory_id=first, content=new, embedding=NEAR, model=toy)
        else:
            by_name = {"supersedes": first} if way == "supersedes" else {"slot": "ssh.port"}
            store(db, bank, new, embedding=NEAR, model=toy, **by_name)
        again = db.one("store", bank=bank, content=old, **told)
        assert again["outcome"] == "skipped"
        assert again["reasons"] == ["it was corrected: what was said before does not come back"]
        assert db.contents(bank) == [new]
        assert db.one("store", bank=bank, content=old)["memory_id"] is not None, "said anew, it counts"
        assert old in db.contents(bank)

    @pytest.mark.parametrize(("old", "new"), [("SSH port is 22", "SSH port is 2222"), ("SSH端口是22", "SSH端口是2222")])
    def test_a_memory_that_is_named_gives_way_whatever_confidence_and_slot_say(
        self, db: Database, bank: str, old: str, new: str
    ) -> None:
        first = store(db, bank, old, slot="ssh.port", confidence=1.0)
        second = db.one("store", bank=bank, content=new, slot="ssh.port", confidence=0.7, supersedes=first)
        assert (second["outcome"], second["related_id"]) == ("superseding", first)
        assert db.contents(bank) == [new]
        last = db.call("history", bank=bank, memory_id=first)[-1]
        assert (last["action"], last["reason"]) == ("superseded", "superseded by name")

    @pytest.mark.parametrize(("said", "guessed"), [("Lives in Kiel", "Lives in Bonn"), ("住在杭州", "住在上海")])
    @pytest.mark.parametrize("guess", [{"source": "inferred"}, {"type": "hypothesis"}])
    def test_a_guess_takes_the_place_of_no_statement_by_name_either(
        self, db: Database, bank: str, said: str, guessed: str, guess: dict[str, Any]
    ) -> None:
        first, known = store(db, bank, said), store(db, bank, "known already")
        for content in (guessed, "known already"):
            told: dict[str, Any] = {"bank": bank, "content": content, "confidence": 1.0, "supersedes": first, **guess}
            assert f"memory {first} is a fact, which a guess cannot supersede" in refused(db, "HM004", "store", **told)
        assert set(db.contents(bank)) == {said, "known already"}
        assert get(db, bank, known)["version"] == 1
        doubtful, other_guess = (
            store(db, bank, "perhaps", confidence=0.3),
            store(db, bank, "a guess", source="inferred"),
        )
        for number, named in enumerate((doubtful, other_guess)):
            better = db.one("store", bank=bank, content=f"{guessed} {number}", supersedes=named, **guess)
            assert (better["outcome"], better["related_id"]) == ("superseding", named), (
                "of what is not believed, or a guess"
            )
        last = db.one("store", bank=bank, content="said now", supersedes=better["memory_id"])
        assert last["related_id"] == better["memory_id"]

    @pytest.mark.parametrize("confidence", [0.6, 0.95])
    def test_a_memory_that_is_there_already_takes_the_place_of_the_one_that_is_named(
        self, db: Database, bank: str, confidence: float
    ) -> None:
        first = store(db, bank, "The port is 22", slot="port", confidence=0.9)
        second = store(db, bank, "The port is 23")
        merged = db.one(
            "store",
            bank=bank,
            content="The port is 23",
            slot="port",
            supersedes=first,
            confidence=confidence,
            source="user",
        )
        assert (merged["outcome"], merged["memory_id"], merged["related_id"]) == ("merged", second, first)
        assert db.contents(bank) == ["The port is 23"]
        assert get(db, bank, second)["slot"] == "port"
        assert get(db, bank, first)["superseded_by"] == second

    def test_what_cannot_be_superseded_is_refused_and_stores_nothing(
        self, db: Database, bank: str, other_bank: str
    ) -> None:
        superseded, forgotten = store(db, bank, "one", slot="s"), store(db, bank, "x")
        store(db, bank, "two", slot="s")
        db.call("forget", bank=bank, memory_id=forgotten, reason="asked to")
        theirs = store(db, other_bank, "a secret")
        for named, sqlstate, says in (
            (uuid.uuid4(), "HM002", "has no memory"),
            (forgotten, "HM002", "has no memory"),
            (theirs, "HM002", "has no memory"),
            (superseded, "HM006", "was superseded by"),
        ):
            assert says in refused(db, sqlstate, "store", bank=bank, content="three", supersedes=named)
        live = store(db, bank, "four")
        message = refused(db, "HM004", "store", bank=bank, content="three", supersedes=live, confidence=0.3)
        assert "Give a confidence of 0.6 or more" in message
        assert set(db.contents(bank)) == {"two", "four"}
        assert db.contents(other_bank) == ["a secret"]

    def test_a_value_that_has_gone_by_is_answered_by_date_with_as_of_too(self, db: Database, bank: str) -> None:
        for content, since in (("The database is MySQL 8.0", "2022-01-01Z"), ("数据库是 MySQL 8.4", "2024-01-01Z")):
            store(db, bank, content, type="decision", slot="database", occurred_at=since)
        both = now(db)
        given: dict[str, Any] = {"bank": bank, "query": "MySQL database 数据库"}
        for as_of in (None, both):
            for valid_at, expected in (
                ("2021-01-01Z", []),
                ("2022-01-01Z", ["The database is MySQL 8.0"]),
                ("2023-06-01Z", ["The database is MySQL 8.0"]),
                ("2024-01-01Z", ["数据库是 MySQL 8.4"]),
                (None, ["数据库是 MySQL 8.4"]),
            ):
                found = db.call("recall", **given, valid_at=valid_at, as_of=as_of)
                assert [row["content"] for row in found] == expected
                block = db.one("recall_context", **given, valid_at=valid_at, as_of=as_of)["block"]
                assert all(content in block for content in expected)
                assert ("true until 2024-01-01" in block) == (expected == ["The database is MySQL 8.0"])
        db.call("forget", bank=bank, memory_id=found[0]["memory_id"], reason="asked to")
        assert db.contents(bank, "MySQL", valid_at="2025-01-01Z") == []
        assert db.contents(bank, "MySQL", valid_at="2025-01-01Z", as_of=both) == ["数据库是 MySQL 8.4"]

    @pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (0, 3, 1, 2), (3, 0, 2, 1)])
    def test_in_whatever_order_they_are_told_each_moment_has_one_value_of_a_slot(
        self, db: Database, bank: str, order: tuple[int, ...]
    ) -> None:
        for number in order:
            store(
                db,
                bank,
                f"works at company {number}",
                type="decision",
                slot="job",
                occurred_at=f"{2020 + number}-01-01Z",
            )
        for year in range(2020, 2025):
            expected = [f"works at company {min(year - 2020, 3)}"]
            assert db.contents(bank, "works company", valid_at=f"{year}-07-01Z") == expected
        assert db.contents(bank, "works company", valid_at="2019-07-01Z") == []
        assert db.contents(bank) == ["works at company 3"]


class TestToldWithAnEarlierDate:
    """The same is told again, and was true before it was known: no hole in what recall(valid_at) answers."""

    PORT = pytest.mark.parametrize(
        ("port", "reworded"),
        [("The deploy port is 8022", "the deploy port is 8022."), ("部署端口是 8022", "部署端口是8022。")],
    )

    @PORT
    @pytest.mark.parametrize("in_other_words", [False, True])
    @pytest.mark.parametrize("slot", [None, "deploy.port"])
    @pytest.mark.parametrize("dated", [False, True])
    def test_it_was_true_from_the_earliest_date_on_whichever_was_told_first(
        self,
        db: Database,
        bank: str,
        toy: str,
        port: str,
        reworded: str,
        in_other_words: bool,
        slot: str | None,
        dated: bool,
    ) -> None:
        given: dict[str, Any] = {"embedding": NEAR, "model": toy, "slot": slot}
        first = store(db, bank, port, **given, **({"occurred_at": "2024-01-01Z"} if dated else {}))
        again = db.one(
            "store", bank=bank, content=reworded if in_other_words else port, occurred_at="2022-01-01Z", **given
        )
        assert (again["outcome"], again["memory_id"]) == ("merged", first)
        assert db.contents(bank, port, valid_at="2021-07-01Z") == []
        assert db.contents(bank, port, valid_at="2022-07-01Z") == db.contents(bank, port) == [port]
        later = db.one("store", bank=bank, content=port, occurred_at="2023-01-01Z", **given)
        assert later["memory_id"] == first
        assert db.contents(bank, port, valid_at="2022-07-01Z") == [port]

    @pytest.mark.parametrize("order", [(2019, 2020, 2022), (2020, 2022, 2019), (2022, 2020, 2019)])
    @pytest.mark.parametrize(("old", "new"), [("works at A", "works at B"), ("在甲公司工作", "在乙公司工作")])
    def test_what_comes_back_has_each_of_its_times_in_whatever_order_they_are_told(
        self, db: Database, bank: str, old: str, new: str, order: tuple[int, ...]
    ) -> None:
        said = {2019: new, 2020: old, 2022: new}
        for year in order:
            store(db, bank, said[year], type="decision", slot="job", occurred_at=f"{year}-01-01Z")
        for year, expected in ((2018, []), (2019, [new]), (2020, [old]), (2021, [old]), (2022, [new]), (2024, [new])):
            assert db.contents(bank, "works company 公司", valid_at=f"{year}-07-01Z") == expected, year
        assert db.contents(bank) == [new]

    @pytest.mark.parametrize(("old", "new"), [("works at A", "works at B"), ("在甲公司工作", "在乙公司工作")])
    def test_an_earlier_date_does_not_make_it_older_than_what_was_said_in_between(
        self, db: Database, bank: str, old: str, new: str
    ) -> None:
        for content, year in ((new, 2022), (new, 2019), (old, 2020)):
            store(db, bank, content, type="decision", slot="job", occurred_at=f"{year}-01-01Z")
        assert db.contents(bank) == [new]
        for year in range(2019, 2024):
            assert db.contents(bank, "works company 公司", valid_at=f"{year}-07-01Z") == [new], year

    @pytest.mark.parametrize(("old", "new"), [("works at A", "works at B"), ("在甲公司工作", "在乙公司工作")])
    def test_what_it_was_before_is_forgotten_and_restored_with_it(
        self, db: Database, bank: str, old: str, new: str
    ) -> None:
        for content, year in ((old, 2020), (new, 2022), (new, 2019)):
            memory_id = store(db, bank, content, type="decision", slot="job", occurred_at=f"{year}-01-01Z")
        known = now(db)

        def shown(**given: Any) -> list[str]:
            return db.contents(bank, "works company 公司", valid_at="2019-07-01Z", **given)

        assert shown() == [new]
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        assert (shown(), shown(as_of=known)) == ([], [new])
        db.call("restore", bank=bank, memory_id=memory_id)
        assert shown() == [new]

    def test_told_twice_it_is_known_once(self, db: Database, bank: str) -> None:
        told: dict[str, Any] = {"bank": bank, "type": "decision", "slot": "job"}
        outcomes = [
            db.one("store", content=f"works at {name}", occurred_at=f"{year}-01-01Z", **told)["outcome"]
            for name, year in (("A", 2020), ("B", 2022), ("B", 2019), ("B", 2019), ("B", 2019))
        ]
        assert outcomes == ["stored", "superseding", "merged", "merged", "merged"]
        assert len(db.call("state", bank=bank, states=["live", "superseded"])) == 3

    def test_a_value_that_was_thought_to_be_true_then_ends_with_it(self, db: Database, bank: str) -> None:
        told: dict[str, Any] = {"bank": bank, "type": "decision", "slot": "db"}
        for content, year in (("MySQL 8.0", 2020), ("MySQL 8.4", 2023), ("MySQL 8.4", 2021)):
            db.call("store", content=content, occurred_at=f"{year}-01-01Z", **told)
        for year, expected in ((2020, "MySQL 8.0"), (2021, "MySQL 8.4"), (2022, "MySQL 8.4"), (2024, "MySQL 8.4")):
            assert db.contents(bank, "MySQL", valid_at=f"{year}-07-01Z") == [expected]

    @pytest.mark.parametrize("way", ["slot", "supersedes"])
    @pytest.mark.parametrize(("old", "new"), [("SSH port is 22", "SSH port is 2222"), ("SSH端口是22", "SSH端口是2222")])
    def test_what_it_corrected_stays_away_whatever_date_it_gets(
        self, db: Database, bank: str, old: str, new: str, way: str
    ) -> None:
        slot = {"slot": "ssh.port"} if way == "slot" else {}
        first = store(db, bank, old, occurred_at="2024-01-02Z", **slot)
        named = {"supersedes": first} if way == "supersedes" else {}
        second = store(db, bank, new, occurred_at="2024-01-03Z", **slot, **named)
        again = db.one("store", bank=bank, content=new, occurred_at="2024-01-01Z", **slot)
        assert (again["outcome"], again["memory_id"]) == ("merged", second)
        assert db.one("store", bank=bank, content=old, occurred_at="2024-01-02Z", **slot)["outcome"] == "skipped"
        assert db.contents(bank) == [new]

    @pytest.mark.parametrize("doubt", [{"confidence": 0.3}, {"source": "inferred"}])
    def test_a_guess_moves_no_date(self, db: Database, bank: str, doubt: dict[str, Any]) -> None:
        first = store(db, bank, "alice lives in Kiel", occurred_at="2024-01-01Z")
        again = db.one("store", bank=bank, content="alice lives in Kiel", occurred_at="2022-01-01Z", **doubt)
        assert "it keeps its date: an earlier one was told with doubt" in again["reasons"]
        assert get(db, bank, first)["occurred_at"] == datetime(2024, 1, 1, tzinfo=UTC)


# ---- expiry ---------------------------------------------------------------------------------------------


class TestExpiry:
    @pytest.mark.parametrize("content", ["call the dentist", "给牙医打电话"])
    def test_a_todo_weighs_half_after_a_week_and_is_gone_after_thirty_days(
        self, db: Database, bank: str, content: str
    ) -> None:
        memory_id = store(db, bank, content, type="todo")
        kept = get(db, bank, memory_id)
        assert kept["expires_at"] - kept["created_at"] == pytest.approx(timedelta(days=30), abs=timedelta(seconds=5))
        age(db, memory_id, "confirmed_at", 7)
        assert db.call("recall", bank=bank, query=content)[0]["decay"] == pytest.approx(0.5, abs=0.001)
        age(db, memory_id, "expires_at", 0)
        assert db.contents(bank, content) == []
        assert get(db, bank, memory_id)["state"] == "expired"

    @pytest.mark.parametrize("content", ["call the dentist", "给牙医打电话"])
    def test_a_todo_that_is_done_stays_and_says_so(self, db: Database, bank: str, content: str) -> None:
        memory_id = store(db, bank, content, type="todo")
        done = db.one("complete", bank=bank, memory_id=memory_id)["complete"]
        assert db.one("complete", bank=bank, memory_id=memory_id)["complete"] == done, "a second time changes nothing"
        kept = get(db, bank, memory_id)
        assert (kept["completed_at"], kept["expires_at"], kept["version"]) == (done, None, 2)
        age(db, memory_id, "confirmed_at", 70)
        (row,) = db.call("recall", bank=bank, query=content)
        assert row["decay"] == pytest.approx(0.4966, abs=0.001), "it fades as other memories do"
        assert row["completed_at"] == done
        assert "todo, done just now" in db.one("recall_context", bank=bank, query=content)["block"]

    def test_only_what_is_to_be_done_can_be_done(self, db: Database, bank: str) -> None:
        assert "is a fact, not a todo" in refused(db, "HM004", "complete", bank=bank, memory_id=store(db, bank, "x"))
        assert "has no memory" in refused(db, "HM002", "complete", bank=bank, memory_id=uuid.uuid4())

    @pytest.mark.parametrize("content", ["alice is on the train", "用户在火车上"])
    def test_what_is_temporary_lives_for_a_week_and_what_is_told_for_as_long_as_told(
        self, db: Database, bank: str, content: str
    ) -> None:
        for arguments, lifetime in (
            ({"type": "temporary"}, timedelta(days=7)),
            ({"ttl": "2 hours"}, timedelta(hours=2)),
            ({"type": "temporary", "ttl": "2 hours"}, timedelta(hours=2)),
            ({"type": "todo", "expires_at": now(db) + timedelta(days=60)}, timedelta(days=60)),
        ):
            kept = get(db, bank, store(db, bank, f"{content} {len(arguments)} {lifetime}", **arguments))
            assert kept["expires_at"] - kept["created_at"] == pytest.approx(lifetime, abs=timedelta(seconds=5))
        assert get(db, bank, store(db, bank, content))["expires_at"] is None

    @pytest.mark.parametrize("content", ["The door code is 4711", "门的编号是4711"])
    def test_what_has_expired_is_gone_at_once_from_every_channel_with_no_sweeper_running(
        self, db: Database, bank: str, toy: str, content: str
    ) -> None:
        memory_id = store(
            db, bank, content, ttl="1 hour", slot="door", session_id="s", tags=["door"], embedding=NEAR, model=toy
        )
        ways: list[dict[str, Any]] = [
            {"query": content},
            {"embedding": NEAR},
            {"tags": ["door"]},
            {"session_id": "s"},
            {},
        ]
        assert all(db.contents(bank, **way) == [content] for way in ways)
        age(db, memory_id, "expires_at", 0)
        assert all(db.contents(bank, **way) == [] for way in ways)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ({"ttl": "1 day", "expires_at": "2999-01-01"}, "are two ends"),
            ({"ttl": "0"}, "ttl must lie between"),
            ({"ttl": "-1 day"}, "ttl must lie between"),
            ({"ttl": "2000 years"}, "ttl must lie between"),
            ({"expires_at": "2020-01-01"}, "has passed already"),
            ({"expires_at": "infinity"}, "out of range"),
        ],
    )
    def test_an_end_that_is_none_is_refused_and_stores_nothing(
        self, db: Database, bank: str, arguments: dict[str, str], says: str
    ) -> None:
        assert says in refused(db, "HM004", "store", bank=bank, content="x", **arguments)
        assert db.contents(bank) == []

    def test_a_policy_that_is_none_is_refused(self, db: Database, bank: str) -> None:
        for arguments, says in (
            ({"type": "opinion"}, "unknown type 'opinion'"),
            ({"type": "fact", "on_conflict": "'; --"}, "unknown policy '''; --'"),
            ({"type": "fact", "ttl": "-1 day"}, "ttl must lie between 0 and a thousand years"),
            ({"type": "fact", "weight": 1.5}, "weight must lie between 0 and 1"),
        ):
            assert says in refused(db, "HM004", "set_policy", bank=bank, **arguments)


class TestSweeping:
    def test_each_reason_puts_away_what_is_due_and_nothing_else(self, db: Database, bank: str) -> None:
        due = {
            "expired": store(db, bank, "expired", ttl="1 ms"),
            "not confirmed within 30 days": store(db, bank, "doubtful", confidence=0.3),
            "of little importance for 30 days": store(db, bank, "trivial", importance=0.2),
            "not recalled within 30 days, and of little value": store(db, bank, "unused", importance=0.4),
        }
        age(db, due["not confirmed within 30 days"], "changed_at", 31)
        kept = {
            "recalled": store(db, bank, "recalled", importance=0.4),
            "worth it": store(db, bank, "worth it", importance=0.5),
            "confirmed": store(db, bank, "confirmed", importance=0.4),
        }
        db.call("store", bank=bank, content="confirmed")
        for memory_id in (*list(due.values())[2:], *kept.values()):
            age(db, memory_id, "confirmed_at", 31)
        fresh = store(db, bank, "fresh but trivial", importance=0.1)
        assert db.one("note_recall", bank=bank, memory_ids=[kept["recalled"]])["note_recall"] == 1
        first_three = [{"task": reason, "affected": 1} for reason in list(due)[:3]]
        with db.connection.transaction(force_rollback=True):
            assert db.call("sweep", bank=bank) == first_three, "recalls are not noted for long enough"
        db.rows(
            "UPDATE hindsight.memory_use SET first_at = now() - interval '31 days' WHERE memory_id = %s",
            (kept["recalled"],),
        )
        assert db.call("sweep", bank=bank) == [{"task": reason, "affected": 1} for reason in due]
        assert db.call("sweep", bank=bank) == []
        for reason, memory_id in due.items():
            assert get(db, bank, memory_id)["state"] == "archived"
            last = db.call("history", bank=bank, memory_id=memory_id)[-1]
            assert (last["action"], last["reason"]) == ("archived", reason)
        assert all(get(db, bank, memory_id)["state"] == "live" for memory_id in (*kept.values(), fresh))

    def test_it_puts_away_no_more_at_once_than_it_is_told(self, db: Database, bank: str) -> None:
        for number in range(5):
            store(db, bank, f"passing {number}", ttl="1 ms")
        assert [db.call("sweep", bank=bank, most=2) for _ in range(4)] == [
            [{"task": "expired", "affected": affected}] for affected in (2, 2, 1)
        ] + [[]]
        for most in (0, 10_001, None):
            assert "100 by default" in refused(db, "HM004", "sweep", bank=bank, most=most)

    def test_what_a_writer_holds_is_left_for_the_next_time(self, db: Database, bank: str) -> None:
        ids = [store(db, bank, f"passing {number}", ttl="1 ms") for number in range(3)]
        writer = Database(db.url)
        with writer.connection.transaction():
            writer.rows("SELECT 1 FROM hindsight.memory WHERE memory_id = %s FOR UPDATE", (ids[0],))
            db.rows("SET statement_timeout = '5 s'")
            assert db.call("sweep", bank=bank) == [{"task": "expired", "affected": 2}]
            db.rows("RESET statement_timeout")
        writer.close()
        assert db.call("sweep", bank=bank) == [{"task": "expired", "affected": 1}]

    def test_a_plain_role_maintains_the_banks_that_it_may_write_to(
        self, db: Database, bank: str, login: Callable[..., str]
    ) -> None:
        plain = Database(login(db.url, "hindsight_app"))
        own = f"own-{uuid.uuid4().hex[:8]}"
        plain.call("create_bank", bank=own)
        reads, hidden = bank, f"hidden-{uuid.uuid4().hex[:8]}"
        db.call("create_bank", bank=hidden)
        db.call("grant_access", bank=reads, principal=plain.value("SELECT session_user::text"), rights="reader")
        for name in (own, reads, hidden):
            for number in range(2):
                db.call("store", bank=name, content=f"passing {number}", ttl="1 ms")
        plain.rows("CALL hindsight.maintain_all()")
        plain.close()
        states = {
            name: db.rows("SELECT archived, expired FROM hindsight.status() WHERE bank = %s", (name,))[0]
            for name in (own, reads, hidden)
        }
        assert states[own] == {"archived": 2, "expired": 0}
        assert states[reads] == states[hidden] == {"archived": 0, "expired": 2}

    def test_recalls_are_noted_by_readers_and_of_the_banks_own_memories_only(
        self, db: Database, bank: str, other_bank: str
    ) -> None:
        mine, theirs = store(db, bank, "mine"), store(db, other_bank, "theirs")
        for _ in range(2):
            assert (
                db.one("note_recall", bank=bank, memory_ids=[mine, mine, theirs, uuid.uuid4(), None])["note_recall"]
                == 1
            )
        rows = db.rows(
            "SELECT memory_id, recalls FROM hindsight.memory_use WHERE memory_id = ANY (%s)", ([mine, theirs],)
        )
        assert rows == [{"memory_id": mine, "recalls": 2}]
        assert db.one("note_recall", bank=bank, memory_ids=[])["note_recall"] == 0


# ---- forgetting -----------------------------------------------------------------------------------------


class TestForgetting:
    @pytest.mark.parametrize(
        ("content", "beside", "word"),
        [("alice likes saffron", "she cooks risotto", "saffron"), ("用户喜欢藏红花", "她做烩饭", "藏红花")],
    )
    def test_a_forgotten_memory_is_not_reached_through_what_is_near_it_either(
        self, db: Database, bank: str, content: str, beside: str, word: str
    ) -> None:
        memory_id = store(db, bank, content, session_id="s", slot="likes", entities=[word])
        near = store(db, bank, beside, session_id="s")
        db.call("link", bank=bank, from_id=near, to_id=memory_id)
        assert content in db.contents(bank, beside)
        assert [row["content"] for row in db.call("neighbours", bank=bank, memory_id=near)] == [content]
        assert db.one("should_recall", bank=bank, message=f"{word}?")["recall"] is True
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        assert db.contents(bank, beside, include_pending=True, min_score=0) == [beside]
        assert db.call("neighbours", bank=bank, memory_id=near) == []
        assert db.one("should_recall", bank=bank, message=f"{word}?")["recall"] is False
        assert db.one("context_block", bank=bank, memory_ids=[memory_id])["block"] == ""
        assert db.contents(bank, word, valid_at=now(db)) == []

    @pytest.mark.parametrize(
        ("content", "reworded"), [("alice uses vim", "alice  uses vim "), ("用户用 vim", " 用户用 vim")]
    )
    def test_what_was_said_before_it_was_forgotten_does_not_come_back_and_a_fresh_statement_does(
        self, db: Database, bank: str, content: str, reworded: str
    ) -> None:
        said_at = now(db) - timedelta(hours=1)
        first = store(db, bank, content, slot="editor", occurred_at=said_at, session_id="old")
        db.call("forget", bank=bank, memory_id=first, reason="asked to")
        for words, arguments in ((reworded, {}), ("alice uses emacs", {"slot": "editor"})):
            again = db.one("store", bank=bank, content=words, occurred_at=said_at, session_id="old", **arguments)
            assert (again["outcome"], again["memory_id"]) == ("skipped", None)
            assert "what was said before does not come back" in again["reasons"][0]
        assert db.contents(bank) == []
        events = db.rows(
            "SELECT e.before, e.after FROM hindsight.event e JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s AND action = 'skipped'",
            (bank,),
        )  # fmt: skip
        assert len(events) == 2
        assert content not in str(events)
        fresh = db.one("store", bank=bank, content=content, slot="editor", source="user")
        assert fresh["outcome"] == "stored"
        assert fresh["memory_id"] != first
        assert db.contents(bank) == [content]

    @pytest.mark.parametrize(
        ("bob", "dan"),
        [("The CEO is Bob", "The CEO is Dan"), ("公司的首席执行官是王伟", "公司的首席执行官是李娜")],
    )
    @pytest.mark.parametrize("session", [None, "another"])
    def test_another_value_of_the_slot_that_was_told_elsewhere_is_other_information_and_comes_in(
        self, db: Database, bank: str, bob: str, dan: str, session: str | None
    ) -> None:
        said_at = now(db) - timedelta(days=2)
        first = store(db, bank, bob, slot="company.ceo", occurred_at=said_at, session_id="old")
        db.call("forget", bank=bank, memory_id=first, reason="she is not")
        told: dict[str, Any] = {"slot": "company.ceo", "occurred_at": said_at + timedelta(days=1)}
        assert db.one("store", bank=bank, content=dan, session_id="old", **told)["outcome"] == "skipped"
        assert db.one("store", bank=bank, content=dan, session_id=session, **told)["outcome"] == "stored"
        assert db.one("store", bank=bank, content=bob, session_id=session, **told)["outcome"] == "skipped"
        assert db.contents(bank) == [dan]

    def test_a_whole_bank_is_forgotten_in_one_statement_and_another_is_untouched(
        self, db: Database, bank: str, other_bank: str
    ) -> None:
        for name in (bank, other_bank):
            db.rows("SELECT count(*) FROM generate_series(1, 1000) AS n, hindsight.store(%s, 'memory ' || n)", (name,))
        assert db.one("forget_bank", bank=bank, reason="asked to")["forget_bank"] == 1000
        counts = {row["bank"]: (row["live"], row["deleted"]) for row in db.call("status")}
        assert (counts[bank], counts[other_bank]) == ((0, 1000), (1000, 0))
        assert db.contents(bank, "memory 7", min_score=0) == []
        assert db.one("forget_bank", bank=bank, reason="asked to")["forget_bank"] == 0

    def test_a_bank_is_forgotten_by_its_owner_and_for_a_reason(
        self, db: Database, bank: str, login: Callable[..., str]
    ) -> None:
        plain = Database(login(db.url, "hindsight_app"))
        store(db, bank, "x")
        db.call("grant_access", bank=bank, principal=plain.value("SELECT session_user::text"), rights="writer")
        assert "this needs owner" in refused(plain, "HM003", "forget_bank", bank=bank, reason="asked to")
        plain.close()
        for reason in (None, "", "  "):
            assert "reason is empty" in refused(db, "HM005", "forget_bank", bank=bank, reason=reason)
            assert "reason is empty" in refused(
                db, "HM005", "forget_matching", bank=bank, reason=reason, types=["fact"]
            )
        assert db.contents(bank) == ["x"]

    @pytest.mark.parametrize(
        ("filters", "gone"),
        [
            ({"types": ["todo", "preference"]}, {"todo"}),
            ({"tags": ["B", "nothing"]}, {"tagged"}),
            ({"all_tags": ["a", "b"]}, {"tagged"}),
            ({"all_tags": ["a", "z"]}, set()),
            ({"session_id": "s1"}, {"in a session"}),
            ({"source": "document"}, {"from a document"}),
            ({"since": "2024-01-01Z"}, {"todo", "tagged", "in a session", "doubtful"}),
            ({"until": "2023-12-31Z"}, {"from a document"}),
            ({"since": "2022-01-01Z", "until": "2023-12-31Z", "source": "document"}, {"from a document"}),
            ({"types": ["fact"], "source": "document", "session_id": "s1"}, set()),
            ({"session_id": "' OR '1'='1"}, set()),
            ({"tags": ["') OR true --", '"}', "%"]}, set()),
        ],
    )
    def test_what_passes_every_filter_is_forgotten_after_a_dry_run_has_listed_it(
        self, db: Database, bank: str, other_bank: str, filters: dict[str, Any], gone: set[str]
    ) -> None:
        everything = {
            "todo": {"type": "todo"},
            "tagged": {"tags": ["a", "b"]},
            "in a session": {"session_id": "s1"},
            "from a document": {"source": "document", "occurred_at": "2023-06-01Z"},
            "doubtful": {"confidence": 0.3},
        }
        for name in (bank, other_bank):
            for content, arguments in everything.items():
                store(db, name, content, **arguments)
        listed = db.call("forget_matching", bank=bank, reason="asked to", dry_run=True, **filters)
        assert {row["content"] for row in listed} == gone
        assert {row["outcome"] for row in listed} <= {"would be forgotten"}
        assert set(db.contents(bank, include_pending=True)) == set(everything), "a dry run forgets nothing"
        done = db.call("forget_matching", bank=bank, reason="asked to", **filters)
        assert [row["memory_id"] for row in done] == [row["memory_id"] for row in listed]
        assert {row["outcome"] for row in done} <= {"forgotten"}
        assert set(db.contents(bank, include_pending=True)) == set(everything) - gone
        assert set(db.contents(other_bank, include_pending=True)) == set(everything)
        for row in done:
            last = db.call("history", bank=bank, memory_id=row["memory_id"])[-1]
            assert (last["action"], last["reason"]) == ("forgotten", "asked to")

    @pytest.mark.parametrize(
        ("filters", "says"),
        [
            ({}, "needs a filter"),
            ({"types": [], "tags": []}, "is empty"),
            ({"tags": [" "]}, "is empty"),
            ({"types": ["opinion"]}, "unknown type 'opinion'"),
            ({"source": "' OR true"}, "unknown source ''' OR true'"),
            ({"since": "-infinity"}, "since is out of range"),
        ],
    )
    def test_without_a_filter_or_with_one_that_is_none_nothing_is_forgotten(
        self, db: Database, bank: str, filters: dict[str, Any], says: str
    ) -> None:
        store(db, bank, "x")
        assert says in refused(db, "HM004", "forget_matching", bank=bank, reason="asked to", **filters)
        assert db.contents(bank) == ["x"]

    @pytest.mark.parametrize("again", [{"content": "用户用 vim"}, {"content": "用户用 helix", "slot": "editor"}])
    def test_a_content_or_slot_that_is_taken_meanwhile_is_restored_when_it_is_free_again(
        self, db: Database, bank: str, again: dict[str, Any]
    ) -> None:
        memory_id = store(db, bank, "用户用 vim", slot="editor")
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        holder = store(db, bank, **again)
        assert f"memory {holder} holds the same" in refused(db, "HM006", "restore", bank=bank, memory_id=memory_id)
        db.call("forget", bank=bank, memory_id=holder, reason="asked to")
        assert db.one("restore", bank=bank, memory_id=memory_id)["restore"] == "live"
        assert db.contents(bank) == ["用户用 vim"]

    def test_a_restored_memory_is_of_the_state_that_it_was(self, db: Database, bank: str) -> None:
        old = store(db, bank, "one", slot="s")
        store(db, bank, "two", slot="s")
        doubtful = store(db, bank, "perhaps", confidence=0.2)
        for memory_id, state in ((old, "superseded"), (doubtful, "pending")):
            db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
            assert db.one("restore", bank=bank, memory_id=memory_id)["restore"] == state
            assert get(db, bank, memory_id)["state"] == state


class TestWhatStandsOnAForgottenMemory:
    @pytest.fixture(
        params=[
            ("alice's salary is 4711", "summary: alice spoke of her salary, 4711"),
            ("用户的工资是4711", "摘要：用户谈到工资4711"),
        ]
    )
    def chain(self, request: pytest.FixtureRequest, db: Database, bank: str) -> list[uuid.UUID]:
        """A memory, a summary of it, and a summary of that; and another memory that the last one stands on too."""
        content, summary = request.param
        source = store(db, bank, content)
        first = store(db, bank, summary, type="summary", derived_from=[source])
        beside = store(db, bank, "alice likes tea")
        second = store(db, bank, f"month: {summary}", type="summary", derived_from=[first, beside])
        return [source, first, second, beside]

    def states(self, db: Database, bank: str, ids: list[uuid.UUID]) -> list[str]:
        known = {
            row["memory_id"]: row["state"] for row in db.call("state", bank=bank, states=["live", "pending", "deleted"])
        }
        return [known[memory_id] for memory_id in ids]

    def test_no_summary_of_it_shows_it_until_it_is_restored(
        self, db: Database, bank: str, chain: list[uuid.UUID]
    ) -> None:
        assert len([content for content in db.contents(bank) if "4711" in content]) == 3
        db.call("forget", bank=bank, memory_id=chain[0], reason="asked to")
        assert db.contents(bank, "salary 工资 4711", min_score=0) == []
        assert self.states(db, bank, chain) == ["deleted", "pending", "pending", "live"]
        assert get(db, bank, chain[2])["pending_reason"] == "it stands on a forgotten memory"
        db.call("restore", bank=bank, memory_id=chain[0])
        assert self.states(db, bank, chain) == ["live"] * 4

    def test_it_stays_doubted_while_something_else_that_it_stands_on_is_forgotten(
        self, db: Database, bank: str, chain: list[uuid.UUID]
    ) -> None:
        for memory_id in (chain[0], chain[3]):
            db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        db.call("restore", bank=bank, memory_id=chain[0])
        assert self.states(db, bank, chain) == ["live", "live", "pending", "deleted"]
        db.call("restore", bank=bank, memory_id=chain[3])
        assert self.states(db, bank, chain) == ["live"] * 4

    def test_forgetting_by_filter_doubts_it_too(self, db: Database, bank: str, chain: list[uuid.UUID]) -> None:
        db.call("forget_matching", bank=bank, reason="asked to", types=["fact"])
        assert self.states(db, bank, chain) == ["deleted", "pending", "pending", "deleted"]

    @pytest.mark.parametrize("first_forgotten", [0, 1])
    def test_a_summary_is_not_restored_into_belief_while_its_source_is_forgotten(
        self, db: Database, bank: str, chain: list[uuid.UUID], first_forgotten: int
    ) -> None:
        source, summary = chain[:2]
        for memory_id in (chain[first_forgotten], chain[1 - first_forgotten]):
            db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        assert db.one("restore", bank=bank, memory_id=summary)["restore"] == "pending"
        assert db.contents(bank, "salary 工资 4711", min_score=0) == []
        db.call("restore", bank=bank, memory_id=source)
        assert self.states(db, bank, chain) == ["live"] * 4

    def test_a_doubtful_summary_is_not_believed_for_being_said_again_while_its_source_is_forgotten(
        self, db: Database, bank: str
    ) -> None:
        source = store(db, bank, "alice's salary is 4711")
        summary = store(db, bank, "she earns 4711", type="summary", confidence=0.4, derived_from=[source])
        db.call("forget", bank=bank, memory_id=source, reason="asked to")
        db.call("update_memory", bank=bank, memory_id=summary, confidence=0.9)
        assert get(db, bank, summary)["state"] == "pending"
        db.call("restore", bank=bank, memory_id=source)
        assert get(db, bank, summary)["state"] == "live"

    def test_a_doubtful_summary_is_as_doubtful_as_before_when_its_source_is_restored(
        self, db: Database, bank: str
    ) -> None:
        source = store(db, bank, "alice's salary is 4711")
        summary = store(db, bank, "she earns 4711", type="summary", confidence=0.4, derived_from=[source])
        db.call("forget", bank=bank, memory_id=source, reason="asked to")
        db.call("restore", bank=bank, memory_id=source)
        assert get(db, bank, summary)["pending_reason"] == "low confidence"

    def test_two_that_stand_on_each_other_are_restored_together(
        self, db: Database, bank: str, chain: list[uuid.UUID]
    ) -> None:
        db.call("link", bank=bank, from_id=chain[0], to_id=chain[2], relation="derived_from")
        db.call("forget", bank=bank, memory_id=chain[0], reason="asked to")
        assert db.one("restore", bank=bank, memory_id=chain[0])["restore"] == "live"
        assert self.states(db, bank, chain) == ["live"] * 4

    def test_a_summary_that_says_the_same_as_what_it_was_made_of_is_merged_into_it(
        self, db: Database, bank: str, chain: list[uuid.UUID]
    ) -> None:
        content = get(db, bank, chain[0])["content"]
        again = db.one("store", bank=bank, content=content, type="summary", derived_from=[chain[0]])
        assert (again["outcome"], again["memory_id"]) == ("merged", chain[0])
        for unknown in (uuid.uuid4(), None):
            assert "has no memory" in refused(db, "HM002", "store", bank=bank, content=content, derived_from=[unknown])

    @pytest.mark.parametrize("relation", [None, "derived_from"])
    def test_what_is_unlinked_from_it_stands_on_it_no_more(
        self, db: Database, bank: str, chain: list[uuid.UUID], relation: str | None
    ) -> None:
        source, summary, month, beside = chain
        db.call("forget", bank=bank, memory_id=source, reason="asked to")
        db.call("forget", bank=bank, memory_id=beside, reason="asked to")
        db.call("unlink", bank=bank, from_id=summary, to_id=source, relation="related")
        assert self.states(db, bank, chain) == ["deleted", "pending", "pending", "deleted"]
        assert db.one("unlink", bank=bank, from_id=summary, to_id=source, relation=relation)["unlink"] == 1
        assert self.states(db, bank, chain) == ["deleted", "live", "pending", "deleted"], (
            "the other one stands on tea, too"
        )
        db.call("unlink", bank=bank, from_id=month, to_id=beside)
        assert self.states(db, bank, chain) == ["deleted", "live", "live", "deleted"]
        last = db.call("history", bank=bank, memory_id=month)[-1]
        assert (last["action"], last["reason"]) == ("believed", "what it stood on was unlinked")

    def test_somebody_who_knows_may_confirm_it(self, db: Database, bank: str, chain: list[uuid.UUID]) -> None:
        db.call("forget", bank=bank, memory_id=chain[0], reason="asked to")
        assert db.one("confirm", bank=bank, memory_id=chain[1])["confirm"] == "live"


# ---- hindsight ------------------------------------------------------------------------------------------


class TestState:
    @pytest.mark.parametrize(("old", "new"), [("The port is 22", "The port is 2222"), ("端口是22", "端口是2222")])
    def test_a_moment_is_shown_as_it_was_with_the_values_and_states_of_then(
        self, db: Database, bank: str, old: str, new: str
    ) -> None:
        start = now(db)
        first = store(db, bank, old, slot="port", confidence=0.8)
        doubtful = store(db, bank, "perhaps 可能", confidence=0.3)
        stored = now(db)
        second = store(db, bank, new, slot="port", tags=["ssh"])
        db.call("update_memory", bank=bank, memory_id=doubtful, content="surely 一定", confidence=0.9)
        corrected = now(db)
        db.call("forget", bank=bank, memory_id=second, reason="asked to")

        def shown(as_of: datetime | None, *states: str) -> dict[str, str]:
            given = {"states": list(states)} if states else {}
            return {row["content"]: row["state"] for row in db.call("state", bank=bank, as_of=as_of, **given)}

        every = ("live", "pending", "expired", "superseded", "archived", "deleted")
        assert shown(start, *every) == {}
        assert shown(stored) == {old: "live"}
        assert shown(stored, *every) == {old: "live", "perhaps 可能": "pending"}
        assert shown(corrected, *every) == {old: "superseded", new: "live", "surely 一定": "live"}
        assert shown(None) == {"surely 一定": "live"}
        assert shown(None, "deleted", "superseded") == {old: "superseded", new: "deleted"}
        (then,) = db.call("state", bank=bank, as_of=stored)
        assert (then["memory_id"], then["confidence"], then["version"], then["superseded_by"]) == (first, 0.8, 1, None)
        (now_deleted,) = db.call("state", bank=bank, states=["deleted"])
        assert (now_deleted["tags"], now_deleted["version"]) == (["ssh"], 2)

    def test_expiry_counts_at_the_moment_that_is_asked_for(self, db: Database, bank: str) -> None:
        store(db, bank, "passing", ttl="1 hour")
        later = now(db) + timedelta(hours=2)
        assert [row["state"] for row in db.call("state", bank=bank, as_of=later, states=["live", "expired"])] == [
            "expired"
        ]
        assert [row["state"] for row in db.call("state", bank=bank)] == ["live"]

    def test_the_newest_comes_first_by_when_it_was_said(self, db: Database, bank: str) -> None:
        store(db, bank, "now")
        store(db, bank, "long ago", occurred_at=LONG_AGO)
        store(db, bank, "just now")
        assert [row["content"] for row in db.call("state", bank=bank)] == ["just now", "now", "long ago"]

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (
                {"states": ["live", "gone"]},
                "unknown state 'gone' States are live, pending, expired, superseded, archived, deleted.",
            ),
            ({"states": ["' OR true"]}, "unknown state ''' OR true'"),
            ({"states": [None]}, "unknown state NULL"),
            ({"as_of": "-infinity"}, "as_of is out of range"),
        ],
    )
    def test_what_is_no_state_or_no_moment_is_refused(
        self, db: Database, bank: str, arguments: dict[str, Any], says: str
    ) -> None:
        assert says in refused(db, "HM004", "state", bank=bank, **arguments)

    def test_no_states_named_are_the_live_ones(self, db: Database, bank: str) -> None:
        store(db, bank, "x")
        store(db, bank, "y", confidence=0.1)
        for states in ([], None):
            assert [row["content"] for row in db.call("state", bank=bank, states=states)] == ["x"]

    def test_a_bank_without_rights_has_no_past(self, db: Database, bank: str, login: Callable[..., str]) -> None:
        plain = Database(login(db.url, "hindsight_app"))
        assert "unknown bank" in refused(plain, "HM001", "state", bank=bank)
        assert "unknown bank" in refused(plain, "HM001", "diff", bank=bank, since=LONG_AGO)
        db.call("grant_access", bank=bank, principal=plain.value("SELECT session_user::text"), rights="reader")
        assert plain.call("state", bank=bank) == plain.call("diff", bank=bank, since=LONG_AGO) == []
        plain.close()


class TestDiff:
    def lines(self, db: Database, bank: str, since: datetime, until: datetime | None = None) -> list[tuple[Any, ...]]:
        return [
            (row["change"], row["content"], row["previous"], row["related_id"], row["reason"])
            for row in db.call("diff", bank=bank, since=since, until=until)
        ]

    @pytest.mark.parametrize(
        ("old", "new", "newest"),
        [("The port is 22", "The port is 2222", "The port is 2022"), ("端口是22", "端口是2222", "端口是2022")],
    )
    def test_a_correction_is_one_line_with_what_was_said_before(
        self, db: Database, bank: str, old: str, new: str, newest: str
    ) -> None:
        start = now(db)
        first = store(db, bank, old, slot="port")
        stored = now(db)
        second = store(db, bank, new, slot="port")
        db.call("update_memory", bank=bank, memory_id=second, content=newest, reason="a typing error")
        third = store(db, bank, "something else 其他", supersedes=second)
        assert self.lines(db, bank, start) == [
            ("learned", old, None, None, None),
            ("corrected", new, old, first, "slot port has a new value"),
            ("corrected", newest, new, None, "a typing error"),
            ("corrected", "something else 其他", newest, second, "superseded by name"),
        ]
        assert [row["memory_id"] for row in db.call("diff", bank=bank, since=stored)] == [second, second, third]

    def test_what_was_stored_and_forgotten_in_between_shows_both(self, db: Database, bank: str) -> None:
        start = now(db)
        memory_id = store(db, bank, "alice likes saffron")
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        forgotten = now(db)
        db.call("restore", bank=bank, memory_id=memory_id, reason="a mistake")
        assert self.lines(db, bank, start, forgotten) == [
            ("learned", "alice likes saffron", None, None, None),
            ("forgotten", "alice likes saffron", None, None, "asked to"),
        ]
        assert self.lines(db, bank, forgotten) == [("restored", "alice likes saffron", None, None, "a mistake")]

    def test_belief_is_told_and_what_was_never_believed_is_not(self, db: Database, bank: str) -> None:
        start = now(db)
        doubtful = store(db, bank, "perhaps", confidence=0.3)
        guess = store(db, bank, "alice uses Linux", source="inferred")
        todo = store(db, bank, "call the dentist", type="todo")
        for _ in range(3):
            store(db, bank, "call the dentist", type="todo")
        stored = now(db)
        db.call("confirm", bank=bank, memory_id=doubtful, reason="alice said so")
        db.call("confirm", bank=bank, memory_id=guess)
        db.call("complete", bank=bank, memory_id=todo)
        db.call("update_memory", bank=bank, memory_id=doubtful, confidence=0.2, reason="she took it back")
        assert [line[:2] for line in self.lines(db, bank, start, stored)] == [
            ("learned", "alice uses Linux"),
            ("learned", "call the dentist"),
        ]
        assert self.lines(db, bank, stored) == [
            ("believed", "perhaps", None, None, "alice said so"),
            ("believed", "alice uses Linux", None, None, None),
            ("completed", "call the dentist", None, None, None),
            ("doubted", "perhaps", None, None, "she took it back"),
        ]

    def test_an_expiry_is_told_once_when_it_happened_whether_swept_or_not(self, db: Database, bank: str) -> None:
        start = now(db)
        trivial = store(db, bank, "trivial", importance=0.1)
        memory_id = store(db, bank, "passing", ttl="20 ms")
        ends = get(db, bank, memory_id)["expires_at"]
        db.rows("SELECT pg_sleep(0.03)")
        expired = now(db)
        told = db.call("diff", bank=bank, since=start, until=expired)
        assert [(row["change"], row["content"]) for row in told] == [
            ("learned", "trivial"),
            ("learned", "passing"),
            ("expired", "passing"),
        ]
        assert told[-1]["at"] == ends
        age(db, trivial, "confirmed_at", 31)
        db.call("sweep", bank=bank)
        assert db.call("diff", bank=bank, since=start, until=expired) == told
        assert self.lines(db, bank, expired) == [
            ("archived", "trivial", None, None, "of little importance for 30 days")
        ]

    @pytest.mark.parametrize("content", ["alice may move", "用户可能搬家"])
    def test_what_becomes_of_a_memory_that_was_never_believed_is_not_told(
        self, db: Database, bank: str, content: str
    ) -> None:
        start = now(db)
        doubtful, expired, old = (
            store(db, bank, f"{content} {number}", confidence=0.3, **given)
            for number, given in enumerate([{}, {"ttl": "20 ms"}, {}])
        )
        db.call("forget", bank=bank, memory_id=doubtful, reason="asked to")
        db.call("restore", bank=bank, memory_id=doubtful)
        db.call("reject", bank=bank, memory_id=doubtful)
        age(db, old, "changed_at", 31)
        db.rows("SELECT pg_sleep(0.03)")
        db.call("sweep", bank=bank)
        assert get(db, bank, expired)["state"] == get(db, bank, old)["state"] == "archived"
        assert self.lines(db, bank, start) == []

    @pytest.mark.parametrize("content", ["alice is on the train", "用户在火车上"])
    def test_what_is_restored_after_its_time_was_over_is_told_to_be_over(
        self, db: Database, bank: str, content: str
    ) -> None:
        memory_id = store(db, bank, content, ttl="1 hour")
        start = now(db)
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        age(db, memory_id, "expires_at", 0)
        assert db.one("restore", bank=bank, memory_id=memory_id, reason="a mistake")["restore"] == "expired"
        assert self.lines(db, bank, start) == [
            ("forgotten", content, None, None, "asked to"),
            ("restored", content, None, None, "a mistake"),
            ("expired", content, None, None, None),
        ]

    @pytest.mark.parametrize(("old", "new"), [("The port is 22", "The port is 2222"), ("端口是22", "端口是2222")])
    def test_what_an_erased_memory_took_the_place_of_went_without_a_successor(
        self, db: Database, bank: str, old: str, new: str
    ) -> None:
        first = store(db, bank, old, slot="port")
        start = now(db)
        second = store(db, bank, new, slot="port")
        db.call("erase_memory", bank=bank, memory_id=second, reason="at their request")
        assert self.lines(db, bank, start) == [("forgotten", old, None, None, "what took its place was erased")]
        assert db.call("diff", bank=bank, since=start)[0]["memory_id"] == first

    def test_a_value_of_before_that_is_told_late_names_the_one_that_is_known(self, db: Database, bank: str) -> None:
        held = store(db, bank, "works at B", type="decision", slot="job", occurred_at="2024-01-01Z")
        start = now(db)
        store(db, bank, "works at A", type="decision", slot="job", occurred_at="2022-01-01Z")
        assert self.lines(db, bank, start) == [("learned", "works at A", None, held, "slot job has a newer value")]

    def test_two_stretches_one_after_the_other_tell_each_line_once(self, db: Database, bank: str) -> None:
        start = now(db)
        ids = [store(db, bank, f"memory {number}") for number in range(10)]
        for memory_id in ids[::2]:
            db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        whole = db.call("diff", bank=bank, since=start)
        assert Counter(row["change"] for row in whole) == {"learned": 10, "forgotten": 5}
        for cut in (row["at"] for row in whole):
            assert db.call("diff", bank=bank, since=start, until=cut) + db.call("diff", bank=bank, since=cut) == whole

    @pytest.mark.parametrize(
        ("since", "until", "says"),
        [
            (None, None, "since must come before until, got NULL"),
            ("2026-02-02Z", "2026-02-01Z", "since must come before until"),
            ("-infinity", None, "since is out of range"),
            ("2026-02-02Z", "infinity", "until is out of range"),
        ],
    )
    def test_what_is_no_stretch_of_time_is_refused(
        self, db: Database, bank: str, since: str | None, until: str | None, says: str
    ) -> None:
        assert says in refused(db, "HM004", "diff", bank=bank, since=since, until=until)


class TestWhatUsersTried:
    """Found by trying to break it."""

    @pytest.mark.parametrize(
        ("said", "again"),
        [
            ("The user lives in Berlin", "the user lives in  Berlin."),
            ("用户住在北京", "用户住在北京。"),
            ("Carol owns a boat", "CAROL OWNS A BOAT"),
        ],
    )
    def test_what_was_forgotten_does_not_come_back_in_another_spelling(
        self, db: Database, bank: str, said: str, again: str
    ) -> None:
        before = datetime.now(UTC) - timedelta(days=1)
        memory_id = db.one("store", bank=bank, content=said, occurred_at=before)["memory_id"]
        db.call("forget", bank=bank, memory_id=memory_id, reason="test")
        assert db.one("store", bank=bank, content=again, occurred_at=before)["outcome"] == "skipped"
        assert db.one("store", bank=bank, content=again)["outcome"] == "stored"

    def test_an_empty_filter_does_not_forget_more_and_no_dry_run_is_a_dry_run(self, db: Database, bank: str) -> None:
        db.call("store", bank=bank, content="The port is 101", tags=["x"])
        for empty in ({"tags": []}, {"tags": [""]}, {"all_tags": []}, {"types": []}):
            assert "empty" in refused(db, "HM004", "forget_matching", bank=bank, reason="r", session_id="s", **empty)
        rows = db.rows(
            "SELECT outcome FROM hindsight.forget_matching(%s, 'r', tags => '{x}', dry_run => NULL)", (bank,)
        )
        assert rows == [{"outcome": "would be forgotten"}]
        assert db.contents(bank) == ["The port is 101"]

    def test_a_todo_that_is_done_is_open_again_when_it_is_told_again(self, db: Database, bank: str) -> None:
        memory_id = db.one("store", bank=bank, content="给植物浇水", type="todo")["memory_id"]
        db.call("complete", bank=bank, memory_id=memory_id)
        again = db.one("store", bank=bank, content="给植物浇水", type="todo")
        assert (again["outcome"], again["memory_id"]) == ("merged", memory_id)
        assert "it was done, and is to be done again" in again["reasons"]
        assert db.one("get", bank=bank, memory_id=memory_id)["completed_at"] is None

    def test_a_user_who_states_what_was_a_guess_makes_it_believed(self, db: Database, bank: str) -> None:
        memory_id = db.one("store", bank=bank, content="会议室是101", confidence=0.3)["memory_id"]
        db.call("store", bank=bank, content="会议室是101", source="user")
        assert db.one("get", bank=bank, memory_id=memory_id)["state"] == "live"

    def test_what_is_dated_to_come_does_not_hold_a_slot_for_years(self, db: Database, bank: str) -> None:
        given = {"bank": bank, "type": "preference", "slot": "theme"}
        db.call("store", content="light", occurred_at=datetime(2099, 1, 1, tzinfo=UTC), **given)
        assert db.one("store", content="dark", **given)["outcome"] == "superseding"

    def test_an_update_does_not_end_a_memory_in_the_past(self, db: Database, bank: str) -> None:
        memory_id = db.one("store", bank=bank, content="one fact")["memory_id"]
        ended = datetime.now(UTC) - timedelta(days=1)
        assert "passed already" in refused(
            db, "HM004", "update_memory", bank=bank, memory_id=memory_id, expires_at=ended
        )
