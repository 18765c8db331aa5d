"""Recalling: what is found, in which order, with which score, and what is not."""

import json
import math
import random
import time
import uuid
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hindsight.embedding import LocalEmbedder
from tests.conftest import Database

UNRELATED = """用户的猫叫米索
The team meets every Tuesday at ten
外币汇率换算接口每天凌晨更新一次
服务器部署在上海机房
alice prefers dark mode in the editor
项目的数据库是 MySQL 8.4
The staging password rotates every 90 days
用户喜欢喝不加糖的咖啡
The release is built from the main branch
SSH端口是49222，请记住
The invoice template lives in the finance folder
周五下午不安排会议
Use tabs, not spaces, in Go files
用户在学习日语
The office moved to Leipzig in 2024
前端使用 React 和 TypeScript
Nightly backups run at 02:30 UTC
代码评审至少需要两个人
The dog is allergic to chicken
用户每天早上七点跑步
Error ERR-7731 means the token has expired
报告用 Markdown 写
The API rate limit is 600 requests a minute
用户住在杭州
Flights are booked through the travel desk
默认时区是 Asia/Shanghai
The printer on floor 3 needs A4 paper
测试环境每周一重置
alice reads science fiction
发布前要先更新 CHANGELOG""".splitlines()

DOCKER = [
    ("virtualization support not detected 的解决方法是开启 BIOS 虚拟化", "fact", ["docker", "troubleshooting"]),
    ("用户使用 Docker Desktop on Windows", "fact", ["docker", "windows"]),
    ("用户偏好用 docker compose 而不是 docker run", "preference", ["docker"]),
]

embedder = LocalEmbedder()


def text_of(vector: list[float]) -> str:
    return "[" + ",".join(map(str, vector)) + "]"


@pytest.fixture
def toy(db: Database) -> str:
    """A model of three dimensions with floor 0: a cosine is a semantic similarity."""
    name = f"toy-{uuid.uuid4().hex[:8]}"
    db.call("register_model", model=name, dimensions=3)
    return name


def age(db: Database, content: str, days: float) -> None:
    db.rows(
        "UPDATE hindsight.memory SET confirmed_at = now() - %s * interval '1 day' WHERE content = %s", (days, content)
    )


class TestTheScore:
    def test_a_memory_of_seventy_days_scores_half_of_a_fresh_one(self, db: Database, bank: str, toy: str) -> None:
        db.call("store", bank=bank, content="fresh one", embedding="[1,0,0]", model=toy)
        db.call("store", bank=bank, content="older one", embedding="[1,0,0]", model=toy)
        age(db, "older one", 70)
        fresh, older = db.call("recall", bank=bank, embedding="[1,0,0]")
        assert (fresh["content"], older["content"]) == ("fresh one", "older one")
        assert older["score"] / fresh["score"] == pytest.approx(0.497, abs=0.0005)
        assert older["decay"] == pytest.approx(math.exp(-0.7), abs=1e-6)

    def test_half_the_confidence_is_half_the_score(self, db: Database, bank: str, toy: str) -> None:
        db.call("store", bank=bank, content="certain", embedding="[1,0,0]", model=toy, confidence=1.0)
        db.call("store", bank=bank, content="doubtful", embedding="[1,0,0]", model=toy, confidence=0.5)
        certain, doubtful = db.call("recall", bank=bank, embedding="[1,0,0]", include_pending=True)
        assert doubtful["pending_reason"] == "low confidence"
        assert doubtful["score"] / certain["score"] == pytest.approx(0.5, abs=1e-6)

    def test_every_row_is_explained_by_its_parts(self, db: Database, bank: str, toy: str) -> None:
        db.call(
            "store", bank=bank, content="Docker needs virtualization", embedding="[1,1,0]", model=toy, confidence=0.8
        )
        (row,) = db.call("recall", bank=bank, query="docker", embedding="[1,0,0]")
        assert row["semantic"] == pytest.approx(math.sqrt(0.5), abs=1e-3)
        assert row["similarity"] == pytest.approx(1 - (1 - row["semantic"]) * (1 - row["lexical"]))
        assert row["score"] == pytest.approx(row["similarity"] * 0.8 * row["decay"] * row["weight"])
        assert row["channels"] == ["vector", "text"]

    def test_knowledge_does_not_fade_and_a_hypothesis_weighs_half(self, db: Database, bank: str, toy: str) -> None:
        for type_ in ("fact", "knowledge", "hypothesis"):
            db.call(
                "store",
                bank=bank,
                content=f"a {type_}",
                type=type_,
                embedding="[1,0,0]",
                model=toy,
                confidence=1.0,
                source="user",
            )
            age(db, f"a {type_}", 100)
        scores = {row["type"]: row["score"] for row in db.call("recall", bank=bank, embedding="[1,0,0]", min_score=0)}
        assert scores["knowledge"] == pytest.approx(1.0, abs=1e-3)
        assert scores["fact"] == pytest.approx(math.exp(-1), abs=1e-3)
        assert scores["hypothesis"] == pytest.approx(0.5 * math.exp(-1), abs=1e-3)

    def test_a_bank_may_weigh_and_fade_a_type_its_own_way(self, db: Database, toy: str) -> None:
        bank = f"own-{uuid.uuid4().hex[:8]}"
        bank_id = db.one("create_bank", bank=bank, decay_rate=0.02)["create_bank"]
        db.rows("INSERT INTO hindsight.bank_type VALUES (%s, 'decision', 0.1, 0.4)", (bank_id,))
        for type_ in ("fact", "decision"):
            db.call(
                "store",
                bank=bank,
                content=f"a {type_}",
                type=type_,
                embedding="[1,0,0]",
                model=toy,
                confidence=1.0,
                source="user",
            )
            age(db, f"a {type_}", 10)
        rows = {row["type"]: row for row in db.call("recall", bank=bank, embedding="[1,0,0]", min_score=0)}
        assert rows["fact"]["decay"] == pytest.approx(math.exp(-0.2), abs=1e-6)
        assert rows["decision"]["decay"] == pytest.approx(math.exp(-1), abs=1e-6)
        assert rows["decision"]["weight"] == 0.4

    def test_a_memory_of_two_thousand_years_does_not_underflow(self, db: Database, bank: str) -> None:
        db.call("store", bank=bank, content="The pyramid is old")
        db.rows("UPDATE hindsight.memory SET confirmed_at = '0001-01-01' WHERE content = 'The pyramid is old'")
        (row,) = db.call("recall", bank=bank, query="pyramid")
        assert 0 < row["score"] < 1e-80


class TestFinding:
    @pytest.mark.parametrize("language", ["zh", "en"])
    def test_the_exact_text_of_a_memory_ranks_it_first_and_scores_fall(
        self, db: Database, bank: str, language: str
    ) -> None:
        contents = [text for text in UNRELATED if text.isascii() == (language == "en")]
        vectors = embedder.passages(contents)
        for content, vector in zip(contents, vectors, strict=True):
            db.call("store", bank=bank, content=content, embedding=text_of(vector), model=known(db))
        for content in contents:
            rows = db.call("recall", bank=bank, query=content, embedding=text_of(embedder.query(content)), min_score=0)
            scores = [row["score"] for row in rows]
            assert rows[0]["content"] == content
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)

    @pytest.mark.parametrize(
        ("wanted", "others"),
        [
            ("Docker does start on Windows", ["Docker does not start on Windows"]),
            ("To be or not to be", ["The cat is on the mat"]),
            ("🎉", ["🚀", "party"]),
            ("会议室是101", ["会议室是102"]),
        ],
    )
    def test_the_exact_text_is_found_first_though_words_cannot_tell(
        self, db: Database, bank: str, wanted: str, others: list[str]
    ) -> None:
        for content in [wanted, *others]:
            db.call("store", bank=bank, content=content, importance=0.5)
        then = db.value("SELECT clock_timestamp()")
        assert db.contents(bank, wanted)[0] == wanted
        assert db.contents(bank, wanted, as_of=then)[0] == wanted
        assert db.contents(bank, wanted, types=["todo"]) == []

    @pytest.mark.parametrize(
        ("right", "wrong", "query"),
        [
            (
                "Deploy with Docker, Podman is not supported",
                "Visitors may bring cats and/or dogs",
                "Should we deploy with Docker and/or Podman?",
            ),
            ("The standup meeting is daily", "The gym opens at 6am", "When is our standup meeting, at 6am?"),
        ],
    )
    def test_an_ordinary_word_with_a_sign_in_it_does_not_win(
        self, db: Database, bank: str, right: str, wrong: str, query: str
    ) -> None:
        for content in (right, wrong, "Other things", "Nothing of note"):
            db.call("store", bank=bank, content=content)
        assert db.contents(bank, query)[0] == right

    @pytest.mark.parametrize(
        ("content", "query"),
        [
            ("外币汇率换算接口每天凌晨更新一次", "汇率换算"),
            ("外币汇率换算接口每天凌晨更新一次", "汇率"),
            ("SSH端口是49222，请记住", "49222"),
            ("SSH端口是49222，请记住", "ssh"),
            ("我家的猫喜欢吃鱼", "猫"),
            ("我家的猫喜欢吃鱼", "鱼"),
            ("為替レートは毎日更新されます", "為替レート"),
            ("サーバーのポートは49222です", "49222"),
            ("환율은 매일 새벽에 업데이트됩니다", "환율"),
            ("서버포트는49222입니다", "49222"),
            ("ＭｙＳＱＬ　８．４ を使う", "mysql 8.4"),
        ],
    )
    def test_words_alone_find_chinese_japanese_and_korean(
        self, db: Database, bank: str, content: str, query: str
    ) -> None:
        for other in ("今天下午开会", "明日は休みです", "회의는 월요일입니다", "The meeting is on Monday"):
            db.call("store", bank=bank, content=other)
        db.call("store", bank=bank, content=content)
        assert db.contents(bank, query)[:1] == [content]

    @pytest.mark.parametrize(
        "query", ["ERR-7731", "user_id", "v1.2.3", "foo.bar@example.org", "C++", "/etc/hosts", "7731"]
    )
    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_an_identifier_finds_its_memory_first_though_its_embedding_is_far(
        self, db: Database, bank: str, query: str, language: str
    ) -> None:
        named = {"7731": "ERR-7731"}.get(query, query)
        wanted = f"Remember {named} for later" if language == "en" else f"请记住{named}，以后要用"
        others = [
            "ERR-1234 is harmless",
            "the user has an id",
            "v1.2.4 is out",
            "C is a language",
            "hosts are up",
            "a mail for foo",
        ]
        for other, vector in zip(others, embedder.passages(others), strict=True):
            db.call("store", bank=bank, content=other, embedding=text_of(vector), model=known(db))
        asked = embedder.query(query)
        db.call("store", bank=bank, content=wanted, embedding=text_of([-x for x in asked]), model=known(db))
        assert db.contents(bank, query, embedding=text_of(asked))[0] == wanted
        assert db.contents(bank, query)[0] == wanted

    def test_three_memories_about_docker_come_before_thirty_others_and_nothing_else_passes(
        self, db: Database, bank: str
    ) -> None:
        rows = [(text, "fact", []) for text in UNRELATED] + DOCKER
        assert len(UNRELATED) == 30
        for (content, type_, tags), vector in zip(rows, embedder.passages([row[0] for row in rows]), strict=True):
            db.call(
                "store", bank=bank, content=content, type=type_, tags=tags, embedding=text_of(vector), model=known(db)
            )
        query = "Docker 启动报错怎么办"
        found = db.contents(bank, query, embedding=text_of(embedder.query(query)))
        assert sorted(found) == sorted(content for content, _, _ in DOCKER)

    @pytest.mark.parametrize(
        "query", ["Who won the world cup in 1998?", "量子力学的基本原理", "how do I bake sourdough bread"]
    )
    def test_nothing_relevant_is_an_empty_list(self, db: Database, bank: str, query: str) -> None:
        for content, vector in zip(UNRELATED, embedder.passages(UNRELATED), strict=True):
            db.call("store", bank=bank, content=content, embedding=text_of(vector), model=known(db))
        assert db.contents(bank, query, embedding=text_of(embedder.query(query))) == []
        assert db.contents(bank, query) == []

    @pytest.mark.parametrize(
        ("query", "contents"),
        [
            (
                "汇率多久更新一次？",
                ["The exchange rates are refreshed every night", "The office is in Leipzig", "bob likes tea"],
            ),
            ("Does the user take sugar in coffee?", ["用户喜欢喝不加糖的咖啡", "会议在周五", "服务器部署在上海机房"]),
        ],
    )
    def test_a_question_in_one_language_finds_a_memory_in_the_other(
        self, db: Database, bank: str, query: str, contents: list[str]
    ) -> None:
        for content, vector in zip(contents, embedder.passages(contents), strict=True):
            db.call("store", bank=bank, content=content, embedding=text_of(vector), model=known(db))
        assert db.contents(bank, query, embedding=text_of(embedder.query(query)), min_score=0)[0] == contents[0]

    def test_a_memory_without_an_embedding_is_still_found_by_its_words(self, db: Database, bank: str, toy: str) -> None:
        db.call("store", bank=bank, content="with a vector", embedding="[1,0,0]", model=toy)
        db.call("store", bank=bank, content="Kubernetes runs on port 6443")
        (row,) = db.call("recall", bank=bank, query="kubernetes port", embedding="[0,0,1]")
        assert row["content"] == "Kubernetes runs on port 6443"
        assert row["semantic"] is None

    def test_an_empty_query_lists_what_the_bank_holds_the_freshest_first(self, db: Database, bank: str) -> None:
        for content in ("first", "second", "third"):
            db.call("store", bank=bank, content=content)
        assert db.contents(bank) == db.contents(bank, "  \u3000") == ["third", "second", "first"]
        assert db.contents(bank, query=None) == ["third", "second", "first"]


def known(db: Database) -> str:
    """Registers the local model and returns its name."""
    db.call(
        "register_model",
        model=embedder.model,
        dimensions=embedder.dimensions,
        floor=embedder.floor,
        recall_threshold=embedder.recall_threshold,
        merge_threshold=embedder.merge_threshold,
    )
    return embedder.model


class TestFilters:
    @pytest.fixture
    def filled(self, db: Database, bank: str) -> str:
        for content, type_, tags, session, said in (
            ("one", "fact", ["a", "b"], "s1", "2026-01-01T00:00:00Z"),
            ("two", "todo", ["a"], "s2", "2026-02-01T00:00:00+08:00"),
            ("three", "fact", None, None, None),
            ("四", "decision", ["项目"], "s1", "2026-03-01"),
        ):
            db.call(
                "store", bank=bank, content=content, type=type_, tags=tags, session_id=session, occurred_at=said,
                entities=[content.upper()], metadata=f'{{"n": "{content}", "deep": {{"x": 1}}}}',
            )  # fmt: skip
        return bank

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"tags": ["a"]}, {"one", "two"}),
            ({"tags": ["b", "项目"]}, {"one", "四"}),
            ({"all_tags": ["a", "b"]}, {"one"}),
            ({"tags": ["nothing"]}, set()),
            ({"tags": []}, set()),
            ({"no_tags": ["a"]}, {"three", "四"}),
            ({"tags": ["a", "项目"], "no_tags": ["b"]}, {"two", "四"}),
            ({"min_confidence": 0.95}, set()),
            ({"min_confidence": 0.9}, {"one", "two", "three", "四"}),
            ({"types": ["todo", "decision"]}, {"two", "四"}),
            ({"session_id": "s1"}, {"one", "四"}),
            ({"entities": ["TWO", "四"]}, {"two", "四"}),
            ({"metadata": '{"n": "three"}'}, {"three"}),
            ({"metadata": '{"deep": {"x": 1}}'}, {"one", "two", "three", "四"}),
            ({"since": "2026-01-15T00:00:00Z", "until": "2026-02-15T00:00:00Z"}, {"two"}),
            ({"since": "2026-01-31T16:00:00Z", "until": "2026-01-31T16:00:00Z"}, {"two"}),
            ({"until": "2026-03-01T23:59:59Z"}, {"one", "two", "四"}),
            ({"tags": ['") or true or ("']}, set()),
            ({"session_id": "' OR 1=1 --"}, set()),
            ({"metadata": '{"n": "\' OR true --"}'}, set()),
        ],
    )
    def test_a_filter_is_exact(self, db: Database, filled: str, filters: dict[str, object], expected: set[str]) -> None:
        assert set(db.contents(filled, **filters)) == expected

    def test_filters_hold_for_every_channel(self, db: Database, bank: str, toy: str) -> None:
        for content, tag in (("docker alpha", "x"), ("docker beta", "y")):
            db.call("store", bank=bank, content=content, tags=[tag], embedding="[1,0,0]", model=toy)
        assert db.contents(bank, "docker", embedding="[1,0,0]", tags=["y"]) == ["docker beta"]
        assert db.contents(bank, "docker", tags=["y"]) == ["docker beta"]
        assert db.contents(bank, embedding="[1,0,0]", tags=["y"]) == ["docker beta"]


class TestMetadata:
    """Equality, ranges and membership, each with values of its own kind."""

    @pytest.fixture
    def dated(self, db: Database, bank: str) -> str:
        for content, metadata in {
            "one": '{"year": 2019, "status": "open", "due": "2026-03-01"}',
            "two": '{"year": 2022, "status": "held", "due": "2026-05-01"}',
            "three": '{"year": "2022", "status": "done", "a b\\"c": 1}',
            "四": '{"year": 2025, "状态": "完成", "labels": ["x", "y"]}',
        }.items():
            db.call("store", bank=bank, content=content, metadata=metadata)
        return bank

    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            ('{"year": 2022}', {"two"}),
            ('{"year": {"$gte": 2020, "$lt": 2025}}', {"two"}),
            ('{"year": {"$gt": 2018.5}}', {"one", "two", "四"}),
            ('{"year": {"$lte": "2022"}}', {"three"}),
            ('{"due": {"$gte": "2026-04-01"}}', {"two"}),
            ('{"status": {"$in": ["open", "done"]}}', {"one", "three"}),
            ('{"status": {"$in": []}}', set()),
            ('{"status": {"$nin": ["open", "done"]}}', {"two", "四"}),
            ('{"status": {"$ne": "open"}}', {"two", "three", "四"}),
            ('{"status": {"$exists": false}}', {"四"}),
            ('{"状态": {"$eq": "完成"}}', {"四"}),
            ('{"labels": {"$in": ["y"]}}', {"四"}),
            ('{"a b\\"c": {"$lt": 2}}', {"three"}),
            ('{"status": "held", "year": {"$gt": 2000}}', {"two"}),
            ('{"status": {"$eq": "\\") || true || (\\""}}', set()),
            ('{"\\" || true": {"$eq": 1}}', set()),
        ],
    )
    def test_a_comparison_is_typed_bound_and_exact(
        self, db: Database, dated: str, metadata: str, expected: set[str]
    ) -> None:
        assert set(db.contents(dated, metadata=metadata)) == expected

    @pytest.mark.parametrize(
        ("metadata", "message"),
        [
            ('{"year": {"$near": 1}}', r"unknown comparison '\$near' of metadata 'year'"),
            ('{"year": {"$gt": true}}', "cannot take true"),
            ('{"year": {"$in": 3}}', "cannot take 3"),
            ('{"year": {"$in": [{"a": 1}]}}', "cannot take"),
            ('{"year": {"$eq": {"a": 1}}}', "cannot take"),
            ('{"year": {"$exists": "yes"}}', "cannot take"),
            ('{"year": {"$gt": 1, "other": 2}}', "unknown comparison 'other'"),
            ('{"deep": {"year": {"$gt": 1}}}', "keys of the object itself"),
        ],
    )
    def test_a_comparison_that_is_none_says_which_there_are(
        self, db: Database, bank: str, metadata: str, message: str
    ) -> None:
        with pytest.raises(psycopg.Error, match=message):
            db.call("recall", bank=bank, metadata=metadata)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        key=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
        value=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    )
    def test_any_key_and_value_are_compared_as_they_are(self, db: Database, key: str, value: str) -> None:
        matches = db.value(
            "SELECT %s::jsonb @@ (hindsight._metadata_filter(%s::jsonb)).predicate",
            (json.dumps({key: value}), json.dumps({key: {"$eq": value, "$in": [value, 1], "$exists": True}})),
        )
        assert matches is True


class TestSeveralQueries:
    def test_a_memory_counts_by_the_query_that_it_answers_best(self, db: Database, bank: str) -> None:
        for content in ("the cat is called Miso", "the server is in Leipzig", "周五下午不安排会议"):
            db.call("store", bank=bank, content=content)
        alone = {row["content"]: row["score"] for row in db.call("recall", bank=bank, query="cat called Miso")}
        found = db.call("recall", bank=bank, query="cat called Miso", queries=["周五的会议", "where is the server?"])
        assert {row["content"] for row in found} == {
            "the cat is called Miso",
            "the server is in Leipzig",
            "周五下午不安排会议",
        }
        assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)
        best = next(row["score"] for row in found if "cat" in row["content"])
        assert best == pytest.approx(alone["the cat is called Miso"], rel=1e-4)
        assert len(db.call("recall", bank=bank, query="cat Miso", queries=["server"], top_k=1)) == 1

    def test_each_has_its_own_embedding(self, db: Database, bank: str, toy: str) -> None:
        db.call("store", bank=bank, content="north", embedding="[0,1,0]", model=toy)
        db.call("store", bank=bank, content="east", embedding="[1,0,0]", model=toy)
        rows = db.rows(
            "SELECT content, semantic FROM hindsight.recall(%s, '', '[0,1,0]'::vector, queries => ARRAY[''], "
            "embeddings => ARRAY['[1,0,0]'::vector])",
            (bank,),
        )
        assert {row["content"]: round(row["semantic"], 3) for row in rows} == {"north": 1, "east": 1}

    @pytest.mark.parametrize("blank", ["", " ", "　", None])
    def test_a_blank_one_asks_for_nothing(self, db: Database, bank: str, blank: str | None) -> None:
        for content in ("the cat is called Miso", "the server is in Leipzig", "周五下午不安排会议"):
            db.call("store", bank=bank, content=content)
        assert db.contents(bank, "cat called Miso", queries=[blank]) == ["the cat is called Miso"]
        assert db.contents(bank, "", queries=[blank, "cat called Miso"]) == ["the cat is called Miso"]
        assert len(db.contents(bank, "", queries=[blank])) == 3

    def test_diversity_holds_for_all_of_them_together(self, db: Database, bank: str) -> None:
        for content in ("the SSH port is 22", "the SSH port is 22!", "SSH port: 22", "the SSH key is on the stick"):
            db.call("store", bank=bank, content=content)
        varied = db.contents(bank, "SSH port", queries=["port of SSH", "SSH key"], diversity=0.8, top_k=2, min_score=0)
        assert "the SSH key is on the stick" in varied

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"queries": ["x"] * 9}, "9 further queries"),
            ({"queries": ["x" * 10_001]}, "10001 characters"),
        ],
    )
    def test_too_many_and_too_long_name_the_limit(
        self, db: Database, bank: str, wrong: dict[str, object], message: str
    ) -> None:
        with pytest.raises(psycopg.Error, match=message):
            db.call("recall", bank=bank, **wrong)


class TestDiversity:
    def test_near_identical_results_do_not_fill_the_list(self, db: Database, bank: str, toy: str) -> None:
        for number in range(6):
            db.call("store", bank=bank, content=f"likes tea {number}", embedding=f"[1,0.0{number},0]", model=toy)
        db.call("store", bank=bank, content="likes hiking", embedding="[0.8,0,0.6]", model=toy)
        asked = {"bank": bank, "embedding": "[1,0,0]", "top_k": 3, "min_score": 0}
        plain = [row["content"] for row in db.call("recall", **asked)]
        varied = db.call("recall", diversity=0.7, **asked)
        assert "likes hiking" not in plain
        assert "likes hiking" in [row["content"] for row in varied]
        assert varied[0]["content"] == plain[0]
        assert [row["score"] for row in varied] == sorted((row["score"] for row in varied), reverse=True)

    @pytest.mark.parametrize(
        "contents",
        [["the tea is green", "the tea is green!", "tea from Assam"], ["绿茶很好喝", "绿茶很好喝！", "云南的绿茶"]],
    )
    def test_without_embeddings_words_tell_what_is_alike(self, db: Database, bank: str, contents: list[str]) -> None:
        for content in contents:
            db.call("store", bank=bank, content=content)
        query = "green tea" if contents[0].isascii() else "绿茶"
        varied = db.contents(bank, query, diversity=0.9, top_k=2, min_score=0)
        assert contents[2] in varied

    def test_a_hundred_candidates_take_well_under_a_second(self, db: Database, bank: str) -> None:
        for number in range(120):
            db.call("store", bank=bank, content=f"note {number} about tea, group {number % 7}")
        started = time.perf_counter()
        assert len(db.contents(bank, "note about tea", diversity=0.5, top_k=50, min_score=0)) == 50
        assert time.perf_counter() - started < 3

    def test_it_is_bounded(self, db: Database, bank: str) -> None:
        with pytest.raises(psycopg.Error, match="at most 50, top_k is 51"):
            db.call("recall", bank=bank, diversity=0.5, top_k=51)
        with pytest.raises(psycopg.Error, match="diversity must lie between 0 and 1"):
            db.call("recall", bank=bank, diversity=1.1)


class TestLimits:
    @pytest.mark.parametrize("top_k", [0, -1, 1001, 1_000_000, None])
    def test_top_k_out_of_bounds_names_the_bounds(self, db: Database, bank: str, top_k: int | None) -> None:
        with pytest.raises(psycopg.Error, match="top_k must lie between 1 and 1000") as caught:
            db.call("recall", bank=bank, query="x", top_k=top_k)
        assert caught.value.sqlstate == "HM004"

    def test_top_k_bounds_the_rows(self, db: Database, bank: str) -> None:
        for number in range(70):
            db.call("store", bank=bank, content=f"Release {number} went out")
        assert len(db.contents(bank, "release")) == 10
        assert len(db.contents(bank, "release", top_k=3)) == 3
        assert len(db.contents(bank, "release", top_k=60, min_score=0)) == 60

    @pytest.mark.parametrize("query", ["the of and to", "？！。", "🚀", "的"])
    def test_a_query_without_a_word_to_look_for_finds_nothing(self, db: Database, bank: str, query: str) -> None:
        db.call("store", bank=bank, content="The cat is on the table")
        assert db.contents(bank, query) == []

    def test_a_query_that_is_too_long_names_the_limit(self, db: Database, bank: str) -> None:
        with pytest.raises(psycopg.Error, match="the query has 50000 characters, at most 10000 are taken"):
            db.call("recall", bank=bank, query="x" * 50_000)

    @pytest.mark.parametrize("query", ["word%d ", "汇率%d", "a-%d_b.%d/c "])
    def test_a_long_query_of_many_words_is_answered(self, db: Database, bank: str, query: str) -> None:
        db.call("store", bank=bank, content="word7 and 汇率7")
        long = "".join(query.replace("%d", str(number)) for number in range(2000))[:10_000]
        assert len(db.contents(bank, long, min_score=0)) <= 1

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(query=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=100))
    def test_any_text_can_be_asked_and_every_score_is_in_the_unit_interval(
        self, db: Database, bank: str, query: str
    ) -> None:
        for content in ("It's a \\ 'quoted' & (odd) | !text:*", "汇率'更新", "C++ and user_id"):
            db.call("store", bank=bank, content=content)
        for row in db.call("recall", bank=bank, query=query, min_score=0):
            assert 0 <= row["score"] <= 1
            assert 0 <= row["lexical"] <= 1

    def test_an_unknown_bank_is_an_error_that_says_what_to_do(self, db: Database) -> None:
        with pytest.raises(psycopg.Error) as caught:
            db.call("recall", bank="nobody", query="x")
        assert caught.value.sqlstate == "HM001"
        assert "create_bank" in (caught.value.diag.message_hint or "")

    def test_an_unknown_type_in_a_filter_is_an_error(self, db: Database, bank: str) -> None:
        with pytest.raises(psycopg.Error, match="unknown type 'opinion'"):
            db.call("recall", bank=bank, types=["fact", "opinion"])


class TestTheAsOf:
    def test_a_slot_has_one_value_at_every_moment(self, db: Database, bank: str) -> None:
        db.call("store", bank=bank, content="The SSH port is 22", slot="ssh.port")
        new = db.one("store", bank=bank, content="The SSH port is 2222", slot="ssh.port")
        (moment,) = db.rows(
            "SELECT created_at, created_at - interval '1 us' AS before FROM hindsight.get(%s, %s)",
            (bank, new["memory_id"]),
        )
        assert db.contents(bank, "ssh port", as_of=moment["before"]) == ["The SSH port is 22"]
        assert db.contents(bank, "ssh port", as_of=moment["created_at"]) == ["The SSH port is 2222"]

    def test_any_moment_of_a_random_life_is_answered_as_it_was_then(self, db: Database, bank: str, toy: str) -> None:
        """Stores, merges, doubts, slots, updates, forgets, restores and expiries; pending ones included."""
        chance = random.Random(4)
        ids: list[uuid.UUID] = []
        given = {
            "bank": bank,
            "query": "docker port rate",
            "embedding": "[1,1,0]",
            "min_score": 0,
            "include_pending": True,
        }
        seen = []
        for step in range(120):
            words = (
                " ".join(chance.sample(["docker", "port", "rate", "汇率", "backup", "team"], 3))
                + f" {chance.randrange(12)}"
            )
            action = chance.random()
            try:
                if action < 0.6 or not ids:
                    stored = db.one(
                        "store", bank=bank, content=words, embedding=f"[1,{chance.random()},{chance.random()}]", model=toy,
                        confidence=chance.choice([None, 0.4, 0.8, 1.0]), slot=chance.choice([None, "s1", "s2"]),
                    )  # fmt: skip
                    ids.append(stored["memory_id"])
                elif action < 0.75:
                    db.call(
                        "update_memory",
                        bank=bank,
                        memory_id=chance.choice(ids),
                        content=words,
                        confidence=chance.random(),
                    )
                elif action < 0.9:
                    db.call("forget", bank=bank, memory_id=chance.choice(ids), reason="asked to")
                else:
                    db.call("restore", bank=bank, memory_id=chance.choice(ids))
            except psycopg.Error as error:
                if error.sqlstate not in ("HM002", "HM004", "HM006"):  # gone, not forgotten, taken: as it may be
                    raise
            if step % 6 == 0:
                seen.append((db.value("SELECT clock_timestamp()"), db.call("recall", **given)))
        for then, rows in seen:
            again = db.call("recall", **given, as_of=then)
            assert [(r["memory_id"], r["content"], r["pending_reason"]) for r in again] == [
                (r["memory_id"], r["content"], r["pending_reason"]) for r in rows
            ]
            assert [r["score"] for r in again] == pytest.approx([r["score"] for r in rows], rel=1e-5)

    @pytest.mark.parametrize("contents", [("SSH port is 22", "SSH port is 2222"), ("SSH端口是22", "SSH端口是2222")])
    def test_what_was_believed_before_a_correction_and_before_a_forgetting(
        self, db: Database, bank: str, toy: str, contents: tuple[str, str]
    ) -> None:
        def moment() -> datetime:
            now: datetime = db.value("SELECT clock_timestamp()")
            return now

        old, new = contents
        start = moment()
        db.call("store", bank=bank, content=old, slot="port", embedding="[1,0,0]", model=toy)
        before = moment()
        stored = db.one("store", bank=bank, content=new, slot="port", embedding="[1,0,0]", model=toy)
        corrected = moment()
        db.call("forget", bank=bank, memory_id=stored["memory_id"], reason="asked to")
        for arguments in ({"query": "SSH"}, {"embedding": "[1,0,0]"}, {}):
            assert db.contents(bank, as_of=start, **arguments) == []
            assert db.contents(bank, as_of=before, **arguments) == [old]
            assert db.contents(bank, as_of=corrected, **arguments) == [new]
            assert db.contents(bank, **arguments) == []

    def test_an_updated_memory_is_answered_with_the_words_it_had(self, db: Database, bank: str) -> None:
        stored = db.one("store", bank=bank, content="Deploys on Friday", confidence=0.8)
        before: datetime = db.value("SELECT clock_timestamp()")
        db.call("update_memory", bank=bank, memory_id=stored["memory_id"], content="Deploys on Monday", confidence=0.95)
        (row,) = db.call("recall", bank=bank, query="Friday", as_of=before)
        assert (row["content"], row["confidence"]) == ("Deploys on Friday", 0.8)
        assert db.contents(bank, "Friday") == []
        assert db.contents(bank, "Monday", as_of=before) == []

    def test_the_same_recall_later_gives_what_it_gave_then(self, db: Database, bank: str, toy: str) -> None:
        ids = [
            db.one("store", bank=bank, content=text, embedding=f"[1,{number},0]", model=toy)["memory_id"]
            for number, text in enumerate(("docker needs memory", "docker on windows", "docker compose", "podman"))
        ]
        then: datetime = db.value("SELECT clock_timestamp()")
        given = {"bank": bank, "query": "docker windows", "embedding": "[1,1,0]", "min_score": 0}
        recalled = db.call("recall", **given)
        db.call("store", bank=bank, content="docker swarm", embedding="[1,1,0]", model=toy)
        db.call("store", bank=bank, content="podman", confidence=1.0, tags=["x"])
        db.call("update_memory", bank=bank, memory_id=ids[1], content="docker on linux", embedding="[0,0,1]", model=toy)
        db.call("forget", bank=bank, memory_id=ids[2], reason="asked to")
        again = db.call("recall", **given, as_of=then)
        assert [(r["memory_id"], r["content"], r["channels"]) for r in again] == [
            (r["memory_id"], r["content"], r["channels"]) for r in recalled
        ]
        for now, before in zip(recalled, again, strict=True):
            assert now["score"] == pytest.approx(before["score"], rel=1e-6)

    def test_a_moment_to_come_answers_as_now_but_for_what_expires(self, db: Database, bank: str) -> None:
        db.call("store", bank=bank, content="stays")
        db.call("store", bank=bank, content="goes", expires_at=datetime.now(UTC) + timedelta(days=1))
        assert set(db.contents(bank)) == {"stays", "goes"}
        assert db.contents(bank, as_of=datetime.now(UTC) + timedelta(days=2)) == ["stays"]


def test_an_expired_memory_is_gone_with_no_sweeper_running(db: Database, bank: str) -> None:
    db.call("store", bank=bank, content="The door code is 4711", expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
    assert db.contents(bank, "door code") == ["The door code is 4711"]
    db.rows("SELECT pg_sleep(0.4)")
    assert db.contents(bank, "door code") == []
    assert db.contents(bank) == []


def test_turns_are_never_recalled(db: Database, bank: str) -> None:
    db.call("log_turn", bank=bank, session_id="s1", role="user", content="my password is swordfish")
    assert db.contents(bank, "swordfish", min_score=0) == []
    assert db.contents(bank) == []
