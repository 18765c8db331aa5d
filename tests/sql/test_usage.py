"""What language models use is counted in the database, by bank, day, purpose and model."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hindsight import AsyncHindsight, Hindsight, InvalidArgument, Settings, cli
from tests.conftest import Database

TODAY = datetime.now(UTC).date()


def refused(sqlstate: str, work: Callable[[], object]) -> str:
    with pytest.raises(psycopg.Error) as caught:
        work()
    assert caught.value.sqlstate == sqlstate, caught.value
    return str(caught.value.diag.message_primary)


def test_calls_of_a_day_are_summed_by_purpose_and_model(db: Database, bank: str) -> None:
    for purpose, model, tokens in [("distil", "gemma", 100), ("distil", "gemma", 50), ("judge", "通义", 7)]:
        db.call("note_usage", bank=bank, purpose=purpose, model=model, prompt_tokens=tokens, completion_tokens=5)
    db.call("note_usage", bank=bank, purpose="distil", model="gemma", calls=3, failures=2)
    day = {"day": db.value("SELECT (now() AT TIME ZONE 'UTC')::date")}
    assert db.call("usage", bank=bank) == [
        {**day, "purpose": "distil", "model": "gemma", "calls": 5, "prompt_tokens": 150, "completion_tokens": 10, "failures": 2},
        {**day, "purpose": "judge", "model": "通义", "calls": 1, "prompt_tokens": 7, "completion_tokens": 5, "failures": 0},
    ]  # fmt: skip


def test_usage_is_shown_from_a_day_on_the_latest_first(db: Database, bank: str) -> None:
    for days in (0, 3, 40):
        db.rows(
            "INSERT INTO hindsight.model_usage SELECT bank_id, %s, 'distil', 'gemma', 1, 10, 1, 0 "
            "FROM hindsight.bank WHERE name = %s",
            (TODAY - timedelta(days=days), bank),
        )
    days = [row["day"] for row in db.call("usage", bank=bank)]
    assert days == [TODAY - timedelta(days=n) for n in (0, 3, 40)]
    since = datetime.combine(TODAY - timedelta(days=3), datetime.max.time(), UTC)
    assert [row["day"] for row in db.call("usage", bank=bank, since=since)] == days[:2]


def test_a_day_is_that_of_utc_in_every_zone(db: Database, bank: str) -> None:
    for zone in ("Asia/Shanghai", "America/Los_Angeles", "UTC"):
        db.rows(f"SET TIME ZONE '{zone}'")
        db.call("note_usage", bank=bank, purpose="distil", model="gemma", prompt_tokens=1)
    assert [row["calls"] for row in db.call("usage", bank=bank)] == [3]
    assert db.one("tokens_left", bank=bank, budget=10) == {"tokens_left": 7}


def test_what_is_left_of_a_budget_is_that_of_the_bank_and_the_day(db: Database, bank: str) -> None:
    other = f"bank-{uuid.uuid4().hex[:10]}"
    db.call("create_bank", bank=other)
    db.call("note_usage", bank=other, purpose="distil", model="gemma", prompt_tokens=1000)
    db.rows(
        "INSERT INTO hindsight.model_usage SELECT bank_id, %s, 'distil', 'gemma', 1, 500, 0, 0 FROM hindsight.bank WHERE name = %s",
        (TODAY - timedelta(days=1), bank),
    )
    assert db.one("tokens_left", bank=bank, budget=100) == {"tokens_left": 100}
    db.call("note_usage", bank=bank, purpose="distil", model="gemma", prompt_tokens=60, completion_tokens=10)
    db.call("note_usage", bank=bank, purpose="judge", model="other", prompt_tokens=20)
    assert db.one("tokens_left", bank=bank, budget=100) == {"tokens_left": 10}
    assert db.one("tokens_left", bank=bank, budget=50) == {"tokens_left": 0}
    assert db.value("SELECT hindsight.tokens_left(%s, NULL)", (bank,)) is None


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        ({"purpose": " "}, "HM005"),
        ({"purpose": "x" * 51}, "HM005"),
        ({"model": ""}, "HM005"),
        ({"model": "模" * 201}, "HM005"),
        ({"calls": -1}, "HM004"),
        ({"prompt_tokens": -1}, "HM004"),
        ({"failures": None}, "HM004"),
        ({"bank": "no-such-bank"}, "HM001"),
    ],
)
def test_what_is_no_usage_is_refused(db: Database, bank: str, arguments: dict[str, Any], sqlstate: str) -> None:
    given = {"bank": bank, "purpose": "distil", "model": "gemma", **arguments}
    refused(sqlstate, lambda: db.call("note_usage", **given))
    assert db.call("usage", bank=bank) == []


def test_a_budget_below_nothing_is_refused(db: Database, bank: str) -> None:
    assert "budget must be 0 or more, got -1" in refused("HM004", lambda: db.call("tokens_left", bank=bank, budget=-1))


def test_many_who_note_at_once_are_all_counted(shared_url: str, bank: str, db: Database) -> None:
    def note() -> None:
        own = Database(shared_url)
        for _ in range(20):
            own.call("note_usage", bank=bank, purpose="distil", model="gemma", prompt_tokens=2)
        own.close()

    threads = [threading.Thread(target=note) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (row,) = db.call("usage", bank=bank)
    assert (row["calls"], row["prompt_tokens"]) == (100, 200)


def test_a_reader_sees_usage_and_only_a_writer_notes_or_spends(
    shared_url: str, login: Callable[..., str], db: Database, bank: str
) -> None:
    reader = Database(login(shared_url, "hindsight_app"))
    db.call("grant_access", bank=bank, principal=reader.value("SELECT session_user"), rights="reader")
    db.call("note_usage", bank=bank, purpose="distil", model="gemma")
    assert [row["calls"] for row in reader.call("usage", bank=bank)] == [1]
    refused("HM003", lambda: reader.call("note_usage", bank=bank, purpose="distil", model="gemma"))
    refused("HM003", lambda: reader.call("tokens_left", bank=bank, budget=1))
    reader.close()


async def test_both_clients_note_and_show_usage(shared_url: str, bank: str) -> None:
    settings = Settings(embedding_provider="none")
    with Hindsight.connect(shared_url, settings=settings) as client:
        client.note_usage(bank, "distil", "gemma", prompt_tokens=12, completion_tokens=3)
        assert client.tokens_left(bank, 20) == 5
        assert client.tokens_left(bank, 0) == 0
        assert client.tokens_left(bank, None) is None
        with pytest.raises(InvalidArgument, match="calls must be a whole number"):
            client.note_usage(bank, "distil", "gemma", calls=1.5)  # type: ignore[arg-type]
    async with await AsyncHindsight.connect(shared_url, settings=settings) as client_:
        (used,) = await client_.usage(bank, since=datetime.now(UTC))
        assert (used.purpose, used.calls, used.prompt_tokens, used.failures) == ("distil", 1, 12, 0)
        assert isinstance(used.day, date)
        assert await client_.tokens_left(bank, 2_000_000_000) == 1_999_999_985


def test_the_command_shows_usage_and_its_sum(
    shared_url: str, db: Database, bank: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", shared_url)
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "none")
    assert cli.run(["usage", "--bank", bank]) == 0
    assert capsys.readouterr().out == "nothing was used\n"
    db.call("note_usage", bank=bank, purpose="distil", model="gemma", prompt_tokens=120, completion_tokens=30)
    db.call("note_usage", bank=bank, purpose="judge", model="通义", prompt_tokens=7, failures=1)
    assert cli.run(["usage", "--bank", bank]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "day purpose model calls prompt tokens completion tokens failures"
    assert lines[1].endswith("distil gemma 1 120 30 0")
    assert lines[-1] == "all 2 127 30 1"
    assert cli.run(["usage", "--bank", bank, "--json"]) == 0
    assert [row["model"] for row in json.loads(capsys.readouterr().out)] == ["gemma", "通义"]
    assert cli.run(["usage", "--bank", bank, "--since", "tomorrow"]) == 2
