"""How the hot queries are answered: by which index, reading how many rows. Read from PostgreSQL's own plans."""

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Database

DIMENSIONS = 12
LARGE, SMALL, OTHERS = "large", "small", "others"
VERSIONED = ("memory", "memory_version", "event")


def vector(seed: int) -> str:
    generator = random.Random(seed)
    return "[" + ",".join(f"{generator.gauss(0, 1):.3f}" for _ in range(DIMENSIONS)) + "]"


@pytest.fixture(scope="module")
def filled(new_database: Any, template: str) -> Iterator[Database]:
    """A bank of 20,000 memories and one of 50, in a table of 100,000."""
    database = Database(new_database(template))
    database.call("register_model", model="toy", dimensions=DIMENSIONS)
    for bank in (LARGE, SMALL, OTHERS):
        database.call("create_bank", bank=bank)
    database.rows("SET session_replication_role = replica")  # foreign keys: what is written here is right
    database.rows("SET maintenance_work_mem = '256MB'")
    slow = (
        "indexname LIKE 'memory_embedding_%%' OR indexname = 'memory_words_idx'"  # row by row; at once it takes seconds
    )
    definitions = database.rows(f"SELECT indexname, indexdef FROM pg_indexes WHERE {slow}", ())
    for index in definitions:
        database.rows(f"DROP INDEX hindsight.{index['indexname']}")
    fill(database, LARGE, 20_000)
    fill(database, SMALL, 50)
    fill(database, OTHERS, 79_950, words=1, with_vectors=False)
    for index in definitions:
        database.rows(index["indexdef"])
    database.rows("RESET session_replication_role")
    database.rows("VACUUM ANALYZE hindsight.memory")
    database.call("maintain", bank=LARGE)
    yield database
    database.close()


def fill(database: Database, bank: str, count: int, words: int = 12, with_vectors: bool = True) -> None:
    """Rows with words of a natural (Zipf) distribution, written at once: what is tested is reading."""
    generator = random.Random(count)
    database.rows("CREATE TEMP TABLE IF NOT EXISTS incoming (bank text, content text, embedding vector)")
    with database.connection.cursor().copy("COPY pg_temp.incoming FROM STDIN") as copy:
        for number in range(count):
            text = " ".join(f"word{int(1 / generator.random()) % 5000}" for _ in range(words))
            copy.write_row((bank, f"{bank} {number} unique{number} {text}", vector(number) if with_vectors else None))
    database.rows("""
        INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, confidence, importance, metadata,
          language, created_at, confirmed_at, confirmations, changed_at, model_id, embedding)
        SELECT b.bank_id, gen_random_uuid(), 1, i.content, 'fact', '{}', '{}', 0.9, 0.5, '{}', 'english', now(), now(), 0, now(),
               CASE WHEN i.embedding IS NOT NULL THEN r.model_id END, i.embedding::halfvec
        FROM pg_temp.incoming i JOIN hindsight.bank b ON b.name = i.bank, hindsight.embedding_model r WHERE r.name = 'toy'
    """)
    database.rows(
        "UPDATE hindsight.bank SET model_id = (SELECT model_id FROM hindsight.embedding_model WHERE name = 'toy')"
    )
    database.rows("TRUNCATE pg_temp.incoming")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def plans_of(database: Database, statement: str, parameters: Any = None) -> list[dict[str, Any]]:
    """The nodes of every plan that ran inside a call, as auto_explain tells them."""
    found: list[dict[str, Any]] = []
    database.rows("LOAD 'auto_explain'")
    for name, value in {
        "auto_explain.log_min_duration": "0", "auto_explain.log_nested_statements": "on", "auto_explain.log_analyze": "on",
        "auto_explain.log_format": "json", "auto_explain.log_level": "notice", "client_min_messages": "notice",
    }.items():  # fmt: skip
        database.rows("SELECT set_config(%s, %s, false)", (name, value))

    def heard(diagnosis: Any) -> None:
        text = diagnosis.message_primary
        found.extend(nodes(json.loads(text[text.index("{") :])["Plan"]))

    database.connection.add_notice_handler(heard)
    try:
        database.rows(statement, parameters)
    finally:
        database.connection.remove_notice_handler(heard)
        database.rows("SET auto_explain.log_min_duration = -1")
    return found


def indexes(plan: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in plan if "Index Name" in node and node["Actual Loops"] > 0}


def rows_read(plan: list[dict[str, Any]]) -> float:
    """Rows that scans of `memory` gave or filtered away."""
    return sum(
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in plan
        if node.get("Relation Name") == "memory"
    )


def recall(database: Database, bank: str, **arguments: Any) -> list[dict[str, Any]]:
    casts = {"embedding": "::vector"}
    terms = ", ".join(f"{name} => %({name})s{casts.get(name, '')}" for name in arguments)
    return plans_of(database, f"SELECT * FROM hindsight.recall(bank => %(bank)s, {terms})", {"bank": bank, **arguments})


def test_a_large_bank_is_searched_by_the_models_hnsw_index(filled: Database) -> None:
    plan = recall(filled, LARGE, embedding=vector(7), min_score=0)
    assert any(name.startswith("memory_embedding_") for name in indexes(plan))
    assert "Seq Scan" not in {node["Node Type"] for node in plan if node.get("Relation Name") == "memory"}
    assert rows_read(plan) < 500


def test_a_small_bank_in_a_large_table_is_scanned_by_its_own_index_and_gives_its_full_top_k(filled: Database) -> None:
    plan = recall(filled, SMALL, embedding=vector(7), min_score=0)
    used = indexes(plan)
    assert not any(name.startswith("memory_embedding_") for name in used)
    assert used & {"memory_recency_idx", "memory_pkey", "memory_session_idx"}
    assert rows_read(plan) < 500
    rows = filled.call("recall", bank=SMALL, embedding=vector(7), min_score=0, top_k=10)
    assert len(rows) == 10
    assert all(row["content"].startswith("small ") for row in rows)


def test_words_are_found_by_the_gin_index(filled: Database) -> None:
    plan = recall(filled, LARGE, query="unique777 word3")
    assert "memory_words_idx" in indexes(plan)
    assert rows_read(plan) < 3000
    assert filled.contents(LARGE, "unique777")[0].startswith("large 777 ")


def test_common_words_do_not_make_a_query_slow(filled: Database) -> None:
    plan = recall(filled, LARGE, query="word1 word2 word3 unique9", embedding=vector(9))
    assert rows_read(plan) < 3000


def test_the_vector_channel_finds_what_an_exact_scan_finds(filled: Database) -> None:
    hits = 0
    for seed in range(40):
        asked = vector(100_000 + seed)
        exact = filled.rows(
            "SELECT content FROM hindsight.live_memory m JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s "
            "ORDER BY m.embedding <=> %s::vector::halfvec LIMIT 10", (LARGE, asked),
        )  # fmt: skip
        hits += len({row["content"] for row in exact} & set(filled.contents(LARGE, embedding=asked, min_score=0)))
    assert hits / 400 >= 0.97


def test_a_filter_that_few_memories_pass_still_fills_the_result(filled: Database) -> None:
    filled.rows("UPDATE hindsight.memory SET tags = '{rare}' WHERE content ~ '^large 1?[0-9]{2}7 '")
    rows = filled.call("recall", bank=LARGE, embedding=vector(5), tags=["rare"], min_score=0, top_k=20)
    assert len(rows) == 20
    assert all(row["tags"] == ["rare"] for row in rows)


def test_what_is_pending_is_found_in_a_large_bank_when_asked_for(filled: Database) -> None:
    filled.call("store", bank=LARGE, content="the wombat prefers clover", confidence=0.4)
    assert filled.contents(LARGE, "wombat clover") == []
    assert filled.contents(LARGE, "wombat clover", include_pending=True)[0] == "the wombat prefers clover"


def test_counting_the_words_ahead_changes_no_answer(filled: Database) -> None:
    queries = [f"unique{number} word{number % 7} word{number % 50}" for number in range(0, 20_000, 1000)]
    counted = [filled.contents(LARGE, query, top_k=3) for query in queries]
    with filled.connection.transaction(force_rollback=True):
        filled.rows("UPDATE hindsight.bank SET documents = NULL, average_length = NULL")
        assert [filled.contents(LARGE, query, top_k=3)[:1] for query in queries] == [found[:1] for found in counted]


def test_one_memory_and_its_history_are_read_by_key(filled: Database) -> None:
    memory_id = filled.value("SELECT memory_id FROM hindsight.memory WHERE content LIKE 'large 5 %%'")
    plan = plans_of(filled, "SELECT * FROM hindsight.get('large', %s)", (memory_id,))
    assert indexes(plan) >= {"memory_pkey"}
    assert rows_read(plan) == 1


def test_a_block_reads_its_memories_by_key(filled: Database) -> None:
    ids = [row["memory_id"] for row in filled.call("recall", bank=LARGE, query="unique5 unique6 unique7", top_k=3)]
    plan = plans_of(filled, "SELECT * FROM hindsight.context_block('large', %s)", (ids,))
    assert "memory_pkey" in indexes(plan)
    assert rows_read(plan) <= 3 * len(ids), "and once more, for what is disputed"


def test_what_a_message_names_is_looked_up_in_the_index_of_names(filled: Database) -> None:
    filled.rows("UPDATE hindsight.memory SET entities = '{Gizmo}' WHERE content ~ '^large 1?[0-9]{2}3 '")
    for message, known in (("is the gizmo ready?", True), ("is the widget ready?", False)):
        plan = plans_of(filled, "SELECT * FROM hindsight.should_recall('large', %s)", (message,))
        assert "memory_names_idx" in indexes(plan)
        assert rows_read(plan) <= known
        assert filled.one("should_recall", bank=LARGE, message=message)["recall"] is known


def test_storing_looks_a_content_up_by_its_digest(filled: Database) -> None:
    plan = plans_of(filled, "SELECT * FROM hindsight.store('large', 'a sentence that is new')")
    assert "memory_content_key" in indexes(plan)
    screened = {"memory_said_idx", "memory_changed_idx"}
    assert screened <= indexes(plan), "what the user said, what was said a moment ago"
    assert rows_read(plan) <= 21, "twenty that were said a moment ago"


def test_what_waits_for_an_embedding_is_found_by_its_partial_index(filled: Database) -> None:
    filled.call("store", bank=LARGE, content="waits for its vector")
    plan = plans_of(filled, "SELECT * FROM hindsight.claim_unembedded('large', 10)")
    assert "memory_unembedded_idx" in indexes(plan)
    assert rows_read(plan) < 10


def test_every_partial_index_of_live_rows_has_the_predicate_of_the_view(filled: Database) -> None:
    """One predicate, to the letter: an index whose predicate is not the view's would not be used by it."""
    live = "((deleted_at IS NULL) AND (superseded_by IS NULL) AND (archived_at IS NULL) AND (pending_reason IS NULL)"
    views = {
        name: " ".join(filled.value("SELECT pg_get_viewdef(%s::regclass)", (f"hindsight.{name}",)).split())
        for name in ("current_memory", "live_memory")
    }
    assert views["current_memory"].endswith(
        "FROM hindsight.memory WHERE ((deleted_at IS NULL) AND (superseded_by IS NULL) AND (archived_at IS NULL));"
    )
    assert views["live_memory"].endswith("FROM hindsight.current_memory WHERE (pending_reason IS NULL);")
    predicates = {
        row["name"]: row["predicate"]
        for row in filled.rows(
            "SELECT indexrelid::regclass::text AS name, pg_get_expr(indpred, indrelid) AS predicate FROM pg_index "
            "WHERE indrelid = 'hindsight.memory'::regclass AND indpred IS NOT NULL"
        )
    }
    for name in ("memory_words_idx", "memory_slot_key", "memory_recency_idx", "memory_session_idx"):
        assert predicates[f"hindsight.{name}"].startswith(live)
    assert all(live in text for name, text in predicates.items() if "memory_embedding_" in name)


def test_a_sample_of_a_large_bank_reads_little_more_than_it_draws(filled: Database) -> None:
    plan = plans_of(filled, "SELECT * FROM hindsight.sample_memories(%s, 100)", (LARGE,))
    assert {name for name in indexes(plan) if name.startswith("memory_")} == {"memory_content_key"}
    assert rows_read(plan) <= 200
    assert len(filled.call("sample_memories", bank=LARGE, most=100)) == 100


def test_links_and_neighbours_in_a_session_are_looked_up_by_index(filled: Database) -> None:
    filled.call("create_bank", bank="talkative")
    memories = [
        filled.one("store", bank="talkative", content=f"turn {number} of the talk", session_id=f"s{number % 3}")
        for number in range(60)
    ]
    for one, other in itertools.pairwise(memories):
        filled.call("link", bank="talkative", from_id=one["memory_id"], to_id=other["memory_id"])
    plan = recall(filled, "talkative", query="turn 7 of the talk", hops=2)
    assert {"link_from_idx", "link_to_idx", "memory_session_idx"} <= indexes(plan)
    assert "Seq Scan" not in {node["Node Type"] for node in plan if node.get("Relation Name") in ("link", "memory")}
    beside = [node for node in plan if node.get("Index Name") == "memory_session_idx" and node["Actual Loops"] > 0]
    assert all(node["Actual Rows"] <= 60 for node in beside)


def test_what_shares_a_name_in_a_large_bank_is_looked_up_by_the_index_of_names(filled: Database) -> None:
    one, other = (
        filled.one("store", bank=LARGE, content=f"ERR-9931 was seen {when}")["memory_id"] for when in ("today", "again")
    )
    sharing = """
        SELECT memory_id FROM hindsight._sharing((SELECT b FROM hindsight.bank AS b WHERE b.name = 'large'), %s, ARRAY['ERR-9931'], 3)
    """
    plan = plans_of(filled, sharing, (one,))
    assert "memory_names_idx" in indexes(plan)
    assert rows_read(plan) < 20
    assert [row["memory_id"] for row in filled.rows(sharing, (one,))] == [other]
    plan = plans_of(filled, "SELECT * FROM hindsight.entity('large', 'ERR-9931')")
    assert "memory_names_idx" in indexes(plan)
    assert rows_read(plan) < 20


def test_the_newest_of_a_large_bank_are_read_from_their_index_and_no_further(filled: Database) -> None:
    plan = recall(filled, LARGE, query="")
    assert "memory_recency_idx" in indexes(plan)
    assert rows_read(plan) < 200


def test_what_changed_in_a_short_time_is_read_by_time_and_not_the_whole_history(filled: Database) -> None:
    """A bank of 20,000 memories, of which 2,000 have two earlier versions and an end."""
    filled.rows("""
        INSERT INTO hindsight.memory_version SELECT m.bank_id, m.memory_id, -n, m.content, m.type, m.tags, m.entities, m.slot, m.context,
          m.session_id, m.source, m.confidence, m.importance, m.metadata, m.language, m.occurred_at, m.created_at, m.confirmed_at,
          m.confirmations, m.changed_at - n * interval '1 day', m.changed_at + interval '1 year', m.completed_at, m.deleted_at,
          m.superseded_by, m.valid_to, m.archived_at, m.pending_reason, m.model_id, m.embedding, m.digest, m.document,
          m.changed_at - (n - 1) * interval '1 day'
        FROM hindsight.memory m JOIN hindsight.bank b USING (bank_id), generate_series(1, 2) n
        WHERE b.name = 'large' AND m.content ~ '^large [0-9]*7 '
    """)
    filled.rows("ANALYZE hindsight.memory_version")
    since = filled.value("SELECT clock_timestamp()")
    stored = [filled.one("store", bank=LARGE, content=f"learned {number}")["memory_id"] for number in range(5)]
    filled.call("update_memory", bank=LARGE, memory_id=stored[0], content="corrected 0")
    filled.call("forget", bank=LARGE, memory_id=stored[1], reason="asked to")
    for until in ("NULL", "clock_timestamp()"):
        plan = plans_of(filled, f"SELECT * FROM hindsight.diff('large', %s, {until})", (since,))
        assert {"memory_changed_idx", "memory_version_changed_idx", "memory_version_pkey"} <= indexes(plan)
        assert "Seq Scan" not in {node["Node Type"] for node in plan if node.get("Relation Name") in VERSIONED}
        assert rows_read(plan) < 20
        past = [node for node in plan if node.get("Relation Name") == "memory_version"]
        assert (
            sum(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) for node in past)
            < 20
        )
    assert [row["change"] for row in filled.call("diff", bank=LARGE, since=since)] == ["learned"] * 5 + [
        "corrected",
        "forgotten",
    ]


def test_a_statement_that_was_said_before_looks_its_correction_up_by_digest(filled: Database) -> None:
    plan = plans_of(
        filled, "SELECT * FROM hindsight.store('large', 'said a while ago', occurred_at => now() - interval '1 hour')"
    )
    assert {"memory_gone_content_idx", "memory_version_content_idx", "memory_gone_idx"} <= indexes(plan)
    assert rows_read(plan) <= 25, "what went since then, at most five hundred; and twenty that were said a moment ago"


def test_a_bank_that_changes_its_model_reads_what_waits_and_what_stands_beside_by_index(filled: Database) -> None:
    """The last test of this file: the large bank has another model from here on."""
    filled.call("register_model", model="tiny", dimensions=2)
    filled.call("begin_reembedding", bank=LARGE, model="tiny")
    filled.call("claim_unembedded", bank=LARGE, most=100, model="tiny")  # the first puts all among what waits
    filled.rows("ANALYZE hindsight.next_embedding")
    plan = plans_of(filled, "SELECT * FROM hindsight.claim_unembedded('large', 100, 'tiny')")
    assert "next_embedding_waiting_idx" in indexes(plan)
    assert rows_read(plan) <= 300
    filled.rows("""
        UPDATE hindsight.next_embedding AS n SET embedding = format('[%s,%s]', cos(a), sin(a))::halfvec
        FROM (SELECT memory_id, row_number() OVER () AS a FROM hindsight.next_embedding) AS o WHERE o.memory_id = n.memory_id
    """)
    filled.rows("VACUUM ANALYZE hindsight.next_embedding")
    assert [filled.one("finish_reembedding", bank=LARGE)["outcome"] for _ in range(2)] == ["indexed", "switched"]
    plan = plans_of(filled, "SELECT * FROM hindsight.recall('large', embedding => '[1,0]'::vector, min_score => 0)")
    (beside,) = (name for name in indexes(plan) if name.startswith("next_embedding_") and name.endswith("_idx"))
    assert beside != "next_embedding_waiting_idx"
    assert "next_embedding" not in {node.get("Relation Name") for node in plan if node["Node Type"] == "Seq Scan"}
    assert rows_read(plan) < 500
    plan = plans_of(filled, "SELECT * FROM hindsight.settle_embeddings('large', most => 50)")
    assert "memory_pkey" in indexes(plan)
    assert rows_read(plan) < 500
