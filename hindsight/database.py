"""The database: which one it is, and how its schema is deployed and compared.

`sql/` and `migrations/` lie at the root of the repository, and inside the package in an installed wheel.
"""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hindsight.config import Settings, load_settings

if TYPE_CHECKING:  # a quarter of a second, which only migrations need
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext

_PACKAGED = Path(__file__).parent / "deploy"
DEPLOY = _PACKAGED if _PACKAGED.exists() else Path(__file__).parent.parent
"""The directory of `alembic.ini`, `migrations/` and `sql/`."""

FUNCTIONS = """
    SELECT p.oid::regprocedure::text, p.proname, pg_get_functiondef(p.oid), obj_description(p.oid)
    FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'hindsight'::regnamespace
"""


def database_url(settings: Settings | None = None) -> str:
    """The configured database, else that of the embedded server, which is started if it does not run.

    Raises:
        EmbeddedUnavailable: no database is configured, and the extra `embedded` is not installed.
    """
    settings = settings or load_settings()
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    from hindsight import embedded  # an extra

    return embedded.start(settings.data_dir)


def alembic_config(url: str | None = None, **attributes: Any) -> Config:
    """Alembic's configuration for this schema. A URL given here wins over the settings."""
    from alembic.config import Config

    config = Config(DEPLOY / "alembic.ini", stdout=sys.stdout)
    config.attributes.update(attributes, url=url)
    return config


def migrate(url: str | None = None, revision: str = "head") -> None:
    """Brings the schema to a revision, as `alembic upgrade` does. Safe to run twice, and by two at once."""
    from alembic import command

    command.upgrade(alembic_config(url, quiet=True), revision)


def migration_script(revision: str = "head") -> str:
    """The SQL that a DBA can run with psql instead of `migrate`; it asks no database."""
    from alembic import command

    script = io.StringIO()
    config = alembic_config(quiet=True)
    config.output_buffer = script
    command.upgrade(config, revision, sql=True)
    return script.getvalue()


def head() -> str | None:
    """The newest revision of the schema that this version of Hindsight knows."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(alembic_config()).get_current_head()


def run_sql(*patterns: str) -> None:
    """Runs files of `migrations/` within a revision, each pattern's in the order of their names."""
    from alembic import op

    for pattern in patterns:
        for path in sorted((DEPLOY / "migrations").glob(pattern)):
            execute_script(op.get_context(), path.read_text(encoding="utf-8"))


def execute_script(context: MigrationContext, script: str) -> None:
    """Runs a script in a migration, or prints it where Alembic only prints (`--sql`)."""
    if context.as_sql:
        context.impl.static_output(script)
    else:
        run_script(context.connection, script)


def run_script(connection: Connection | None, script: str) -> None:
    """Runs any number of statements as they are: a `%` or `:` in them is theirs."""
    if connection is not None:
        connection.exec_driver_sql(script, execution_options={"no_parameters": True})


def function_drift(connection: Connection) -> list[str]:
    """How the functions in the database differ from `sql/`: a sentence for each, none when they agree.

    Runs `sql/` inside a savepoint, compares what PostgreSQL makes of it with what was there, and takes it back.
    """
    script = "\n".join(path.read_text(encoding="utf-8") for path in sorted((DEPLOY / "sql").glob("*.sql")))
    before = {row[0]: row[1:] for row in connection.exec_driver_sql(FUNCTIONS)}
    savepoint = connection.begin_nested()
    try:
        run_script(connection, script)
        after = {row[0]: row[1:] for row in connection.exec_driver_sql(FUNCTIONS)}
    except DBAPIError as error:
        return [f"sql/ can't be applied over this schema: {error.orig}"]
    finally:
        savepoint.rollback()
    defined = Counter(re.findall(r"^CREATE OR REPLACE (?:FUNCTION|PROCEDURE) hindsight\.(\w+)", script, re.MULTILINE))
    surplus = Counter(row[0] for row in after.values()) - defined
    found = [f"function {name} is missing" for name in after.keys() - before.keys()]
    found += [f"a function {name} is not in sql/" for name in surplus]
    found += [f"function {name} differs from sql/" for name, row in before.items() if after[name] != row]
    return sorted(found)
