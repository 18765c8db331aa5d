"""A real PostgreSQL for every test: one embedded server, one migrated template database, copied where a test needs its own."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.rows import dict_row

from hindsight import embedded
from hindsight.database import migrate

os.environ.pop("DATABASE_URL", None)  # a developer's own database is not for tests
os.environ["HINDSIGHT_WORKER"] = "false"  # a server of one test must not do the work that another looks at
TEST_SERVER = os.environ.get("HINDSIGHT_TEST_SERVER")
"""Another server to test against: a superuser's URL of its database `postgres`, with the host in `?host=`."""


class Database:
    """A connection in autocommit, and `call`: a function of the schema, in named notation."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def call(self, function: str, **arguments: Any) -> list[dict[str, Any]]:
        terms = [f"{name} => %({name})s{CASTS.get(name, '')}" for name in arguments]
        return self.rows(f"SELECT * FROM hindsight.{function}({', '.join(terms)})", arguments)

    def one(self, function: str, **arguments: Any) -> dict[str, Any]:
        (row,) = self.call(function, **arguments)
        return row

    def rows(self, statement: str, parameters: Any = None) -> list[dict[str, Any]]:
        cursor = self.connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, parameters: Any = None) -> Any:
        return next(iter(self.rows(statement, parameters)[0].values()))

    def contents(self, bank: str, query: str = "", **arguments: Any) -> list[str]:
        """What recall finds, best first."""
        return [row["content"] for row in self.call("recall", bank=bank, query=query, **arguments)]

    def close(self) -> None:
        self.connection.close()


CASTS = {"embedding": "::vector", "metadata": "::jsonb", "tool_calls": "::jsonb", "turns": "::jsonb"}


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a server's database `postgres`, which is gone after the tests."""
    if TEST_SERVER:
        yield TEST_SERVER
        return
    directory = Path(tempfile.mkdtemp(prefix="hindsight-test-"))
    url = embedded.start(directory)
    socket = url.partition("?host=")[2]
    admin = f"postgresql://postgres@/postgres?host={socket}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")
    yield admin
    embedded.stop(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def new_database(server: str) -> Iterator[Callable[..., str]]:
    """Makes a database and returns its URL: empty, or a copy of a template."""
    made: list[str] = []

    def make(template: str = "template0") -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        made.append(name)
        return server.replace("/postgres?", f"/{name}?")

    yield make
    with psycopg.connect(server, autocommit=True) as connection:
        for name in made:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def template(new_database: Callable[..., str]) -> str:
    """The name of a migrated database to which nobody stays connected."""
    url = new_database()
    migrate(url)
    return url.partition("?")[0].rpartition("/")[2]


@pytest.fixture
def fresh_url(new_database: Callable[..., str], template: str) -> str:
    """A migrated database of the test's own."""
    return new_database(template)


@pytest.fixture(scope="session")
def shared_url(new_database: Callable[..., str], template: str) -> str:
    """A migrated database that tests share, each with banks of its own."""
    return new_database(template)


@pytest.fixture
def db(shared_url: str) -> Iterator[Database]:
    database = Database(shared_url)
    yield database
    database.close()


@pytest.fixture
def bank(db: Database) -> str:
    """A new bank in the shared database."""
    name = f"bank-{uuid.uuid4().hex[:10]}"
    db.call("create_bank", bank=name)
    return name


@pytest.fixture(scope="session")
def login(server: str) -> Callable[..., str]:
    """Makes a login role with the given memberships, and returns the URL with which it connects to a database."""

    def make(url: str, *memberships: str, options: str = "") -> str:
        name = f"login_{uuid.uuid4().hex[:10]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN {options}")
            for role in memberships:
                connection.execute(f"GRANT {role} TO {name}")
        return url.replace("postgres@", f"{quote(name)}@")

    return make


@pytest.fixture
def connect(shared_url: str, login: Callable[..., str]) -> Iterator[Callable[..., Database]]:
    """Connects to the shared database as a login of its own with the given memberships."""
    opened: list[Database] = []

    def make(*memberships: str) -> Database:
        opened.append(Database(login(shared_url, *memberships)))
        return opened[-1]

    yield make
    for database in opened:
        database.close()
