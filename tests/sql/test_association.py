"""The association layer: chains of links in recall, ways between memories, and links that make themselves."""

import itertools
import random
import threading
import uuid

import psycopg
import pytest

from tests.conftest import Database

DIMENSIONS = 3


def store(db: Database, bank: str, content: str, **arguments: object) -> uuid.UUID:
    return db.one("store", bank=bank, content=content, **arguments)["memory_id"]


def link(
    db: Database, bank: str, one: uuid.UUID, other: uuid.UUID, relation: str = "causes", weight: float = 1
) -> None:
    db.call("link", bank=bank, from_id=one, to_id=other, relation=relation, weight=weight)


def recalled(db: Database, bank: str, query: str, **arguments: object) -> dict[str, dict[str, object]]:
    return {row["content"]: row for row in db.call("recall", bank=bank, query=query, **arguments)}


def automatic(db: Database, bank: str, memory_id: uuid.UUID) -> dict[str, str]:
    """The contents that a memory is linked with of itself, with the relation."""
    return {
        row["content"]: row["relation"]
        for row in db.call("neighbours", bank=bank, memory_id=memory_id)
        if row["is_automatic"]
    }


def chain(db: Database, bank: str, *contents: str) -> list[uuid.UUID]:
    ids = [store(db, bank, content) for content in contents]
    for effect, cause in itertools.pairwise(ids):
        link(db, bank, cause, effect)
    return ids


SEED = [
    (["Docker network unreachable", "virtualization support not detected", "BIOS setting"], "Docker 网络问题"),
    (["Docker 网络不可达", "未检测到虚拟化支持", "BIOS 设置"], "Docker 网络问题"),
]


@pytest.mark.parametrize(("contents", "query"), SEED)
class TestAChain:
    def test_comes_back_whole_in_its_order_each_with_its_way(
        self, db: Database, bank: str, contents: list[str], query: str
    ) -> None:
        first, second, _ = chain(db, bank, *contents)
        store(db, bank, "面包每周日烘焙")
        found = db.call("recall", bank=bank, query=query, hops=2)
        assert [row["content"] for row in found] == contents
        assert [row["linked_from"] for row in found] == [None, first, second]
        assert [row["path"] for row in found] == [None, [first], [first, second]]
        assert [row["relation"] for row in found] == [None, "causes", "causes"]
        assert all("links" in row["channels"] for row in found[1:])
        assert found[2]["activation"] == pytest.approx(0.5 * found[1]["activation"])

    def test_comes_back_whole_where_vectors_make_all_of_it_candidates(
        self, db: Database, bank: str, contents: list[str], query: str
    ) -> None:
        model = f"three-{uuid.uuid4().hex[:8]}"
        db.call("register_model", model=model, dimensions=DIMENSIONS)
        vectors = [[1.0, 0.1, 0.0], [0.05, 1.0, 0.0], [0.0, 1.0, 0.05]]
        ids = [
            store(db, bank, content, embedding=str(vector), model=model)
            for content, vector in zip(contents, vectors, strict=True)
        ]
        for number in range(8):  # nearer than the chain's second and third, and as little relevant
            store(db, bank, f"面包 {number} rises", embedding=str([0.1, 1.0, number / 10]), model=model)
        for effect, cause in itertools.pairwise(ids):
            link(db, bank, cause, effect)
        asked = {"embedding": "[1, 0, 0]", "model": model}
        found = db.call("recall", bank=bank, query=query, hops=2, **asked)
        assert [row["content"] for row in found] == contents
        assert [row["path"] for row in found] == [None, ids[:1], ids[:2]]
        assert db.contents(bank, query, hops=1, **asked) == contents[:2]
        db.call("unlink", bank=bank, from_id=ids[2], to_id=ids[1])
        assert db.contents(bank, query, hops=2, **asked) == contents[:2]

    def test_goes_as_far_as_it_is_asked(self, db: Database, bank: str, contents: list[str], query: str) -> None:
        chain(db, bank, *contents)
        assert [db.contents(bank, query, hops=hops) for hops in (0, 1, 2)] == [contents[:1], contents[:2], contents]

    def test_breaks_where_a_link_is_taken_away(self, db: Database, bank: str, contents: list[str], query: str) -> None:
        first, second, third = chain(db, bank, *contents)
        db.call("unlink", bank=bank, from_id=third, to_id=second)
        assert db.contents(bank, query, hops=2) == contents[:2]
        db.call("unlink", bank=bank, from_id=second, to_id=first)
        assert db.contents(bank, query, hops=2) == contents[:1]

    def test_breaks_where_a_memory_is_forgotten(self, db: Database, bank: str, contents: list[str], query: str) -> None:
        _, second, _ = chain(db, bank, *contents)
        db.call("forget", bank=bank, memory_id=second, reason="asked to")
        assert db.contents(bank, query, hops=2) == contents[:1]


class TestWhatLinksCarry:
    def test_a_ring_of_links_ends_and_lifts_nothing_by_its_own_echo(self, db: Database, bank: str) -> None:
        first, _, third = chain(db, bank, "Docker network unreachable", "no virtualization", "the BIOS menu")
        before = recalled(db, bank, "Docker network", hops=2)
        link(db, bank, first, third)
        after = recalled(db, bank, "Docker network", hops=2)
        assert set(after) == set(before)
        assert after["Docker network unreachable"]["activation"] == 0
        assert after["the BIOS menu"]["path"] == [first], "the shorter way"

    def test_a_link_brings_up_what_it_leads_to_and_lends_it_no_trust(self, db: Database, bank: str) -> None:
        first = store(db, bank, "Docker network unreachable", confidence=1)
        doubtful = store(db, bank, "reinstall everything from the mirror", confidence=0.6, source="tool")
        link(db, bank, first, doubtful)
        found = recalled(db, bank, "Docker network", hops=1)["reinstall everything from the mirror"]
        assert found["confidence"] == 0.6
        assert found["score"] == pytest.approx(
            found["similarity"] * 0.6 * found["decay"] * 0.96, rel=1e-3
        )  # a tool weighs 0.96

    def test_what_is_not_believed_is_no_stepping_stone(self, db: Database, bank: str) -> None:
        first = store(db, bank, "Docker network unreachable")
        guess = store(db, bank, "perhaps the router", confidence=0.3)
        third = store(db, bank, "the router has firmware 7")
        link(db, bank, guess, first)
        link(db, bank, third, guess)
        assert db.contents(bank, "Docker network", hops=2) == ["Docker network unreachable"]

    def test_a_memory_with_many_links_leads_to_the_heaviest_ten(self, db: Database, bank: str) -> None:
        centre = store(db, bank, "Docker network unreachable")
        for number in range(25):
            link(db, bank, store(db, bank, f"bread number {number}"), centre, weight=0.3 + number / 50)
        found = db.contents(bank, "Docker network", top_k=50)
        assert sorted(found) == sorted(["Docker network unreachable"] + [f"bread number {n}" for n in range(15, 25)])

    def test_links_of_another_bank_are_not_followed(self, db: Database, bank: str) -> None:
        chain(db, bank, *SEED[0][0])
        other = f"bank-{uuid.uuid4().hex[:8]}"
        db.call("create_bank", bank=other)
        store(db, other, "Docker network unreachable")
        assert db.contents(other, "Docker network", hops=2) == ["Docker network unreachable"]

    @pytest.mark.parametrize("hops", [-1, 3])
    def test_other_numbers_of_hops_are_refused(self, db: Database, bank: str, hops: int) -> None:
        with pytest.raises(psycopg.Error, match="hops must be 0, 1 or 2"):
            db.call("recall", bank=bank, query="x", hops=hops)


class TestAWay:
    def test_is_the_shortest_and_says_how_each_step_points(self, db: Database, bank: str) -> None:
        ids = chain(db, bank, "one", "two", "three", "four")
        link(db, bank, ids[0], ids[2], "skips", 0.4)
        way = db.call("path", bank=bank, from_id=ids[0], to_id=ids[3])
        assert [(row["step"], row["content"], row["relation"], row["direction"]) for row in way] == [
            (0, "one", None, None),
            (1, "three", "skips", "to"),
            (2, "four", "causes", "from"),
        ]

    def test_is_not_found_where_there_is_none_or_it_is_too_long(self, db: Database, bank: str) -> None:
        ids = chain(db, bank, "one", "two", "three", "four")
        alone = store(db, bank, "alone")
        assert db.call("path", bank=bank, from_id=ids[0], to_id=alone) == []
        assert db.call("path", bank=bank, from_id=ids[0], to_id=ids[3], max_hops=2) == []
        assert [row["step"] for row in db.call("path", bank=bank, from_id=alone, to_id=alone)] == [0]
        db.call("forget", bank=bank, memory_id=ids[1], reason="asked to")
        assert db.call("path", bank=bank, from_id=ids[0], to_id=ids[3]) == []

    def test_to_or_from_what_is_not_there_is_refused(self, db: Database, bank: str) -> None:
        one = store(db, bank, "one")
        for wrong, message in (({"to_id": uuid.uuid4()}, "has no memory"), ({"to_id": None}, "has no memory"),
                               ({"to_id": one, "max_hops": 7}, "between 1 and 6")):  # fmt: skip
            with pytest.raises(psycopg.Error, match=message):
                db.call("path", bank=bank, from_id=one, **wrong)


class TestLinksThatMakeThemselves:
    @pytest.mark.parametrize(
        ("problem", "cure", "query"),
        [
            ("the build fails with ERR-7731", "ERR-7731 is gone after SVM is on", "why does the build fail?"),
            ("构建失败，报错 ERR-7731", "打开 SVM 之后 ERR-7731 消失", "构建为什么失败"),
        ],
    )
    def test_a_shared_identifier_links_and_is_followed(
        self, db: Database, bank: str, problem: str, cure: str, query: str
    ) -> None:
        one, _ = store(db, bank, problem), store(db, bank, cure)
        assert db.contents(bank, query) == [problem]
        assert db.one("refresh_links", bank=bank)["refresh_links"] == 2
        assert automatic(db, bank, one) == {cure: "same_entity"}
        assert db.contents(bank, query) == [problem, cure]
        assert db.one("refresh_links", bank=bank)["refresh_links"] == 0, "nothing is new"

    def test_a_shared_name_links_but_is_not_followed_where_names_are_common(self, db: Database, bank: str) -> None:
        one, _ = store(db, bank, "Alice moved to Leipzig"), store(db, bank, "bread was baked with Alice")
        db.call("maintain", bank=bank)
        assert automatic(db, bank, one) == {"bread was baked with Alice": "same_entity"}
        assert db.contents(bank, "moved to Leipzig") == ["Alice moved to Leipzig"]

    def test_a_quantity_links_nothing(self, db: Database, bank: str) -> None:
        one, _ = store(db, bank, "the oven needs 30 minutes"), store(db, bank, "30 minutes to the station")
        db.call("maintain", bank=bank)
        assert automatic(db, bank, one) == {}

    def test_names_that_are_only_spelled_alike_do_not_link(self, db: Database, bank: str) -> None:
        ids = [store(db, bank, content) for content in
               ("Iran exports oil", "the poet Tigran", "release v1.2 is out", "amplifier v12 hums")]  # fmt: skip
        db.call("maintain", bank=bank)
        assert [automatic(db, bank, one) for one in ids] == [{}] * 4

    def test_at_most_three_by_entity_and_three_by_meaning_are_made_for_each(self, db: Database, bank: str) -> None:
        model = f"toy-{uuid.uuid4().hex[:6]}"
        db.call("register_model", model=model, dimensions=DIMENSIONS)
        generator = random.Random(1)
        for number in range(20):
            near = f"[1,{generator.uniform(0, 0.3)},{generator.uniform(0, 0.3)}]"
            store(db, bank, f"ticket ERR-1 number n{number}x", embedding=near, model=model)
        while db.one("refresh_links", bank=bank)["refresh_links"]:
            pass
        (most,) = db.rows("""
            SELECT max(c) FROM (SELECT count(*) AS c FROM hindsight.link JOIN hindsight.bank USING (bank_id)
                                WHERE name = %s GROUP BY from_id) AS x""", (bank,))  # fmt: skip
        assert most["max"] == 6

    def test_those_by_meaning_come_when_the_embedding_does(self, db: Database, bank: str) -> None:
        model = f"toy-{uuid.uuid4().hex[:6]}"
        db.call("register_model", model=model, dimensions=DIMENSIONS)
        one = store(db, bank, "containers have no connection", embedding="[1,0,0]", model=model)
        other = store(db, bank, "the bridge is down")
        assert db.one("refresh_links", bank=bank)["refresh_links"] == 1, "the other waits for its embedding"
        db.rows("SELECT hindsight.set_embeddings(%s, ARRAY[%s]::uuid[], ARRAY[1], ARRAY['[0.9,0.3,0]'::vector], %s)", (bank, other, model))  # fmt: skip
        assert db.one("refresh_links", bank=bank)["refresh_links"] == 1
        assert automatic(db, bank, one) == {"the bridge is down": "similar"}

    def test_what_somebody_linked_or_unlinked_stays_so(self, db: Database, bank: str) -> None:
        one, other = store(db, bank, "ERR-7731 again"), store(db, bank, "ERR-7731 and SVM")
        db.call("maintain", bank=bank)
        assert len(automatic(db, bank, one)) == 1
        for first, second in ((one, other), (other, one)):
            db.call("unlink", bank=bank, from_id=first, to_id=second)
        db.call("maintain", bank=bank)
        assert automatic(db, bank, one) == {}, "it does not come back"
        db.call("link", bank=bank, from_id=one, to_id=other, relation="same_entity", weight=0.1)
        db.call("maintain", bank=bank)
        (mine,) = db.call("neighbours", bank=bank, memory_id=one)
        assert (mine["is_automatic"], mine["weight"]) == (False, 0.1)

    def test_a_better_one_takes_the_place_of_a_worse(self, db: Database, bank: str) -> None:
        one = store(db, bank, "ERR-1 on the host Delta")
        for number in range(3):
            store(db, bank, f"bread n{number}x from Delta")
        db.call("maintain", bank=bank)
        assert len([n for n in db.call("neighbours", bank=bank, memory_id=one) if n["direction"] == "to"]) == 3
        store(db, bank, "ERR-1 means SVM is off")
        db.call("maintain", bank=bank)
        to = [n["content"] for n in db.call("neighbours", bank=bank, memory_id=one) if n["direction"] == "to"]
        assert "ERR-1 means SVM is off" in to
        assert len(to) == 3

    def test_they_go_with_an_erased_memory_and_leave_no_event(self, db: Database, bank: str) -> None:
        one, other = store(db, bank, "ERR-7731 again"), store(db, bank, "ERR-7731 and SVM")
        db.call("maintain", bank=bank)
        assert [event["action"] for event in db.call("history", bank=bank, memory_id=one)] == ["stored"]
        db.call("erase_memory", bank=bank, memory_id=other, reason="at request, ticket 4711")
        assert db.call("neighbours", bank=bank, memory_id=one) == []
        assert db.call("verify_events", bank=bank) == []

    def test_many_who_store_and_link_the_same_at_once_are_all_served(
        self, db: Database, bank: str, shared_url: str
    ) -> None:
        failures: list[Exception] = []

        def work(writer: int) -> None:
            mine = Database(shared_url)
            try:
                for number in range(10):
                    mine.call("store", bank=bank, content=f"ERR-7731 seen by writer{writer} as n{number}x")
                    mine.call("refresh_links", bank=bank)
            except Exception as failure:
                failures.append(failure)
            finally:
                mine.close()

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        (doubles,) = db.rows("""
            SELECT count(*) FROM (SELECT FROM hindsight.link JOIN hindsight.bank USING (bank_id)
              WHERE name = %s AND removed_at IS NULL GROUP BY from_id, to_id, relation HAVING count(*) > 1) AS d""", (bank,))  # fmt: skip
        assert doubles["count"] == 0

    def test_a_memory_that_is_told_again_through_its_links_stays_one(self, db: Database, bank: str) -> None:
        """A11: what recall brings up by a link is an echo like any other."""
        chain(db, bank, "Docker network unreachable", "virtualization support not detected")
        for _ in range(5):
            for row in db.call("recall", bank=bank, query="Docker network", hops=2):
                db.call("store", bank=bank, content=row["content"], source="inferred", session_id="s1")
            db.call("maintain", bank=bank)
        found = db.call("recall", bank=bank, query="Docker network", hops=2)
        assert [(row["content"], row["confidence"]) for row in found] == [
            ("Docker network unreachable", 0.9),
            ("virtualization support not detected", 0.9),
        ]


def test_the_block_for_a_prompt_says_how_what_it_holds_hangs_together(db: Database, bank: str) -> None:
    first, second, third = chain(db, bank, *SEED[0][0])
    block = db.one("recall_context", bank=bank, query="Docker 网络问题", hops=2)["block"]
    lines = [line for line in block.splitlines() if line.startswith("- [m:")]
    assert [line.rpartition(": ")[2] for line in lines] == SEED[0][0]
    assert f"causes m:{str(first)[:8]}" in lines[1]
    assert f"causes m:{str(second)[:8]}" in lines[2]
    assert "causes" not in lines[0]
    backwards = db.one("context_block", bank=bank, memory_ids=[third, second])["block"]
    assert f"m:{str(third)[:8]} causes this" in backwards


def test_a_merge_takes_over_what_somebody_linked_and_not_what_linked_itself(db: Database, bank: str) -> None:
    model = f"toy-{uuid.uuid4().hex[:6]}"
    db.call("register_model", model=model, dimensions=DIMENSIONS)
    one, other, third, fourth = (
        store(db, bank, content, source="user")  # of another source it were one claim again and again
        for content in (
            "ERR-7731 means that SVM is off",
            "ERR-7731 means that SVM is off!",
            "ERR-7731 again",
            "the BIOS menu",
        )
    )
    db.call("maintain", bank=bank)
    assert "ERR-7731 again" in automatic(db, bank, other)
    link(db, bank, other, fourth)
    db.rows(
        "SELECT hindsight.set_embeddings(%s, %s::uuid[], ARRAY[1, 1], ARRAY['[1,0,0]', '[1,0,0]']::vector[], %s)",
        (bank, [one, other], model),
    )
    assert db.one("resolve", bank=bank, finding="duplicates", memory_id=other, other_id=one) == {"resolve": "merged"}
    assert {row["memory_id"] for row in db.call("neighbours", bank=bank, memory_id=one) if not row["is_automatic"]} == {
        fourth
    }
    assert third in {row["memory_id"] for row in db.call("neighbours", bank=bank, memory_id=one)}
