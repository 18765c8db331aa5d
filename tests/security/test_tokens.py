"""Tokens in the database: made by operators, kept as a digest, narrowed, revoked."""

import hashlib
import re
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from hindsight import Hindsight
from tests.command import CommandLine
from tests.conftest import Database


def new_name() -> str:
    return f"laptop-{uuid.uuid4().hex[:8]}"


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def refused(sqlstate: str, work: Callable[[], object]) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        work()
    assert caught.value.sqlstate == sqlstate, caught.value
    return caught.value


def test_a_token_is_given_once_and_kept_as_its_digest(db: Database) -> None:
    name = new_name()
    made = db.one("create_token", name=name, principal="agent-7")["create_token"]
    assert re.fullmatch("hs_[0-9a-f]{64}", made)
    row = db.rows("SELECT * FROM hindsight.access_token WHERE name = %s", (name,))[0]
    assert bytes(row["digest"]) == digest(made)
    assert made not in str(row)
    listed = next(row for row in db.call("access_tokens") if row["name"] == name)
    assert (listed["principal"], listed["state"], listed["last_used_at"]) == ("agent-7", "valid", None)
    assert "digest" not in listed
    assert db.one("create_token", name=new_name(), principal="agent-7")["create_token"] != made


def test_it_says_whom_it_acts_for_and_within_what(db: Database, connect: Callable[..., Database]) -> None:
    name, service = new_name(), connect("hindsight_service")
    made = db.one("create_token", name=name, principal="代理-7", banks=["甲", "b"], rights="reader")["create_token"]
    found = service.one("check_token", digest=digest(made))
    assert (found["name"], found["principal"], found["scope"]) == (
        name,
        "代理-7",
        {"banks": ["甲", "b"], "rights": "reader"},
    )
    assert next(row for row in db.call("access_tokens") if row["name"] == name)["last_used_at"]
    for wrong in (made[:-1], made.upper(), "", "hs_" + "0" * 64):
        assert service.call("check_token", digest=digest(wrong)) == []


def test_one_that_is_revoked_or_over_holds_no_more_and_its_name_is_not_used_again(db: Database) -> None:
    name, short = new_name(), new_name()
    made = db.one("create_token", name=name, principal="agent-7")["create_token"]
    over = db.one("create_token", name=short, principal="agent-7", ttl="1 ms")["create_token"]
    assert db.one("revoke_token", name=name) == {"revoke_token": True}
    assert db.one("revoke_token", name=name) == {"revoke_token": False}
    assert db.call("check_token", digest=digest(made)) == db.call("check_token", digest=digest(over)) == []
    assert {row["name"]: row["state"] for row in db.call("access_tokens") if row["name"] in (name, short)} == {
        name: "revoked",
        short: "expired",
    }
    assert "not used again" in str(
        refused("HM006", lambda: db.call("create_token", name=name, principal="x")).diag.message_hint
    )


def test_whoever_gives_the_token_for_its_name_does_not_find_it_in_the_error(db: Database) -> None:
    made = db.one("create_token", name=new_name(), principal="agent-7")["create_token"]
    error = refused("HM002", lambda: db.call("revoke_token", name=made))
    assert made not in f"{error.diag.message_primary} {error.diag.message_hint} {error.diag.message_detail}"


@pytest.mark.parametrize("role", ["hindsight_app", "hindsight_service", "hindsight_reader"])
def test_only_operators_make_them_and_nobody_reads_the_table(connect: Callable[..., Database], role: str) -> None:
    login = connect(role)
    refused(
        "42501" if role == "hindsight_reader" else "HM003",
        lambda: login.call("create_token", name="x", principal="postgres"),
    )
    refused("42501", lambda: login.rows("SELECT * FROM hindsight.access_token"))
    if role == "hindsight_app":
        for function, given in (
            ("access_tokens", {}),
            ("revoke_token", {"name": "x"}),
            ("check_token", {"digest": b"x"}),
        ):
            refused("HM003", lambda f=function, g=given: login.call(f, **g))


def test_a_service_that_acts_for_somebody_looks_after_no_tokens(connect: Callable[..., Database]) -> None:
    service = connect("hindsight_service")
    with service.connection.transaction():
        service.rows("SELECT set_config('hindsight.principal', 'agent-7', true)")
        refused("HM003", lambda: service.call("access_tokens"))


def test_an_erased_bank_takes_its_name_out_of_tokens(db: Database, bank: str) -> None:
    name = new_name()
    db.call("create_token", name=name, principal="agent-7", banks=[bank])
    db.call("erase_bank", bank=bank, reason="asked to")
    assert next(row for row in db.call("access_tokens") if row["name"] == name)["banks"] == []


def test_what_is_no_token_is_refused(db: Database) -> None:
    for given in ({"rights": "admin"}, {"ttl": "-1 day"}, {"principal": ""}, {"banks": [""]}, {"name": " "}):
        with pytest.raises(psycopg.Error) as caught:
            db.call("create_token", **{"name": new_name(), "principal": "x", **given})
        assert (caught.value.sqlstate or "")[:2] == "HM", given


def test_a_client_acts_within_a_scope(db: Database, bank: str, shared_url: str) -> None:
    db.call("grant_access", bank=bank, principal="agent-9", rights="owner")
    with Hindsight.connect(shared_url) as client:
        reader = client.acting_for("agent-9", {"rights": "reader", "banks": [bank]})
        assert reader.recall(bank, "x") == []
        with pytest.raises(Exception, match="this needs adder or writer"):
            reader.store(bank, "x y z")
        assert [one.principal for one in reader.access(bank)] == ["agent-9", "postgres"]


def test_the_command_line_makes_lists_and_revokes_one(
    monkeypatch: pytest.MonkeyPatch, shared_url: str, db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", shared_url)
    run, name = CommandLine(shared_url, "default", tmp_path, capsys), new_name()
    limits = ("--bank", "a,b", "--rights", "reader", "--ttl", "90 days")
    made = run("token", "create", name, "--principal", "agent-7", *limits)
    assert made.code == 0
    assert db.one("check_token", digest=digest(made.out.strip()))["scope"] == {"banks": ["a", "b"], "rights": "reader"}
    assert made.out.strip() not in made.err
    listed = run("token", "list", "--json")
    assert [one["rights"] for one in listed.json if one["name"] == name] == ["reader"]
    assert made.out.strip() not in listed.out
    assert run("token", "list").code == 0
    assert run("token", "revoke", name).out.strip() == "revoked"
    assert run("token", "revoke", name).out.strip() == "it was revoked before"
    assert run("token", "revoke", "no such token").code == 3
