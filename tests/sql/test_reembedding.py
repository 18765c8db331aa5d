"""A bank changes its embedding model while it goes on answering, and what waits for an embedding is claimed and failed by rows."""

from __future__ import annotations

import hashlib
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

CONTENTS = [
    "汇率接口每天凌晨更新",
    "The cat sleeps on the sofa",
    "SSH 端口是 49222",
    "Alice prefers dark roast coffee",
    "部署在周五冻结",
]
OLD, NEW = 3, 5  # dimensions


def vector(text: str, dimensions: int) -> str:
    """A direction that depends on the text alone; of two texts nearly orthogonal in many dimensions."""
    return "[" + ",".join(f"{x:.5f}" for x in _numbers(text, dimensions)) + "]"


def _numbers(text: str, dimensions: int) -> list[float]:
    found = [int.from_bytes(hashlib.sha256(f"{i} {text}".encode()).digest()[:4]) / 2**31 - 1 for i in range(dimensions)]
    length = math.sqrt(sum(x * x for x in found))
    return [x / length for x in found]


class Models:
    """An old and a new model of other sizes, and the steps that a program takes."""

    def __init__(self, db: Database, bank: str) -> None:
        self.db, self.bank = db, bank
        self.old, self.new = (f"{name}-{uuid.uuid4().hex[:6]}" for name in ("old", "new"))
        self.size = {self.old: OLD, self.new: NEW}
        for name, dimensions in self.size.items():
            db.call("register_model", model=name, dimensions=dimensions, recall_threshold=0.9, merge_threshold=0.95)

    def store(self, content: str, model: str | None = None, **more: Any) -> dict[str, Any]:
        model = model or self.old
        return self.db.one(
            "store", bank=self.bank, content=content, embedding=vector(content, self.size[model]), model=model, **more
        )

    def meant(self, content: str, model: str, **more: Any) -> list[str]:
        """What a query by meaning alone finds: the memory of that very text is first, if it has the model's vector."""
        return self.db.contents(self.bank, embedding=vector(content, self.size[model]), model=model, hops=0, **more)

    def claim(self, model: str | None = None, **more: Any) -> list[dict[str, Any]]:
        return self.db.call("claim_unembedded", bank=self.bank, model=model or self.new, **more)

    def give(self, claimed: list[dict[str, Any]], model: str | None = None) -> int:
        model = model or self.new
        return self.db.value(
            "SELECT hindsight.set_embeddings(%s, %s, %s, %s::vector[], %s)",
            (
                self.bank,
                [row["memory_id"] for row in claimed],
                [row["version"] for row in claimed],
                [vector(row["content"], self.size[model]) for row in claimed],
                model,
            ),
        )

    def fill(self) -> None:
        while claimed := self.claim(most=2):
            self.give(claimed)

    def begin(self) -> int:
        return self.db.one("begin_reembedding", bank=self.bank, model=self.new)["begin_reembedding"]

    def finish(self, **more: Any) -> tuple[str, int]:
        row = self.db.one("finish_reembedding", bank=self.bank, **more)
        return row["outcome"], row["waiting"]

    def settle(self) -> int:
        settled, after = 0, None
        for _ in range(100):
            row = self.db.one("settle_embeddings", bank=self.bank, after=after, most=2)
            settled, after = settled + row["settled"], row["last_id"]
            if row["is_done"]:
                return settled
        raise AssertionError("it never settles")

    def settle_all(self) -> None:
        after = None
        while not (row := self.db.one("settle_embeddings", bank=self.bank, after=after, most=1000))["is_done"]:
            after = row["last_id"]

    def status(self) -> dict[str, Any]:
        return self.db.one("embedding_status", bank=self.bank)

    def vectors(self) -> dict[str, int | None]:
        """The size of each memory's own vector."""
        rows = self.db.rows(
            "SELECT content, vector_dims(embedding) AS size FROM hindsight.memory JOIN hindsight.bank USING (bank_id) WHERE name = %s",
            (self.bank,),
        )
        return {row["content"]: row["size"] for row in rows}


@pytest.fixture
def models(db: Database, bank: str) -> Models:
    made = Models(db, bank)
    for content in CONTENTS:
        made.store(content)
    return made


def refused(sqlstate: str, work: Callable[[], object]) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        work()
    assert caught.value.sqlstate == sqlstate
    return caught.value


class TestAChangeOfModel:
    def test_recall_answers_by_the_old_model_until_the_switch_and_by_the_new_one_from_it_on(
        self, models: Models
    ) -> None:
        assert models.begin() == 5
        for _ in range(3):
            assert all(models.meant(content, models.old)[0] == content for content in CONTENTS)
            models.give(models.claim(most=2))
        assert models.finish() == ("switched", 0)
        assert all(models.meant(content, models.new)[0] == content for content in CONTENTS)
        while not models.db.one("settle_embeddings", bank=models.bank, most=2)["is_done"]:
            assert all(models.meant(content, models.new)[0] == content for content in CONTENTS)
        assert all(models.meant(content, models.new)[0] == content for content in CONTENTS)
        assert set(models.vectors().values()) == {NEW}

    def test_vectors_of_both_sizes_live_side_by_side_meanwhile(self, models: Models) -> None:
        models.begin()
        models.fill()
        sizes = "SELECT DISTINCT vector_dims(embedding) FROM hindsight.next_embedding JOIN hindsight.bank USING (bank_id) WHERE name = %s"
        assert models.db.value(sizes, (models.bank,)) == NEW
        assert set(models.vectors().values()) == {OLD}
        models.finish()
        models.settle()
        assert models.db.rows(sizes, (models.bank,)) == []
        status = models.status()
        assert (status["model"], status["dimensions"], status["reembedding"], status["embedded"]) == (
            models.new,
            NEW,
            None,
            5,
        )

    def test_after_the_switch_services_of_the_old_model_are_answered_until_the_bank_settles(
        self, models: Models
    ) -> None:
        models.begin()
        error = refused("HM011", lambda: models.meant(CONTENTS[0], models.new))
        assert f"--bank {chr(34)}{models.bank}{chr(34)} --status" in (error.diag.message_hint or "")
        models.fill()
        models.finish()
        for content in CONTENTS:
            assert models.meant(content, models.old)[0] == content
            assert models.meant(content, models.new)[0] == content
        models.settle()
        error = refused("HM011", lambda: models.meant(CONTENTS[0], models.old))
        assert "hindsight reembed --bank" in (error.diag.message_hint or "")
        assert models.old in str(error)
        assert models.new in str(error)

    def test_the_switch_waits_until_no_memory_lacks_its_vector(self, models: Models) -> None:
        models.begin()
        models.give(models.claim(most=3))
        assert models.finish() == ("embedding", 2)
        assert models.status()["reembedding"] == "embedding"
        models.fill()
        assert models.finish() == ("switched", 0)
        assert models.finish() == ("switched", 0), "again it changes nothing"

    def test_what_is_stored_or_changed_meanwhile_gets_its_vector_before_the_switch(self, models: Models) -> None:
        models.begin()
        models.fill()
        models.store("stored while it went on")
        models.db.call("store", bank=models.bank, content="没有向量的新记忆")
        changed = models.db.rows("SELECT memory_id FROM hindsight.memory WHERE content = %s", (CONTENTS[0],))[-1][
            "memory_id"
        ]
        models.db.call("update_memory", bank=models.bank, memory_id=changed, content="汇率接口每小时更新")
        models.db.call("confirm", bank=models.bank, memory_id=models.store("confirmed, not changed")["memory_id"])
        assert models.finish() == ("embedding", 4)
        assert {row["content"] for row in models.claim()} == {
            "stored while it went on", "没有向量的新记忆", "汇率接口每小时更新", "confirmed, not changed",
        }  # fmt: skip
        models.give(models.claim(take_over=True))
        assert models.finish() == ("switched", 0)
        for content in ("没有向量的新记忆", "汇率接口每小时更新", CONTENTS[1]):
            assert models.meant(content, models.new)[0] == content
        assert CONTENTS[0] not in models.meant(CONTENTS[0], models.new)

    def test_what_is_stored_after_the_switch_is_found_and_settles_with_the_rest(self, models: Models) -> None:
        models.begin()
        models.fill()
        models.finish()
        models.store("stored by a service of the new model", model=models.new)
        models.store("stored by a service of the old model")
        models.db.call("store", bank=models.bank, content="ohne Vektor gespeichert")
        assert (
            models.meant("stored by a service of the new model", models.new)[0]
            == "stored by a service of the new model"
        )
        assert (
            models.meant("stored by a service of the old model", models.old)[0]
            == "stored by a service of the old model"
        )
        assert models.db.contents(
            models.bank, "service of the old model", embedding=vector("x", NEW), model=models.new
        )[0]
        models.fill()
        assert models.meant("ohne Vektor gespeichert", models.new)[0] == "ohne Vektor gespeichert"
        models.settle()
        assert models.vectors()["stored by a service of the old model"] is None, (
            "a vector of the old model is of no use any more"
        )
        models.fill()
        assert set(models.vectors().values()) == {NEW}

    def test_the_same_in_other_words_is_merged_by_the_bank_s_model_at_every_stage(self, models: Models) -> None:
        """Vectors made equal by hand: whether two are the same is asked of the right model's."""

        def stored(content: str, model: str) -> str:
            embedding = vector("Alice prefers dark roast coffee", models.size[model])
            return models.db.one("store", bank=models.bank, content=content, embedding=embedding, model=model)[
                "outcome"
            ]

        models.begin()
        models.fill()
        assert stored("alice prefers dark roast coffee.", models.old) == "merged"
        models.finish()
        assert stored("Alice prefers dark-roast coffee", models.new) == "merged"
        models.settle()
        assert stored("Alice prefers dark roast coffee!", models.new) == "merged"
        assert models.status()["memories"] == 5

    def test_the_past_is_answered_by_words_and_never_compared_across_models(self, models: Models) -> None:
        before = models.db.value("SELECT clock_timestamp()")
        memory_id = models.db.rows("SELECT memory_id FROM hindsight.memory WHERE content = %s", (CONTENTS[2],))[-1][
            "memory_id"
        ]
        models.db.call(
            "update_memory",
            bank=models.bank,
            memory_id=memory_id,
            content="SSH 端口是 22",
            embedding=vector("SSH 端口是 22", OLD),
            model=models.old,
        )
        models.begin()
        models.fill()
        models.finish()
        for step in ("switched", "settled"):
            (found,) = models.db.call(
                "recall",
                bank=models.bank,
                query="端口",
                embedding=vector("端口", NEW),
                model=models.new,
                as_of=before,
                hops=0,
            )[:1]
            assert (found["content"], found["semantic"]) == (CONTENTS[2], None), step
            models.settle() if step == "switched" else None

    def test_what_went_before_is_restored_without_a_vector_of_the_old_model(self, models: Models) -> None:
        memory_id = models.store("soon forgotten")["memory_id"]
        models.db.call("forget", bank=models.bank, memory_id=memory_id, reason="a test")
        models.begin()
        models.fill()
        models.finish()
        models.settle()
        models.db.call("restore", bank=models.bank, memory_id=memory_id)
        assert [row["content"] for row in models.claim()] == ["soon forgotten"]

    def test_given_up_before_the_switch_nothing_was_touched(self, models: Models) -> None:
        rows = "SELECT memory_id, version, changed_at, embedding::text, m.xmin::text FROM hindsight.memory AS m JOIN hindsight.bank USING (bank_id) WHERE name = %s ORDER BY 1"
        before = models.db.rows(rows, (models.bank,))
        models.begin()
        models.give(models.claim(most=3))
        assert models.db.one("cancel_reembedding", bank=models.bank)["cancel_reembedding"] == 3
        assert models.db.rows(rows, (models.bank,)) == before
        assert models.status()["reembedding"] is None
        assert models.begin() == 5

    def test_steps_out_of_order_are_refused(self, models: Models) -> None:
        refused("HM006", lambda: models.db.call("cancel_reembedding", bank=models.bank))
        assert models.finish() == ("settled", 0), "of several at once another one has done it"
        assert models.db.one("settle_embeddings", bank=models.bank)["is_done"]
        refused("HM012", lambda: models.db.call("begin_reembedding", bank=models.bank, model="nobody-knows"))
        models.begin()
        refused("HM006", lambda: models.db.call("settle_embeddings", bank=models.bank))
        error = refused("HM006", lambda: models.db.call("begin_reembedding", bank=models.bank, model=models.old))
        assert models.old in str(error)
        assert models.new in str(error)
        models.fill()
        models.finish()
        refused("HM006", lambda: models.db.call("cancel_reembedding", bank=models.bank))
        refused("HM004", lambda: models.db.call("settle_embeddings", bank=models.bank, most=0))

    def test_a_bank_without_a_model_has_the_new_one_at_once(self, db: Database, bank: str) -> None:
        models = Models(db, bank)
        db.call("store", bank=bank, content="never embedded")
        assert models.begin() == 1
        assert (models.status()["model"], models.status()["reembedding"]) == (models.new, None)
        assert models.give(models.claim()) == 1

    def test_the_index_of_the_old_model_goes_and_comes_back_when_a_bank_takes_it(self, models: Models) -> None:
        index = "SELECT to_regclass('hindsight.memory_embedding_' || model_id || '_idx') IS NOT NULL FROM hindsight.embedding_model WHERE name = %s"
        models.begin()
        models.fill()
        models.finish()
        models.settle()
        statements = models.db.rows("SELECT hindsight.unused_indexes(%s) AS statement", ([models.old, models.new],))
        assert len(statements) == 1
        for row in statements:
            models.db.rows(row["statement"])
        assert not models.db.value(index, (models.old,))
        other = f"bank-{uuid.uuid4().hex[:6]}"
        models.db.call("create_bank", bank=other)
        models.db.call("store", bank=other, content="first", embedding="[1,0,0]", model=models.old)
        assert models.db.value(index, (models.old,))

    def test_a_writer_that_comes_late_has_its_vector_before_the_switch(self, models: Models) -> None:
        models.begin()
        models.fill()
        late, changing = Database(models.db.url), Database(models.db.url)
        outcomes: list[str] = []
        with late.connection.transaction():
            late.call("store", bank=models.bank, content="late", embedding=vector("late", OLD), model=models.old)
            switch = threading.Thread(
                target=lambda: outcomes.append(changing.one("finish_reembedding", bank=models.bank)["outcome"])
            )
            switch.start()
            time.sleep(0.3)
            assert switch.is_alive(), "it waits for the writer"
        switch.join()
        assert outcomes == ["embedding"]
        assert [row["content"] for row in models.claim()] == ["late"]
        late.close()
        changing.close()


@pytest.fixture
def large(new_database: Callable[..., str], template: str) -> Iterator[Models]:
    database = Database(new_database(template))
    database.call("create_bank", bank="large")
    models = Models(database, "large")
    models.store("the first, whose model becomes the bank's")
    database.rows(
        """
        INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, confidence, importance, metadata,
          language, created_at, confirmed_at, confirmations, changed_at, model_id, embedding)
        SELECT b.bank_id, gen_random_uuid(), 1, g.content, 'fact', '{}', '{}', 0.9, 0.5, '{}', 'english', now(), now(), 0, now(),
               b.model_id, g.embedding::vector::halfvec
        FROM unnest(%s::text[], %s::text[]) AS g(content, embedding), hindsight.bank AS b
        """,
        tuple(map(list, zip(*((text, vector(text, OLD)) for text in map("case {}".format, range(1100))), strict=True))),
    )
    database.call("maintain", bank="large")
    database.rows("ANALYZE hindsight.memory")
    yield models
    database.close()


class TestALargeBank:
    """More memories than are scanned: the vectors that stand beside have an index of their own."""

    def test_every_stage_finds_the_right_memory_by_an_index(self, large: Models) -> None:
        sample = [f"case {number}" for number in (0, 7, 548, 1099)]
        assert large.begin() == 1101
        while claimed := large.claim(most=250):
            large.give(claimed)
        assert all(large.meant(content, large.old)[0] == content for content in sample)
        assert large.finish() == ("indexed", 0)
        assert large.finish() == ("switched", 0)
        assert all(large.meant(content, model)[0] == content for content in sample for model in (large.old, large.new))
        large.store("after the switch", model=large.new)
        assert large.meant("after the switch", large.new)[0] == "after the switch"
        after = None
        for number in range(100):
            row = large.db.one("settle_embeddings", bank="large", after=after, most=200)
            after = row["last_id"]
            if number < 7 or row["is_done"]:
                assert all(large.meant(content, large.new)[0] == content for content in [*sample, "after the switch"])
            if row["is_done"]:
                break
        else:
            raise AssertionError("it never settles")
        assert set(large.vectors().values()) == {NEW}
        assert len(large.db.rows("SELECT hindsight.unused_indexes()")) == 2

    def test_the_index_goes_while_vectors_settle_and_is_there_again_before_it_is_done(self, large: Models) -> None:
        assert statements(large) == []  # nothing has switched
        switch(large)
        (drop,) = statements(large)
        large.db.rows(drop)
        assert not is_indexed(large)
        assert statements(large) == []  # there is nothing to drop, and not yet anything to make
        assert large.meant("case 7", large.new)[0] == "case 7"
        after = None
        while (row := large.db.one("settle_embeddings", bank="large", after=after, most=500))["last_id"]:
            after = row["last_id"]
            assert large.meant("case 7", large.new)[0] == "case 7"
        large.store("stored while there is no index", model=large.new)
        (build,) = statements(large)
        large.db.rows(build)
        assert is_indexed(large)
        assert large.db.one("settle_embeddings", bank="large")["is_done"]
        assert statements(large) == []
        for content in ("case 7", "stored while there is no index"):
            assert large.meant(content, large.new)[0] == content

    def test_who_may_not_make_the_index_again_waits_for_it_and_one_that_was_broken_off_is_told(
        self, large: Models
    ) -> None:
        switch(large)
        (drop,) = statements(large)
        large.db.rows(drop)
        after = None
        while (row := large.db.one("settle_embeddings", bank="large", after=after, most=500))["last_id"]:
            after = row["last_id"]
        (build,) = statements(large)
        holder = Database(large.db.url)  # a build waits for whoever has written, and leaves an index that is not valid
        with holder.connection.transaction():
            holder.rows("UPDATE hindsight.bank SET description = 'busy' WHERE name = 'large'")
            holder.rows("SELECT txid_current()")
            holder.rows("LOCK TABLE hindsight.memory IN ROW EXCLUSIVE MODE")
            large.db.rows("SET statement_timeout = '1s'")
            refused("57014", lambda: large.db.rows(build))
            large.db.rows("RESET statement_timeout")
        refused("HM006", lambda: large.db.one("settle_embeddings", bank="large"))
        (again,) = statements(large)
        assert again.startswith("REINDEX INDEX CONCURRENTLY")
        large.db.rows(again)
        assert large.db.one("settle_embeddings", bank="large")["is_done"]
        holder.close()

    def test_an_index_that_others_are_searched_by_stays(self, large: Models) -> None:
        large.db.call("create_bank", bank="other")
        large.db.call("store", bank="other", content="first", embedding=vector("first", NEW), model=large.new)
        switch(large)
        assert statements(large) == []
        large.settle_all()
        assert is_indexed(large)

    def test_without_it_the_last_call_makes_it(self, large: Models) -> None:
        switch(large)
        (drop,) = statements(large)
        large.db.rows(drop)
        large.settle_all()
        assert is_indexed(large)
        assert large.meant("case 7", large.new)[0] == "case 7"


def switch(models: Models) -> None:
    models.begin()
    while claimed := models.claim(most=250):
        models.give(claimed)
    assert [models.finish()[0] for _ in range(2)] == ["indexed", "switched"]


def statements(models: Models) -> list[str]:
    return [
        row["statement"] for row in models.db.rows("SELECT hindsight.settling_indexes(%s) AS statement", (models.bank,))
    ]


def is_indexed(models: Models) -> bool:
    found: bool = models.db.value(
        "SELECT to_regclass('hindsight.memory_embedding_' || model_id || '_idx') IS NOT NULL FROM hindsight.embedding_model WHERE name = %s",
        (models.new,),
    )
    return found


class TestClaims:
    def test_what_is_claimed_is_given_to_nobody_else(self, models: Models) -> None:
        models.begin()
        first, second = models.claim(most=3), models.claim(most=3)
        assert len(first), len(second) == (3, 2)
        assert {row["content"] for row in first + second} == set(CONTENTS)
        assert models.claim() == []
        assert models.status()["claimed"] == 5

    def test_a_claim_ends_by_itself_or_is_taken_over(self, models: Models) -> None:
        models.begin()
        assert len(models.claim(seconds=1)) == 5
        assert len(models.claim(take_over=True, seconds=1)) == 5
        time.sleep(1.1)
        assert len(models.claim()) == 5

    def test_claims_at_once_share_the_work(self, models: Models) -> None:
        models.begin()
        taken: list[str] = []

        def work() -> None:
            database = Database(models.db.url)
            while rows := database.call("claim_unembedded", bank=models.bank, model=models.new, most=1):
                taken.extend(row["content"] for row in rows)
            database.close()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(taken) == sorted(CONTENTS)

    def test_a_memory_without_any_embedding_is_claimed_oldest_first_and_given_one(
        self, db: Database, bank: str
    ) -> None:
        models = Models(db, bank)
        for content in CONTENTS:
            db.call("store", bank=bank, content=content)
        claimed = models.claim(most=2)
        assert [row["content"] for row in claimed] == CONTENTS[:2]
        assert models.give(claimed) == 2
        assert models.meant(CONTENTS[0], models.new)[0] == CONTENTS[0]
        assert (
            db.value(
                "SELECT count(*) FROM hindsight.next_embedding JOIN hindsight.bank USING (bank_id) WHERE name = %s",
                (bank,),
            )
            == 0
        )
        assert models.status()["waiting"] == 3

    @pytest.mark.parametrize("is_changing", [True, False])
    def test_the_vector_of_a_content_that_changed_meanwhile_is_not_taken(
        self, db: Database, bank: str, is_changing: bool
    ) -> None:
        models = Models(db, bank)
        memory_id = (models.store("汇率") if is_changing else db.one("store", bank=bank, content="汇率"))["memory_id"]
        if is_changing:
            models.begin()
        claimed = models.claim()
        db.call("update_memory", bank=bank, memory_id=memory_id, tags=["finance"])
        other = [{**claimed[0]}]
        db.call("update_memory", bank=bank, memory_id=memory_id, content="汇率和利率")
        assert models.give(other) == 0
        again = models.claim()
        assert [row["content"] for row in again] == ["汇率和利率"], "it is free at once"
        db.call("update_memory", bank=bank, memory_id=memory_id, tags=["money"])
        assert models.give(again) == 1, "only its tags have changed"

    def test_what_a_writer_is_at_is_left_for_the_next_claim(self, db: Database, bank: str) -> None:
        models = Models(db, bank)
        for content in CONTENTS:
            db.call("store", bank=bank, content=content)
        claimed = models.claim()
        writer = Database(db.url)
        with writer.connection.transaction():
            writer.rows(
                "SELECT FROM hindsight.memory WHERE memory_id = %s FOR NO KEY UPDATE", (claimed[0]["memory_id"],)
            )
            assert models.give(claimed) == 4
        assert [row["content"] for row in models.claim()] == [claimed[0]["content"]]
        writer.close()

    def test_what_failed_is_kept_with_its_error_and_tried_again_after_longer_each_time(self, models: Models) -> None:
        models.begin()
        bad = models.claim()[0]
        failure = {"memory_ids": [bad["memory_id"]], "error": "输入太长", "seconds": 100, "model": models.new}
        for attempt in (1, 2):
            before = models.db.value("SELECT clock_timestamp()")
            assert models.db.one("embeddings_failed", bank=models.bank, **failure)["embeddings_failed"] == 1
            status = models.status()
            assert (status["failed"], status["last_error"]) == (1, "输入太长")
            assert (status["next_try_at"] - before).total_seconds() == pytest.approx(100 * attempt, abs=5)
            assert bad["content"] not in [row["content"] for row in models.claim(take_over=True)]
            assert models.db.one("retry_embeddings", bank=models.bank)["retry_embeddings"] == 1
            assert bad["content"] in [row["content"] for row in models.claim()]

    def test_a_refused_text_stands_in_the_way_of_the_switch_unless_told(self, models: Models) -> None:
        models.begin()
        (bad,) = models.claim(most=1)
        models.db.call(
            "embeddings_failed", bank=models.bank, memory_ids=[bad["memory_id"]], error="no", model=models.new
        )
        models.fill()
        assert models.finish() == ("embedding", 1)
        assert models.finish(without_failed=True) == ("switched", 0)
        assert models.meant(bad["content"], models.new) == []
        assert models.db.contents(models.bank, bad["content"])[0] == bad["content"], "by its words it is found"
        models.settle()
        assert models.status()["failed"] == 1, "it is not lost"
        models.db.call("retry_embeddings", bank=models.bank)
        models.fill()
        assert models.meant(bad["content"], models.new)[0] == bad["content"]

    def test_what_is_erased_leaves_neither_a_vector_nor_an_error_behind(self, models: Models) -> None:
        models.begin()
        models.fill()
        memory_id = models.db.rows("SELECT memory_id FROM hindsight.memory WHERE content = %s", (CONTENTS[1],))[-1][
            "memory_id"
        ]
        left = "SELECT count(*) FROM hindsight.next_embedding WHERE memory_id = %s"
        assert models.db.value(left, (memory_id,)) == 1
        models.db.call("erase_memory", bank=models.bank, memory_id=memory_id, reason="at the person's request")
        assert models.db.value(left, (memory_id,)) == 0
        assert models.finish() == ("switched", 0)

    def test_bad_arguments_are_refused(self, models: Models) -> None:
        models.begin()
        (row,) = models.claim(most=1)
        give = "SELECT hindsight.set_embeddings(%s, %s, %s, %s::vector[], %s)"
        for ids, versions, vectors, sqlstate in (
            ([row["memory_id"]], [], [], "HM004"),
            ([row["memory_id"]], [1], [None], "HM010"),
            ([row["memory_id"]], [1], ["[1,2,3]"], "HM010"),
            ([row["memory_id"]], [1], ["[0,0,0,0,0]"], "HM010"),
            (None, None, None, "HM004"),
        ):
            refused(sqlstate, lambda: models.db.rows(give, (models.bank, ids, versions, vectors, models.new)))  # noqa: B023
        refused("HM011", lambda: models.db.rows(give, (models.bank, [], [], [], "another")))
        refused("HM004", lambda: models.claim(seconds=0))
        refused("HM004", lambda: models.claim(most=0))
        refused("HM005", lambda: models.db.call("embeddings_failed", bank=models.bank, memory_ids=[], error=""))
        refused("HM001", lambda: models.db.call("embedding_status", bank="nobody's"))
        assert models.db.value(give, (models.bank, [uuid.uuid4()], [1], [vector("x", NEW)], models.new)) == 0

    def test_rights_are_asked_for(self, models: Models, login: Callable[..., str]) -> None:
        reader = Database(login(models.db.url, "hindsight_app"))
        name = reader.value("SELECT session_user::text")
        models.db.call("grant_access", bank=models.bank, principal=name, rights="reader")
        assert reader.one("embedding_status", bank=models.bank)["memories"] == 5
        refused("HM003", lambda: reader.call("claim_unembedded", bank=models.bank, model=models.old))
        models.db.call("grant_access", bank=models.bank, principal=name, rights="writer")
        assert reader.call("claim_unembedded", bank=models.bank, model=models.old) == []
        for function, more in (
            ("begin_reembedding", {"model": models.new}),
            ("finish_reembedding", {}),
            ("settle_embeddings", {}),
            ("cancel_reembedding", {}),
            ("unused_indexes", None),
        ):
            refused("HM003", lambda: reader.call(function, **({} if more is None else {"bank": models.bank, **more})))  # noqa: B023
        reader.close()
