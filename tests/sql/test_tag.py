"""Tags: one spelling for each, other spellings as aliases, and a list of those that a bank allows."""

import json
import uuid

import psycopg
import pytest

from tests.conftest import Database


def stored_tags(db: Database, bank: str, content: str, tags: list[str]) -> list[str]:
    memory_id = db.one("store", bank=bank, content=content, tags=tags)["memory_id"]
    kept: list[str] = db.one("get", bank=bank, memory_id=memory_id)["tags"]
    return kept


def set_aliases(db: Database, bank: str, **aliases: object) -> None:
    db.call("set_tags", bank=bank, aliases=json.dumps(aliases))


def refused(db: Database, **arguments: object) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        db.call("set_tags", **arguments)
    return caught.value


class TestSpelling:
    def test_case_width_and_spaces_do_not_make_another_tag(self, db: Database, bank: str) -> None:
        assert stored_tags(db, bank, "one", ["Docker", "ＤＯＣＫＥＲ", " docker ", "Project　X"]) == [
            "docker",
            "project x",
        ]
        assert stored_tags(db, bank, "二", ["前端", "前端　", "（内部）"]) == ["前端", "(内部)"]

    @pytest.mark.parametrize("asked", ["DOCKER", "ｄｏｃｋｅｒ", " Docker "])
    def test_a_filter_finds_a_tag_however_it_is_written(self, db: Database, bank: str, asked: str) -> None:
        stored_tags(db, bank, "tagged", ["Docker"])
        stored_tags(db, bank, "other", ["k8s"])
        assert db.contents(bank, tags=[asked]) == ["tagged"]
        assert db.contents(bank, all_tags=[asked]) == ["tagged"]
        assert db.contents(bank, no_tags=[asked]) == ["other"]


class TestAliases:
    def test_an_alias_is_kept_and_asked_as_its_tag(self, db: Database, bank: str) -> None:
        set_aliases(db, bank, Frontend=["Front-End", "ＦＥ", "前端"])
        assert stored_tags(db, bank, "one", ["front-end", "fe", "ui"]) == ["frontend", "ui"]
        assert stored_tags(db, bank, "二", ["前端"]) == ["frontend"]
        assert sorted(db.contents(bank, tags=["前端"])) == ["one", "二"]
        memory_id = db.one("store", bank=bank, content="three")["memory_id"]
        db.call("update_memory", bank=bank, memory_id=memory_id, tags=["FE"])
        assert db.one("get", bank=bank, memory_id=memory_id)["tags"] == ["frontend"]

    def test_aliases_of_a_tag_are_replaced_and_those_of_others_stay(self, db: Database, bank: str) -> None:
        set_aliases(db, bank, frontend=["fe"], backend=["be"])
        set_aliases(db, bank, frontend=["ui", "UI", "Frontend"])
        assert {row["tag"]: row["aliases"] for row in db.call("tags", bank=bank)} == {
            "backend": ["be"],
            "frontend": ["ui"],
        }
        set_aliases(db, bank, frontend=[])
        assert [row["tag"] for row in db.call("tags", bank=bank)] == ["backend"]

    def test_a_chain_a_cycle_and_an_alias_of_two_tags_are_refused_and_change_nothing(
        self, db: Database, bank: str
    ) -> None:
        set_aliases(db, bank, frontend=["fe"])
        for aliases, message in [
            ({"fe": ["前端"]}, "'fe' cannot be an alias of 'frontend': it has the alias '前端' itself"),
            ({"ui": ["frontend"]}, "'frontend' cannot be an alias of 'ui': it has the alias 'fe' itself"),
            ({"a": ["b"], "b": ["a"]}, "cannot be an alias of"),
            ({"ui": ["fe"]}, "'fe' cannot be an alias of both 'frontend' and 'ui'"),
        ]:
            error = refused(db, bank=bank, aliases=json.dumps(aliases))
            assert error.sqlstate == "HM004"
            assert message in str(error)
            assert error.diag.message_hint
        assert [(row["tag"], row["aliases"]) for row in db.call("tags", bank=bank)] == [("frontend", ["fe"])]
        set_aliases(db, bank, frontend=[], ui=["fe", "frontend"])
        assert [(row["tag"], row["aliases"]) for row in db.call("tags", bank=bank)] == [("ui", ["fe", "frontend"])]

    @pytest.mark.parametrize(
        "aliases",
        ['["fe"]', '{"frontend": "fe"}', '{"frontend": [1]}', '{"frontend": null}', '{"": ["fe"]}', '{"a": [" "]}'],
    )
    def test_other_shapes_are_refused(self, db: Database, bank: str, aliases: str) -> None:
        assert refused(db, bank=bank, aliases=aliases).sqlstate == "HM004"
        assert db.call("tags", bank=bank) == []


class TestAllowed:
    def test_store_keeps_the_allowed_tags_and_says_which_it_left_out(self, db: Database, bank: str) -> None:
        db.call("set_tags", bank=bank, allowed=["Docker", "网络"], aliases='{"docker": ["容器"]}')
        kept = db.one("store", bank=bank, content="端口映射", tags=["容器", "网络", "misc", "杂项"])
        assert kept["outcome"] == "stored"
        assert kept["reasons"] == ["the bank does not allow the tags misc, 杂项"]
        assert db.one("get", bank=bank, memory_id=kept["memory_id"])["tags"] == ["docker", "网络"]

    def test_update_memory_refuses_another_tag_and_says_which_are_allowed(self, db: Database, bank: str) -> None:
        memory_id = db.one("store", bank=bank, content="one", tags=["old"])["memory_id"]
        db.call("set_tags", bank=bank, allowed=["docker"])
        with pytest.raises(psycopg.Error, match="does not allow the tags misc") as caught:
            db.call("update_memory", bank=bank, memory_id=memory_id, tags=["docker", "misc"])
        assert (caught.value.sqlstate, "docker" in str(caught.value.diag.message_hint)) == ("HM004", True)
        db.call("update_memory", bank=bank, memory_id=memory_id, content="two")
        assert db.one("get", bank=bank, memory_id=memory_id)["tags"] == ["old"], "what it has already stays"
        db.call("update_memory", bank=bank, memory_id=memory_id, tags=["DOCKER"])
        assert db.one("get", bank=bank, memory_id=memory_id)["tags"] == ["docker"]

    def test_an_empty_list_lifts_the_limit_and_null_leaves_it(self, db: Database, bank: str) -> None:
        db.call("set_tags", bank=bank, allowed=["docker"])
        set_aliases(db, bank, docker=["容器"])
        assert stored_tags(db, bank, "one", ["misc", "容器"]) == ["docker"]
        db.call("set_tags", bank=bank, allowed=[])
        assert stored_tags(db, bank, "two", ["misc"]) == ["misc"]

    def test_what_is_allowed_follows_its_alias(self, db: Database, bank: str) -> None:
        db.call("set_tags", bank=bank, allowed=["front-end"])
        set_aliases(db, bank, frontend=["front-end"])
        assert stored_tags(db, bank, "one", ["front-end"]) == ["frontend"]

    @pytest.mark.parametrize("allowed", [[""], ["  "], [None], ["x" * 201]])
    def test_what_is_no_tag_is_refused(self, db: Database, bank: str, allowed: list[str | None]) -> None:
        assert refused(db, bank=bank, allowed=allowed).sqlstate == "HM004"


class TestListing:
    def test_tags_are_counted_over_live_memories(self, db: Database, bank: str) -> None:
        set_aliases(db, bank, docker=["容器"])
        gone = db.one("store", bank=bank, content="gone", tags=["docker", "old"])["memory_id"]
        stored_tags(db, bank, "one", ["容器", "网络"])
        stored_tags(db, bank, "two", ["docker"])
        db.call("forget", bank=bank, memory_id=gone, reason="test")
        db.call("set_tags", bank=bank, allowed=["docker", "网络", "unused"])
        assert [(row["tag"], row["memories"], row["aliases"]) for row in db.call("tags", bank=bank)] == [
            ("docker", 2, ["容器"]),
            ("网络", 1, []),
            ("unused", 0, []),
        ]

    def test_only_an_owner_sets_tags_a_reader_lists_them_and_the_change_leaves_an_event(
        self, db: Database, bank: str
    ) -> None:
        db.call("set_tags", bank=bank, allowed=["docker"], aliases='{"docker": ["容器"]}')
        event = db.rows(
            "SELECT e.after FROM hindsight.event e JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s AND action = 'set_tags'",
            (bank,),
        )
        assert [row["after"] for row in event] == [{"allowed": ["docker"], "aliases": {"docker": ["容器"]}}]
        for rights in ("reader", "writer"):
            name = f"agent-{uuid.uuid4().hex[:6]}"
            db.call("grant_access", bank=bank, principal=name, rights=rights)
            with db.connection.transaction():
                db.rows("SELECT set_config('hindsight.principal', %s, true)", (name,))
                assert [row["tag"] for row in db.call("tags", bank=bank)] == ["docker"]
                with pytest.raises(psycopg.Error) as caught, db.connection.transaction():
                    db.call("set_tags", bank=bank, allowed=[])
                assert caught.value.sqlstate == "HM003"
        assert refused(db, bank="no-such-bank", allowed=[]).sqlstate == "HM001"
