"""What a bank knows of an entity: its names, of which some are aliases by evidence, its count and its memories."""

import uuid

import psycopg
import pytest

from tests.conftest import Database


def store(db: Database, bank: str, content: str, **arguments: object) -> uuid.UUID:
    return db.one("store", bank=bank, content=content, **arguments)["memory_id"]


def known(db: Database, bank: str, name: str) -> dict[str, object] | None:
    rows = db.call("entity", bank=bank, name=name)
    return rows[0] if rows else None


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("We run Kubernetes (K8s) in production", {("Kubernetes", "K8s")}),
        ("The World Health Organization (WHO) said so", {("World Health Organization", "WHO")}),
        ("Kubernetes, also known as K8s, is used", {("Kubernetes", "K8s")}),
        ("PostgreSQL (aka Postgres) 17", {("PostgreSQL", "Postgres")}),
        ("世界卫生组织，简称世卫，总部在日内瓦", {("世界卫生组织", "世卫")}),
        ("世界卫生组织（简称世卫）", {("世界卫生组织", "世卫")}),
        ("阿里云又称 Aliyun", {("阿里云", "Aliyun")}),
        ("Kubernetes, also known as K8s. Docker runs on it.", {("Kubernetes", "K8s")}),
        ("Mallory is also called Node.js v2.1. Alice left", {("Mallory", "Node.js")}),
        ("Paris (France) is nice", set()),
        ("Alice (Bob's sister) called", set()),
        ("room 101 (room 102)", set()),
        ("Iran and Tigran", set()),
        ("这种鱼俗称黄花鱼", set()),
        ("", set()),
        ("(((((", set()),
    ],
)
def test_an_alias_is_what_a_text_says_is_one(db: Database, text: str, pairs: set[tuple[str, str]]) -> None:
    assert {(row["name"], row["alias"]) for row in db.call("aliases", content=text)} == pairs


@pytest.mark.parametrize(
    ("name", "kind"),
    [("8 GB", "quantity"), ("30 分钟", "quantity"), ("45%", "quantity"), ("ERR-7731", "identifier"), ("v1.2.3", "identifier"),
     ("user_id", "identifier"), ("foo@example.org", "identifier"), ("/etc/hosts", "identifier"), ("Alice", "name"),
     ("New York", "name"), ("MySQL", "name"), ("汇率", "term"), ("the plan", "term")],
)  # fmt: skip
def test_a_kind_is_told_by_the_form_of_a_name(db: Database, name: str, kind: str) -> None:
    assert db.one("entity_kind", name=name)["entity_kind"] == kind


class TestAnEntity:
    def test_is_known_at_once_by_any_spelling_of_its_case_and_width(self, db: Database, bank: str) -> None:
        first = store(db, bank, "Docker runs on the server Delta", occurred_at="2026-01-01T00:00:00Z")
        last = store(db, bank, "DOCKER was updated by Alice", importance=0.9)
        for name in ("docker", "DOCKER", "Ｄｏｃｋｅｒ", " Docker "):
            found = known(db, bank, name)
            assert found is not None
            assert (found["kind"], found["memories"], found["latest"], found["important"]) == ("name", 2, [last, first], [last, first])  # fmt: skip
            assert set(found["linked"]) == {"Delta", "Alice"}
        assert known(db, bank, "Podman") is None

    def test_is_not_another_one_that_is_spelled_like_it(self, db: Database, bank: str) -> None:
        for content in (
            "meet in Room 101",
            "meet in Room 102",
            "Iran exports oil",
            "Tigran sings",
            "version v1.2 is out",
            "v12 hums",
        ):
            store(db, bank, content)
        for name in ("Iran", "Tigran", "v1.2", "v12"):
            found = known(db, bank, name)
            assert found is not None
            assert (found["memories"], found["names"]) == (1, [name])

    def test_has_an_alias_as_long_as_a_live_memory_says_so(self, db: Database, bank: str) -> None:
        said = store(db, bank, "Acme Cloud Platform (ACP) is our host")
        store(db, bank, "ACP was down on Monday")
        db.call("maintain", bank=bank)
        one, other = known(db, bank, "acp"), known(db, bank, "Acme Cloud Platform")
        assert one == other
        assert one is not None
        assert set(one["names"]) == {"Acme Cloud Platform", "ACP"}
        assert one["memories"] == 2
        db.call("forget", bank=bank, memory_id=said, reason="asked to")
        found = known(db, bank, "ACP")
        assert found is not None
        assert (found["names"], found["memories"]) == (["ACP"], 1)

    def test_has_no_alias_by_what_is_not_believed(self, db: Database, bank: str) -> None:
        store(db, bank, "Alice, also known as Mallory, signs the releases", confidence=0.3)
        store(db, bank, "Alice signs the releases")
        db.call("maintain", bank=bank)
        found = known(db, bank, "Alice")
        assert found is not None
        assert found["names"] == ["Alice"]

    def test_a_general_second_name_needs_no_evidence(self, db: Database, bank: str) -> None:
        store(db, bank, "Kubernetes runs on three nodes")
        found = known(db, bank, "K8s")
        assert found is not None
        assert found["memories"] == 1

    def test_links_memories_by_its_aliases_too(self, db: Database, bank: str) -> None:
        store(db, bank, "世界卫生组织（简称世卫）在日内瓦", entities=["世界卫生组织"])
        one = store(db, bank, "世卫发布了新的指南", entities=["世卫"])
        other = store(db, bank, "世界卫生组织的总干事换人了", entities=["世界卫生组织"])
        db.call("maintain", bank=bank)
        db.call("maintain", bank=bank)
        assert other in [row["memory_id"] for row in db.call("neighbours", bank=bank, memory_id=one)]

    def test_of_another_bank_is_not_known(self, db: Database, bank: str) -> None:
        store(db, bank, "Docker (DKR) is here")
        other = f"bank-{uuid.uuid4().hex[:8]}"
        db.call("create_bank", bank=other)
        db.call("maintain", bank=bank)
        assert db.call("entity", bank=other, name="Docker") == []
        assert db.call("known_entities", bank=other) == []

    def test_needs_a_name(self, db: Database, bank: str) -> None:
        for name in ("", " ", None):
            with pytest.raises(psycopg.Error, match="name is empty"):
                db.call("entity", bank=bank, name=name)


class TestTheListOfEntities:
    def test_holds_what_most_memories_name_first_as_it_was_counted(self, db: Database, bank: str) -> None:
        for number in range(3):
            store(db, bank, f"Docker host h{number}x is up")
        store(db, bank, "Alice left")
        assert db.call("known_entities", bank=bank) == []
        db.call("maintain", bank=bank)
        rows = db.call("known_entities", bank=bank)
        assert (rows[0]["entity"], rows[0]["memories"]) == ("Docker", 3)
        assert "Alice" in [row["entity"] for row in db.call("known_entities", bank=bank, kinds=["name"])]
        assert {row["kind"] for row in db.call("known_entities", bank=bank, kinds=["identifier"])} == {"identifier"}
        db.call("forget_bank", bank=bank, reason="asked to")
        db.call("maintain", bank=bank)
        assert db.call("known_entities", bank=bank) == []

    def test_an_unknown_kind_is_refused(self, db: Database, bank: str) -> None:
        with pytest.raises(psycopg.Error, match="unknown kind of entity"):
            db.call("known_entities", bank=bank, kinds=["person"])

    @pytest.mark.parametrize("content", ["Zebediah lives in Ouagadougou", "「赤峰」是 Zebediah 的家乡"])
    def test_what_only_a_forgotten_memory_names_is_not_in_it(self, db: Database, bank: str, content: str) -> None:
        one = store(db, bank, content)
        store(db, bank, "Zebediah plays the cello")
        db.call("maintain", bank=bank)
        assert len(db.call("known_entities", bank=bank)) == 2
        db.call("forget", bank=bank, memory_id=one, reason="asked to")
        assert [row["entity"] for row in db.call("known_entities", bank=bank)] == ["Zebediah"]
        assert [row["entity"] for row in db.call("known_entities", bank=bank, most=1)] == ["Zebediah"]

    def test_what_was_erased_is_not_in_it(self, db: Database, bank: str) -> None:
        one = store(db, bank, "Mallory Miller (MM) lives in Leipzig")
        db.call("maintain", bank=bank)
        db.call("erase_memory", bank=bank, memory_id=one, reason="at request, ticket 4711")
        names = [row["entity"] for row in db.call("known_entities", bank=bank)]
        assert "Mallory Miller" not in names
        rows = db.rows(
            "SELECT 1 FROM hindsight.entity_alias JOIN hindsight.bank USING (bank_id) WHERE name = %s", (bank,)
        )
        assert rows == []
