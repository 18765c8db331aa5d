"""Changing, forgetting and restoring, and the history that they leave."""

import uuid

import psycopg
import pytest

from tests.conftest import Database


@pytest.fixture
def toy(db: Database) -> str:
    name = f"toy-{uuid.uuid4().hex[:8]}"
    db.call("register_model", model=name, dimensions=3)
    return name


def store(db: Database, bank: str, content: str, **arguments: object) -> uuid.UUID:
    memory_id: uuid.UUID = db.one("store", bank=bank, content=content, **arguments)["memory_id"]
    return memory_id


class TestUpdating:
    @pytest.mark.parametrize(("old", "new"), [("Deploys on Friday", "Deploys on Monday"), ("周五部署", "周一部署")])
    def test_a_new_content_keeps_the_rest_and_the_old_text_is_in_the_history(
        self, db: Database, bank: str, toy: str, old: str, new: str
    ) -> None:
        memory_id = store(
            db, bank, old, tags=["ops"], metadata='{"a": 1}', session_id="s1", embedding="[1,0,0]", model=toy
        )
        before = db.one("get", bank=bank, memory_id=memory_id)
        version = db.one("update_memory", bank=bank, memory_id=memory_id, content=new, reason="moved")["update_memory"]
        after = db.one("get", bank=bank, memory_id=memory_id)
        kept = ("created_at", "tags", "metadata", "session_id", "confidence", "importance", "type", "confirmations")
        assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
        assert (after["content"], after["version"], version) == (new, 2, 2)
        assert after["embedded"] is False, "the old vector is of a text that is no longer there"
        last = db.call("history", bank=bank, memory_id=memory_id)[-1]
        assert (last["action"], last["reason"]) == ("updated", "moved")
        assert (last["before"]["content"], last["after"]["content"]) == (old, new)

    def test_the_old_text_no_longer_wins(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "The cat is called Miso")
        other = store(db, bank, "The cat food is Miso brand")
        db.call("update_memory", bank=bank, memory_id=memory_id, content="The dog is called Rex")
        rows = db.call("recall", bank=bank, query="The cat is called Miso")
        assert rows[0]["memory_id"] == other
        assert db.contents(bank, "Miso") == ["The cat food is Miso brand"]

    def test_what_can_be_empty_is_cleared_by_name(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "x", slot="s", context="c")
        db.call("update_memory", bank=bank, memory_id=memory_id, clear=["slot", "context"])
        kept = db.one("get", bank=bank, memory_id=memory_id)
        assert (kept["slot"], kept["context"]) == (None, None)
        with pytest.raises(psycopg.Error, match="cannot clear content"):
            db.call("update_memory", bank=bank, memory_id=memory_id, clear=["content"])

    def test_the_content_of_another_memory_is_a_conflict_that_names_it(self, db: Database, bank: str) -> None:
        first, second = store(db, bank, "one"), store(db, bank, "two")
        with pytest.raises(psycopg.Error) as caught:
            db.call("update_memory", bank=bank, memory_id=second, content="one")
        assert caught.value.sqlstate == "HM006"
        assert str(first) in str(caught.value)
        assert db.one("get", bank=bank, memory_id=second)["content"] == "two"

    def test_the_slot_of_another_memory_is_a_conflict_unless_that_one_has_expired(
        self, db: Database, bank: str
    ) -> None:
        first = store(db, bank, "one", slot="s")
        second = store(db, bank, "two")
        with pytest.raises(psycopg.Error, match=f"memory {first} holds the same slot s"):
            db.call("update_memory", bank=bank, memory_id=second, slot="s")
        db.rows("UPDATE hindsight.memory SET expires_at = now() - interval '1 s' WHERE memory_id = %s", (first,))
        db.call("update_memory", bank=bank, memory_id=second, slot="s")
        assert db.one("get", bank=bank, memory_id=second)["slot"] == "s"

    def test_a_stale_version_is_refused(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "one")
        db.call("update_memory", bank=bank, memory_id=memory_id, content="two", expected_version=1)
        with pytest.raises(psycopg.Error, match="is at version 2, not 1") as caught:
            db.call("update_memory", bank=bank, memory_id=memory_id, content="three", expected_version=1)
        assert caught.value.sqlstate == "HM006"

    def test_a_superseded_memory_is_not_updated(self, db: Database, bank: str) -> None:
        old = store(db, bank, "one", slot="s")
        new = store(db, bank, "two", slot="s")
        with pytest.raises(psycopg.Error, match=f"was superseded by {new}"):
            db.call("update_memory", bank=bank, memory_id=old, content="three")

    def test_an_archived_memory_is_not_updated(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "x")
        db.rows("UPDATE hindsight.memory SET archived_at = now() WHERE memory_id = %s", (memory_id,))
        with pytest.raises(psycopg.Error, match="was archived"):
            db.call("update_memory", bank=bank, memory_id=memory_id, content="y")

    @pytest.mark.parametrize(
        ("arguments", "sqlstate"),
        [
            ({"content": " "}, "HM005"),
            ({"content": "x" * 10_001}, "HM005"),
            ({"confidence": 2}, "HM004"),
            ({"type": "opinion"}, "HM004"),
            ({"metadata": "1"}, "HM004"),
            ({"embedding": "[1,2]", "model": "nobody"}, "HM012"),
        ],
    )
    def test_bad_values_change_nothing(
        self, db: Database, bank: str, arguments: dict[str, object], sqlstate: str
    ) -> None:
        memory_id = store(db, bank, "one")
        with pytest.raises(psycopg.Error) as caught:
            db.call("update_memory", bank=bank, memory_id=memory_id, **arguments)
        assert caught.value.sqlstate == sqlstate
        assert db.one("get", bank=bank, memory_id=memory_id)["version"] == 1

    def test_doubt_takes_a_memory_out_of_recall_and_confidence_brings_it_back(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "alice uses vim")
        db.call("update_memory", bank=bank, memory_id=memory_id, confidence=0.2)
        assert db.contents(bank, "vim") == []
        db.call("update_memory", bank=bank, memory_id=memory_id, confidence=0.8)
        assert db.contents(bank, "vim") == ["alice uses vim"]


class TestForgetting:
    @pytest.mark.parametrize(("content", "word"), [("alice likes saffron", "saffron"), ("用户喜欢藏红花", "藏红花")])
    def test_a_forgotten_memory_is_absent_from_every_channel_at_once(
        self, db: Database, bank: str, toy: str, content: str, word: str
    ) -> None:
        memory_id = store(
            db,
            bank,
            content,
            tags=["food"],
            entities=[word],
            slot="likes",
            session_id="s1",
            embedding="[1,0,0]",
            model=toy,
        )
        ways: list[dict[str, object]] = [
            {"query": word},
            {"query": content},
            {"embedding": "[1,0,0]"},
            {"query": word, "embedding": "[1,0,0]"},
            {"tags": ["food"]},
            {"entities": [word]},
            {"session_id": "s1"},
            {"query": ""},
            {"query": word, "include_pending": True, "min_score": 0},
        ]
        assert all(db.contents(bank, **way) == [content] for way in ways)
        assert db.one("forget", bank=bank, memory_id=memory_id, reason="asked to")["outcome"] == "forgotten"
        assert all(db.contents(bank, **way) == [] for way in ways)
        with pytest.raises(psycopg.Error) as caught:
            db.call("get", bank=bank, memory_id=memory_id)
        assert caught.value.sqlstate == "HM002"

    def test_forgetting_twice_changes_nothing(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "x")
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        assert db.one("forget", bank=bank, memory_id=memory_id, reason="again")["outcome"] == "already forgotten"
        assert [event["action"] for event in db.call("history", bank=bank, memory_id=memory_id)] == [
            "stored",
            "forgotten",
        ]

    def test_a_fresh_statement_of_a_forgotten_text_is_a_new_memory(self, db: Database, bank: str) -> None:
        first = store(db, bank, "alice uses vim")
        db.call("forget", bank=bank, memory_id=first, reason="asked to")
        again = db.one("store", bank=bank, content="alice uses vim")
        assert again["outcome"] == "stored"
        assert again["memory_id"] != first

    def test_a_memory_of_another_bank_looks_like_none(self, db: Database, bank: str) -> None:
        other = f"other-{uuid.uuid4().hex[:8]}"
        db.call("create_bank", bank=other)
        theirs = store(db, other, "a secret")
        nobody = uuid.uuid4()
        functions = ["get", "history", "forget", "restore", "update_memory", "confirm", "reject", "complete"]
        for function in functions:
            reason = {"reason": "asked to"} if function == "forget" else {}
            messages = []
            for memory_id in (theirs, nobody):
                with pytest.raises(psycopg.Error) as caught:
                    db.call(function, bank=bank, memory_id=memory_id, **reason)
                assert caught.value.sqlstate == "HM002"
                messages.append(str(caught.value.diag.message_primary).replace(str(memory_id), "…"))
            assert messages[0] == messages[1]
        assert db.contents(other) == ["a secret"]

    def test_an_id_that_is_no_uuid_is_a_clear_error(self, db: Database, bank: str) -> None:
        with pytest.raises(psycopg.Error, match='invalid input syntax for type uuid: "42"'):
            db.call("forget", bank=bank, memory_id="42", reason="asked to")


class TestRestoring:
    def test_a_restored_memory_is_what_it_was(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "alice uses vim", tags=["editor"], slot="editor")
        before = db.one("get", bank=bank, memory_id=memory_id)
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        assert db.one("restore", bank=bank, memory_id=memory_id, reason="a mistake")["restore"] == "live"
        after = db.one("get", bank=bank, memory_id=memory_id)
        changing = {"version", "changed_at"}
        assert {k: v for k, v in before.items() if k not in changing} == {
            k: v for k, v in after.items() if k not in changing
        }
        assert db.contents(bank, "vim") == ["alice uses vim"]
        actions = [event["action"] for event in db.call("history", bank=bank, memory_id=memory_id)]
        assert actions == ["stored", "forgotten", "restored"]

    def test_what_is_not_forgotten_cannot_be_restored(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "x")
        with pytest.raises(psycopg.Error, match="is not forgotten, it is live"):
            db.call("restore", bank=bank, memory_id=memory_id)

    @pytest.mark.parametrize(
        "again", [{"content": "alice uses vim"}, {"content": "alice uses helix", "slot": "editor"}]
    )
    def test_a_content_or_slot_that_is_taken_meanwhile_is_a_conflict(
        self, db: Database, bank: str, again: dict[str, object]
    ) -> None:
        memory_id = store(db, bank, "alice uses vim", slot="editor")
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        holder = db.one("store", bank=bank, **again)["memory_id"]
        with pytest.raises(psycopg.Error, match=f"memory {holder} holds the same") as caught:
            db.call("restore", bank=bank, memory_id=memory_id)
        assert caught.value.sqlstate == "HM006"


def test_the_history_keeps_nulls_within_metadata(db: Database, bank: str) -> None:
    memory_id = store(db, bank, "x", metadata='{"a": null}')
    assert db.call("history", bank=bank, memory_id=memory_id)[0]["after"]["metadata"] == {"a": None}


def test_an_event_is_left_by_everything_that_happens_to_a_memory(db: Database, bank: str) -> None:
    memory_id = store(db, bank, "The port is 22", slot="port")
    db.call("store", bank=bank, content="The port is 22", confidence=0.95, source="user")
    db.call("update_memory", bank=bank, memory_id=memory_id, tags=["ssh"])
    db.call("store", bank=bank, content="The port is 2222", slot="port", confidence=1.0, source="user")
    events = db.call("history", bank=bank, memory_id=memory_id)
    assert [event["action"] for event in events] == ["stored", "merged", "updated", "superseded"]
    assert all(event["principal"] == "postgres" for event in events)
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    assert events[1]["before"]["confidence"] == 0.9
    assert events[1]["after"]["confidence"] == 0.95
    assert events[2]["after"] == {"tags": ["ssh"]}
    assert set(events[3]["after"]) == {"superseded_by"}
