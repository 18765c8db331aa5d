"""Erasure: what a person wants gone is in no table any more, and a receipt says that it went."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

REASON = "at the person's request, ticket 4711"
CONTENTS = [
    pytest.param("Alice's key is KEY-49222", "the key of alice was Key-49222 then", id="English"),
    pytest.param("爱丽丝的端口是 49222！", "那时爱丽丝的端口为 49222", id="Chinese"),
]


@pytest.fixture
def own(fresh_url: str) -> Iterator[Database]:
    """A database of the test's own with a bank `own` and a model `toy`, so that every table can be searched."""
    database = Database(fresh_url)
    database.call("create_bank", bank="own")
    database.call("register_model", model="toy", dimensions=3)
    yield database
    database.close()


def store(db: Database, bank: str, content: str, **arguments: Any) -> uuid.UUID:
    memory_id: uuid.UUID = db.one("store", bank=bank, content=content, **arguments)["memory_id"]
    return memory_id


def erase(db: Database, bank: str, memory_id: uuid.UUID, reason: str = REASON) -> dict[str, int]:
    rows = db.call("erase_memory", bank=bank, memory_id=memory_id, reason=reason)
    return {row["erased"]: row["rows_erased"] for row in rows}


def problems(db: Database, bank: str) -> list[dict[str, Any]]:
    return db.call("verify_events", bank=bank)


def tables(db: Database) -> dict[str, list[str]]:
    """Every table of the schema, with its columns."""
    rows = db.rows(
        "SELECT c.relname, array_agg(a.attname::text) AS columns FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relnamespace = 'hindsight'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped "
        "GROUP BY c.relname"
    )
    return {row["relname"]: row["columns"] for row in rows}


def places(db: Database, *needles: str) -> set[str]:
    """The tables that hold one of the texts, in any column, as text: in letters, or bytes in hex."""
    found = set()
    for table in tables(db):
        for needle in needles:
            pattern = "%" + re.sub(r"([%_\\])", r"\\\1", needle) + "%"
            if db.value(f"SELECT count(*) FROM hindsight.{table} AS t WHERE t::text ILIKE %s", (pattern,)):
                found.add(table)
    return found


def digests(db: Database, content: str) -> tuple[str, str]:
    """Of the content, as the database computes them."""
    (row,) = db.rows(
        "SELECT encode(hindsight.content_digest_v1(%s), 'hex') AS content, encode(hindsight._query_digest(%s), 'hex') AS query",
        (content, content),
    )
    return row["content"], row["query"]


class TestErasingAMemory:
    @pytest.mark.parametrize(("content", "earlier"), CONTENTS)
    def test_its_content_is_in_no_table_any_more(self, own: Database, content: str, earlier: str) -> None:
        db, bank, toy = own, "own", "toy"
        memory_id = store(
            db, bank, earlier, session_id="s1", context=f"before {content} after", metadata=f'{{"a": "{content}"}}',
            embedding="[1,0,0]", model=toy,
        )  # fmt: skip
        update = {"bank": bank, "memory_id": memory_id}
        db.call("update_memory", **update, content=content, reason=f"rather {content}", embedding="[1,0,0]", model=toy)
        store(db, bank, content, session_id="s2", tags=["again"])
        db.call("forget", bank=bank, memory_id=memory_id, reason=f"not {content}")
        db.call("restore", bank=bank, memory_id=memory_id)
        db.call("note_recall", bank=bank, memory_ids=[memory_id])
        db.call("forget", bank=bank, memory_id=memory_id, reason="wrong")
        copy = store(db, bank, content)
        old = db.one("store", bank=bank, content=content + " ", occurred_at="2020-01-01T00:00Z")
        assert copy != memory_id
        assert old["outcome"] == "skipped"
        db.call("log_turn", bank=bank, session_id="s1", role="user", content=f"Well: {content.upper()} - yes?")
        db.call("log_turn", bank=bank, session_id="s3", role="assistant", content=f"{earlier}\n", metadata='{"x": 1}')
        db.call(
            "log_turn", bank=bank, session_id="s3", role="assistant", content="",
            tool_calls=f'[{{"name": "store", "arguments": "{{\\"content\\": \\"{content}\\"}}"}}]',
        )  # fmt: skip
        other = store(db, bank, "The next sentence", context=content, metadata=f'{{"from": ["{content}"], "page": 7}}')
        db.call("update_memory", bank=bank, memory_id=other, tags=["next"], reason=f"after {content}")
        db.call("link", bank=bank, from_id=other, to_id=copy, relation="related")
        summary = store(db, bank, f"Summary: {content}; and more", type="summary", derived_from=[copy])
        paraphrase = store(db, bank, "There is a secret", type="summary", derived_from=[copy, summary])
        forgotten = store(db, bank, "of another time", slot="s")
        db.call("forget", bank=bank, memory_id=forgotten, reason="x")
        db.call("maintain", bank=bank)
        db.call("cache_embedding", model=toy, query=content, embedding="[1,0,0]")
        wanted = (content, earlier, *digests(db, content), *digests(db, earlier))
        assert places(db, *wanted) >= {"memory", "memory_version", "event", "turn", "query_embedding"}

        counts = erase(db, bank, copy)
        assert places(db, content, *digests(db, content)) == set()
        assert places(db, earlier, *digests(db, earlier)) == {"turn"}, "only the earlier one's turn is left"
        assert counts["memories"] == 3, "the first, the second, and the summary that quotes them"
        assert counts["turns"] == 2
        assert counts["queries"] == 1
        assert counts["not erased, pending: what was made of it"] == 1
        assert problems(db, bank) == []
        db.call("maintain", bank=bank)
        assert problems(db, bank) == []

        kept = db.one("get", bank=bank, memory_id=other)
        assert (kept["context"], kept["metadata"], kept["state"]) == (None, {"page": 7}, "live")
        doubtful = db.one("get", bank=bank, memory_id=paraphrase)
        assert (doubtful["state"], doubtful["pending_reason"]) == ("pending", "it stands on an erased memory")
        for gone in (memory_id, copy, summary):
            with pytest.raises(psycopg.Error, match="has no memory"):
                db.call("get", bank=bank, memory_id=gone)

    @pytest.mark.parametrize(("content", "earlier"), CONTENTS)
    def test_the_contents_of_its_earlier_versions_go_too(self, own: Database, content: str, earlier: str) -> None:
        db, bank = own, "own"
        memory_id = store(db, bank, earlier, session_id="s1")
        db.call("log_turn", bank=bank, session_id="s1", role="user", content=f"I say: {earlier}")
        db.call("update_memory", bank=bank, memory_id=memory_id, content=content)
        assert erase(db, bank, memory_id) == {
            "memories": 1, "versions": 1, "events": 2, "turns": 1, "links": 0, "recalls": 0, "working values": 0, "contexts": 0, "words": 0,
            "queries": 0,
        }  # fmt: skip
        assert places(db, content, earlier, *digests(db, content), *digests(db, earlier)) == set()

    def test_the_receipt_says_who_when_why_and_how_much_but_not_what(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "爱丽丝的端口是 49222")
        sealed_before = db.call("maintain", bank=bank)
        assert sealed_before[0] == {"task": "events sealed", "affected": 2}
        counts = erase(db, bank, memory_id)
        stored, erased = db.call("history", bank=bank, memory_id=memory_id)
        assert (stored["action"], stored["reason"], stored["before"], stored["after"]) == ("stored", None, None, None)
        assert (erased["action"], erased["principal"], erased["reason"]) == ("erased", "postgres", REASON)
        assert erased["after"]["rows"] == counts
        assert problems(db, bank) == [], "the seal holds without the content"

    def test_a_second_time_there_is_no_such_memory(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "The port is 22")
        erase(db, bank, memory_id)
        for call in (lambda: erase(db, bank, memory_id), lambda: erase(db, bank, uuid.uuid4())):
            with pytest.raises(psycopg.Error) as caught:
                call()
            assert caught.value.sqlstate == "HM002"

    @pytest.mark.parametrize(
        ("reason", "sqlstate"),
        [(None, "HM005"), ("", "HM005"), (" ", "HM005"), ("x" * 2001, "HM005"), ("it said: the PORT is 22!", "HM004")],
    )
    def test_a_reason_is_needed_and_does_not_say_what_goes(
        self, db: Database, bank: str, reason: str | None, sqlstate: str
    ) -> None:
        memory_id = store(db, bank, "The port is 22")
        with pytest.raises(psycopg.Error) as caught:
            db.call("erase_memory", bank=bank, memory_id=memory_id, reason=reason)
        assert caught.value.sqlstate == sqlstate
        assert db.contents(bank, "port") == ["The port is 22"]

    def test_what_it_superseded_stays_superseded(self, db: Database, bank: str) -> None:
        old = store(db, bank, "The port is 22", slot="port", type="preference")
        new = store(db, bank, "The port is 23", slot="port", type="preference")
        erase(db, bank, new)
        assert db.one("get", bank=bank, memory_id=old)["state"] == "superseded"
        assert db.contents(bank, "port") == []
        assert db.one("store", bank=bank, content="The port is 24", slot="port")["outcome"] == "stored"

    @pytest.mark.parametrize("state", ["pending", "superseded", "archived", "forgotten", "expired"])
    def test_a_memory_of_any_state_is_erased(self, db: Database, bank: str, state: str) -> None:
        content = f"编号 of {state} is {uuid.uuid4().hex}"
        memory_id = store(db, bank, content, slot="key", confidence=0.5 if state == "pending" else 0.9)
        if state == "superseded":
            store(db, bank, "The key is another", slot="key")
        elif state == "forgotten":
            db.call("forget", bank=bank, memory_id=memory_id, reason="x")
        elif state in ("archived", "expired"):
            db.rows(
                "UPDATE hindsight.memory SET expires_at = now() - interval '1 hour' WHERE memory_id = %s", (memory_id,)
            )
            if state == "archived":
                db.call("maintain", bank=bank)
        assert places(db, content)
        assert erase(db, bank, memory_id)["memories"] == 1
        assert places(db, content, *digests(db, content)) == set()

    def test_what_was_not_kept_leaves_no_digest(self, db: Database, bank: str) -> None:
        """An unsalted digest of a short content is as good as the content: whoever guesses is told."""
        content = f"Her birthday is {uuid.uuid4().hex[:6]}"
        memory_id = store(db, bank, content)
        db.call("forget", bank=bank, memory_id=memory_id, reason="wrong")
        skipped = db.one("store", bank=bank, content=content, occurred_at="2020-01-01T00:00Z")
        assert skipped["outcome"] == "skipped"
        assert places(db, digests(db, content)[0]) >= {"event"}
        erase(db, bank, memory_id)
        assert places(db, *digests(db, content)) == set()
        assert problems(db, bank) == []

    def test_a_fresh_statement_after_it_is_a_new_memory(self, db: Database, bank: str) -> None:
        erased = store(db, bank, "The port is 22")
        erase(db, bank, erased)
        again = db.one("store", bank=bank, content="The port is 22")
        assert again["outcome"] == "stored"
        assert again["memory_id"] != erased

    def test_another_statement_that_holds_it_stays_and_is_told_of(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "The port is 22")
        other = store(db, bank, "The port is 22 on Sundays, 23 else", context="The port is 22")
        store(db, bank, "The port is 2222")
        assert erase(db, bank, memory_id)["not erased: other memories that hold it"] == 1
        assert (
            db.call("history", bank=bank, memory_id=other)[0]["after"]["content"]
            == "The port is 22 on Sundays, 23 else"
        )
        assert db.one("get", bank=bank, memory_id=other)["context"] is None
        assert sorted(db.contents(bank, "port")) == ["The port is 22 on Sundays, 23 else", "The port is 2222"]

    def test_a_memory_of_one_word_takes_only_that_word(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "ok", importance=1)
        for place, content in enumerate(["the token", "It is OK.", "好的ok好", "broken"], start=1):
            db.call("log_turn", bank=bank, session_id="s", role="user", content=content, sequence=place)
        assert erase(db, bank, memory_id)["turns"] == 2
        turns = db.rows("SELECT t.content FROM hindsight.turn t JOIN hindsight.bank b USING (bank_id) WHERE name = %s "
                        "ORDER BY sequence", (bank,))  # fmt: skip
        assert [row["content"] for row in turns] == ["the token", "[erased]", "[erased]", "broken"]

    @pytest.mark.parametrize("content", ["???", "👍", "%", "a\nb", "C:\\new", 'say "x"', "ＦＵＬＬ　ｗｉｄｔｈ", "x²"])
    def test_contents_of_odd_characters_are_found(self, db: Database, bank: str, content: str) -> None:
        memory_id = store(db, bank, content, importance=1)
        other = store(db, bank, "unrelated", importance=1)
        db.call("log_turn", bank=bank, session_id="s", role="user", content=content)
        db.rows(
            "SELECT hindsight.log_turn(%s, 's', 'tool', 'x', metadata => jsonb_build_object('a', ARRAY[%s::text]))",
            (bank, content),
        )
        db.call("log_turn", bank=bank, session_id="s", role="user", content="unrelated")
        assert erase(db, bank, memory_id)["turns"] == 2
        assert db.one("get", bank=bank, memory_id=other)["content"] == "unrelated"
        assert problems(db, bank) == []

    @pytest.mark.parametrize("content", ["爱丽丝的端口是 49222", 'She said "no"\nand left'])
    def test_it_is_found_in_the_arguments_of_tools_however_they_are_escaped(
        self, db: Database, bank: str, content: str
    ) -> None:
        memory_id = store(db, bank, content, importance=1)
        for arguments in (
            json.dumps({"content": content}),
            json.dumps({"a": [{"content": f"Note: {content}."}]}, ensure_ascii=False, indent=2),
            json.dumps({"outer": json.dumps({"content": content}), "emoji": "👍"}),
        ):
            calls = json.dumps([{"name": "store", "arguments": arguments}])
            db.call("log_turn", bank=bank, session_id="s", role="assistant", content="", tool_calls=calls)
        for odd in ('{"content": "\\u0000"}', '{"content": "\\ud800"}', "{not json", "[" * 100_000):
            calls = json.dumps([{"name": "store", "arguments": odd}])
            db.call("log_turn", bank=bank, session_id="s", role="assistant", content="", tool_calls=calls)
        assert erase(db, bank, memory_id)["turns"] == 3

    def test_a_recall_that_is_noted_meanwhile_passes_it_over(self, db: Database, bank: str) -> None:
        memory_id, other_id = store(db, bank, "The port is 22"), store(db, bank, "The host is atlas")
        noted: list[dict[str, Any]] = []
        other = Database(db.url)
        note = {"bank": bank, "memory_ids": [memory_id, other_id]}
        with db.connection.transaction():
            erase(db, bank, memory_id)
            reader = threading.Thread(target=lambda: noted.extend(other.call("note_recall", **note)))
            reader.start()
            reader.join(0.3)
        reader.join()
        other.close()
        assert noted == [{"note_recall": 1}]

    def test_words_that_only_it_had_are_not_counted_any_more(self, own: Database) -> None:
        db = own
        db.rows(
            "SELECT count(s) FROM generate_series(1, 1100) AS n, hindsight.store('own', 'The port of host ' || n || ' is open') s"
        )
        memory_id = store(db, "own", "The host of zanzibar is 49222")
        db.call("maintain", bank="own")
        assert places(db, "zanzibar") == {"event", "memory", "word_statistics"}
        erase(db, "own", memory_id)
        assert places(db, "zanzibar") == set()
        assert db.value("SELECT documents FROM hindsight.word_statistics WHERE word = 'host'") == 1101

    def test_what_stands_on_it_is_not_believed_again_when_something_else_is_restored(
        self, db: Database, bank: str
    ) -> None:
        first, second = store(db, bank, "Her name is Alice"), store(db, bank, "Her city is Paris")
        made = store(db, bank, "She is French", type="hypothesis", derived_from=[first, second])
        db.call("forget", bank=bank, memory_id=second, reason="x")
        erase(db, bank, first)
        db.call("restore", bank=bank, memory_id=second)
        assert db.one("get", bank=bank, memory_id=made)["pending_reason"] == "it stands on an erased memory"

    def test_other_banks_are_not_looked_at(self, db: Database, bank: str) -> None:
        second = f"bank-{uuid.uuid4().hex[:10]}"
        db.call("create_bank", bank=second)
        content = f"The key is {uuid.uuid4().hex}"
        memory_id, _ = store(db, bank, content), store(db, second, content)
        db.call("log_turn", bank=second, session_id="s", role="user", content=content)
        erase(db, bank, memory_id)
        assert db.contents(second, content) == [content]
        assert places(db, content) == {"memory", "event", "turn"}

    def test_it_can_be_looked_at_first(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "The port is 22")
        with db.connection.transaction(force_rollback=True):
            assert erase(db, bank, memory_id)["memories"] == 1
        assert db.contents(bank, "port") == ["The port is 22"]

    def test_a_writer_that_meets_it_stores_a_new_memory(self, db: Database, bank: str) -> None:
        memory_id = store(db, bank, "The port is 22")
        results: list[dict[str, Any]] = []
        other = Database(db.url)
        with db.connection.transaction():
            erase(db, bank, memory_id)
            writer = threading.Thread(
                target=lambda: results.extend(other.call("store", bank=bank, content="The port is 22"))
            )
            writer.start()
            writer.join(0.3)
            assert writer.is_alive(), "it waits for the row"
        writer.join()
        other.close()
        assert [row["outcome"] for row in results] == ["stored"]
        assert problems(db, bank) == []

    @pytest.mark.parametrize("rights", ["writer", "reader"])
    def test_only_an_owner_erases(self, db: Database, bank: str, connect: Callable[..., Database], rights: str) -> None:
        app = connect("hindsight_app")
        memory_id = store(db, bank, "The port is 22")
        with pytest.raises(psycopg.Error, match="unknown bank"):
            erase(app, bank, memory_id)
        db.call("grant_access", bank=bank, principal=app.value("SELECT session_user"), rights=rights)
        for call in (lambda: erase(app, bank, memory_id), lambda: app.call("erase_bank", bank=bank, reason="x")):
            with pytest.raises(psycopg.Error) as caught:
                call()
            assert caught.value.sqlstate == "HM003"
        db.call("grant_access", bank=bank, principal=app.value("SELECT session_user"), rights="owner")
        assert erase(app, bank, memory_id)["memories"] == 1

    def test_a_reader_role_erases_nothing(self, connect: Callable[..., Database]) -> None:
        reader = connect("hindsight_reader")
        for statement in ("erase_memory('x', gen_random_uuid(), 'x')", "erase_bank('x', 'x')"):
            with pytest.raises(psycopg.Error, match="permission denied"):
                reader.rows(f"SELECT * FROM hindsight.{statement}")


class TestErasingABank:
    def fill(self, db: Database, name: str, mark: str, toy: str) -> int:
        """A bank with rows in every table that has banks in it; returns its id."""
        bank_id: int = db.one("create_bank", bank=name, description=f"of {mark}")["create_bank"]
        first = store(db, name, f"{mark} 的端口是 22", session_id=mark, tags=[mark], embedding="[1,0,0]", model=toy)
        store(db, name, f"{mark} speaks of Kubernetes (K8s)", embedding="[0,1,0]", model=toy)
        second = store(db, name, f"{mark} likes tea", slot=mark, entities=[mark])
        db.call("update_memory", bank=name, memory_id=second, content=f"{mark} likes coffee")
        db.call("link", bank=name, from_id=first, to_id=second, relation=mark)
        db.call("note_recall", bank=name, memory_ids=[first, second])
        db.call("log_turn", bank=name, session_id=mark, role="user", content=f"I am {mark}")
        db.call("set_policy", bank=name, type="todo", ttl="3 days")
        db.rows("SELECT hindsight.working_set(%s, %s, 'key', to_jsonb(%s::text))", (name, mark, mark))
        db.rows("INSERT INTO hindsight.memory_turn VALUES (%s, %s, %s, 1)", (bank_id, first, mark))
        db.rows("INSERT INTO hindsight.turn_archive VALUES (%s, '2020-01-01', 'old.jsonl.gz', 1, '')", (bank_id,))
        db.rows("INSERT INTO hindsight.session_archive VALUES (%s, %s, '2020-01-01', '{7}', '{1}')", (bank_id, mark))
        db.rows("INSERT INTO hindsight.tag_alias VALUES (%s, %s, 'x')", (bank_id, mark))
        db.call("grant_access", bank=name, principal=mark, rights="reader")
        db.call("maintain", bank=name)
        db.call("note_usage", bank=name, purpose="distil", model=mark)
        db.rows("INSERT INTO hindsight.word_statistics VALUES (%s, %s, 1)", (bank_id, mark))
        store(db, name, f"{mark} again")
        db.call("claim_unembedded", bank=name, model=toy)
        return bank_id

    def rows_of(self, db: Database, bank_id: int) -> set[str]:
        """The tables that have rows of a bank."""
        return {
            table
            for table, columns in tables(db).items()
            if "bank_id" in columns
            and db.value(f"SELECT count(*) FROM hindsight.{table} WHERE bank_id = %s", (bank_id,))
        }

    def test_everything_of_it_is_gone_from_every_table_and_other_banks_are_as_they_were(self, fresh_url: str) -> None:
        db = Database(fresh_url)
        db.call("register_model", model="toy", dimensions=3)
        bank_id, other_id = self.fill(db, "爱丽丝/private", "Zanzibar", "toy"), self.fill(db, "bob", "Bob", "toy")
        every = {table for table, columns in tables(db).items() if "bank_id" in columns}
        assert self.rows_of(db, bank_id) == self.rows_of(db, other_id) == every, "the test fills each table"
        with db.connection.transaction():
            db.rows("SET LOCAL hindsight.principal = 'Zanzibar'")
            db.call("cache_embedding", model="toy", query="secret", embedding="[1,0,0]")
        of_other = {
            table: db.rows(f"SELECT * FROM hindsight.{table} WHERE bank_id = %s", (other_id,)) for table in every
        }

        counts = {
            row["erased"]: row["rows_erased"] for row in db.call("erase_bank", bank="爱丽丝/private", reason=REASON)
        }
        assert self.rows_of(db, bank_id) == set()
        assert places(db, "zanzibar", "爱丽丝", "private") == set()
        assert set(counts) == every | {"not erased, to be looked through: old.jsonl.gz"}
        assert (counts["memory"], counts["turn"], counts["bank"]) == (4, 1, 1)
        assert of_other == {
            table: db.rows(f"SELECT * FROM hindsight.{table} WHERE bank_id = %s", (other_id,)) for table in every
        }
        assert problems(db, "bob") == []

        (receipt,) = db.rows(
            "SELECT e.*, b.description, b.model_id FROM hindsight.event e JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s",
            (f"erased-{bank_id}",),
        )
        assert (receipt["action"], receipt["principal"], receipt["reason"]) == ("erase_bank", "postgres", REASON)
        archives = ["not erased, to be looked through: old.jsonl.gz"]
        rows = {table: count for table, count in counts.items() if table not in archives}
        assert receipt["after"] == {"bank_id": bank_id, "rows": rows, "archives": archives}
        assert (receipt["description"], receipt["model_id"]) == (None, None)
        db.close()

    def test_the_name_can_be_used_anew_by_anybody(self, connect: Callable[..., Database]) -> None:
        app, other = connect("hindsight_app"), connect("hindsight_app")
        name = f"bank-{uuid.uuid4().hex[:10]}"
        first_id = app.one("create_bank", bank=name)["create_bank"]
        store(app, name, "The port is 22")
        app.call("erase_bank", bank=name, reason=REASON)
        assert other.one("create_bank", bank=name)["create_bank"] != first_id
        assert other.contents(name) == []
        assert len(other.call("status")) == 1

    def test_nobody_but_an_operator_sees_the_receipt(self, connect: Callable[..., Database]) -> None:
        app, operator = connect("hindsight_app"), connect("hindsight_owner")
        name = f"bank-{uuid.uuid4().hex[:10]}"
        receipt = f"erased-{app.one('create_bank', bank=name)['create_bank']}"
        app.call("erase_bank", bank=name, reason=REASON)
        assert app.call("status") == []
        assert (
            app.value("SELECT count(*) FROM hindsight.bank") == app.value("SELECT count(*) FROM hindsight.event") == 0
        )
        for bank in (name, receipt):
            for work in ("verify_events", "maintain", "recall"):
                with pytest.raises(psycopg.Error, match="unknown bank"):
                    app.call(work, bank=bank)
        assert receipt in {row["bank"] for row in operator.call("status")}
        assert problems(operator, receipt) == []

    def test_the_receipt_is_not_erased_and_its_name_not_taken(self, db: Database) -> None:
        name = f"bank-{uuid.uuid4().hex[:10]}"
        receipt = f"erased-{db.one('create_bank', bank=name)['create_bank']}"
        with pytest.raises(psycopg.Error) as caught:
            db.call("create_bank", bank=receipt)
        assert caught.value.sqlstate == "HM004"
        db.call("erase_bank", bank=name, reason=REASON)
        with pytest.raises(psycopg.Error) as caught:
            db.call("erase_bank", bank=receipt, reason=REASON)
        assert caught.value.sqlstate == "HM004"

    @pytest.mark.parametrize(("bank_is_there", "reason", "sqlstate"), [(False, REASON, "HM001"), (True, "", "HM005")])
    def test_bad_calls_erase_nothing(
        self, db: Database, bank: str, bank_is_there: bool, reason: str, sqlstate: str
    ) -> None:
        store(db, bank, "The port is 22")
        with pytest.raises(psycopg.Error) as caught:
            db.call("erase_bank", bank=bank if bank_is_there else "no-such-bank", reason=reason)
        assert caught.value.sqlstate == sqlstate
        assert db.contents(bank) == ["The port is 22"]

    def test_writers_at_work_leave_nothing_behind(self, fresh_url: str) -> None:
        db = Database(fresh_url)
        bank_id = db.one("create_bank", bank="busy")["create_bank"]
        started = threading.Barrier(5)
        failures: list[str | None] = []

        def write(number: int) -> None:
            database = Database(fresh_url)
            started.wait()
            for turn in range(1000):
                try:
                    database.call(
                        "store", bank="busy", content=f"secret {number} {turn % 5}", session_id=f"s{turn % 3}"
                    )
                except psycopg.Error as error:
                    failures.append(error.sqlstate)
                    if error.sqlstate != "40P01":
                        break
            database.close()

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        started.wait()
        while True:
            try:
                db.call("erase_bank", bank="busy", reason=REASON)
                break
            except psycopg.errors.DeadlockDetected:
                continue
        for writer in writers:
            writer.join()
        assert self.rows_of(db, bank_id) == set()
        assert places(db, "secret") == set()
        assert set(failures) <= {"HM001", "23503", "40P01"}, failures
        db.close()


def test_nothing_but_erasure_removes_what_was_remembered(db: Database) -> None:
    """Of all functions of the schema, by their source."""
    deletes = {
        (function["proname"], table.lower())
        for function in db.rows("SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'hindsight'::regnamespace")
        for table in re.findall(
            r"\b(?:DELETE\s+FROM|TRUNCATE)\s+(?:ONLY\s+)?(?:hindsight\.)?(%I|\w+)", function["prosrc"] or "", re.I
        )
    }
    erasures = {(name, table) for name, table in deletes if name.startswith("erase_")}
    assert {("erase_memory", "memory"), ("erase_bank", "%i")} <= erasures
    assert deletes - erasures == {
        ("revoke_access", "access"), ("_count_words", "word_statistics"), ("cache_embedding", "query_embedding"),
        ("set_tags", "tag_alias"), ("set_embeddings", "next_embedding"), ("settle_embeddings", "next_embedding"),
        ("cancel_reembedding", "next_embedding"), ("working_set", "working_value"), ("_clear_desks", "working_value"),
        ("_associate", "link"), ("_note_aliases", "entity_alias"), ("_count_entities", "entity"),
    }  # fmt: skip
