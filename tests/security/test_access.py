"""Who may do what: as plain database roles, not as the superuser."""

import uuid
from collections.abc import Callable

import psycopg
import pytest

from tests.conftest import Database


def me(database: Database) -> str:
    return str(database.value("SELECT session_user"))


def new_bank(database: Database) -> str:
    name = f"bank-{uuid.uuid4().hex[:10]}"
    database.call("create_bank", bank=name)
    return name


def refused(sqlstate: str, work: Callable[[], object]) -> str:
    with pytest.raises(psycopg.Error) as caught:
        work()
    assert caught.value.sqlstate == sqlstate, caught.value
    return str(caught.value.diag.message_primary)


def test_an_application_role_stores_recalls_and_forgets_in_its_own_bank(connect: Callable[..., Database]) -> None:
    app = connect("hindsight_app")
    bank = new_bank(app)
    memory_id = app.one("store", bank=bank, content="汇率 every night")["memory_id"]
    assert app.contents(bank, "汇率") == ["汇率 every night"]
    app.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
    assert app.contents(bank, "汇率") == []
    assert app.call("history", bank=bank, memory_id=memory_id)[0]["principal"] == me(app)


def test_a_role_without_membership_calls_nothing(connect: Callable[..., Database]) -> None:
    nobody = connect()
    refused("42501", lambda: nobody.call("recall", bank="x"))
    refused("42501", lambda: nobody.rows("SELECT * FROM hindsight.memory"))


def test_a_reader_reads_what_it_was_granted_and_writes_nothing(connect: Callable[..., Database]) -> None:
    app, reader = connect("hindsight_app"), connect("hindsight_reader")
    bank = new_bank(app)
    app.call("store", bank=bank, content="The port is 22")
    app.call("grant_access", bank=bank, principal=me(reader), rights="reader")
    assert reader.contents(bank, "port") == ["The port is 22"]
    refused("42501", lambda: reader.call("store", bank=bank, content="The port is 23"))


@pytest.mark.parametrize("rights", ["reader", "writer", "owner"])
def test_rights_on_a_bank_rise_from_reader_to_owner(connect: Callable[..., Database], rights: str) -> None:
    app, guest = connect("hindsight_app"), connect("hindsight_app")
    bank = new_bank(app)
    app.call("grant_access", bank=bank, principal=me(guest), rights=rights)
    guest.contents(bank)
    if rights == "reader":
        assert "this needs adder or writer" in refused("HM003", lambda: guest.call("store", bank=bank, content="x"))
    else:
        guest.call("store", bank=bank, content="x")
    grant = {"bank": bank, "principal": "agent-7", "rights": "reader"}
    if rights == "owner":
        guest.call("grant_access", **grant)
    else:
        refused("HM003", lambda: guest.call("grant_access", **grant))


def test_a_bank_without_rights_looks_like_one_that_does_not_exist(connect: Callable[..., Database]) -> None:
    app, other = connect("hindsight_app"), connect("hindsight_app")
    bank = new_bank(app)
    app.call("store", bank=bank, content="a secret")
    theirs = refused("HM001", lambda: other.call("recall", bank=bank, query="secret"))
    none = refused("HM001", lambda: other.call("recall", bank="no-such-bank", query="secret"))
    assert theirs.replace(bank, "…") == none.replace("no-such-bank", "…")
    refused("HM001", lambda: other.call("store", bank=bank, content="x"))
    assert bank not in {row["bank"] for row in other.call("status")}


def test_a_name_that_somebody_else_has_taken_is_refused(connect: Callable[..., Database]) -> None:
    app, other = connect("hindsight_app"), connect("hindsight_app")
    bank = new_bank(app)
    assert "is taken" in refused("HM003", lambda: other.call("create_bank", bank=bank))
    assert app.call("create_bank", bank=bank), "its owner may ask again"


def test_revoked_rights_end_at_once_and_the_last_owner_stays(connect: Callable[..., Database]) -> None:
    app, guest = connect("hindsight_app"), connect("hindsight_app")
    bank = new_bank(app)
    app.call("grant_access", bank=bank, principal=me(guest), rights="writer")
    assert app.one("revoke_access", bank=bank, principal=me(guest)) == {"revoke_access": True}
    refused("HM001", lambda: guest.call("recall", bank=bank))
    assert app.one("revoke_access", bank=bank, principal=me(guest)) == {"revoke_access": False}
    assert "last owner" in refused("HM004", lambda: app.call("revoke_access", bank=bank, principal=me(app)))
    demote = {"bank": bank, "principal": me(app), "rights": "reader"}
    assert "last owner" in refused("HM004", lambda: app.call("grant_access", **demote))
    app.call("grant_access", bank=bank, principal=me(guest), rights="owner")
    app.call("grant_access", **demote)


TABLES = (
    "bank",
    "bank_type",
    "access",
    "session",
    "turn",
    "memory",
    "memory_version",
    "event",
    "word_statistics",
    "model_usage",
)


def test_a_direct_select_sees_only_the_banks_that_were_granted(connect: Callable[..., Database]) -> None:
    app, other = connect("hindsight_app"), connect("hindsight_app")
    bank = new_bank(app)
    memory_id = app.one("store", bank=bank, content="The port is 22", session_id="s1")["memory_id"]
    app.call("update_memory", bank=bank, memory_id=memory_id, tags=["x"])
    app.call("log_turn", bank=bank, session_id="s1", role="user", content="hello")
    assert app.value("SELECT count(*) FROM hindsight.live_memory") == 1
    for table in TABLES:
        mine = app.value(f"SELECT count(*) FROM hindsight.{table}")
        assert mine == 0 if table in ("bank_type", "word_statistics", "model_usage") else mine > 0, table
        assert other.value(f"SELECT count(*) FROM hindsight.{table}") == 0, table
    assert other.value("SELECT count(*) FROM hindsight.live_memory") == 0


@pytest.mark.parametrize("table", TABLES)
def test_the_application_role_changes_no_table_by_itself(connect: Callable[..., Database], table: str) -> None:
    app = connect("hindsight_app")
    bank = new_bank(app)
    app.call("store", bank=bank, content="The port is 22")
    refused("42501", lambda: app.rows(f"DELETE FROM hindsight.{table}"))
    refused(
        "42501",
        lambda: app.rows(f"UPDATE hindsight.{table} SET " + ("name = ''" if table == "bank" else "bank_id = 0")),
    )
    refused("42501", lambda: app.rows(f"INSERT INTO hindsight.{table} DEFAULT VALUES"))
    refused("42501", lambda: app.rows(f"TRUNCATE hindsight.{table}"))


def test_the_service_acts_for_whom_it_names_and_for_that_transaction_only(connect: Callable[..., Database]) -> None:
    app = connect("hindsight_service")
    mine = new_bank(app)
    with app.connection.transaction():
        app.rows("SELECT set_config('hindsight.principal', %s, true)", (f"agent-{uuid.uuid4()}",))
        theirs = new_bank(app)
        app.call("store", bank=theirs, content="of agent-7")
        refused_here = "SELECT count(*) AS n FROM hindsight.status() WHERE bank = %s"
        assert app.value(refused_here, (mine,)) == 0
        assert app.value("SELECT count(*) FROM hindsight.memory") == 1
    refused("HM001", lambda: app.call("recall", bank=theirs))
    assert app.value("SELECT count(*) FROM hindsight.memory") == 0


@pytest.mark.parametrize("role", ["hindsight_app", "hindsight_reader", "hindsight_owner"])
def test_a_plain_login_is_always_itself(connect: Callable[..., Database], role: str) -> None:
    app, plain = connect("hindsight_app"), connect(role)
    bank = new_bank(app)
    plain.rows("SELECT set_config('hindsight.principal', %s, false)", (me(app),))
    plain.rows("SELECT set_config('hindsight.scope', %s, false)", ('{"rights": "owner"}',))
    assert plain.value("SELECT hindsight.principal()") == me(plain)
    if role != "hindsight_owner":
        refused("HM001", lambda: plain.call("recall", bank=bank))
        assert plain.value("SELECT count(*) FROM hindsight.bank WHERE name = %s", (bank,)) == 0


def test_an_operator_acting_for_somebody_has_only_their_rights(db: Database, bank: str) -> None:
    with db.connection.transaction():
        db.rows("SELECT set_config('hindsight.principal', %s, true)", (f"agent-{uuid.uuid4()}",))
        assert db.value("SELECT count(*) FROM hindsight.status()") == 0


def test_no_role_of_the_schema_can_log_in(db: Database) -> None:
    roles = db.rows(
        "SELECT rolname, rolcanlogin, rolsuper, rolbypassrls FROM pg_roles WHERE rolname LIKE 'hindsight%%'", ()
    )
    assert {row["rolname"] for row in roles} == {
        "hindsight_owner",
        "hindsight_app",
        "hindsight_service",
        "hindsight_reader",
    }
    assert not any(row["rolcanlogin"] or row["rolsuper"] or row["rolbypassrls"] for row in roles)


def test_every_entry_point_pins_its_search_path_and_nothing_is_open_to_the_public(db: Database) -> None:
    functions = db.rows("""
        SELECT p.proname, p.prosecdef, coalesce(p.proconfig::text, '') AS config, p.provolatile,
               has_function_privilege('public', p.oid, 'EXECUTE') AS is_public,
               has_function_privilege('hindsight_app', p.oid, 'EXECUTE') AS is_for_app,
               has_function_privilege('hindsight_service', p.oid, 'EXECUTE') AS is_for_service,
               has_function_privilege('hindsight_reader', p.oid, 'EXECUTE') AS is_for_reader
        FROM pg_proc p WHERE p.pronamespace = 'hindsight'::regnamespace
    """)
    for function in functions:
        name = function["proname"]
        assert not function["is_public"], name
        assert function["is_for_service"] == function["is_for_app"], name
        if function["prosecdef"]:
            assert "search_path=pg_catalog, hindsight, public, pg_temp" in function["config"], name
        if name.startswith("_") and name != "_readable_banks":
            assert not function["prosecdef"], name
            assert function["is_for_app"] == (function["provolatile"] == "i"), name
            assert function["is_for_reader"] == (function["provolatile"] == "i"), name
        elif not name.startswith("_"):
            assert function["is_for_app"], name
            assert function["is_for_reader"] == (
                function["provolatile"] != "v" or name in ("cache_embedding", "sample_memories")
            ), name


@pytest.mark.parametrize("role", ["hindsight_app", "hindsight_reader"])
@pytest.mark.parametrize(
    "call",
    [
        "score(0.8, 0.9, 70, 0.01)",
        "entities('我和 Alice 用 MySQL 8')",
        "tokens('中文 and English')",
        "text_tsv_v1('english', 'She went to 上海, ERR-7731')",
        "document_tsv_v1('english', 'a', '{b}', '{c}', 'd', 'e')",
        "content_digest_v1('x')",
        "similarity(0.5, 0.5)",
        "lexical(-1)",
        "semantic(1, 1)",
    ],
)
def test_the_functions_that_read_no_table_are_for_everybody(
    connect: Callable[..., Database], role: str, call: str
) -> None:
    assert connect(role).value(f"SELECT hindsight.{call}") is not None


def test_objects_that_shadow_ours_in_the_callers_path_change_nothing(connect: Callable[..., Database]) -> None:
    app = connect("hindsight_app")
    bank = new_bank(app)
    app.rows("CREATE TEMP TABLE bank (bank_id bigint, name text)")
    app.rows("CREATE TEMP TABLE memory (content text)")
    app.rows(
        "CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$"
    )
    app.rows("SET search_path = pg_temp, public")
    stored = app.rows("SELECT * FROM hindsight.store(%s, 'The port is 22')", (bank,))
    assert stored[0]["outcome"] == "stored"
    assert app.rows("SELECT content FROM hindsight.recall(%s, 'port')", (bank,)) == [{"content": "The port is 22"}]
    assert app.value("SELECT created_at > '2020-01-01' FROM hindsight.recall(%s, 'port')", (bank,)) is True
