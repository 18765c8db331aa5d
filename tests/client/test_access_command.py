"""hindsight access: who may use a bank, from the command line."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.command import CommandLine
from tests.conftest import Database


@pytest.fixture
def hindsight(
    shared_url: str, bank: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", shared_url)
    monkeypatch.setenv("HINDSIGHT_BANK", bank)
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "none")
    return CommandLine(shared_url, bank, tmp_path, capsys)


def held(hindsight: CommandLine) -> dict[str, Any]:
    return {one["principal"]: (one["rights"], one["types"]) for one in hindsight("access", "list", "--json").json}


def test_rights_are_given_shown_changed_and_taken(hindsight: CommandLine, db: Database, bank: str) -> None:
    me = db.value("SELECT session_user")
    given = hindsight("access", "grant", "agent-7", "reader")
    assert (given.code, given.out) == (0, f"agent-7 is reader of {bank}\n")
    assert held(hindsight) == {me: ("owner", None), "agent-7": ("reader", None)}
    assert hindsight("access", "grant", "代理", "writer", "--types", "hypothesis,todo", "--json").json == {
        "bank": bank,
        "principal": "代理",
        "rights": "writer",
        "types": ["hypothesis", "todo"],
    }
    shown = hindsight("access", "list").out
    assert [line.split()[:3] for line in shown.splitlines() if "代理" in line] == [["代理", "writer", "hypothesis,"]]
    assert hindsight("access", "revoke", "agent-7").out == "revoked\n"
    again = hindsight("access", "revoke", "agent-7", "--json")
    assert (again.code, again.json) == (0, {"revoked": False})
    assert held(hindsight) == {me: ("owner", None), "代理": ("writer", ["hypothesis", "todo"])}


def test_another_bank_is_named(hindsight: CommandLine, db: Database) -> None:
    other = f"bank-{uuid.uuid4().hex[:8]}"
    db.call("create_bank", bank=other)
    assert hindsight("access", "grant", "agent-7", "adder", "--bank", other).code == 0
    assert "agent-7" not in held(hindsight)
    assert [one["rights"] for one in hindsight("access", "list", "--bank", other, "--json").json] == ["adder", "owner"]


def test_a_name_that_would_draw_on_the_terminal_is_shown_as_it_is_spelled(hindsight: CommandLine) -> None:
    assert "\x1b" not in hindsight("access", "grant", "x\x1b[2J", "reader").out
    assert "\x1b" not in hindsight("access", "list").out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["grant", "agent-7", "king"], 2, "king"), (["grant", "", "reader"], 2, "principal"), (["grant", "agent-7"], 2, "RIGHTS"),
        (["grant", "agent-7", "reader", "--types", "fact"], 2, "types limit"), (["grant", "a", "writer", "--types", "wish"], 2, "wish"),
        (["list", "--bank", "no-such-bank"], 3, "no-such-bank"), (["revoke", "agent-7", "--bank", "没有"], 3, "没有"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line(hindsight: CommandLine, arguments: list[str], code: int, says: str) -> None:
    ran = hindsight("access", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert says in ran.err


def test_the_last_owner_stays(hindsight: CommandLine, db: Database) -> None:
    ran = hindsight("access", "revoke", db.value("SELECT session_user"))
    assert (ran.code, "last owner" in ran.err) == (2, True)
