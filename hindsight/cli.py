"""The command line: `hindsight COMMAND`. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from sqlalchemy.exc import SQLAlchemyError

from hindsight import errors, tables
from hindsight.access_commands import access
from hindsight.archive_commands import archive, export
from hindsight.audit_commands import audit
from hindsight.calls import translated
from hindsight.command import (
    AsJson,
    database_name,
    exit_code,
    note,
    show,
)
from hindsight.config import load_settings
from hindsight.database import database_url, head, migrate, migration_script
from hindsight.defence_commands import lessons, quarantine
from hindsight.embedding import embedding_provider
from hindsight.embedding_commands import embed, reembed
from hindsight.evaluation_commands import eval_recall
from hindsight.import_commands import import_files
from hindsight.life_commands import complete, confirm, diff, forget, history, pending, reject, restore, state
from hindsight.measuring_commands import bench_recall, stress_memories
from hindsight.memory_commands import get, recall, should_recall, store
from hindsight.postgres_url import sqlalchemy_url
from hindsight.redaction_commands import redaction
from hindsight.sync_client import Hindsight
from hindsight.token_commands import token
from hindsight.tuning_commands import calibrate, index
from hindsight.upkeep_commands import erase, maintain, policy, usage, verify
from hindsight.work_commands import distilling, queue, reflect, worker

HELP = """Long-term memory for agents, inside one PostgreSQL database.

The database is DATABASE_URL; without one, an embedded PostgreSQL is started.
Settings come from the environment and from .env: see docs/configuration.md.

Exit codes:
  0    done
  1    recall found nothing, should-recall says no, audit or verify found
       something; or something in the demo or under stress did not hold
  2    the command line, a value or a setting is wrong
  3    no such bank, memory or model
  4    a conflict with what is stored
  5    access denied
  69   the database or the embedding model can't be reached, or the
       schema is not at head
  70   anything else
  130  interrupted"""

VERSION = importlib.metadata.version("hindsight-memory")

app = App(
    name="hindsight",
    help=HELP,
    help_format="plaintext",
    version=VERSION,
    default_parameter=Parameter(negative=""),
    result_action="return_value",
)

GROUPS: dict[str, tuple[Callable[..., object], ...]] = {
    "Memories": (store, recall, should_recall, get, history, forget, restore),
    "Belief and the past": (pending, quarantine, lessons, confirm, reject, complete, state, diff),
    "Conversations": (worker, queue, distilling),
    "The upkeep of a bank": (policy, redaction, maintain, audit, reflect, usage, verify, erase),
}
for group, commands in GROUPS.items():
    for command in commands:
        app.command(command, group=group)
app.command(import_files, name="import", group="Conversations and documents")
app.command(archive, group="Conversations and documents")
app.command(export, group="Conversations and documents")
app.command(eval_recall, name="eval")
app.command(bench_recall, name="bench")
app.command(stress_memories, name="stress")
app.command(access)
app.command(token)
for command in (embed, reembed, calibrate, index):
    app.command(command)


@app.command
def status(*, as_json: AsJson = False) -> int:
    """Show the database, its versions, the embedding model, and what each bank holds."""
    settings = load_settings()
    with Hindsight.connect(settings=settings) as client:
        versions, banks, newest = client.versions(), client.status(), head()
        model = client.embedder.model if client.embedder else None
    at_head = versions.revision == newest
    report = {
        "database": database_name(settings),
        "versions": {"hindsight": VERSION, "postgresql": versions.postgresql, "pgvector": versions.pgvector},
        "schema": {"revision": versions.revision, "head": newest, "at_head": at_head},
        "embedding": {"provider": embedding_provider(settings), "model": model},
        "banks": banks,
    }
    lines = {
        "database": database_name(settings),
        "versions": f"Hindsight {VERSION}, PostgreSQL {versions.postgresql}, pgvector {versions.pgvector}",
        "schema": f"{versions.revision or 'never migrated'}, "
        + ("which is head" if at_head else f"not at head ({newest}): run hindsight migrate"),
        "embedding model": f"{model} ({embedding_provider(settings)})" if model else "none: words and recency only",
    }
    if not banks:
        lines["banks"] = "none yet: hindsight store makes one"
    show(as_json, report, tables.pairs_table(lines), *([tables.bank_table(banks)] if banks else []))
    for bank in banks:
        if bank.unembedded and model:
            waiting = f"{bank.unembedded} memories wait for an embedding"
            note(f"bank {bank.bank!r}: {waiting}: hindsight embed --bank {bank.bank!r}")
        if bank.model not in (None, model) and model:
            note(f"bank {bank.bank!r} holds embeddings of {bank.model!r}: hindsight reembed --bank {bank.bank!r}")
    return 0 if at_head else 69


@app.command(name="migrate")
def migrate_schema(
    *,
    sql: Annotated[bool, Parameter(help="Print the script for a DBA instead; no database is asked.")] = False,
    revision: Annotated[str, Parameter(help="The revision to migrate to.")] = "head",
    as_json: AsJson = False,
) -> None:
    """Bring the schema `hindsight` of the database to a revision. Safe to run twice, and by two at once."""
    from alembic.util import CommandError

    try:
        if sql:
            sys.stdout.write(migration_script(revision))
            return
        settings = load_settings()
        migrate(database_url(settings), revision)
    except CommandError as error:
        raise errors.ConfigurationError(str(error)) from None
    except SQLAlchemyError as error:
        raise translated(error) from None
    with Hindsight.connect(settings=settings) as client:
        report = {"database": database_name(settings), "revision": client.versions().revision, "head": head()}
    show(as_json, report, f"schema hindsight is at {report['revision']} in {report['database']}")


@app.command
def serve(
    *,
    host: Annotated[str | None, Parameter(help="HINDSIGHT_HOST, else 127.0.0.1.")] = None,
    port: Annotated[int | None, Parameter(help="HINDSIGHT_PORT, else 8080.")] = None,
) -> None:
    """Serve MCP (/mcp, /sse), REST (/api) and /health over HTTP."""
    from hindsight.http_server import serve as serve_http

    given = {"host": host, "port": port}
    serve_http(load_settings(**{name: value for name, value in given.items() if value is not None}))


@app.command
def mcp() -> None:
    """Serve MCP over standard input and output, for an agent that starts its own server."""
    from hindsight.mcp_server import main as serve_stdio

    serve_stdio()


@app.command(name="psql")
def open_psql(
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True, help="Given to psql as they are.")],
) -> int:
    """Open psql on the database; the embedded server runs as long as it does."""
    url = sqlalchemy_url(database_url(load_settings()), "psycopg").set(drivername="postgresql")
    environment = {**os.environ, **({"PGPASSWORD": str(url.password)} if url.password else {})}  # not for all to see
    shown = url.set(password="").render_as_string(hide_password=False)
    program = shutil.which("psql")
    if program is None:
        from hindsight.embedded import installed_programs  # an extra

        program = str(installed_programs() / "bin" / "psql")
    return subprocess.run([program, shown, *arguments], env=environment, check=False).returncode  # noqa: S603


@app.command
def demo(
    *,
    here: Annotated[bool, Parameter(help="Run it in the configured database, in a bank of its own.")] = False,
) -> int:
    """Tell a short story on real text: stored, recalled, corrected, forgotten, and remembered as of before.

    It runs in an embedded PostgreSQL of its own, which is removed at the end.
    """
    from hindsight.demo import tell

    return tell(in_configured_database=here)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. Errors become one line on standard error."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        note(f"{error} See: hindsight {' '.join([*(error.command_chain or []), '--help'])}")
        return 2
    except errors.UnknownBank as error:
        note(f"{error.message}. hindsight store makes a bank; the owner of one can give you access")
        return exit_code(error)
    except errors.HindsightError as error:
        note(str(error))
        return exit_code(error)
    except BrokenPipeError:  # whoever read has had enough: head, less
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        note(f"unexpected {type(error).__name__}: {error}")
        return 70


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.exit(run())


if __name__ == "__main__":
    main()
