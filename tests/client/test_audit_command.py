"""`hindsight audit`, the clients' methods behind it, and `hindsight eval --format audit`."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from hindsight import Hindsight, cli
from hindsight.config import load_settings
from hindsight.errors import InvalidArgument
from hindsight.evaluation_audit import evaluate_audit
from hindsight.evaluation_pairs import read_pairs


@pytest.fixture
def client(shared_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", shared_url)
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "none")
    with Hindsight.connect(settings=load_settings()) as made:
        yield made


@pytest.fixture
def bank(client: Hindsight) -> str:
    """A bank with a contradiction and two tags that are spelled in another way."""
    name = f"audit-{uuid.uuid4().hex[:8]}"
    client.create_bank(name)
    for content, tags in [
        ("网关支持隧道协议", ["network"]),
        ("网关不支持隧道协议", ["network"]),
        ("The printer is on the third floor", ["net-work"]),
        ("打印机在三楼", ["networks"]),
    ]:
        client.store(name, content, tags=tags, importance=0.5)
    return name


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.run(arguments)
    return code, *capsys.readouterr()


def test_findings_are_shown_by_check_and_nothing_is_changed(
    client: Hindsight, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run("audit", bank, capsys=capsys)
    assert code == 1
    assert out.splitlines()[0] == "contradictions"
    assert '"网关不支持隧道协议" contradicts "网关支持隧道协议": one denies what the other says' in out
    assert out.splitlines()[-1] == "3 findings: 2 to retag, 1 to review"
    assert run("audit", "--bank", bank, "--check", "tags", capsys=capsys)[1].splitlines()[0] == "tags"
    assert {tag.tag for tag in client.tags(bank)} == {"network", "net-work", "networks"}


def test_apply_puts_right_what_it_can_and_a_second_time_nothing(
    client: Hindsight, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run("audit", bank, "--apply", "--json", capsys=capsys)
    report = json.loads(out)
    assert code == 1
    assert [one["outcome"] for one in report["applied"]] == ["retagged", "retagged"]
    assert [one["finding"] for one in report["findings"]] == ["contradictions"]
    assert [(tag.tag, tag.memories) for tag in client.tags(bank)] == [("network", 4)]
    reason = client.history(bank, report["applied"][0]["finding"]["memory_id"])[-1].reason
    assert reason == "audit: its tags are spelled as in other memories"
    again = json.loads(run("audit", bank, "--apply", "--json", capsys=capsys)[1])
    assert (again["applied"], len(again["findings"])) == ([], 1)
    client.forget(bank, report["findings"][0]["memory_id"], reason="it was wrong")
    assert run("audit", bank, capsys=capsys)[:2] == (0, "no findings\n")


def test_an_unknown_check_and_an_unknown_bank_are_refused(bank: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("audit", bank, "--check", "标签", capsys=capsys)
    assert (code, "contradictions, duplicates, stale" in err) == (2, True)
    assert run("audit", "no-such-bank", capsys=capsys)[0] == 3
    assert run("audit", bank, "--most", "0", capsys=capsys)[0] == 2


def test_a_client_sets_tags_audits_and_resolves(client: Hindsight, bank: str) -> None:
    client.set_tags(bank, allowed=["network", "docker"], aliases={"network": ["网络"]})
    stored = client.store(bank, "端口映射", tags=["网络", "杂项"], importance=0.5)
    assert stored.reasons == ["the bank does not allow the tags 杂项"]
    assert [(tag.tag, tag.aliases) for tag in client.tags(bank) if tag.aliases] == [("network", ["网络"])]
    found = client.audit(bank, "tags", most=1)
    assert [one.remedy for one in found] == ["retag"]
    assert client.resolve(bank, found[0].finding, found[0].memory_id) == "retagged"
    client.set_tags(bank, allowed=[])
    assert client.store(bank, "another", tags=["杂项"], importance=0.5).reasons == []
    with pytest.raises(InvalidArgument, match="must be a list of texts"):
        client.set_tags(bank, aliases={"network": "网络"})


def test_labelled_pairs_are_judged_by_the_audit(client: Hindsight, tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    rows = [
        ("contradicting", "en", "The tunnel supports multicast", "The tunnel does not support multicast"),
        ("contradicting", "zh", "导入程序崩溃后能恢复", "导入程序崩溃后不能恢复"),
        ("different", "en", "Room 101 has a projector", "Room 102 has a projector"),
        ("same", "zh", "用户住在杭州", "杭州是用户居住的地方"),
    ]
    names = ("label", "language", "one", "other", "split")
    file.write_text(
        "\n".join(json.dumps(dict(zip(names, (*row, "all"), strict=True))) for row in rows), encoding="utf-8"
    )
    report = evaluate_audit(read_pairs(file), client)
    assert {label: dict(counted) for label, counted in report.verdicts["all"].items()} == {
        "contradicting en": {"contradiction": 1},
        "contradicting zh": {"contradiction": 1},
        "different en": {"nothing": 1},
        "same zh": {"nothing": 1},
    }
    assert not report.across["all"]


@pytest.mark.parametrize("text", ["", "{", '{"label": "same"}', "[1]"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(text, encoding="utf-8")
    assert run("eval", str(file), "--format", "audit", capsys=capsys)[0] == 2
    with pytest.raises(InvalidArgument):
        read_pairs(tmp_path / "none.jsonl")
