"""The cache of query embeddings, as SQL sees it: whose they are, how long they live, and what is never kept."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from tests.conftest import Database

ONE, OTHER = "[1,0,0]", "[0,1,0]"


@pytest.fixture
def model(db: Database) -> str:
    name = f"toy-{uuid.uuid4().hex[:8]}"
    db.call("register_model", model=name, dimensions=3)
    return name


def cached(database: Database, model: str, query: str) -> str | None:
    found: str | None = database.one("cached_embedding", model=model, query=query)["cached_embedding"]
    return found


def cache(database: Database, model: str, query: str, embedding: str | None = ONE, **more: object) -> bool:
    kept: bool = database.one("cache_embedding", model=model, query=query, embedding=embedding, **more)[
        "cache_embedding"
    ]
    return kept


@pytest.mark.parametrize("query", ["what does alice drink?", "外币汇率换算", "e\u0301", " "])
def test_an_embedding_comes_back_for_the_same_query_and_model_only(db: Database, model: str, query: str) -> None:
    assert cached(db, model, query) is None
    if not query.strip():
        with pytest.raises(psycopg.Error, match="query is empty"):
            cache(db, model, query)
        return
    assert cache(db, model, query)
    assert cached(db, model, query) == ONE
    for another in (query + " ", query.upper() + "x", "\u00e9"):
        assert cached(db, model, another) is None
    db.call("register_model", model=f"{model}-2", dimensions=3)
    assert cached(db, f"{model}-2", query) is None
    assert cache(db, model, query, OTHER)
    assert cached(db, model, query) == OTHER, "the newest counts"


def test_it_lives_for_the_seconds_that_were_asked_for(db: Database, model: str) -> None:
    with db.connection.transaction():
        cache(db, model, "five minutes")
        cache(db, model, "an hour", seconds=3600)
        lives = "SELECT expires_at - now() AS lives FROM hindsight.query_embedding ORDER BY expires_at DESC LIMIT 2"
        hour, minutes = (row["lives"] for row in db.rows(lives))
    assert timedelta(0) <= hour - timedelta(hours=1) < timedelta(seconds=5)
    assert timedelta(0) <= minutes - timedelta(minutes=5) < timedelta(seconds=5)
    db.rows("UPDATE hindsight.query_embedding SET expires_at = now() WHERE embedding::text = %s", (ONE,))
    assert cached(db, model, "an hour") is None
    assert cache(db, model, "an hour")
    assert cached(db, model, "an hour") == ONE


def test_what_is_expired_goes_when_another_is_kept(db: Database, model: str) -> None:
    for query in ("tea", "咖啡"):
        cache(db, model, query)
    mine = "SELECT count(*) FROM hindsight.query_embedding WHERE model_id = (SELECT max(model_id) FROM hindsight.embedding_model)"
    assert db.value(mine) == 2
    db.rows("UPDATE hindsight.query_embedding SET expires_at = now() - interval '1 second'")
    cache(db, model, "milk")
    assert db.value(mine) == 1


def test_the_oldest_go_when_there_are_too_many(fresh_url: str) -> None:
    db = Database(fresh_url)
    db.call("register_model", model="toy", dimensions=3)
    db.rows(
        "INSERT INTO hindsight.query_embedding SELECT 'postgres', 1, sha256(n::text::bytea), '[1,0,0]', "
        "now() + interval '1 minute' + n * interval '1 millisecond' FROM generate_series(1, 10500) AS n"
    )
    db.rows("SELECT setseed(0.5)")
    for number in range(300):
        cache(db, "toy", f"query {number}")
    assert 10_000 <= db.value("SELECT count(*) FROM hindsight.query_embedding") <= 10_300
    assert cached(db, "toy", "1") is None
    assert cached(db, "toy", "10500") == ONE
    assert all(cached(db, "toy", f"query {number}") for number in range(300))
    db.close()


def test_nobody_is_answered_by_anothers_vector_or_sees_what_another_asked(
    connect: Callable[..., Database], model: str
) -> None:
    alice, mallory = connect("hindsight_app"), connect("hindsight_app")
    cache(mallory, model, "汇率", OTHER)
    assert cached(alice, model, "汇率") is None
    cache(alice, model, "汇率", ONE)
    assert (cached(alice, model, "汇率"), cached(mallory, model, "汇率")) == (ONE, OTHER)
    for database in (alice, mallory):
        rows = database.rows("SELECT principal FROM hindsight.query_embedding")
        assert [row["principal"] for row in rows] == [database.value("SELECT session_user")]


def test_the_service_keeps_apart_those_for_whom_it_acts(connect: Callable[..., Database], model: str) -> None:
    app = connect("hindsight_service")
    for principal, embedding in (("agent-7", ONE), ("agent-8", OTHER)):
        with app.connection.transaction():
            app.rows("SELECT set_config('hindsight.principal', %s, true)", (principal,))
            assert cached(app, model, "tea") is None
            cache(app, model, "tea", embedding)
            assert cached(app, model, "tea") == embedding
    assert cached(app, model, "tea") is None


@pytest.mark.parametrize("role", ["hindsight_app", "hindsight_reader"])
def test_whoever_may_use_the_schema_has_a_cache_and_no_right_on_its_table(
    connect: Callable[..., Database], model: str, role: str
) -> None:
    database = connect(role)
    assert cache(database, model, "tea")
    assert cached(database, model, "tea") == ONE
    for statement in (
        "INSERT INTO hindsight.query_embedding VALUES ('x', 1, 'x', '[1]', now())",
        "UPDATE hindsight.query_embedding SET principal = 'x'",
        "DELETE FROM hindsight.query_embedding",
        "TRUNCATE hindsight.query_embedding",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            database.rows(statement)


def test_a_stranger_has_none(connect: Callable[..., Database], model: str) -> None:
    stranger = connect()
    for call in (lambda: cached(stranger, model, "tea"), lambda: cache(stranger, model, "tea")):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            call()


def test_of_a_query_only_the_digest_is_kept(db: Database, model: str) -> None:
    cache(db, model, "a very particular 秘密 question")
    kept = db.value("SELECT string_agg(q::text, ' ') FROM hindsight.query_embedding AS q")
    assert "particular" not in kept
    assert "秘密" not in kept
    assert "秘密".encode().hex() not in kept


@pytest.mark.parametrize(
    ("given", "sqlstate"),
    [
        ({"embedding": "[1,0]"}, "HM010"),
        ({"embedding": "[1,0,0,0]"}, "HM010"),
        ({"embedding": "[0,0,0]"}, "HM010"),
        ({"embedding": None}, "HM010"),
        ({"model": "no such model"}, "HM012"),
        ({"model": None}, "HM012"),
        ({"query": None}, "HM005"),
        ({"query": ""}, "HM005"),
        ({"query": "x" * 10_001}, "HM005"),
        ({"seconds": 0}, "HM004"),
        ({"seconds": -1}, "HM004"),
        ({"seconds": 86_401}, "HM004"),
        ({"seconds": float("nan")}, "HM004"),
        ({"seconds": None}, "HM004"),
    ],
)
def test_what_can_not_be_kept_is_refused_and_leaves_what_was_there(
    db: Database, model: str, given: dict[str, object], sqlstate: str
) -> None:
    cache(db, model, "tea")
    with pytest.raises(psycopg.Error) as caught:
        db.call("cache_embedding", **{"model": model, "query": "tea", "embedding": ONE, **given})
    assert caught.value.sqlstate == sqlstate
    assert cached(db, model, "tea") == ONE


def test_asking_with_nothing_finds_nothing(db: Database, model: str) -> None:
    cache(db, model, "tea")
    assert db.value("SELECT hindsight.cached_embedding(NULL, 'tea')") is None
    assert db.value("SELECT hindsight.cached_embedding(%s, NULL)", (model,)) is None
    assert db.value("SELECT hindsight.cached_embedding('no such model', 'tea')") is None


def test_a_read_only_transaction_reads_it_and_keeps_nothing(db: Database, model: str) -> None:
    cache(db, model, "tea")
    with db.connection.transaction():
        db.rows("SET TRANSACTION READ ONLY")
        assert cached(db, model, "tea") == ONE
        assert not cache(db, model, "milk")
    assert cached(db, model, "milk") is None


def test_two_writers_of_one_query_both_end_well(shared_url: str, model: str) -> None:
    first, second = Database(shared_url), Database(shared_url)
    waiting = threading.Thread(target=cache, args=(second, model, "tea", OTHER))
    with first.connection.transaction():
        cache(first, model, "tea", ONE)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive(), "the second waits for the first"
    waiting.join(10)
    assert cached(first, model, "tea") == OTHER
    first.close()
    second.close()


def test_many_writers_at_the_limit_do_not_wait_for_each_others_deletions(shared_url: str, model: str) -> None:
    databases = [Database(shared_url) for _ in range(4)]
    cache(databases[0], model, "old")
    databases[0].rows("UPDATE hindsight.query_embedding SET expires_at = now() - interval '1 second'")
    failed: list[BaseException] = []

    def write(database: Database, number: int) -> None:
        try:
            for query in range(50):
                cache(database, model, f"query {(query * (1 if number % 2 else 49)) % 50}", seconds=1)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(database, n)) for n, database in enumerate(databases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []
    for database in databases:
        database.close()


def test_the_vector_that_comes_back_gives_the_score_that_the_given_one_gives(
    db: Database, bank: str, model: str
) -> None:
    exact = "[" + ",".join(map(repr, (0.1234567890123, -0.7, 3e-5))) + "]"
    db.call("store", bank=bank, content="汇率 every night", embedding="[0.2,-0.5,0.1]", model=model)
    cache(db, model, "汇率", exact)
    given = {"bank": bank, "query": "汇率", "model": model, "min_score": 0}
    fresh = db.call("recall", embedding=exact, **given)
    again = db.call("recall", embedding=cached(db, model, "汇率"), **given)
    assert [row["semantic"] for row in fresh] == [row["semantic"] for row in again] != [None]
