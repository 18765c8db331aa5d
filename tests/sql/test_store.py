"""Storing: what becomes of a memory, and what is refused."""

import uuid
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Database

UNIT_X, UNIT_Y = "[1,0,0]", "[0,1,0]"


@pytest.mark.parametrize("content", ["The database is MySQL 8.4", "项目的数据库是 MySQL 8.4"])
def test_the_same_sentence_three_times_is_one_memory_confirmed_again(db: Database, bank: str, content: str) -> None:
    first, second, third = (db.one("store", bank=bank, content=content) for _ in range(3))
    assert (first["outcome"], second["outcome"], third["outcome"]) == ("stored", "merged", "merged")
    assert first["memory_id"] == second["memory_id"] == third["memory_id"]
    assert second["reasons"] == ["the same content was stored before"]
    kept = db.one("get", bank=bank, memory_id=first["memory_id"])
    assert kept["confirmations"] == 2
    assert kept["confirmed_at"] > kept["created_at"]
    assert db.contents(bank) == [content]


def test_white_space_and_unicode_composition_do_not_make_a_second_memory(db: Database, bank: str) -> None:
    first = db.one("store", bank=bank, content="The café opens  at\u00a0eight")
    again = db.one("store", bank=bank, content=" The cafe\u0301 opens at eight\n")
    assert again["outcome"] == "merged"
    assert again["memory_id"] == first["memory_id"]
    assert db.contents(bank) == ["The café opens  at\u00a0eight"], "the text is kept as it came first"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Meet in room 101", "Meet in room 102"),
        ("He does like tea", "He does not like tea"),
        ("The area is 10² m", "The area is 102 m"),
        ("数据库是 MySQL 8.0", "数据库是 MySQL 8.4"),
        ("Polish the table", "polish the table"),
    ],
)
def test_texts_that_differ_in_a_character_are_two_memories(db: Database, bank: str, one: str, other: str) -> None:
    assert db.one("store", bank=bank, content=one)["outcome"] == "stored"
    assert db.one("store", bank=bank, content=other)["outcome"] == "stored"


def test_merging_unites_what_two_statements_say(db: Database, bank: str) -> None:
    first = db.one("store", bank=bank, content="Use uv", tags=["python"], confidence=0.7, metadata='{"a": 1}')
    again = {"tags": ["tools", "python"], "confidence": 0.95, "source": "user", "metadata": '{"b": 2}'}
    db.one("store", bank=bank, content="Use uv", **again)
    kept = db.one("get", bank=bank, memory_id=first["memory_id"])
    assert kept["tags"] == ["python", "tools"]
    assert kept["confidence"] == 0.95
    assert kept["metadata"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "content",
    [
        "naïve café",
        "👩‍👩‍👧‍👦 🚀",
        "مرحبا بالعالم",
        "שלום עולם",
        "汇率每天更新",
        "한국어 문장",
        "a\tb\nc",
        "‮reversed",
        "'; DROP TABLE memory;--",
    ],
)
def test_any_text_comes_back_byte_for_byte(db: Database, bank: str, content: str) -> None:
    given = {"context": content, "tags": [content], "metadata": '{"k": "x"}', "importance": 0.5}
    stored = db.one("store", bank=bank, content=content, **given)
    kept = db.one("get", bank=bank, memory_id=stored["memory_id"])
    assert kept["content"] == content
    assert kept["context"] == content


def attempt(db: Database, bank: str, content: str) -> dict[str, Any] | psycopg.Error:
    try:
        return db.one("store", bank=bank, content=content, importance=0.5)
    except psycopg.Error as error:
        return error


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200))
def test_every_unicode_text_is_stored_whole_or_refused_as_empty(db: Database, bank: str, content: str) -> None:
    stored = attempt(db, bank, content)
    if isinstance(stored, psycopg.Error):
        assert stored.sqlstate == "HM005"
        assert not content.strip(
            "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff" + "".join(filter(str.isspace, content))
        )
        return
    kept = db.one("get", bank=bank, memory_id=stored["memory_id"])["content"]
    assert kept == content or stored["outcome"] == "merged"


@pytest.mark.parametrize(
    ("arguments", "sqlstate", "says"),
    [
        ({"content": ""}, "HM005", "content is empty"),
        ({"content": " \u3000\n\u00a0"}, "HM005", "content is empty"),
        ({"content": "x" * 100_000}, "HM005", "content has 100000 characters, at most 10000 are taken"),
        ({"content": "x", "type": "opinion"}, "HM004", "unknown type 'opinion'"),
        ({"content": "x", "confidence": 1.5}, "HM004", "confidence must lie between 0 and 1, got 1.5"),
        ({"content": "x", "confidence": float("nan")}, "HM004", "confidence must lie between 0 and 1, got NaN"),
        ({"content": "x", "importance": -0.1}, "HM004", "importance must lie between 0 and 1, got -0.1"),
        ({"content": "x", "source": "gossip"}, "HM004", "unknown source 'gossip'"),
        ({"content": "x", "metadata": "[1]"}, "HM004", "metadata must be a JSON object, got a JSON array"),
        ({"content": "x", "slot": " "}, "HM005", "slot is empty"),
        ({"content": "x", "context": "x" * 10_001}, "HM005", "context has 10001 characters"),
        ({"content": "x", "tags": ["t"] * 101}, "HM005", "tags are 101 of up to 1 characters"),
        ({"content": "x", "entities": ["t" * 201]}, "HM005", "entities are 1 of up to 201 characters"),
        ({"content": "x", "metadata": f'{{"a": "{"x" * 100_001}"}}'}, "HM005", "metadata has"),
        ({"content": "\u200b\ufeff"}, "HM005", "content is empty"),
        ({"content": "x", "occurred_at": "0400-01-01 BC"}, "HM004", "occurred_at is out of range"),
        ({"content": "x", "expires_at": "infinity"}, "HM004", "expires_at is out of range"),
        ({"content": "x", "session_id": ""}, "HM005", "session_id is empty"),
        ({"content": "x", "expires_at": "2020-01-01"}, "HM004", "has passed already"),
        ({"content": "x", "embedding": UNIT_X}, "HM012", "came without its model"),
        ({"content": "x", "embedding": UNIT_X, "model": "nobody"}, "HM012", "unknown embedding model 'nobody'"),
    ],
)
def test_bad_input_is_refused_with_the_value_and_stores_nothing(
    db: Database, bank: str, arguments: dict[str, object], sqlstate: str, says: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.call("store", bank=bank, **arguments)
    assert caught.value.sqlstate == sqlstate
    assert says in str(caught.value)
    assert db.contents(bank, min_score=0) == []


def test_an_unknown_type_is_answered_with_the_known_ones(db: Database, bank: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.call("store", bank=bank, content="x", type="opinion")
    assert "decision, fact, hypothesis" in (caught.value.diag.message_hint or "")


def test_a_memory_can_be_read_in_the_next_statement(db: Database, bank: str) -> None:
    for number in range(20):
        stored = db.one("store", bank=bank, content=f"sentence {number}")
        assert db.one("get", bank=bank, memory_id=stored["memory_id"])["content"] == f"sentence {number}"


def test_zero_is_a_value_and_not_a_missing_one(db: Database, bank: str) -> None:
    stored = db.one("store", bank=bank, content="nobody believes this", confidence=0.0, importance=0.0)
    assert stored["outcome"] == "pending"
    kept = db.one("get", bank=bank, memory_id=stored["memory_id"])
    assert (kept["confidence"], kept["importance"]) == (0.0, 0.0)


def test_a_low_confidence_is_kept_but_not_believed_until_somebody_says_it_clearly(db: Database, bank: str) -> None:
    guess = db.one("store", bank=bank, content="用户可能在用 Linux", confidence=0.4)
    assert guess["outcome"] == "pending"
    assert "0.4 is under 0.6" in guess["reasons"][0]
    assert db.contents(bank, "Linux") == []
    assert db.contents(bank, "Linux", include_pending=True) == ["用户可能在用 Linux"]
    again = db.one("store", bank=bank, content="用户可能在用 Linux", confidence=0.9)
    assert again["outcome"] == "merged"
    assert db.contents(bank, "Linux") == ["用户可能在用 Linux"]


def test_metadata_with_somebody_elses_bank_is_only_data(db: Database, bank: str) -> None:
    other = f"other-{uuid.uuid4().hex[:8]}"
    db.call("create_bank", bank=other)
    db.call("store", bank=bank, content="mine", metadata=f'{{"bank": "{other}", "user_id": "{other}", "bank_id": 1}}')
    assert db.contents(other) == []
    assert db.contents(bank, metadata=f'{{"bank": "{other}"}}') == ["mine"]


def test_a_permanent_memory_stays_permanent_when_it_comes_again_with_an_end(db: Database, bank: str) -> None:
    first = db.one("store", bank=bank, content="The address is 5 Elm St")
    db.call("store", bank=bank, content="The address is 5 Elm St", expires_at="2999-01-01")
    assert db.one("get", bank=bank, memory_id=first["memory_id"])["expires_at"] is None


def test_merging_says_what_of_the_second_statement_it_does_not_take(db: Database, bank: str) -> None:
    db.call(
        "store",
        bank=bank,
        content="Ship on Friday",
        tags=[f"t{n}" for n in range(60)],
        metadata=f'{{"a": "{"x" * 60_000}"}}',
    )
    again = db.one("store", bank=bank, content="Ship on Friday", type="todo", tags=[f"u{n}" for n in range(60)],
                   metadata=f'{{"b": "{"x" * 60_000}"}}')  # fmt: skip
    assert again["outcome"] == "merged"
    assert again["reasons"][1:] == [
        "it has a hundred tags or entities already, and takes no more",
        "it keeps its metadata: united they would be too large",
        "it stays a fact, not a todo",
    ]


def test_an_echo_without_a_confidence_of_its_own_raises_nothing(db: Database, bank: str) -> None:
    first = db.one("store", bank=bank, content="alice may move to Kiel", confidence=0.65)
    for _ in range(50):
        db.call("store", bank=bank, content="alice may move to Kiel")
    assert db.one("get", bank=bank, memory_id=first["memory_id"])["confidence"] == 0.65


class TestSlots:
    @pytest.mark.parametrize(("old", "new"), [("SSH port is 22", "SSH port is 2222"), ("SSH端口是22", "SSH端口是2222")])
    def test_a_new_value_supersedes_the_old_one(self, db: Database, bank: str, old: str, new: str) -> None:
        first = db.one("store", bank=bank, content=old, slot="ssh.port")
        second = db.one("store", bank=bank, content=new, slot="ssh.port")
        assert second["outcome"] == "superseding"
        assert second["related_id"] == first["memory_id"]
        assert db.contents(bank, "SSH") == [new]
        kept = db.one("get", bank=bank, memory_id=first["memory_id"])
        assert (kept["state"], kept["superseded_by"]) == ("superseded", second["memory_id"])

    def test_the_more_confident_value_stays(self, db: Database, bank: str) -> None:
        sure = db.one("store", bank=bank, content="The port is 22", slot="port", confidence=1.0)
        less = db.one("store", bank=bank, content="The port is 23", slot="port", confidence=0.7)
        assert (less["outcome"], less["related_id"]) == ("superseded", sure["memory_id"])
        assert db.contents(bank, "port") == ["The port is 22"]

    def test_of_two_equally_confident_values_the_one_said_later_stays(self, db: Database, bank: str) -> None:
        db.one("store", bank=bank, content="Lives in Berlin", slot="home", occurred_at="2026-05-01T00:00Z")
        late = db.one("store", bank=bank, content="Lives in Kiel", slot="home", occurred_at="2025-01-01T00:00Z")
        assert late["outcome"] == "superseded"
        assert db.contents(bank, "Lives") == ["Lives in Berlin"]

    def test_what_is_not_believed_takes_no_slot(self, db: Database, bank: str) -> None:
        db.one("store", bank=bank, content="The port is 22", slot="port")
        assert db.one("store", bank=bank, content="The port is 23", slot="port", confidence=0.3)["outcome"] == "pending"
        assert db.contents(bank, "port") == ["The port is 22"]

    def test_a_pending_value_takes_its_slot_when_it_is_confirmed(self, db: Database, bank: str) -> None:
        db.one("store", bank=bank, content="The port is 23", slot="port", confidence=0.3)
        old = db.one("store", bank=bank, content="The port is 22", slot="port")
        sure = db.one("store", bank=bank, content="The port is 23", slot="port", confidence=0.95)
        assert (sure["outcome"], sure["related_id"]) == ("merged", old["memory_id"])
        assert db.contents(bank, "port") == ["The port is 23"]

    def test_the_holder_of_a_slot_gives_way_when_it_has_expired(self, db: Database, bank: str) -> None:
        db.one("store", bank=bank, content="Code is 1", slot="code", confidence=1.0)
        db.rows("UPDATE hindsight.memory SET expires_at = now() - interval '1 s' WHERE content = 'Code is 1'")
        assert db.one("store", bank=bank, content="Code is 2", slot="code", confidence=0.7)["outcome"] == "stored"
        assert db.contents(bank, "Code") == ["Code is 2"]

    def test_the_same_content_after_expiry_is_a_new_memory(self, db: Database, bank: str) -> None:
        first = db.one("store", bank=bank, content="Parked on level 3")
        db.rows("UPDATE hindsight.memory SET expires_at = now() - interval '1 s' WHERE content = 'Parked on level 3'")
        second = db.one("store", bank=bank, content="Parked on level 3")
        assert second["outcome"] == "stored"
        assert second["memory_id"] != first["memory_id"]


class TestEmbeddings:
    @pytest.fixture
    def model(self, db: Database) -> str:
        name = f"toy-{uuid.uuid4().hex[:8]}"
        db.call("register_model", model=name, dimensions=3)
        return name

    @pytest.mark.parametrize(
        ("embedding", "sqlstate"),
        [
            ("[1,2]", "HM010"),
            ("[1,2,3,4]", "HM010"),
            ("[0,0,0]", "HM010"),
            ("[NaN,1,1]", "22000"),
            ("[Infinity,1,1]", "22000"),
        ],
    )
    def test_a_vector_of_another_size_or_without_direction_is_refused(
        self, db: Database, bank: str, model: str, embedding: str, sqlstate: str
    ) -> None:
        with pytest.raises(psycopg.Error) as caught:
            db.call("store", bank=bank, content="x", embedding=embedding, model=model)
        assert caught.value.sqlstate == sqlstate
        assert db.contents(bank, min_score=0) == []

    def test_another_models_vector_is_refused_with_both_names_and_the_way_out(
        self, db: Database, bank: str, model: str
    ) -> None:
        other = f"{model}-large"
        db.call("register_model", model=other, dimensions=3)
        db.call("store", bank=bank, content="first", embedding=UNIT_X, model=model)
        for function, arguments in (("store", {"content": "second"}), ("recall", {"query": "first"})):
            with pytest.raises(psycopg.Error) as caught:
                db.call(function, bank=bank, embedding=UNIT_Y, model=other, **arguments)
            assert caught.value.sqlstate == "HM011"
            assert model in str(caught.value)
            assert other in str(caught.value)
            assert "hindsight reembed" in (caught.value.diag.message_hint or "")

    def test_a_model_of_3072_dimensions_is_indexed_and_found(self, db: Database, bank: str) -> None:
        name = f"large-{uuid.uuid4().hex[:8]}"
        model_id = db.value("SELECT hindsight.register_model(%s, 3072)", (name,))
        near, far = "[1" + ",0" * 3071 + "]", "[" + "0," * 3071 + "1]"
        db.call("store", bank=bank, content="near", embedding=near, model=name)
        db.call("store", bank=bank, content="far", embedding=far, model=name)
        assert db.contents(bank, embedding=near) == ["near"]
        definition = db.value(f"SELECT pg_get_indexdef('hindsight.memory_embedding_{model_id}_idx'::regclass)")
        assert "hnsw" in definition
        assert "halfvec(3072)" in definition

    def test_very_long_and_very_short_vectors_keep_their_direction(self, db: Database, bank: str, model: str) -> None:
        db.call("store", bank=bank, content="long", embedding="[1e30,0,0]", model=model)
        db.call("store", bank=bank, content="short", embedding="[0,1e-30,0]", model=model)
        assert db.contents(bank, embedding=UNIT_X) == ["long"]
        assert db.contents(bank, embedding=UNIT_Y) == ["short"]
