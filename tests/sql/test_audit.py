"""The audit: what it finds, what it leaves alone, and what resolve puts right."""

import json
import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

NEAR = ("[1,0,0]", "[0.95,0.312,0]")
"""Two vectors with a cosine of 0.95: near, and under the merge threshold of the toy model."""


@pytest.fixture
def toy(db: Database) -> str:
    name = f"toy-{uuid.uuid4().hex[:8]}"
    db.call("register_model", model=name, dimensions=3, floor=0, recall_threshold=0.3, merge_threshold=0.97)
    return name


def store(db: Database, bank: str, content: str, **arguments: Any) -> uuid.UUID:
    memory_id: uuid.UUID = db.one("store", bank=bank, content=content, importance=0.5, **arguments)["memory_id"]
    return memory_id


def late(db: Database, memory_id: uuid.UUID, embedding: str, model: str) -> None:
    """Gives a memory its vector after it was stored, when nothing merges it any more."""
    bank = db.value(
        "SELECT b.name FROM hindsight.memory m JOIN hindsight.bank b USING (bank_id) WHERE m.memory_id = %s",
        (memory_id,),
    )
    assert db.value(
        "SELECT hindsight.set_embeddings(%s, ARRAY[%s::uuid], ARRAY[(SELECT version FROM hindsight.memory WHERE memory_id = %s)], ARRAY[%s::vector], %s)",
        (bank, memory_id, memory_id, embedding, model),
    )


def age(db: Database, memory_id: uuid.UUID, days: int) -> None:
    db.rows(
        "UPDATE hindsight.memory SET created_at = now() - %(past)s, confirmed_at = now() - %(past)s, changed_at = now() - %(past)s"
        " WHERE memory_id = %(memory_id)s",
        {"past": timedelta(days=days), "memory_id": memory_id},
    )


def findings(db: Database, bank: str, *checks: str) -> list[dict[str, Any]]:
    return db.call("audit", bank=bank, checks=list(checks))


def reasons(db: Database, bank: str, memory_id: uuid.UUID) -> list[str | None]:
    return [event["reason"] for event in db.call("history", bank=bank, memory_id=memory_id)]


class TestContradictions:
    @pytest.mark.parametrize(
        ("older", "newer", "why"),
        [
            ("The gateway supports IPv6", "The gateway does not support IPv6", "one denies what the other says"),
            ("网关支持 IPv6", "网关不支持 IPv6", "one denies what the other says"),
            ("Debug logging is enabled in production", "Debug logging is disabled in production", "are opposites"),
            ("生产环境开启了调试日志", "生产环境关闭了调试日志", "are opposites"),
            ("The idle timeout of the proxy is 30 seconds", "The idle timeout of the proxy is 45 seconds", "or"),
            ("代理的空闲超时是30秒", "代理的空闲超时是45秒", "or"),
            ("The project's database is Postgres", "The project's database is MySQL", "or"),
            ("项目的数据库是达梦", "项目的数据库是人大金仓", "or"),
            ("Alice reports to Bob", "Bob reports to Alice", "change places"),
            ("张伟向李娜汇报", "李娜向张伟汇报", "change places"),
            ("All of the tests pass", "Some of the tests pass", "one says it of all"),
        ],
    )
    def test_two_near_memories_of_which_one_must_be_wrong_are_for_a_person(
        self, db: Database, bank: str, toy: str, older: str, newer: str, why: str
    ) -> None:
        first = store(db, bank, older, embedding=NEAR[0], model=toy)
        second = store(db, bank, newer, embedding=NEAR[1], model=toy)
        (found,) = db.call("audit", bank=bank)
        assert (found["finding"], found["remedy"]) == ("contradictions", "review")
        assert (found["memory_id"], found["other_id"]) == (second, first), "the newer one first"
        assert older in found["detail"]
        assert why in found["detail"]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Room 101 has a projector", "Room 102 has a projector"),
            ("The host db-03 has 64 GB of memory", "The host db-08 has 64 GB of memory"),
            ("Carol is allergic to nuts", "Carl is allergic to nuts"),
            ("The user likes tea", "The user likes coffee"),
            ("用户喜欢喝茶", "用户喜欢喝咖啡"),
            ("测试库每天备份", "生产库每天备份"),
            ("The user's left knee was operated on", "The user's right knee was operated on"),
            ("How does the gateway support IPv6?", "Why does the gateway not support IPv6?"),
            ("用户问网关支不支持 IPv6", "用户问网关为什么不支持 IPv6"),
            ("The gym is not open on Sundays", "The gym is closed on Sundays"),
            ("The user speaks German and French", "The user speaks French and German"),
            ("前端由李娜负责，后端由赵强负责", "后端由赵强负责，前端由李娜负责"),
            ("The team deploys on Tuesdays", "The team deploys on Tuesdays only if the manager is present"),
        ],
    )
    def test_what_is_only_similar_is_no_contradiction(
        self, db: Database, bank: str, toy: str, one: str, other: str
    ) -> None:
        store(db, bank, one, embedding=NEAR[0], model=toy)
        store(db, bank, other, embedding=NEAR[1], model=toy)
        assert findings(db, bank, "contradictions") == []

    def test_far_ones_and_two_slots_and_what_is_not_live_are_passed_over(
        self, db: Database, bank: str, toy: str
    ) -> None:
        store(db, bank, "The gateway supports IPv6", embedding="[1,0,0]", model=toy)
        far = store(db, bank, "The gateway does not support IPv6", embedding="[0,1,0]", model=toy)
        assert findings(db, bank, "contradictions") == []
        late(db, far, NEAR[1], toy)
        assert len(findings(db, bank, "contradictions")) == 1
        db.call("forget", bank=bank, memory_id=far, reason="test")
        assert findings(db, bank, "contradictions") == []
        store(db, bank, "The read cache is on", slot="cache.read", embedding="[0,0,1]", model=toy)
        store(db, bank, "The read cache is off", slot="cache.write", embedding="[0,0,1]", model=toy)
        assert findings(db, bank, "contradictions") == []

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The gateway supports IPv6 tunnels", "The gateway does not support IPv6 tunnels"),
            ("网关支持隧道协议", "网关不支持隧道协议"),
        ],
    )
    def test_without_vectors_words_in_common_bring_two_together(
        self, db: Database, bank: str, one: str, other: str
    ) -> None:
        store(db, bank, one)
        store(db, bank, other)
        store(db, bank, "The cat sleeps on the keyboard")
        assert [row["finding"] for row in db.call("audit", bank=bank)] == ["contradictions"]


class TestDuplicates:
    def pair(self, db: Database, bank: str, toy: str, **first: Any) -> tuple[uuid.UUID, uuid.UUID]:
        one = store(db, bank, "The staging server is named heron", **first)
        other = store(db, bank, "The staging server is named Heron!", tags=["b"], metadata='{"y": 2}')
        late(db, one, "[1,0,0]", toy)
        late(db, other, "[1,0,0]", toy)
        return one, other

    def test_two_that_say_the_same_become_one_with_what_both_have(self, db: Database, bank: str, toy: str) -> None:
        one, other = self.pair(db, bank, toy, tags=["a"], metadata='{"x": 1}')
        cause = store(db, bank, "The naming scheme is birds")
        db.call("link", bank=bank, from_id=other, to_id=cause, relation="causes")
        (found,) = findings(db, bank, "duplicates")
        assert (found["memory_id"], found["other_id"], found["remedy"]) == (other, one, "merge")
        assert db.one("resolve", bank=bank, finding="duplicates", memory_id=other, other_id=one) == {
            "resolve": "merged"
        }
        kept, gone = (db.one("get", bank=bank, memory_id=memory) for memory in (one, other))
        assert (kept["tags"], kept["metadata"], kept["confirmations"]) == (["a", "b"], {"x": 1, "y": 2}, 1)
        assert (gone["state"], gone["superseded_by"]) == ("superseded", one)
        assert [row["memory_id"] for row in db.call("neighbours", bank=bank, memory_id=one)] == [cause]
        assert reasons(db, bank, one)[-2:-1] == [f"audit: memory {other} says the same"]
        assert reasons(db, bank, other)[-1] == f"audit: memory {one} says the same"
        assert findings(db, bank, "duplicates") == []
        assert db.one("resolve", bank=bank, finding="duplicates", memory_id=other, other_id=one) == {"resolve": "left"}

    def test_the_confirmed_one_is_kept_and_takes_the_slot(self, db: Database, bank: str, toy: str) -> None:
        one, other = self.pair(db, bank, toy, slot="staging.name")
        db.call("confirm", bank=bank, memory_id=other)
        db.call("resolve", bank=bank, finding="duplicates", memory_id=one, other_id=other)
        kept = db.one("get", bank=bank, memory_id=other)
        assert (kept["state"], kept["slot"], kept["confirmations"]) == ("live", "staging.name", 2)

    def test_two_kinds_of_memory_are_not_merged(self, db: Database, bank: str, toy: str) -> None:
        one, other = self.pair(db, bank, toy, type="todo")
        assert [row["remedy"] for row in findings(db, bank, "duplicates")] == ["review"]
        assert db.one("resolve", bank=bank, finding="duplicates", memory_id=one, other_id=other) == {"resolve": "left"}
        assert db.one("get", bank=bank, memory_id=other)["state"] == "live"

    def test_near_ones_in_other_words_are_for_a_person_unless_a_number_or_name_differs(
        self, db: Database, bank: str, toy: str
    ) -> None:
        for content, embedding in [
            ("The staging server sits in the basement", "[1,0,0]"),
            ("In the cellar the staging machine can be found", "[1,0,0]"),
            ("Room 101 is on the left after the stairs", "[0,1,0]"),
            ("After the stairs one sees room 102 to the left", "[0,1,0]"),
            ("用户的办公桌靠着窗户", "[0,0,1]"),
            ("靠窗的那张桌子归用户", "[0,0,1]"),
        ]:
            late(db, store(db, bank, content), embedding, toy)
        found = findings(db, bank, "duplicates")
        assert [row["remedy"] for row in found] == ["review", "review"]
        assert not any("Room" in row["detail"] for row in found)

    def test_a_duplicate_needs_two(self, db: Database, bank: str) -> None:
        one = store(db, bank, "one")
        for other in (None, one):
            with pytest.raises(psycopg.Error) as caught:
                db.call("resolve", bank=bank, finding="duplicates", memory_id=one, other_id=other)
            assert caught.value.sqlstate == "HM004"
        with pytest.raises(psycopg.Error) as caught:
            db.call("resolve", bank=bank, finding="duplicates", memory_id=one, other_id=uuid.uuid4())
        assert caught.value.sqlstate == "HM002"


class TestWhatGrowsOld:
    def test_a_faded_fact_is_stale_unless_it_was_confirmed_or_its_type_does_not_fade(
        self, db: Database, bank: str
    ) -> None:
        old = store(db, bank, "The build takes nine minutes")
        for content, arguments in [
            ("构建需要九分钟", {"type": "decision"}),
            ("Water boils at 100 °C", {"type": "knowledge"}),
        ]:
            age(db, store(db, bank, content, **arguments), 250)
        age(db, old, 250)
        age(db, store(db, bank, "not yet"), 200)
        confirmed = store(db, bank, "confirmed once")
        db.call("confirm", bank=bank, memory_id=confirmed)
        age(db, confirmed, 250)
        found = findings(db, bank, "stale")
        assert len(found) == 2
        assert old in [row["memory_id"] for row in found]
        assert {row["remedy"] for row in found} == {"review"}
        db.call("set_policy", bank=bank, type="fact", decay_rate=0.001)
        assert old not in [row["memory_id"] for row in findings(db, bank, "stale")]

    def test_what_is_pending_for_long_and_a_todo_that_runs_out_are_stale(self, db: Database, bank: str) -> None:
        waiting, fresh = (store(db, bank, content, confidence=0.3) for content in ("perhaps", "也许"))
        age(db, waiting, 25)
        todo, done = (store(db, bank, content, type="todo") for content in ("交周报", "call Bob"))
        for memory_id in (todo, done):
            age(db, memory_id, 25)
            db.rows(
                "UPDATE hindsight.memory SET expires_at = now() + interval '5 days' WHERE memory_id = %s", (memory_id,)
            )
        store(db, bank, "a new one", type="todo")
        db.call("complete", bank=bank, memory_id=done)
        assert {row["memory_id"] for row in findings(db, bank, "stale")} == {waiting, todo}
        assert fresh not in [row["memory_id"] for row in findings(db, bank, "stale")]

    def test_a_hypothesis_of_a_month_is_found_until_somebody_confirms_it(self, db: Database, bank: str) -> None:
        old = store(db, bank, "用户可能住在杭州", type="hypothesis")
        store(db, bank, "The user may be left-handed", type="hypothesis")
        age(db, old, 31)
        (found,) = findings(db, bank, "hypotheses")
        assert (found["memory_id"], found["remedy"]) == (old, "review")
        db.call("confirm", bank=bank, memory_id=old)
        assert findings(db, bank, "hypotheses") == []


class TestOrphans:
    def test_what_stands_on_something_forgotten_is_withdrawn_and_comes_back_with_it(
        self, db: Database, bank: str
    ) -> None:
        evidence = store(db, bank, "用户每天跑步")
        derived = store(db, bank, "用户热爱运动", derived_from=[evidence])
        db.call("forget", bank=bank, memory_id=evidence, reason="test")
        db.rows("UPDATE hindsight.memory SET pending_reason = NULL WHERE memory_id = %s RETURNING 1", (derived,))
        (found,) = db.call("audit", bank=bank)
        assert (found["finding"], found["memory_id"], found["other_id"]) == ("orphans", derived, evidence)
        assert found["remedy"] == "withdraw"
        assert db.one("resolve", bank=bank, finding="orphans", memory_id=derived) == {"resolve": "withdrawn"}
        assert db.one("get", bank=bank, memory_id=derived)["state"] == "pending"
        assert reasons(db, bank, derived)[-1] == "audit: it stands on a forgotten memory"
        assert db.call("audit", bank=bank) == []
        assert db.one("resolve", bank=bank, finding="orphans", memory_id=derived) == {"resolve": "left"}
        db.call("restore", bank=bank, memory_id=evidence)
        assert db.one("get", bank=bank, memory_id=derived)["state"] == "live"

    def test_what_somebody_confirmed_since_is_no_orphan(self, db: Database, bank: str) -> None:
        evidence = store(db, bank, "one")
        derived = store(db, bank, "two", derived_from=[evidence])
        db.call("forget", bank=bank, memory_id=evidence, reason="test")
        db.call("confirm", bank=bank, memory_id=derived)
        assert findings(db, bank, "orphans") == []
        assert db.one("resolve", bank=bank, finding="orphans", memory_id=derived) == {"resolve": "left"}

    def test_a_value_whose_successor_is_gone_is_for_a_person(self, db: Database, bank: str) -> None:
        old = store(db, bank, "The port is 22", slot="port")
        new = store(db, bank, "The port is 2222", slot="port")
        assert findings(db, bank, "orphans") == []
        db.call("forget", bank=bank, memory_id=new, reason="test")
        (found,) = findings(db, bank, "orphans")
        assert (found["memory_id"], found["other_id"], found["remedy"]) == (old, new, "review")
        store(db, bank, "The port is 222", slot="port")
        assert findings(db, bank, "orphans") == [], "the slot has a live value again"

    def test_a_summary_of_a_session_whose_memories_are_forgotten(self, db: Database, bank: str) -> None:
        one = store(db, bank, "讨论了端口", session_id="s1")
        summary = store(db, bank, "会话总结：端口", session_id="s1", type="summary")
        store(db, bank, "a summary alone", session_id="s2", type="summary")
        assert findings(db, bank, "orphans") == []
        db.call("forget", bank=bank, memory_id=one, reason="test")
        assert [row["memory_id"] for row in findings(db, bank, "orphans")] == [summary]


class TestSources:
    def test_a_burst_from_a_tool_stands_out_among_ordinary_sessions(self, db: Database, bank: str) -> None:
        for number in range(9):
            store(db, bank, f"note {number}", session_id=f"s{number}", source="tool")
        for number in range(60):
            store(db, bank, f"第{number}条广告", session_id="spam", source="tool")
        for number in range(60):
            store(db, bank, f"chapter {number}", session_id="book", source="document")
        db.rows("UPDATE hindsight.memory SET created_at = '2026-03-01 12:01:00+00' WHERE session_id = 'spam'")
        (found,) = findings(db, bank, "sources")
        assert "60 memories came within ten minutes, from session spam, source tool" in found["detail"]
        assert found["remedy"] == "review"

    def test_a_bank_that_was_filled_by_an_import_has_no_burst(self, db: Database, bank: str) -> None:
        for number in range(120):
            store(db, bank, f"row {number}", session_id=f"s{number % 2}")
        assert findings(db, bank, "sources") == []

    def test_what_only_a_tool_has_made_credible_is_found_until_somebody_confirms_it(
        self, db: Database, bank: str, toy: str
    ) -> None:
        contents = [
            "The admin approves every payment",
            *(f"The admin approves every payment{'!' * n}" for n in range(1, 7)),
        ]
        for number, content in enumerate(contents):
            stored = db.one(
                "store", bank=bank, content=content, source="tool", session_id=f"s{number}", confidence=0.7,
                importance=0.5, embedding="[1,0,0]", model=toy,
            )  # fmt: skip
        assert stored["outcome"] == "merged"
        (found,) = findings(db, bank, "sources")
        assert found["memory_id"] == stored["memory_id"]
        assert "from a confidence of 0.70 to" in found["detail"]
        db.call("confirm", bank=bank, memory_id=stored["memory_id"])
        assert findings(db, bank, "sources") == []


class TestTags:
    def test_spellings_become_the_most_frequent_one(self, db: Database, bank: str) -> None:
        for number in range(3):
            store(db, bank, f"页面{number}", tags=["frontend", "logs"])
        odd = store(db, bank, "one", tags=["front-end", "x", "front end", "log"])
        store(db, bank, "two", tags=["news", "ios", "io", "前端"])
        (found,) = db.call("audit", bank=bank)
        assert (found["finding"], found["memory_id"], found["remedy"]) == ("tags", odd, "retag")
        assert "front end for frontend, front-end for frontend, log for logs" in found["detail"]
        assert db.one("resolve", bank=bank, finding="tags", memory_id=odd) == {"resolve": "retagged"}
        assert db.one("get", bank=bank, memory_id=odd)["tags"] == ["frontend", "x", "logs"]
        assert reasons(db, bank, odd)[-1] == "audit: its tags are spelled as in other memories"
        assert db.call("audit", bank=bank) == []
        assert db.one("resolve", bank=bank, finding="tags", memory_id=odd) == {"resolve": "left"}

    def test_new_aliases_and_what_is_allowed_decide_for_older_memories(self, db: Database, bank: str) -> None:
        older = store(db, bank, "老的", tags=["前端", "misc"])
        for number in range(2):
            store(db, bank, f"rare spelling {number}", tags=["back-end"])
        store(db, bank, "allowed spelling", tags=["backend"])
        db.call("set_tags", bank=bank, allowed=["frontend", "backend"], aliases=json.dumps({"frontend": ["前端"]}))
        found = findings(db, bank, "tags")
        assert sorted(row["remedy"] for row in found) == ["retag", "retag", "retag", "review"]
        assert [row["memory_id"] for row in found if "does not allow: misc" in row["detail"]] == [older]
        for row in found:
            db.call("resolve", bank=bank, finding="tags", memory_id=row["memory_id"])
        assert [row["remedy"] for row in findings(db, bank, "tags")] == ["review"]
        assert db.one("get", bank=bank, memory_id=older)["tags"] == ["frontend", "misc"]
        assert {row["tag"]: row["memories"] for row in db.call("tags", bank=bank)} == {
            "backend": 3,
            "frontend": 1,
            "misc": 1,
        }


class TestAsking:
    def test_checks_are_chosen_by_name_and_each_is_limited(self, db: Database, bank: str) -> None:
        for number in range(3):
            age(db, store(db, bank, f"guess {number}", type="hypothesis", tags=["a-b"]), 40)
        for number in range(5):
            store(db, bank, f"known {number}", tags=["ab"])
        assert [row["finding"] for row in db.call("audit", bank=bank, most=2)] == ["hypotheses"] * 2 + ["tags"] * 2
        assert [row["finding"] for row in findings(db, bank, "tags")] == ["tags"] * 3

    @pytest.mark.parametrize("checks", [["contradiction"], ["tags", "标签"], [None]])
    def test_an_unknown_check_is_refused_with_those_there_are(self, db: Database, bank: str, checks: list[str]) -> None:
        with pytest.raises(psycopg.Error, match="unknown check") as caught:
            db.call("audit", bank=bank, checks=checks)
        assert caught.value.sqlstate == "HM004"
        for name in ("contradictions", "duplicates", "stale", "orphans", "hypotheses", "sources", "tags"):
            assert name in str(caught.value.diag.message_hint)
        with pytest.raises(psycopg.Error, match="unknown check"):
            db.call("resolve", bank=bank, finding="contradiction", memory_id=uuid.uuid4())

    @pytest.mark.parametrize("most", [0, -1, 1001, None])
    def test_an_unusable_limit_is_refused(self, db: Database, bank: str, most: int | None) -> None:
        with pytest.raises(psycopg.Error, match="most must lie between 1 and 1000"):
            db.call("audit", bank=bank, most=most)

    def test_a_reader_audits_and_a_writer_resolves(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "one", tags=["a-b"])
        store(db, bank, "two", tags=["ab"])
        name = f"agent-{uuid.uuid4().hex[:6]}"
        db.call("grant_access", bank=bank, principal=name, rights="reader")
        with db.connection.transaction():
            db.rows("SET TRANSACTION READ ONLY")
            db.rows("SELECT set_config('hindsight.principal', %s, true)", (name,))
            assert len(db.call("audit", bank=bank)) == 1
            with pytest.raises(psycopg.Error) as caught, db.connection.transaction():
                db.call("resolve", bank=bank, finding="tags", memory_id=memory_id)
            assert caught.value.sqlstate == "HM003"
        with pytest.raises(psycopg.Error) as caught:
            db.call("audit", bank="no-such-bank")
        assert caught.value.sqlstate == "HM001"

    def test_an_empty_bank_has_no_findings(self, db: Database, bank: str) -> None:
        assert db.call("audit", bank=bank) == []

    def test_another_bank_is_not_looked_at(self, db: Database, bank: str, toy: str) -> None:
        other = f"bank-{uuid.uuid4().hex[:8]}"
        db.call("create_bank", bank=other)
        store(db, bank, "The gateway supports IPv6", embedding=NEAR[0], model=toy)
        store(db, other, "The gateway does not support IPv6", embedding=NEAR[1], model=toy)
        assert db.call("audit", bank=bank) == []


def test_a_large_bank_is_audited_beside_its_newest_memories_only(fresh_url: str) -> None:
    """Beyond a thousand memories pairs are sought by the index: the newest thousand find what is near, however old."""
    db = Database(fresh_url)
    db.call("create_bank", bank="large")
    db.call("register_model", model="toy", dimensions=64, floor=0, recall_threshold=0.3, merge_threshold=0.97)
    zeros = ",0" * 62
    old = store(db, "large", "The gateway supports IPv6", embedding=f"[1,0{zeros}]", model="toy")
    age(db, old, 10)
    bank_id, model_id = db.rows("SELECT bank_id, model_id FROM hindsight.bank WHERE name = 'large'")[0].values()
    db.rows(
        """INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, confidence, importance, metadata,
             language, created_at, confirmed_at, confirmations, changed_at, model_id, embedding)
           SELECT %(bank)s, gen_random_uuid(), 1, 'note ' || i, 'fact', '{}', '{}', 0.9, 0.5, '{}', 'english', now() - interval '1 day',
                  now() - interval '1 day', 0, now() - interval '1 day', %(model)s,
                  (SELECT l2_normalize(array_agg(random_normal())::real[]::vector)::halfvec
                   FROM generate_series(1, 64) AS axis WHERE axis < 65 + i)
           FROM generate_series(1, 1500) AS i""",
        {"bank": bank_id, "model": model_id},
    )
    db.rows("ANALYZE hindsight.memory")
    new = store(db, "large", "The gateway does not support IPv6", embedding=f"[1,0.0001{zeros}]", model="toy")
    (found,) = db.call("audit", bank="large", checks=["contradictions"])
    assert (found["memory_id"], found["other_id"]) == (new, old)
    age(db, new, 9)
    assert db.call("audit", bank="large", checks=["contradictions"]) == [], "neither is among the newest thousand"
    db.close()
