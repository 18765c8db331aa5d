"""Links: made, taken away, walked from; and what recall makes of them."""

import threading
import uuid
from collections.abc import Callable

import psycopg
import pytest

from tests.conftest import Database


def store(db: Database, bank: str, content: str, **arguments: object) -> uuid.UUID:
    return db.one("store", bank=bank, content=content, **arguments)["memory_id"]


@pytest.mark.parametrize(
    ("cause", "effect", "query"),
    [
        ("virtualization is not detected", "turn on SVM in the firmware menu", "is virtualization detected?"),
        ("检测不到虚拟化支持", "在固件菜单里打开 SVM", "虚拟化支持检测"),
    ],
)
def test_a_linked_memory_comes_back_though_it_shares_no_word(
    db: Database, bank: str, cause: str, effect: str, query: str
) -> None:
    first, second = store(db, bank, cause), store(db, bank, effect)
    assert db.contents(bank, query) == [cause]
    assert db.one("link", bank=bank, from_id=second, to_id=first, relation="solves")["link"] is True
    parent, child = db.call("recall", bank=bank, query=query)
    assert (parent["content"], child["content"]) == (cause, effect)
    assert "links" in child["channels"]
    assert child["linked_from"] == first
    assert child["activation"] == pytest.approx(0.5 * (1 - (1 - (parent["semantic"] or 0)) * (1 - parent["lexical"])))
    assert child["similarity"] == pytest.approx(
        1 - (1 - (child["semantic"] or 0)) * (1 - child["lexical"]) * (1 - child["activation"])
    )
    assert db.contents(bank, query, hops=0) == [cause]
    assert db.one("unlink", bank=bank, from_id=second, to_id=first)["unlink"] == 1
    assert db.contents(bank, query) == [cause]


def test_two_memories_are_linked_once_however_many_relations_they_have(db: Database, bank: str) -> None:
    first, second = store(db, bank, "Docker needs virtualization"), store(db, bank, "open the firmware menu")
    for relation in ("solves", "part_of", "mentions", "follows"):
        db.call("link", bank=bank, from_id=first, to_id=second, relation=relation)
        db.call("link", bank=bank, from_id=second, to_id=first, relation=relation, weight=0.7)
    for query in ("docker virtualization", "Docker needs virtualization"):
        parent, child = db.call("recall", bank=bank, query=query)
        assert parent["memory_id"] == first
        assert child["activation"] == pytest.approx(0.5 * parent["lexical"])


def test_links_to_what_is_gone_do_not_crowd_out_those_that_hold(db: Database, bank: str) -> None:
    first, second = store(db, bank, "Docker needs virtualization"), store(db, bank, "open the firmware menu")
    db.call("link", bank=bank, from_id=first, to_id=second, weight=0.9)
    for number in range(12):
        other = store(db, bank, f"bread number {number}")
        db.call("link", bank=bank, from_id=first, to_id=other)
        db.call("forget", bank=bank, memory_id=other, reason="asked to")
    assert db.contents(bank, "docker virtualization") == ["Docker needs virtualization", "open the firmware menu"]


def test_a_link_of_no_weight_brings_nothing_up(db: Database, bank: str) -> None:
    first, second = store(db, bank, "Docker needs virtualization"), store(db, bank, "open the firmware menu")
    db.call("link", bank=bank, from_id=first, to_id=second, weight=0)
    assert db.contents(bank, "docker virtualization") == ["Docker needs virtualization"]


def test_a_link_from_something_irrelevant_brings_nothing_up(db: Database, bank: str) -> None:
    first, second = store(db, bank, "Docker needs virtualization"), store(db, bank, "the cat is called Miso")
    third = store(db, bank, "bread is baked on Sundays")
    db.call("link", bank=bank, from_id=second, to_id=third)
    assert db.contents(bank, "docker virtualization") == ["Docker needs virtualization"]
    assert first != second


def test_a_forgotten_memory_is_gone_from_links_as_well(db: Database, bank: str) -> None:
    first, second = store(db, bank, "Docker needs virtualization"), store(db, bank, "open the firmware menu")
    db.call("link", bank=bank, from_id=first, to_id=second)
    assert len(db.contents(bank, "docker virtualization")) == 2
    db.call("forget", bank=bank, memory_id=second, reason="asked to")
    assert db.contents(bank, "docker virtualization") == ["Docker needs virtualization"]
    assert db.call("neighbours", bank=bank, memory_id=first) == []


def test_a_linked_memory_must_pass_the_filters_too(db: Database, bank: str) -> None:
    first = store(db, bank, "Docker needs virtualization", tags=["docker"])
    second = store(db, bank, "open the firmware menu", tags=["bios"])
    db.call("link", bank=bank, from_id=first, to_id=second)
    assert db.contents(bank, "docker virtualization", tags=["docker"]) == ["Docker needs virtualization"]


def test_the_past_has_the_links_of_then(db: Database, bank: str) -> None:
    first, second = store(db, bank, "Docker needs virtualization"), store(db, bank, "open the firmware menu")
    before = db.value("SELECT clock_timestamp()")
    db.call("link", bank=bank, from_id=first, to_id=second)
    during = db.value("SELECT clock_timestamp()")
    db.call("unlink", bank=bank, from_id=first, to_id=second)
    found = [len(db.contents(bank, "docker virtualization", as_of=at)) for at in (before, during)]
    assert found == [1, 2]


def test_linking_again_changes_the_weight_and_the_same_link_is_no_news(db: Database, bank: str) -> None:
    first, second = store(db, bank, "one"), store(db, bank, "two")
    assert db.one("link", bank=bank, from_id=first, to_id=second, weight=0.5)["link"] is True
    assert db.one("link", bank=bank, from_id=first, to_id=second, weight=0.5)["link"] is False
    assert db.one("link", bank=bank, from_id=first, to_id=second, weight=0.9)["link"] is True
    (there,) = db.call("neighbours", bank=bank, memory_id=second)
    assert (there["memory_id"], there["direction"], there["relation"], there["weight"]) == (
        first,
        "from",
        "related",
        0.9,
    )
    assert [event["action"] for event in db.call("history", bank=bank, memory_id=first)] == [
        "stored",
        "linked",
        "linked",
    ]


def test_bad_links_are_refused(db: Database, bank: str) -> None:
    first, second = store(db, bank, "one"), store(db, bank, "two")
    for wrong, message in [
        ({"to_id": first}, "cannot be linked to itself"),
        ({"to_id": uuid.uuid4()}, "has no memory"),
        ({"to_id": None}, "has no memory"),
        ({"to_id": second, "weight": 1.5}, "weight must lie between 0 and 1"),
        ({"to_id": second, "relation": " "}, "relation is empty"),
    ]:
        with pytest.raises(psycopg.Error, match=message):
            db.call("link", bank=bank, from_id=first, **wrong)
    other = f"bank-{uuid.uuid4().hex[:8]}"
    db.call("create_bank", bank=other)
    with pytest.raises(psycopg.Error, match="has no memory"):
        db.call("link", bank=other, from_id=first, to_id=second)


def test_two_who_link_the_same_at_once_make_one_link(db: Database, bank: str, shared_url: str) -> None:
    first, second = store(db, bank, "one"), store(db, bank, "two")
    made: list[bool] = []

    def work(connect: Callable[[], Database]) -> None:
        mine = connect()
        for pair in ((first, second), (second, first)) * 10:
            made.append(mine.one("link", bank=bank, from_id=pair[0], to_id=pair[1])["link"])
        mine.close()

    threads = [threading.Thread(target=work, args=(lambda: Database(shared_url),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(made) == 2
    assert len(made) == 80
    assert len(db.call("neighbours", bank=bank, memory_id=first)) == 2


class TestWhatIsSaidSideBySide:
    @pytest.fixture
    def session(self, db: Database, bank: str) -> str:
        for minute, content in enumerate(
            ["I moved last week", "Oh, where to?", "To a flat by the river in Leipzig", "Nice!"]
        ):
            given = {"session_id": "s1", "occurred_at": f"2026-03-01T09:{minute:02}:00Z", "importance": 0.5}
            db.call("store", bank=bank, content=content, **given)
        db.call("store", bank=bank, content="Oh, where to go?", session_id="s2", importance=0.5)
        return bank

    def test_a_neighbour_of_a_hit_scores_above_its_like_elsewhere(self, db: Database, session: str) -> None:
        found = db.call("recall", bank=session, query="flat by the river in Leipzig", min_score=0)
        by_content = {row["content"]: row for row in found}
        assert found[0]["content"] == "To a flat by the river in Leipzig"
        assert by_content["Oh, where to?"]["activation"] == pytest.approx(0.1 * found[0]["lexical"], rel=0.01)
        assert by_content["Nice!"]["activation"] == pytest.approx(0.1 * found[0]["lexical"], rel=0.01)
        assert "Oh, where to go?" not in by_content or by_content["Oh, where to go?"]["activation"] == 0

    def test_but_is_not_recalled_for_that_alone(self, db: Database, session: str) -> None:
        assert db.contents(session, "flat by the river in Leipzig") == ["To a flat by the river in Leipzig"]
