"""How Alembic reaches the database: one transaction, one advisory lock, as the schema's owner."""

import re
import warnings
from logging.config import fileConfig
from pathlib import Path
from typing import Any

from alembic import context
from alembic.autogenerate import comparators
from alembic.operations.ops import ExecuteSQLOp
from sqlalchemy import create_engine, pool

from hindsight import models
from hindsight.database import database_url, execute_script, function_drift
from hindsight.postgres_url import sqlalchemy_url

# Alembic only warns of generated columns, and takes a schema's name for a difference: see compare_functions.
warnings.filterwarnings("ignore", "Computed default on")
config = context.config
if not config.attributes.get("quiet"):
    fileConfig(str(config.config_file_name), disable_existing_loggers=False)

PREPARE = (Path(__file__).parent / "prepare.sql").read_text(encoding="utf-8")
LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.migrate', 0));"


def of_this_schema(name: str | None, kind: str, parents: Any) -> bool:
    """The models describe the schema `hindsight`; functions make a model's index, and a month's partition of turns."""
    if kind == "schema":
        return name == "hindsight"
    if kind == "table":
        return not re.fullmatch(r"turn_\d{4}_\d{2}", name or "")
    return not (kind == "index" and re.match(r"(memory_embedding|next_embedding)_\d+_idx$", name or ""))


GENERATED = """
    SELECT c.relname, a.attname, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attribute AS a
    JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE a.attgenerated = 's' AND c.relnamespace = 'hindsight'::regnamespace
"""


class Drift(ExecuteSQLOp):
    """What differs in the database, as `alembic check` shows it."""

    def to_diff_tuple(self) -> tuple[str, str]:
        return ("drift", self.sqltext)

    def reverse(self) -> "Drift":
        return self


@comparators.dispatch_for("schema")
def compare_functions(autogenerate: Any, upgrade_ops: Any, schemas: Any) -> None:
    """Makes `alembic check` report a function that differs from `sql/`, or a generated column from its model."""
    found = function_drift(autogenerate.connection)
    for table, column, expression in autogenerate.connection.exec_driver_sql(GENERATED):
        computed = models.Base.metadata.tables[f"hindsight.{table}"].columns[column].computed
        if computed is None or str(computed.sqltext).replace("hindsight.", "") != expression.replace("hindsight.", ""):
            found.append(f"generated column {table}.{column} differs from its model: {expression}")
    upgrade_ops.ops.extend(Drift(f"-- {sentence}") for sentence in found)


def configure(**target: Any) -> None:
    context.configure(
        target_metadata=models.Base.metadata,
        version_table_schema="hindsight",
        include_schemas=True,
        include_name=of_this_schema,
        compare_type=True,
        compare_server_default=True,
        **target,
    )


def prepare() -> None:
    options = context.get_x_argument(as_dictionary=True)
    execute_script(context.get_context(), LOCK)
    execute_script(context.get_context(), PREPARE)
    if options.get("drop-memories") == "yes":
        execute_script(context.get_context(), "SET LOCAL hindsight.drop_memories = 'yes';")


def run_offline() -> None:
    configure(dialect_name="postgresql", transactional_ddl=True)
    with context.begin_transaction():
        prepare()
        context.run_migrations()


def run_online() -> None:
    url = sqlalchemy_url(config.attributes.get("url") or database_url(), "psycopg")
    engine = create_engine(url, poolclass=pool.NullPool)
    engine.dialect.ischema_names |= {
        "halfvec": models.HalfVector,
        "vector": models.Vector,
        "xid8": models.TransactionId,
    }
    with engine.connect() as connection, connection.begin():
        configure(connection=connection)
        prepare()
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


if context.is_offline_mode():
    run_offline()
else:
    run_online()
