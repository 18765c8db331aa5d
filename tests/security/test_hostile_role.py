"""The second wall: a login with SQL of its own, and with the application's role, tries to learn what it was not granted."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

SECRET = "Alice 的秘密：the merger closes on 9 May"
SESSION = "therapy-2026-05"
SLOT = "alice.secret"
ROLES = ["hindsight_app", "hindsight_reader", None]
SHARED = {"embedding_model", "memory_type", "alembic_version"}
"""What belongs to no bank: which models and types there are, and the schema's revision."""


class World:
    """A database of its own: Alice's bank, with a row in every table, and one of Mallory's."""

    def __init__(self, url: str, login: Callable[..., str]) -> None:
        self.db = Database(url)
        self.url, self.login = url, login
        db = self.db
        self.bank = f"alice-{uuid.uuid4().hex[:8]}"
        db.call("register_model", model="m3", dimensions=3)
        db.call("create_bank", bank=self.bank, description=SECRET)
        given = {"bank": self.bank, "embedding": "[1,0,0]", "model": "m3"}
        self.memory = db.one("store", content=SECRET, session_id=SESSION, slot=SLOT, tags=["hush"], **given)[
            "memory_id"
        ]
        other = db.one("store", content="The vault opens with 4711", derived_from=[self.memory], **given)["memory_id"]
        db.call("update_memory", bank=self.bank, memory_id=other, content="The vault opens with 4712")
        db.call("link", bank=self.bank, from_id=self.memory, to_id=other, relation="causes")
        db.call("log_turn", bank=self.bank, session_id=SESSION, role="user", content=f"Remember that {SECRET}.")
        db.call("close_session", bank=self.bank, session_id=SESSION)
        db.call("distil_waiting", bank=self.bank)
        db.call("working_set", bank=self.bank, session_id=SESSION, key="k", value='"hush"', ttl="1 day")
        db.call("note_recall", bank=self.bank, memory_ids=[self.memory])
        db.call("note_usage", bank=self.bank, purpose="distil", model="gpt")
        db.call("set_policy", bank=self.bank, type="fact", ttl="10 years")
        db.call("set_tags", bank=self.bank, aliases='{"hush": ["psst"]}')
        db.call("cache_embedding", model="m3", query=SECRET, embedding="[1,0,0]")
        db.call("maintain", bank=self.bank)
        db.rows("ANALYZE")
        self.grants: dict[str, str] = {}

    def mallory(self, role: str | None = "hindsight_app", *, with_rows: bool = False) -> Database:
        database = Database(self.login(self.url, *([role] if role else [])))
        if with_rows:
            database.call("create_bank", bank=f"mallory-{uuid.uuid4().hex[:8]}")
        return database


@pytest.fixture(scope="module")
def world(new_database: Callable[..., str], template: str, login: Callable[..., str]) -> Iterator[World]:
    made = World(new_database(template), login)
    yield made
    made.db.close()


@pytest.fixture(params=ROLES)
def mallory(request: pytest.FixtureRequest, world: World) -> Iterator[Database]:
    database = world.mallory(request.param)
    yield database
    database.close()


@pytest.fixture
def app(world: World) -> Iterator[Database]:
    database = world.mallory(with_rows=True)
    yield database
    database.close()


def relations(world: World) -> list[str]:
    rows = world.db.rows("""
        SELECT c.relname FROM pg_class AS c
        WHERE c.relnamespace = 'hindsight'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1
    """)
    return [row["relname"] for row in rows]


def tried(database: Database, statement: str, parameters: Any = None) -> tuple[str, list[str]]:
    """All that a statement gives: its rows or its error, as text, and the notices beside it."""
    notices: list[str] = []

    def heard(notice: psycopg.errors.Diagnostic) -> None:
        notices.append(f"{notice.message_primary} {notice.message_detail} {notice.context}")

    database.connection.add_notice_handler(heard)
    try:
        return str(database.rows(statement, parameters)), notices
    except psycopg.Error as error:
        said = error.diag
        return (
            f"{said.sqlstate} {said.message_primary} {said.message_detail} {said.message_hint} {said.context}",
            notices,
        )
    finally:
        database.connection.remove_notice_handler(heard)


def nothing_of_alices(world: World, *texts: str) -> None:
    for text in texts:
        for clue in (SECRET, "vault", SESSION, SLOT, "hush", world.bank, str(world.memory)):
            assert clue not in text, text


class TestRows:
    def test_every_table_has_a_policy_and_every_view_asks_as_its_caller(self, world: World) -> None:
        for row in world.db.rows("""
            SELECT c.relname, c.relkind, c.relrowsecurity, coalesce(c.reloptions, '{}') AS options,
                   EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = c.oid) AS has_policy
            FROM pg_class AS c
            WHERE c.relnamespace = 'hindsight'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        """):
            if row["relkind"] == "v":
                assert "security_invoker=true" in row["options"], row
            elif row["relname"] not in SHARED:
                assert row["relrowsecurity"], row
                assert row["has_policy"] or row["relname"].startswith(("turn_2", "access_token")), row

    def test_no_row_of_anothers_bank_is_in_any_table_or_view(self, world: World, mallory: Database) -> None:
        names = relations(world)
        filled = [n for n in names if world.db.value(f"SELECT count(*) FROM hindsight.{n}")]
        assert len(filled) > 20, "there is something to see"
        for name in names:
            seen, notices = tried(mallory, f"SELECT to_jsonb(t)::text AS row FROM hindsight.{name} AS t")
            nothing_of_alices(world, seen, *notices)
            if name not in SHARED:
                assert seen == "[]" or seen.startswith("42501"), f"{name}: {seen}"

    def test_with_a_grant_each_of_those_rows_is_seen_and_without_it_none_again(
        self, world: World, app: Database
    ) -> None:
        me = str(app.value("SELECT session_user"))
        tables = ["bank", "memory", "memory_version", "link", "event", "session", "turn", "working_value", "access"]
        theirs = "bank_id = (SELECT bank_id FROM hindsight.bank WHERE name = %s)"
        world.db.call("grant_access", bank=world.bank, principal=me, rights="reader")
        for table in tables:
            count = f"SELECT count(*) FROM hindsight.{table} WHERE {theirs}"
            assert app.value(count, (world.bank,)) == world.db.value(count, (world.bank,)) > 0, table
        world.db.call("revoke_access", bank=world.bank, principal=me)
        for table in tables:
            assert app.value(f"SELECT count(*) FROM hindsight.{table} WHERE {theirs}", (world.bank,)) == 0, table

    def test_every_public_function_tells_a_stranger_that_the_bank_is_unknown(self, world: World, app: Database) -> None:
        asked = world.db.rows("""
            SELECT p.proname AS name, coalesce(p.proargnames[1:p.pronargs], '{}') AS names, p.pronargs - p.pronargdefaults AS required,
                   ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, place) ORDER BY place) AS types
            FROM pg_proc AS p
            WHERE p.pronamespace = 'hindsight'::regnamespace AND p.prokind = 'f' AND p.proname !~ '^_' AND 'bank' = ANY (p.proargnames[1:p.pronargs])
        """)
        assert len(asked) > 50
        values = {"text": "fact", "uuid": str(world.memory), "uuid[]": f"{{{world.memory}}}", "jsonb": "[]", "vector[]": "{}",
                  "integer": "1", "bigint": "1", "text[]": "{x}", "interval": "1 day", "boolean": "true", "integer[]": "{1}",
                  "timestamp with time zone": "2020-01-01", "double precision": "0.5", "vector": "[1,0,0]", "date": "2020-01-01"}  # fmt: skip
        for function in asked:
            if function["name"] == "create_bank":
                continue
            said = []
            for bank in (world.bank, "no-such-bank"):
                given = {
                    name: bank if name == "bank" else values[kind]
                    for place, (name, kind) in enumerate(zip(function["names"], function["types"], strict=True))
                    if name == "bank" or place < function["required"]
                }
                kinds = dict(zip(function["names"], function["types"], strict=True))
                terms = ", ".join(f"{name} => %({name})s::{kinds[name]}" for name in given)
                said.append(
                    tried(app, f"SELECT * FROM hindsight.{function['name']}({terms})", given)[0].replace(bank, "…")
                )
            assert said[0] == said[1], f"{function['name']} tells the two apart"
            assert said[0].startswith(("HM", "42501")), f"{function['name']}: {said[0]}"
            assert "Alice" not in said[0]


class TestFunctions:
    def test_each_is_pinned_and_nobody_else_may_call_it(self, world: World) -> None:
        """Also those with a leading underscore: what a function of the owner's calls runs as the owner."""
        for row in world.db.rows("""
            SELECT p.oid::regprocedure::text AS name, p.prosecdef, p.proconfig::text AS config, p.provolatile, p.proacl IS NULL AS default_acl,
                   has_function_privilege('public', p.oid, 'EXECUTE') AS is_public, p.proowner::regrole::text AS owner
            FROM pg_proc AS p WHERE p.pronamespace = 'hindsight'::regnamespace
        """):
            assert not row["is_public"], row
            assert not row["default_acl"], row
            assert row["owner"] == "hindsight_owner", row
            if row["prosecdef"]:
                assert "search_path=pg_catalog, hindsight, public, pg_temp" in row["config"], row

    def test_no_statement_is_built_of_what_a_caller_says(self, world: World) -> None:
        """EXECUTE stands only where its names are of the schema's own: months, tables, indexes of models by number."""
        rows = world.db.rows("""
            SELECT DISTINCT p.proname AS name FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
            WHERE p.pronamespace = 'hindsight'::regnamespace AND l.lanname = 'plpgsql' AND p.prosrc ~ '\\mEXECUTE\\M'
        """)
        known = {"_open_month", "archive_month", "erase_bank", "export_bank", "_archives", "register_model", "set_index",
                 "begin_reembedding", "finish_reembedding", "settle_embeddings", "_make_index", "_drop_indexes", "_near_pairs", "_search_by_words", "_search_beside", "_search_by_meaning"}  # fmt: skip
        assert {row["name"] for row in rows} - known == set(), "look at it, and add it here"

    def test_nobody_creates_in_the_schema(self, app: Database) -> None:
        for made in (
            "TABLE hindsight.x (a int)",
            "FUNCTION hindsight.x() RETURNS int LANGUAGE sql RETURN 1",
            "VIEW hindsight.x AS SELECT 1",
        ):
            assert tried(app, f"CREATE {made}")[0].startswith("42501")


class TestTricks:
    """One each: what is tried, and that nothing is learned by it."""

    def test_naming_another_principal(self, world: World, app: Database) -> None:
        for setting, value in (
            ("hindsight.principal", "postgres"), ("hindsight.scope", '{"rights": "owner"}'), ("row_security", "off"), ("role", "none"),
        ):  # fmt: skip
            app.rows("SELECT set_config(%s, %s, false)", (setting, value))
            nothing_of_alices(world, tried(app, "SELECT * FROM hindsight.status()")[0])
            nothing_of_alices(world, tried(app, "SELECT content FROM hindsight.memory")[0])
            app.rows("RESET ALL")

    def test_becoming_another_role(self, world: World, app: Database) -> None:
        for role in ("hindsight_owner", "hindsight_service", "postgres"):
            for statement in (f"SET ROLE {role}", f"SET SESSION AUTHORIZATION {role}"):
                assert tried(app, statement)[0].startswith("42501")
        app.rows("SET ROLE hindsight_app")  # of which it is a member: it stays itself
        nothing_of_alices(world, tried(app, "SELECT content FROM hindsight.memory")[0])
        nothing_of_alices(
            world, tried(app, f"SELECT * FROM hindsight.recall('{world.bank}')")[0].replace(world.bank, "")
        )

    def test_temporary_tables_and_functions_in_the_place_of_ours(self, world: World, app: Database) -> None:
        app.rows("CREATE TEMP TABLE access (bank_id bigint, principal text, rights text, types text[])")
        app.rows("INSERT INTO access SELECT b, session_user, 'owner' FROM generate_series(1, 100) AS b")
        for function, result in (
            ("principal()", "text RETURN 'postgres'"),
            ("_rights(bigint)", "text RETURN 'owner'"),
            ("_open_bank(text, text, boolean)", "record RETURN ROW(1)"),
            ("pg_has_role(name, name, text)", "boolean RETURN true"),
        ):
            app.rows(
                f"CREATE FUNCTION pg_temp.{function} RETURNS {result.replace(' RETURN', ' LANGUAGE sql RETURN', 1)}"
            )
        app.rows("SET search_path = pg_temp, pg_catalog, hindsight, public")
        for statement in (
            "SELECT * FROM hindsight.status()",
            "SELECT content FROM hindsight.memory",
            f"SELECT * FROM hindsight.recall('{world.bank}', 'merger')",
        ):
            nothing_of_alices(world, tried(app, statement)[0].replace(world.bank, ""))

    def test_operators_of_ones_own_in_the_search_path(self, world: World, app: Database) -> None:
        app.rows("""CREATE FUNCTION pg_temp.leak(text, text) RETURNS boolean LANGUAGE plpgsql AS
                    $$ BEGIN RAISE NOTICE 'seen: % %', $1, $2; RETURN true; END $$""")
        app.rows("CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.leak)")
        app.rows("SET search_path = pg_temp, pg_catalog")
        for call in (f"recall('{world.bank}', 'merger')", "status()", f"get('{world.bank}', '{world.memory}')"):
            said, notices = tried(app, f"SELECT * FROM hindsight.{call}")
            assert notices == []
            nothing_of_alices(world, said.replace(world.bank, ""))

    def test_leaky_functions_in_a_condition(self, world: World, app: Database) -> None:
        app.rows("""CREATE FUNCTION pg_temp.leak(anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
                    $$ BEGIN RAISE NOTICE 'seen: %', $1; RETURN true; END $$""")
        for name in relations(world):
            if name in SHARED or name.startswith("turn_2"):
                continue
            said, notices = tried(app, f"SELECT 1 FROM hindsight.{name} AS t WHERE pg_temp.leak(to_jsonb(t))")
            nothing_of_alices(world, said, *notices)
        for condition in ("content::int = 1", "1 / (length(content) - length(content)) = 1", "content LIKE '%merger%'"):
            said, notices = tried(app, f"SELECT content FROM hindsight.memory WHERE {condition}")
            assert said == "[]", said

    @pytest.mark.parametrize(
        "source", ["hindsight.memory", "hindsight.live_memory", "(SELECT * FROM hindsight.event)", "hindsight.turn"]
    )
    def test_copy(self, world: World, app: Database, source: str) -> None:
        text = source if source.startswith("(") else f"(TABLE {source})"
        with app.connection.cursor().copy(f"COPY {text} TO STDOUT") as rows:
            nothing_of_alices(world, *(bytes(row).decode() for row in rows))
        assert tried(app, "COPY hindsight.memory FROM STDIN")[0].startswith(("42501", "0A000"))
        assert tried(app, "COPY hindsight.memory TO '/tmp/x'")[0].startswith("42501")

    def test_sequences(self, world: World, app: Database) -> None:
        names = [
            row["n"]
            for row in world.db.rows(
                "SELECT relname AS n FROM pg_class WHERE relnamespace = 'hindsight'::regnamespace AND relkind = 'S'"
            )
        ]
        assert names
        for name in names:
            for statement in (
                f"SELECT last_value FROM hindsight.{name}",
                f"SELECT nextval('hindsight.{name}')",
                f"SELECT setval('hindsight.{name}', 1)",
            ):
                assert tried(app, statement)[0].startswith("42501"), statement
        seen = app.rows("SELECT last_value FROM pg_sequences WHERE schemaname = 'hindsight'")
        assert all(row["last_value"] is None for row in seen)

    def test_statistics_of_columns(self, world: World, app: Database) -> None:
        assert (
            world.db.value("SELECT count(*) FROM pg_stats WHERE schemaname = 'hindsight' AND tablename = 'memory'") > 0
        )
        for view in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
            rows = app.rows(f"SELECT * FROM {view} WHERE schemaname = 'hindsight'")
            assert {row["tablename"] for row in rows} <= SHARED, view
        assert tried(app, "SELECT * FROM pg_statistic")[0].startswith("42501")

    def test_constraints_and_foreign_keys_as_an_oracle(self, world: World, app: Database) -> None:
        for statement in (
            "CREATE TEMP TABLE x (b bigint, m uuid, FOREIGN KEY (b, m) REFERENCES hindsight.memory)",
            f"INSERT INTO hindsight.memory (bank_id, memory_id) VALUES (1, '{world.memory}') ON CONFLICT DO NOTHING",
            "ALTER TABLE hindsight.memory DISABLE ROW LEVEL SECURITY",
            "DO $$ BEGIN LOCK TABLE hindsight.memory IN SHARE MODE; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON hindsight.memory EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "CREATE RULE r AS ON SELECT TO hindsight.bank DO INSTEAD SELECT 1",
            "CREATE STATISTICS s ON bank_id, slot FROM hindsight.memory",
        ):
            assert tried(app, statement)[0].startswith(("42501", "42P16", "0A000")), statement

    def test_errors_of_indexes_name_no_value(self, world: World, app: Database) -> None:
        """A unique index over all banks would tell of another's value: a name that is taken is told, and nothing else."""
        bank = str(app.value("SELECT name FROM hindsight.bank"))
        for given in (
            {"content": SECRET},
            {"content": "x y z", "slot": SLOT},
            {"content": "a b c", "session_id": SESSION},
        ):
            assert app.one("store", bank=bank, **given)["outcome"] == "stored"

    @pytest.mark.parametrize(
        "planner", ["", "enable_seqscan", "enable_indexscan,enable_bitmapscan", "enable_seqscan,enable_bitmapscan"]
    )
    @pytest.mark.parametrize(
        "condition",
        [
            "memory_id = '{memory}'",
            "content = '{secret}'",
            "digest = hindsight.content_digest_v1('{secret}')",
            "slot = '{slot}'",
        ],
    )
    def test_explain_analyze_tells_a_hit_from_a_miss_of_nobodys_row(
        self, world: World, app: Database, condition: str, planner: str
    ) -> None:
        plans = []
        for switch in filter(None, planner.split(",")):
            app.rows(f"SET {switch} = off")
        for memory, secret, slot in ((world.memory, SECRET, SLOT), (uuid.UUID(int=7), "guessed wrong", "no.such.slot")):
            asked = condition.format(memory=memory, secret=secret, slot=slot)
            rows = app.rows(
                f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT 1 FROM hindsight.memory WHERE {asked}"
            )
            plan = "\n".join(row["QUERY PLAN"] for row in rows)
            for told in (str(memory), secret, slot):
                plan = plan.replace(told, "…")
            plans.append(
                "\n".join(
                    line
                    for line in plan.splitlines()
                    if ("Cond:" not in line and "Filter:" not in line) or "Removed" in line
                )
            )
        app.rows("RESET ALL")
        assert plans[0] == plans[1]

    def test_a_bank_by_its_name_is_told_by_no_plan(self, world: World, app: Database) -> None:
        plans = []
        for name in (world.bank, "no-such-bank"):
            rows = app.rows(
                f"EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT 1 FROM hindsight.bank WHERE name = '{name}'"
            )
            plans.append("\n".join(row["QUERY PLAN"] for row in rows).replace(name, "…"))
        assert plans[0] == plans[1]


class TestHardened:
    def test_without_any_right_to_read_tables_the_functions_go_on(
        self, new_database: Callable[..., str], template: str, login: Callable[..., str]
    ) -> None:
        """What docs/deployment.md gives for those to whom totals and estimates are too much."""
        url = new_database(template)
        db = Database(url)
        db.rows(
            "REVOKE SELECT ON ALL TABLES IN SCHEMA hindsight FROM hindsight_app, hindsight_service, hindsight_reader"
        )
        app = Database(login(url, "hindsight_app"))
        app.call("create_bank", bank="b")
        memory = app.one("store", bank="b", content="The port is 22")["memory_id"]
        assert app.contents("b", "port") == ["The port is 22"]
        app.call("forget", bank="b", memory_id=memory, reason="asked to")
        assert tried(app, "SELECT * FROM hindsight.memory")[0].startswith("42501")
        assert tried(app, "EXPLAIN SELECT * FROM hindsight.live_memory")[0].startswith("42501")
        app.close()
        db.close()
