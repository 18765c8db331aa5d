"""Entities: what a text names, by rules, and what recall makes of them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Database


def entities(db: Database, text: str) -> list[str]:
    return list(db.value("SELECT hindsight.entities(%s)", (text,)))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "Remember that my friend Alice moved to New York City with Bob O'Neil",
            ["Alice", "New York City", "Bob O'Neil"],
        ),
        ("Docker fails with ERR-7731, see /etc/docker/daemon.json", ["ERR-7731", "/etc/docker/daemon.json", "Docker"]),
        ("I run v1.2.3 of foo_bar on Ubuntu", ["v1.2.3", "foo_bar", "Ubuntu"]),
        ("write to foo.bar@example.org, in C++ or C#", ["foo.bar@example.org", "C++", "C#"]),
        ("She went to the University of California", ["University of California"]),
        ("Is MySQL or the BIOS slow? And my iPhone?", ["MySQL", "BIOS", "iPhone"]),
        ("it weighs 5 kg and costs 99.9% more", ["5 kg", "99.9%"]),
        ("the title is “On Growth and Form”", ["On Growth and Form"]),
        ("我在读《三体》，服务器内存8GB，体重70公斤", ["三体", "8GB", "70公斤"]),
        ("他说「明天见」，住在101室", ["明天见", "101室"]),
        ("アリスは『雪国』を読む", ["雪国"]),
        ("Ａｌｉｃｅ uses ＭｙＳＱＬ", ["Alice", "MySQL"]),
        ("José and Zoë met Jean-Luc", ["José", "Zoë", "Jean-Luc"]),
        ("project.database is the slot", ["project.database"]),
    ],
)
def test_a_text_names_its_entities(db: Database, text: str, named: list[str]) -> None:
    assert set(named) <= set(entities(db, text))


@pytest.mark.parametrize(
    "text",
    [
        "The weather was nice, but I don't care",
        "What should we do today?",
        "Don't forget, isn't it? We'll see on Monday in March",
        "it happened on the 3rd floor, e.g. at 5pm, and/or later",
        "今天天气不错，我们去散步吧",
        "",
        "...!!! --- ///",
    ],
)
def test_ordinary_words_name_nobody(db: Database, text: str) -> None:
    assert entities(db, text) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=400))
def test_any_text_has_at_most_32_entities_of_100_characters(db: Database, text: str) -> None:
    found = entities(db, text)
    assert len(found) <= 32
    assert all(2 <= len(one) <= 100 for one in found)
    assert len({one.lower() for one in found}) == len(found)


def test_entities_are_stored_with_the_memory_beside_those_that_were_given(db: Database, bank: str) -> None:
    stored = db.one("store", bank=bank, content="Alice runs PostgreSQL 16", entities=["the database", "alice"])
    assert db.one("get", bank=bank, memory_id=stored["memory_id"])["entities"] == [
        "the database",
        "alice",
        "PostgreSQL",
    ]


def test_a_new_content_takes_what_the_old_one_named_away(db: Database, bank: str) -> None:
    stored = db.one("store", bank=bank, content="Alice lives in Berlin", entities=["home"])
    db.call("update_memory", bank=bank, memory_id=stored["memory_id"], content="Alice lives in Leipzig")
    assert db.one("get", bank=bank, memory_id=stored["memory_id"])["entities"] == ["home", "Alice", "Leipzig"]


def test_entities_change_only_with_the_content_or_when_they_are_given(db: Database, bank: str) -> None:
    stored = db.one("store", bank=bank, content="Zed met Bob Stone and Alice in Paris")
    before = db.one("get", bank=bank, memory_id=stored["memory_id"])["entities"]
    db.call("update_memory", bank=bank, memory_id=stored["memory_id"], tags=["x"])
    assert db.one("get", bank=bank, memory_id=stored["memory_id"])["entities"] == before
    db.call("update_memory", bank=bank, memory_id=stored["memory_id"], entities=[])
    assert db.one("get", bank=bank, memory_id=stored["memory_id"])["entities"] == []


def test_what_has_a_hundred_entities_says_that_it_takes_no_more(db: Database, bank: str) -> None:
    given_ones = [f"entity {number}" for number in range(100)]
    stored = db.one("store", bank=bank, content="by Marie Curie", entities=given_ones)
    assert (stored["outcome"], stored["reasons"]) == (
        "stored", ["it has a hundred entities, and takes no more from its content"],
    )  # fmt: skip


def test_an_entity_that_unfolds_into_a_long_word_is_stored(db: Database, bank: str) -> None:
    stored = db.one("store", bank=bank, content="long", entities=["ﷺ" * 200], slot="㍿" * 200)
    assert stored["outcome"] == "stored"


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("the office is in New York", "who works in New York?"),
        ("她推荐了《三体》这本书", "有人推荐过《三体》吗"),
    ],
)
def test_a_memory_that_names_what_the_query_names_is_found_by_the_entity_channel(
    db: Database, bank: str, content: str, query: str
) -> None:
    db.call("store", bank=bank, content=content)
    (row,) = db.call("recall", bank=bank, query=query)
    assert "entity" in row["channels"]


def test_a_slot_is_found_by_its_name(db: Database, bank: str) -> None:
    db.call("store", bank=bank, content="用户使用 Windows", slot="user.os")
    db.call("store", bank=bank, content="The users are many")
    best = db.call("recall", bank=bank, query="what is user.os now?")[0]
    assert best["content"] == "用户使用 Windows"
    assert "slot" in best["channels"]


def test_an_entity_does_not_count_twice_in_the_score(db: Database, bank: str) -> None:
    db.call("store", bank=bank, content="we met Alice Cooper")
    db.call("store", bank=bank, content="we met alice cooper at the pub", entities=[])
    first, second = db.call("recall", bank=bank, query="alice cooper", min_score=0)
    assert first["lexical"] == pytest.approx(second["lexical"], rel=0.2)
