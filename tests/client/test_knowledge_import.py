"""Documents as knowledge: passages that stand alone, and stay themselves when the document changes around them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsight.passages import LIMIT, MOST, read_document, tokens
from tests.command import CommandLine
from tests.conftest import Database

MANUAL = """---
title: Coffee machine 咖啡机
tags: [manual, 产品]
version: 2
---

# Cleaning

Descale it every three months.

## 警告

切勿将机器浸入水中。水箱容量为 1.8 升。

```sh
# not a heading
make clean
```

# Errors

The display shows a code:

| code | meaning |
| --- | --- |
| E1 | no water |
| E2 | 水箱未装好 |
"""


@pytest.fixture
def hindsight(shared_url: str, bank: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "DATABASE_URL": shared_url,
        "HINDSIGHT_EMBEDDING_PROVIDER": "none",
        "HINDSIGHT_BANK": bank,
    }.items():
        monkeypatch.setenv(name, value)
    return CommandLine(shared_url, bank, tmp_path, capsys)


def contents(text: str, *, is_markdown: bool = True) -> list[str]:
    return [one.content for one in read_document(text, is_markdown=is_markdown)[0]]


def imported(hindsight: CommandLine, *paths: str) -> dict[str, dict[str, int]]:
    ran = hindsight("import", "--as", "knowledge", *paths, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, dict[str, int]] = ran.json
    return found


def live(db: Database, bank: str) -> dict[str, dict[str, Any]]:
    return {row["content"]: row for row in db.call("state", bank=bank)}


# ---- splitting -----------------------------------------------------------------------------------------


def test_a_document_is_split_at_its_headings_and_each_passage_begins_with_them() -> None:
    passages, front = read_document(MANUAL, is_markdown=True)
    assert [one.heading for one in passages] == [
        "Coffee machine 咖啡机 › Cleaning", "Coffee machine 咖啡机 › Cleaning › 警告", "Coffee machine 咖啡机 › Errors",
    ]  # fmt: skip
    assert passages[0].content == "Coffee machine 咖啡机 › Cleaning\nDescale it every three months."
    assert passages[1].body == "切勿将机器浸入水中。水箱容量为 1.8 升。\n\n```sh\n# not a heading\nmake clean\n```"
    assert passages[2].body.startswith("The display shows a code:\n\n| code | meaning |")
    assert passages[1].tags == ("manual", "产品", "Coffee machine 咖啡机", "Cleaning", "警告")
    assert front == {"title": "Coffee machine 咖啡机", "version": "2"}


@pytest.mark.parametrize(
    "sentence",
    ["The pump needs {} seconds to fill the boiler with water. ", "水泵需要{}秒才能将锅炉注满水，然后才会开始加热。"],
)
def test_a_long_section_is_split_between_sentences_within_the_bound(sentence: str) -> None:
    text = "# Pump\n\n" + "".join(sentence.format(number) for number in range(120))
    found = contents(text)
    assert len(found) > 3
    assert all(tokens(one) <= MOST + 60 for one in found)
    assert all(one.rstrip().endswith((".", "。")) for one in found)
    assert "".join(one.removeprefix("Pump\n") for one in found).replace(" ", "") == text.removeprefix(
        "# Pump\n\n"
    ).replace(" ", "")


@pytest.mark.parametrize("block", [
    "```python\n" + "\n\n".join(f"# line {number} of code that is long enough" for number in range(60)) + "\n```",
    "| a | b |\n| --- | --- |\n" + "\n".join(f"| value {number} | 值 {number} and some more words |" for number in range(60)),
    "\n".join(f"- item {number} with some words\n\n  and a second paragraph" for number in range(50)),
    "1. 第一步：打开机器\n" + "\n".join(f"{number}. step {number} with some words and more of them" for number in range(2, 60)),
])  # fmt: skip
def test_tables_code_and_lists_are_not_torn(block: str) -> None:
    found = contents(f"# Title\n\nBefore it.\n\n{block}\n\nAfter it.")
    assert sum(block in one for one in found) == 1


def test_what_no_memory_can_hold_is_split_further_and_nothing_is_lost() -> None:
    rows = [f"| {number} | {'值' * 40} |" for number in range(600)]
    table = contents("# T\n\n| a | b |\n|---|---|\n" + "\n".join(rows))
    assert all(one.startswith("T\n| a | b |\n|---|---|\n| ") for one in table)
    assert [row for one in table for row in one.splitlines()[3:]] == rows
    code = contents("```js\n" + "\n".join(f"let x{number} = '{'y' * 50}';" for number in range(400)) + "\n```")
    assert all(one.startswith("```js\n") and one.endswith("\n```") for one in code)
    items = contents("\n".join(f"- {number} {'词' * 100}\n  more of it" for number in range(300)))
    assert all(one.startswith("- ") for one in items)
    assert sum(one.count("more of it") for one in items) == 300
    assert max(map(len, [*table, *code, *items])) <= 10_000
    assert max(map(len, contents("x" * 50_000))) <= 10_000


def test_a_plain_text_is_split_between_paragraphs() -> None:
    text = "\n\n".join(f"# {number} no heading here. {'Some words of it. ' * 20}" for number in range(20))
    found = contents(text, is_markdown=False)
    assert len(found) == 5
    assert all(one.startswith("# ") for one in found)
    assert contents("一段话。", is_markdown=False) == ["一段话。"]
    assert contents("", is_markdown=False) == contents("\n# Only a heading\n") == []


def test_front_matter_of_the_plain_kinds_is_read() -> None:
    text = "---\ntitle: 'A: B'\nkeywords: x, y z\nowners:\n  - alice\n  - agent-7\nnested:\n  a: 1\n# comment\nempty:\n---\nBody."
    passages, front = read_document(text, is_markdown=True)
    assert front == {"title": "A: B", "owners": ["alice", "agent-7"], "nested": "a: 1"}
    assert passages[0].tags == ("x", "y z", "A: B")
    assert contents("---\nno end of it: x\n\ntext") != []


@given(st.text(alphabet="ab 。.\n#`|-*123长中\t>:", max_size=3000))
@settings(max_examples=100, deadline=None)
def test_no_passage_is_too_long_or_blank_whatever_the_text(text: str) -> None:
    for one in contents(text * 8):
        assert 0 < len(one) <= LIMIT + 400
        assert one.strip()


# ---- importing -----------------------------------------------------------------------------------------


def test_passages_become_knowledge_that_does_not_decay(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "manual.md").write_text(MANUAL)
    assert imported(hindsight, "manual.md") == {"manual.md": {"stored": 3}}
    water = next(row for content, row in live(db, bank).items() if "1.8" in content)
    assert (water["type"], water["source"], water["slot"], water["expires_at"]) == ("knowledge", "document", None, None)
    assert water["metadata"] == {
        "title": "Coffee machine 咖啡机", "version": "2", "document": "manual.md", "place": 1, "heading": "Coffee machine 咖啡机 › Cleaning › 警告",
    }  # fmt: skip
    assert {"manual", "产品", "警告"} <= set(water["tags"])
    (best, *_) = db.call("recall", bank=bank, query="水箱容量")
    assert (best["content"], best["decay"]) == (water["content"], 1)
    assert "E2" in db.contents(bank, "error codes E2")[0]
    assert db.call("documents", bank=bank) == [{"document": "manual.md", "memories": 3}]


def test_a_document_that_changed_is_imported_in_place(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "manual.md"
    path.write_text(MANUAL)
    imported(hindsight, "manual.md")
    before = live(db, bank)
    assert imported(hindsight, "manual.md") == {"manual.md": {"unchanged": 3}}
    assert live(db, bank) == before

    path.write_text(MANUAL.replace("1.8 升", "2 升").replace("# Errors", "# New\n\nA new section.\n\n# Errors"))
    assert imported(hindsight, "manual.md") == {"manual.md": {"unchanged": 2, "stored": 1, "superseding": 1}}
    after = live(db, bank)
    assert len(after) == 4
    same = before.keys() & after.keys()
    assert len(same) == 2
    assert all(after[content]["memory_id"] == before[content]["memory_id"] for content in same)
    old = next(row for content, row in before.items() if "1.8" in content)
    new = next(row for content, row in after.items() if "2 升" in content)
    assert db.one("get", bank=bank, memory_id=old["memory_id"])["superseded_by"] == new["memory_id"]

    path.write_text("# Cleaning\n\nDescale it every three months.\n")
    assert imported(hindsight, "manual.md") == {"manual.md": {"superseding": 1, "removed": 3}}
    (row,) = live(db, bank).values()
    events = db.call("history", bank=bank, memory_id=new["memory_id"])
    assert (events[-1]["action"], events[-1]["reason"]) == ("forgotten", "removed from the document manual.md")
    assert row["content"] == "Cleaning\nDescale it every three months."


def test_what_is_in_the_document_again_is_restored_but_not_what_somebody_forgot(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "规则.md"
    path.write_text("# 退款\n\n七天内可以退款。\n\n# 发货\n\n当天发货。\n")
    imported(hindsight, "规则.md")
    refund, shipping = sorted(live(db, bank).values(), key=lambda row: row["content"], reverse=True)
    db.call("forget", bank=bank, memory_id=shipping["memory_id"], reason="not any more")
    assert imported(hindsight, "规则.md") == {"规则.md": {"unchanged": 1, "left out: somebody forgot it": 1}}
    whole = path.read_text()
    path.write_text("# 发货\n\n当天发货。\n")
    assert imported(hindsight, "规则.md")["规则.md"]["removed"] == 1
    assert live(db, bank) == {}
    path.write_text(whole)
    assert imported(hindsight, "规则.md")["规则.md"] == {"restored": 1, "left out: somebody forgot it": 1}
    (again,) = live(db, bank).values()
    assert again["memory_id"] == refund["memory_id"]


def test_passages_that_moved_stay_and_know_their_place(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path, long = tmp_path / "faq.md", "很长的一段文字，" * 45
    path.write_text(f"# FAQ\n\n{long}一。\n\n{long}二。\n")
    imported(hindsight, "faq.md")
    before = live(db, bank)
    path.write_text(f"# FAQ\n\n{long}零。\n\n{long}一。\n\n{long}二。\n")
    assert imported(hindsight, "faq.md") == {"faq.md": {"unchanged": 2, "stored": 1}}
    after = live(db, bank)
    assert [after[content]["memory_id"] for content in before] == [row["memory_id"] for row in before.values()]
    assert sorted(row["metadata"]["place"] for row in after.values()) == [1, 2, 3]
    path.write_text(path.read_text().replace("# FAQ", "# Questions"))
    assert imported(hindsight, "faq.md") == {"faq.md": {"superseding": 3}}


def test_a_directory_is_imported_whole_and_what_left_it_is_forgotten(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    for name, text in {
        "docs/a.md": "# A\n\nAlpha.",
        "docs/sub/b.txt": "Beta 贝塔。",
        "docs/.git/c.md": "# C\n\nhidden",
        "docs/d.png": "x",
        "e.md": "# E\n\nEcho.",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert imported(hindsight, "docs", "e.md").keys() == {"docs/a.md", "docs/sub/b.txt", "e.md"}
    (tmp_path / "docs/sub/b.txt").unlink()
    assert imported(hindsight, "docs")["docs/sub/b.txt"] == {"removed": 1}
    assert set(live(db, bank)) == {"A\nAlpha.", "E\nEcho."}
    assert imported(hindsight, str(tmp_path / "docs")) == {"docs/a.md": {"unchanged": 1}}
    assert imported(hindsight, str(tmp_path), "--root", str(tmp_path)) == {
        "docs/a.md": {"unchanged": 1},
        "e.md": {"unchanged": 1},
    }


def test_an_import_of_documents_that_is_killed_is_finished_by_the_next(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "manual.md"
    path.write_text(
        "\n\n".join(f"# Part {number}\n\nIt has {number} screws. 有 {number} 颗螺丝。" for number in range(400))
    )

    def some() -> bool:
        return len(live(db, bank)) > 0

    assert hindsight.killed_when(some, "import", "--as", "knowledge", path)
    assert 0 < len(live(db, bank)) < 400
    imported(hindsight, "manual.md")
    assert len(live(db, bank)) == 400
    assert imported(hindsight, "manual.md") == {"manual.md": {"unchanged": 400}}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("nowhere.md", None, "no such file"),
        ("latin.md", b"caf\xe9", "not UTF-8"),
        ("binary.txt", b"a\0b", "holds a NUL"),
    ],
)
def test_a_document_that_cannot_be_read_is_told_before_anything_is_done(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    (tmp_path / "good.md").write_text("# Good\n\nwords")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = hindsight("import", "--as", "knowledge", "good.md", name)
    assert (ran.code, says in ran.err) == (2, True), ran.err
    assert live(db, bank) == {}


def test_the_same_passage_in_two_documents_is_one_memory(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    text = f"# Licence\n\n{uuid.uuid4()} may be used freely."
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(text)
    assert imported(hindsight, "a.md", "b.md") == {"a.md": {"stored": 1}, "b.md": {"merged": 1}}
    assert len(live(db, bank)) == 1
    (one,) = live(db, bank).values()
    assert one["metadata"]["document"] == "b.md"


def test_a_passage_with_a_secret_in_it_is_known_again_and_stays_forgotten(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "数据库.md"
    text = "# 数据库\n\n连接 postgresql://admin:{}@db.example.com/app，然后执行迁移。\n\n# Backup\n\nAt 3 in the morning.\n"
    path.write_text(text.format("Sup3rS3cret9"))
    assert imported(hindsight, "数据库.md") == {"数据库.md": {"stored": 2}}
    before = live(db, bank)
    path.write_text(text.format("An0therS3cret"))  # what is kept of it is the same
    assert imported(hindsight, "数据库.md") == {"数据库.md": {"unchanged": 2}}
    assert live(db, bank) == before
    (masked,) = [row for row in before.values() if "[password:1]" in row["content"]]
    db.call("forget", bank=bank, memory_id=masked["memory_id"], reason="not any more")
    assert imported(hindsight, "数据库.md") == {"数据库.md": {"unchanged": 1, "left out: somebody forgot it": 1}}
    assert len(live(db, bank)) == 1
