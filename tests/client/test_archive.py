"""Archives: old months of turns in files, and back."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hindsight.archiving import archive_file
from hindsight.errors import Conflict
from hindsight.sync_client import Hindsight
from tests.command import CommandLine
from tests.conftest import Database

SAID = ["记住：汇率接口每天凌晨更新", "The port is 49222", "好的 🚀", 'line\nbreak and "quotes" \\ back']


@pytest.fixture
def own(fresh_url: str) -> Iterator[Database]:
    """A database of the test's own: a month belongs to all banks of a database."""
    database = Database(fresh_url)
    yield database
    database.close()


@pytest.fixture
def hindsight(own: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "DATABASE_URL": own.url,
        "HINDSIGHT_EMBEDDING_PROVIDER": "none",
        "HINDSIGHT_BANK": "alice",
    }.items():
        monkeypatch.setenv(name, value)
    for bank in ("alice", "团队/search"):
        own.call("create_bank", bank=bank)
    return CommandLine(own.url, "alice", tmp_path, capsys)


def say(
    db: Database, bank: str, contents: list[str], month: str, session_id: str = "s1", *, distilled: bool = True
) -> None:
    """Logs turns as if it were a month of the past, which only the owner of the tables can."""
    for content in contents:
        db.call("log_turn", bank=bank, session_id=session_id, role="user", content=content, turn_id=uuid.uuid4().hex,
                tool_calls='{"a": null, "b": 1.5}', metadata='{"k": [1, null]}')  # fmt: skip
    db.rows("SELECT hindsight._open_month(%s::timestamptz)", (f"{month}-10",))
    db.rows(
        "UPDATE hindsight.turn SET logged_at = %s::timestamptz + sequence * interval '1 second', distilled_at = CASE WHEN %s THEN now() END "
        "WHERE logged_at > now() - interval '1 hour'",
        (f"{month}-10", distilled),
    )
    db.rows("UPDATE hindsight.session SET waiting = CASE WHEN %s THEN 0 ELSE waiting END, due_at = NULL", (distilled,))


def turns(db: Database) -> list[dict[str, Any]]:
    return db.rows("SELECT * FROM hindsight.turn ORDER BY bank_id, session_id, sequence")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def test_old_months_go_into_files_and_come_back_as_they_were(
    own: Database, hindsight: CommandLine, tmp_path: Path
) -> None:
    say(own, "alice", SAID, "2026-03")
    say(own, "团队/search", SAID[:2], "2026-03", "会话")
    say(own, "alice", ["later"], "2026-05")
    before = turns(own)
    ran = hindsight("archive", "--before", "2026-05", "--to", tmp_path / "cold", "--json")
    assert ran.code == 0, ran.err
    files = [Path(one["location"]) for one in ran.json["archived"]]
    assert [file.name[:18] for file in files] == ["turns-2026-03-alic", "turns-2026-03-团队_s"]
    assert sorted(file.name for file in (tmp_path / "cold").iterdir()) == sorted(file.name for file in files)
    assert [line["content"] for line in lines(files[0])] == SAID
    assert [one["content"] for one in turns(own)] == ["later"]
    assert own.value("SELECT to_regclass('hindsight.turn_2026_03')") is None

    again = hindsight("archive", "--before", "2026-05", "--to", tmp_path / "cold")
    assert (again.code, again.out) == (0, "no month to archive\n")

    assert hindsight("import", files[0]).code == 0
    assert hindsight("import", files[1], "--bank", "团队/search").code == 0
    assert turns(own) == before
    assert own.rows("SELECT waiting, due_at FROM hindsight.session WHERE waiting <> 0 OR due_at IS NOT NULL") == []
    assert hindsight("import", files[0], "--json").json["turns"] == {"logged already": len(SAID)}
    assert turns(own) == before


def test_a_month_that_came_back_can_be_archived_anew(own: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    say(own, "alice", SAID, "2026-03")
    (first,) = hindsight("archive", "--before", "2026-04", "--to", tmp_path / "a", "--json").json["archived"]
    assert hindsight("import", first["location"]).code == 0
    (second,) = hindsight("archive", "--before", "2026-04", "--to", tmp_path / "b", "--json").json["archived"]
    assert lines(Path(second["location"])) == lines(Path(first["location"]))
    assert (second["digest"], second["turns"]) == (first["digest"], len(SAID))
    assert turns(own) == []


def test_a_transcript_that_is_imported_again_after_it_was_archived_makes_no_second_copy(
    own: Database, hindsight: CommandLine, tmp_path: Path
) -> None:
    transcript = tmp_path / "talk.jsonl"
    transcript.write_text(
        "".join(json.dumps({"session_id": "s1", "role": "user", "content": one}) + "\n" for one in SAID)
    )
    hindsight("import", transcript, "--no-close")
    say(own, "alice", [], "2026-03")
    hindsight("archive", "--before", "2026-04", "--to", tmp_path)
    assert turns(own) == []
    assert hindsight("import", transcript, "--json").json["turns"] == {"logged already": len(SAID)}
    assert turns(own) == []
    assert own.one("log_turn", bank="alice", session_id="s1", role="user", content="new")["log_turn"] == len(SAID) + 1


def test_a_memory_says_in_which_file_its_turns_are(own: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    say(own, "alice", SAID, "2026-03")
    say(own, "alice", ["another month"], "2026-04")
    memory_id = own.one("store", bank="alice", content="The port is 49222")["memory_id"]
    own.rows("INSERT INTO hindsight.memory_turn SELECT bank_id, memory_id, 's1', 2 FROM hindsight.memory")
    assert own.one("sources", bank="alice", memory_id=memory_id)["content"] == SAID[1]
    archived = hindsight("archive", "--before", "2026-05", "--to", tmp_path, "--json").json["archived"]
    (source,) = own.call("sources", bank="alice", memory_id=memory_id)
    assert (source["sequence"], source["content"]) == (2, None)
    assert source["archived_in"] == [archived[0]["location"]]
    erased = {
        row["erased"]: row["rows_erased"]
        for row in own.call("erase_memory", bank="alice", memory_id=memory_id, reason="asked to")
    }
    for one in archived:
        assert erased[f"not erased, to be looked through: {one['location']}"] == one["turns"]
    rows = {row["erased"]: row["rows_erased"] for row in own.call("erase_bank", bank="alice", reason="asked to")}
    assert f"not erased, to be looked through: {archived[0]['location']}" in rows
    assert own.rows("SELECT 1 FROM hindsight.session_archive UNION ALL SELECT 1 FROM hindsight.turn_archive") == []
    (receipt,) = own.rows("SELECT after FROM hindsight.event WHERE action = 'erase_bank'")
    assert len(receipt["after"]["archives"]) == 2


def test_a_month_with_turns_that_are_not_distilled_stays(own: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    say(own, "alice", SAID, "2026-03", distilled=False)
    ran = hindsight("archive", "--before", "2026-04", "--to", tmp_path)
    assert (ran.code, "4 of 'alice'" in ran.err) == (1, True)
    assert len(turns(own)) == len(SAID)
    with Hindsight.connect(own.url) as client:
        file = archive_file(client, "alice", own.value("SELECT '2026-03-01'::date"), tmp_path)
    with pytest.raises(psycopg.Error, match="not distilled") as caught:
        own.rows("SELECT * FROM hindsight.archive_month('2026-03-01', %s)", (json.dumps([file.as_dict()]),))
    assert caught.value.sqlstate == "HM006"
    own.call("set_distilling", bank="alice", mode="off")
    assert hindsight("archive", "--before", "2026-04", "--to", tmp_path).code == 0
    assert own.value("SELECT waiting FROM hindsight.session") == 0


def test_the_month_that_is_not_over_stays(own: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    own.call("log_turn", bank="alice", session_id="s1", role="user", content="now")
    ran = hindsight("archive", "--before", "9999-01", "--to", tmp_path)
    assert (ran.code, "is not over" in ran.err) == (1, True)
    with pytest.raises(psycopg.Error, match="is not over"):
        own.rows("SELECT * FROM hindsight.archive_month(now()::date, '[]')")
    assert len(turns(own)) == 1


@pytest.mark.parametrize("spoil", [
    lambda files: files[:1],
    lambda files: [{**files[0], "turns": 3}, files[1]],
    lambda files: [{**files[0], "checksum": "17"}, files[1]],
    lambda files: [{**files[0], "location": ""}, files[1]],
    lambda files: [{**files[0], "digest": "abc"}, files[1]],
    lambda files: [*files, {**files[0], "bank": "bob"}],
    lambda files: [],
])  # fmt: skip
def test_nothing_is_dropped_unless_every_turn_is_in_a_file(
    own: Database, hindsight: CommandLine, tmp_path: Path, spoil: Callable[[list[dict[str, Any]]], Any]
) -> None:
    say(own, "alice", SAID, "2026-03")
    say(own, "团队/search", SAID, "2026-03")
    month = own.value("SELECT '2026-03-01'::date")
    with Hindsight.connect(own.url) as client:
        files = [archive_file(client, bank, month, tmp_path).as_dict() for bank in ("alice", "团队/search")]
        with pytest.raises(Conflict, match="files do not hold the turns"):
            client.archive_month(month, spoil(files))
        assert len(turns(own)) == 2 * len(SAID)
        client.archive_month(month, files)
    assert turns(own) == []


@pytest.mark.parametrize("change", [
    "SELECT hindsight.log_turn('alice', 's1', 'user', 'late')",
    "UPDATE hindsight.turn SET content = '[erased]' WHERE sequence = 2",
    "DELETE FROM hindsight.turn WHERE sequence = 3",
])  # fmt: skip
def test_a_turn_that_changes_while_a_month_is_archived_keeps_it_from_being_dropped(
    own: Database, hindsight: CommandLine, tmp_path: Path, change: str
) -> None:
    say(own, "alice", SAID, "2026-03")
    month = own.value("SELECT '2026-03-01'::date")
    writer = Database(own.url)
    with ThreadPoolExecutor() as pool, Hindsight.connect(own.url) as client:
        file = archive_file(client, "alice", month, tmp_path).as_dict()
        writer.rows("BEGIN")
        writer.rows(change)
        writer.rows("UPDATE hindsight.turn SET logged_at = '2026-03-11' WHERE content = 'late'")
        archiving = pool.submit(client.archive_month, month, [file])
        while not own.value(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ):
            assert not archiving.done()
        writer.rows("COMMIT")
        with pytest.raises(Conflict, match="changed meanwhile"):
            archiving.result()
        assert own.value("SELECT count(*) FROM hindsight.turn_archive") == 0
        assert len(turns(own)) >= 3
    writer.close()


def test_a_month_is_not_archived_from_an_old_snapshot(own: Database, hindsight: CommandLine) -> None:
    say(own, "alice", SAID, "2026-03")
    own.rows("SET default_transaction_isolation = 'repeatable read'")
    with pytest.raises(psycopg.Error, match="repeatable read"):
        own.rows("SELECT * FROM hindsight.archive_month('2026-03-01', '[]')")


def test_a_file_that_is_there_is_never_overwritten(own: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    say(own, "alice", SAID, "2026-03")
    other = tmp_path / "turns-2026-03-alice.jsonl.gz"
    with gzip.open(other, "wt") as stream:
        stream.write('{"session_id": "x"}\n')
    content = other.read_bytes()
    ran = hindsight("archive", "--before", "2026-04", "--to", tmp_path)
    assert (ran.code, "do not hold" in ran.err) == (4, True)
    other.write_bytes(b"\x1f\x8b\x08 damaged")
    assert "damaged" in hindsight("archive", "--before", "2026-04", "--to", tmp_path).err
    other.write_bytes(content)
    assert other.read_bytes() == content
    assert len(turns(own)) == len(SAID)


def test_one_banks_files_alone_drop_nothing(own: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    say(own, "alice", SAID, "2026-03")
    say(own, "团队/search", SAID, "2026-03")
    ran = hindsight("archive", "--before", "2026-04", "--to", tmp_path, "--bank", "alice", "--json")
    assert [one["bank"] for one in ran.json["archived"]] == ["alice"]
    assert len(turns(own)) == 2 * len(SAID)
    assert hindsight("archive", "--before", "2026-04", "--to", tmp_path).code == 0
    assert turns(own) == []


def test_archiving_that_is_killed_again_and_again_loses_nothing(
    own: Database, hindsight: CommandLine, tmp_path: Path
) -> None:
    for month in ("2026-01", "2026-02", "2026-03"):
        say(own, "alice", [f"{month} {number} 记住" for number in range(40)], month)
    before = turns(own)
    command = ("archive", "--before", "2026-04", "--to", tmp_path)
    kills = sum(hindsight.killed_after(0.9 + 0.08 * attempt, *command) for attempt in range(8))
    assert kills >= 3
    assert hindsight(*command).code == 0
    assert turns(own) == []
    assert not list(tmp_path.glob(".*part"))
    for path in sorted(tmp_path.glob("*.gz")):
        assert hindsight("import", path).code == 0
    assert turns(own) == before


def test_only_an_operator_archives(own: Database, login: Callable[..., str]) -> None:
    own.call("create_bank", bank="alice")
    say(own, "alice", SAID, "2026-03")
    user = Database(login(own.url, "hindsight_app"))
    own.call("grant_access", bank="alice", principal=user.value("SELECT session_user"), rights="owner")
    for statement in ("turn_months()", "month_lines('alice', '2026-03-01')", "archive_month('2026-03-01', '[]')"):
        with pytest.raises(psycopg.Error) as caught:
            user.rows(f"SELECT * FROM hindsight.{statement}")
        assert caught.value.sqlstate == "HM003"
    user.close()


@pytest.mark.parametrize("month", ["2026-13", "June", "2026", "0000-01", "2026-06-31x"])
def test_a_month_that_is_none_is_refused(hindsight: CommandLine, tmp_path: Path, month: str) -> None:
    ran = hindsight("archive", "--before", month, "--to", tmp_path)
    assert (ran.code, "--before takes a month" in ran.err) == (2, True)
