"""Imports: transcripts and dumps of others and our own, once, whatever happens on the way."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hindsight.dataset import read_corpora
from tests.command import CommandLine
from tests.conftest import Database


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


def turns(db: Database, bank: str) -> list[dict[str, Any]]:
    return db.rows(
        "SELECT t.* FROM hindsight.turn t JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s ORDER BY session_id, sequence",
        (bank,),
    )


def said(db: Database, bank: str) -> list[tuple[str, str, str]]:
    return [(one["session_id"], one["role"], one["content"]) for one in turns(db, bank)]


def write(path: Path, *lines: Any) -> Path:
    path.write_text(
        "".join(f"{one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)}\n" for one in lines)
    )
    return path


def own(content: str, role: str = "user", session_id: str = "s1", **more: Any) -> dict[str, Any]:
    return {"session_id": session_id, "role": role, "content": content, **more}


# ---- our JSONL -----------------------------------------------------------------------------------------


def test_a_transcript_comes_in_as_it_was_said_and_is_ready_to_be_distilled(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "talk.jsonl",
        own("记住：端口是 49222 🚀", occurred_at="2026-01-05T09:30:00+08:00", metadata={"client": "web"}, turn_id="a"),
        own("OK\nnoted", "assistant", occurred_at=1767576660, tool_calls=[{"name": "save", "arguments": None}]),
        own("another", session_id="会话-2"),
    )
    ran = hindsight("import", path)
    assert (ran.code, "format jsonl" in ran.err) == (0, True)
    assert ran.out.split() == ["sessions", "2", "turns", "logged", "3"]
    first, second, third = turns(db, bank)
    assert (first["content"], first["turn_id"], first["metadata"]) == ("记住：端口是 49222 🚀", "a", {"client": "web"})
    assert first["occurred_at"].isoformat() == "2026-01-05T01:30:00+00:00"
    assert (second["tool_calls"], second["occurred_at"].year) == ([{"name": "save", "arguments": None}], 2026)
    assert third["session_id"] == "会话-2"
    sessions = db.rows(
        "SELECT s.* FROM hindsight.session s JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s", (bank,)
    )
    assert all(one["closed_at"] and one["due_at"] for one in sessions)
    assert db.one("distil_waiting", bank=bank) == {"sessions": 2, "turns": 3}
    assert "端口是 49222 🚀" in db.contents(bank, "端口")


def test_the_same_transcript_imported_twice_makes_no_second_copy(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    lines = [own("ok"), own("ok"), own("好"), own("ok", session_id="s2"), own("with an id", turn_id="x")]
    path = write(tmp_path / "talk.jsonl", *lines)
    assert hindsight("import", path, "--json").json["turns"] == {"logged": 5}
    db.call("distil_waiting", bank=bank)
    before = turns(db, bank)
    copy = write(tmp_path / "a copy of it.json", *lines)
    assert hindsight("import", path, copy, "--json").json["turns"] == {"logged already": 10}
    assert turns(db, bank) == before
    assert db.one("distil_waiting", bank=bank)["turns"] == 0


def test_what_was_said_since_is_added(db: Database, bank: str, hindsight: CommandLine, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "第二"}]
    write(tmp_path / "talk.jsonl", *lines)
    hindsight("import", "talk.jsonl")
    write(tmp_path / "talk.jsonl", *lines, {"role": "user", "content": "third"})
    assert hindsight("import", "talk.jsonl", "--json").json["turns"] == {"logged already": 2, "logged": 1}
    assert [content for _, _, content in said(db, bank)] == ["first", "第二", "third"]
    assert len({session for session, _, _ in said(db, bank)}) == 1


def test_two_transcripts_without_sessions_stay_apart(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    system = {"role": "system", "content": "You are a helpful assistant."}
    for number in (1, 2):
        directory = tmp_path / str(number)
        directory.mkdir()
        write(directory / "talk.jsonl", system, {"role": "user", "content": f"I am number {number}"})
    assert hindsight("import", "1/talk.jsonl", "2/talk.jsonl").code == 0
    assert len({session for session, _, _ in said(db, bank)}) == 2
    assert len(said(db, bank)) == 4


def test_a_gzipped_file_an_array_and_a_byte_order_mark_are_read(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    with gzip.open(tmp_path / "talk.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(own("zipped")) + "\n\n")
    (tmp_path / "messages.json").write_text(
        json.dumps([own("在数组里", session_id="s2"), own("and more", session_id="s2")], indent=1)
    )
    (tmp_path / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(own("marked", session_id="s3")).encode())
    assert hindsight("import", "talk.jsonl.gz", "messages.json", "bom.jsonl").code == 0
    assert [content for _, _, content in said(db, bank)] == ["zipped", "在数组里", "and more", "marked"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "is not JSON"),
        ("[1, 2]", "is not a JSON object"),
        (own(" "), "content is empty"),
        (own(7), "content is not a text but 7"),  # type: ignore[arg-type]
        (own("x", speaker="bob"), "a turn has no 'speaker'"),
        (own("x", occurred_at="yesterday"), "occurred_at is no time"),
        (own("x", occurred_at=1e18), "occurred_at is no time"),
        (own("x\0"), "NUL"),
        (own("x", role=""), "role is empty"),
        (own("x", metadata=[1]), "metadata must be a JSON object"),
        (own("x", sequence=0), "sequence must lie between"),
        (own("x", turn_id="a"), "has another turn"),
        (own("x" * 1_000_001), "1000001 characters"),
        (own("x", session_id="s" * 201), "session_id has 201 characters"),
        (own("x", distilled_at="2026-01-01"), "distilled already"),
        ('{"role": "user", "content": "\\ud800"}', "surrogate"),
    ],
)
def test_a_bad_line_is_named_and_ends_the_import_or_is_left_out(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path, line: Any, says: str
) -> None:
    path = write(tmp_path / "talk.jsonl", own("前一句", turn_id="a"), line, own("the next"))
    ended = hindsight("import", path)
    assert (ended.code, ended.out) == (2, "")
    assert "talk.jsonl, line 2: " in ended.err
    assert says in ended.err
    assert [content for _, _, content in said(db, bank)] == ["前一句"]
    went_on = hindsight("import", path, "--skip-bad", "--json")
    assert went_on.code == 1
    assert [one["place"] for one in went_on.json["problems"]] == ["line 2"]
    assert says in went_on.err
    assert [content for _, _, content in said(db, bank)] == ["前一句", "the next"]


def test_a_line_that_is_not_utf_8_is_named(db: Database, bank: str, hindsight: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_bytes(json.dumps(own("x")).encode() + b'\n{"role": "user", "content": "caf\xe9"}\n')
    assert "line 2: is not UTF-8" in hindsight("import", "talk.jsonl").err


@pytest.mark.parametrize(
    "content", ["", "hello there", '{"a": 1}', "[]", "[1]", '{"results": []}', "\x89PNG\r\n", "[{"]
)
def test_a_format_that_is_not_known_is_refused_with_those_that_are(
    hindsight: CommandLine, tmp_path: Path, content: str
) -> None:
    (tmp_path / "file").write_text(content)
    ran = hindsight("import", "file")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    if not content.startswith("[{"):
        assert all(name in ran.err for name in ("jsonl", "chatgpt", "claude", "mem0", "mcp-memory", "locomo"))


def test_a_file_that_is_not_there_or_cut_off_is_told(hindsight: CommandLine, tmp_path: Path) -> None:
    assert "can't be read" in hindsight("import", "nowhere.jsonl").err
    assert hindsight("import", tmp_path).code == 2
    assert hindsight("import").code == 2
    packed = gzip.compress("\n".join(json.dumps(own(f"{number} {uuid.uuid4()}")) for number in range(999)).encode())
    (tmp_path / "cut.gz").write_bytes(packed[:-200])
    assert "can't be read to its end" in hindsight("import", "cut.gz").err
    (tmp_path / "cut.json").write_text(json.dumps([own("x"), own("y")])[:-5])
    assert "is not JSON after item 1" in hindsight("import", "cut.json").err
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "x")
    assert "without conversations.json" in hindsight("import", "other.zip").err


def test_sessions_are_chosen_and_left_open(db: Database, bank: str, hindsight: CommandLine, tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", own("a", session_id="x/1"), own("b", session_id="y/1"))
    assert hindsight("import", path, "--sessions", "y/", "--no-close").code == 0
    assert [session for session, _, _ in said(db, bank)] == ["y/1"]
    assert (
        db.value(
            "SELECT closed_at FROM hindsight.session JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s", (bank,)
        )
        is None
    )


def test_an_import_makes_its_bank(db: Database, hindsight: CommandLine, tmp_path: Path) -> None:
    name = f"new-{uuid.uuid4().hex[:8]}"
    ran = hindsight("import", write(tmp_path / "talk.jsonl", own("x")), "--bank", name)
    assert f"made the bank '{name}'" in ran.err
    assert len(turns(db, name)) == 1


def test_an_import_that_is_killed_again_and_again_loses_no_turn_and_doubles_none(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    lines = [own(f"{number} 记住 {number % 7}", session_id=f"s{number % 90}") for number in range(9000)]
    path = write(tmp_path / "talk.jsonl", *lines)
    kept = "SELECT turns FROM hindsight.status() WHERE bank = %s"
    for part in (1, 2000, 4000):
        assert hindsight.killed_when(lambda part=part: db.value(kept, (bank,)) >= part, "import", path)
    assert len(turns(db, bank)) < len(lines)
    assert hindsight("import", path).code == 0
    assert sorted(content for _, _, content in said(db, bank)) == sorted(line["content"] for line in lines)
    of_one = [content for session, _, content in said(db, bank) if session == "s7"]
    assert of_one == [line["content"] for line in lines if line["session_id"] == "s7"]
    assert db.value(
        "SELECT count(*) FROM hindsight.session JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s AND closed_at IS NULL", (bank,)
    ) == 0  # fmt: skip


def test_a_writer_imports_and_a_reader_may_not(
    db: Database,
    bank: str,
    hindsight: CommandLine,
    tmp_path: Path,
    login: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(tmp_path / "talk.jsonl", own("记住：x"))
    for rights, code in (("reader", 5), ("writer", 0)):
        url = login(db.url, "hindsight_app")
        name = url.partition("://")[2].partition("@")[0]
        db.call("grant_access", bank=bank, principal=name, rights=rights)
        monkeypatch.setenv("DATABASE_URL", url)
        assert hindsight("import", path).code == code
        assert len(turns(db, bank)) == (code == 0)
        assert hindsight("export").code == 5


# ---- ChatGPT and Claude --------------------------------------------------------------------------------


def node(name: str, parent: str | None, children: list[str], message: Any = None) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": children, "message": message}


def message(
    name: str, role: str, *parts: Any, content_type: str = "text", at: float | None = 1767576660.5, **more: Any
) -> dict[str, Any]:
    return {
        "id": name, "author": {"role": role, "name": None, "metadata": {}}, "create_time": at, "recipient": "all",
        "content": {"content_type": content_type, "parts": list(parts)}, "metadata": {}, **more,
    }  # fmt: skip


CHATGPT = {
    "title": "端口 and ports", "create_time": 1767576600.0, "conversation_id": "c-1", "current_node": "f",
    "mapping": {
        "root": node("root", None, ["sys"]),
        "sys": node("sys", "root", ["about"], message("sys", "system", "", at=None)),
        "about": node("about", "sys", ["a"], message("about", "user", content_type="user_editable_context", metadata={"is_visually_hidden_from_conversation": True})),
        "a": node("a", "about", ["b", "c"], message("a", "user", "哪个端口？", {"content_type": "image_asset_pointer", "asset_pointer": "file://x"}, content_type="multimodal_text")),
        "b": node("b", "a", [], message("b", "assistant", "an answer that was regenerated")),
        "c": node("c", "a", ["d"], message("c", "assistant", recipient="python", content={"content_type": "code", "language": "python", "text": "print(49222)"})),
        "d": node("d", "c", ["t"], message("d", "tool", author={"role": "tool", "name": "python"}, content={"content_type": "execution_output", "text": "49222"})),
        "t": node("t", "d", ["e"], message("t", "assistant", content={"content_type": "thoughts", "thoughts": [{"content": "hm"}]})),
        "e": node("e", "t", ["f"], message("e", "assistant", "It is 49222.", "真的。")),
        "f": node("f", "e", [], message("f", "user", "remember it", at=None)),
    },
}  # fmt: skip


def test_chatgpts_export_gives_the_branch_that_was_shown_last(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr(
            "conversations.json", json.dumps([CHATGPT, {**CHATGPT, "conversation_id": "c-2", "current_node": None}])
        )
    ran = hindsight("import", "export.zip")
    assert (ran.code, "format chatgpt" in ran.err) == (0, True), ran.err
    found = [one for one in turns(db, bank) if one["session_id"] == "chatgpt-c-1"]
    assert [(one["role"], one["content"]) for one in found] == [
        ("user", "哪个端口？"), ("assistant", ""), ("tool", "49222"), ("assistant", "It is 49222.\n真的。"), ("user", "remember it"),
    ]  # fmt: skip
    assert found[0]["metadata"] == {"title": "端口 and ports", "attachments": ["image_asset_pointer"]}
    assert found[1]["tool_calls"] == [{"name": "python", "arguments": "print(49222)"}]
    assert found[2]["metadata"]["name"] == "python"
    assert [one["turn_id"] for one in found] == ["a", "c", "d", "e", "f"]
    assert found[4]["occurred_at"].timestamp() == 1767576600
    # without a current node the last child of each is followed
    assert len([one for one in turns(db, bank) if one["session_id"] == "chatgpt-c-2"]) == 5
    assert hindsight("import", "export.zip", "--json").json["turns"] == {"logged already": 10}


def test_a_conversation_of_chatgpt_that_goes_in_a_circle_or_lacks_what_it_needs_is_named(
    hindsight: CommandLine, tmp_path: Path
) -> None:
    circle = {
        "conversation_id": "c",
        "current_node": "a",
        "mapping": {"a": node("a", "b", ["b"]), "b": node("b", "a", ["a"])},
    }
    nameless = {"mapping": {"a": node("a", None, [], message("a", "user", "x"))}}
    (tmp_path / "conversations.json").write_text(json.dumps([circle, nameless, CHATGPT]))
    ran = hindsight("import", "conversations.json", "--skip-bad", "--json")
    assert [(one["place"], one["reason"][:12]) for one in ran.json["problems"]] == [
        ("conversation 1", "its messages"), ("conversation 2", "has no 'id'"),
    ]  # fmt: skip
    assert ran.json["turns"] == {"logged": 5}


CLAUDE = {
    "uuid": "u-1", "name": "汇率", "created_at": "2026-01-05T09:00:00.000000Z",
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "What is the rate?", "created_at": "2026-01-05T09:00:01.5Z", "content": [{"type": "text", "text": "What is the rate?"}],
         "attachments": [{"file_name": "rates.csv", "extracted_content": "a,b"}], "files": [{"file_name": "p.png"}]},
        {"uuid": "m2", "sender": "assistant", "text": "", "created_at": "2026-01-05T09:00:05Z", "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "name": "rate", "input": {"from": "EUR"}},
            {"type": "tool_result", "name": "rate", "content": [{"type": "text", "text": "7.1"}]}, {"type": "text", "text": "是 7.1。"}]},
        {"uuid": "m3", "sender": "human", "text": "old style, without blocks", "created_at": "2026-01-05T09:01:00Z"},
        {"uuid": "m4", "sender": "assistant", "text": " ", "content": []},
        {"uuid": "m5", "sender": "human", "text": "", "content": [], "files": [{"file_name": "only.png"}]},
    ],
}  # fmt: skip


def test_claudes_export_gives_its_messages_with_tool_calls_and_the_names_of_attachments(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([{"uuid": "empty", "chat_messages": []}, CLAUDE], indent=2))
    ran = hindsight("import", "conversations.json")
    assert (ran.code, "format claude" in ran.err) == (0, True), ran.err
    first, second, third, fourth = turns(db, bank)
    assert (first["session_id"], first["role"], first["content"]) == ("claude-u-1", "user", "What is the rate?")
    assert first["metadata"] == {"title": "汇率", "attachments": ["rates.csv", "p.png"]}
    assert (second["role"], second["content"]) == ("assistant", "是 7.1。")
    assert [one["type"] for one in second["tool_calls"]] == ["tool_use", "tool_result"]
    assert third["content"] == "old style, without blocks"
    assert (fourth["content"], fourth["metadata"]["attachments"]) == ("[attachment]", ["only.png"])
    assert hindsight("import", "conversations.json", "--json").json["turns"] == {"logged already": 4}


def test_a_large_array_is_read_item_by_item(db: Database, bank: str, hindsight: CommandLine, tmp_path: Path) -> None:
    conversations = [
        {
            "uuid": f"u{number}",
            "chat_messages": [
                {"uuid": f"{number}", "sender": "human", "text": "长" * (1 + number * 700), "content": []}
            ],
        }
        for number in range(120)
    ]
    (tmp_path / "conversations.json").write_text(json.dumps(conversations, ensure_ascii=False, indent=1))
    assert hindsight("import", "conversations.json").code == 0
    assert sorted(len(content) for _, _, content in said(db, bank)) == [1 + number * 700 for number in range(120)]


# ---- memories ------------------------------------------------------------------------------------------


def memories(db: Database, bank: str) -> list[dict[str, Any]]:
    return db.call("state", bank=bank)


MEM0 = [
    {"id": "1", "memory": "用户喜欢绿茶", "hash": "x", "user_id": "alice", "metadata": {"category": "taste", "document": "theirs"},
     "created_at": "2026-01-05T09:00:00-08:00", "updated_at": None, "score": 0.4},
    {"id": "2", "memory": "Alice's port is 49222", "agent_id": "agent-7", "metadata": None, "created_at": "2026-01-01T00:00:00Z",
     "updated_at": "2026-02-01T00:00:00Z"},
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda items: items, lambda items: {"results": items, "relations": []}])
def test_a_dump_of_mem0_becomes_memories_and_a_user_id_is_data(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path, wrap: Any
) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(wrap(MEM0), ensure_ascii=False))
    ran = hindsight("import", path)
    assert (ran.code, "format mem0" in ran.err) == (0, True), ran.err
    tea, port = sorted(memories(db, bank), key=lambda one: one["metadata"]["place"])
    assert (tea["content"], tea["source"], tea["occurred_at"].isoformat()) == (
        "用户喜欢绿茶",
        None,
        "2026-01-05T17:00:00+00:00",
    )
    assert tea["metadata"] == {
        "category": "taste", "user_id": "alice", "mem0.document": "theirs", "document": "mem0", "place": "1"
    }  # fmt: skip
    assert (port["occurred_at"].month, port["metadata"]["agent_id"]) == (2, "agent-7")
    assert [row["bank"] for row in db.call("status") if row["bank"] in ("alice", "agent-7")] == []
    before = memories(db, bank)
    assert hindsight("import", path, "--json").json["memories"] == {"there already": 2}
    assert memories(db, bank) == before
    assert db.call("documents", bank=bank) == [{"document": "mem0", "memories": 2}]


def test_a_memory_that_changed_in_the_dump_supersedes_and_one_that_was_forgotten_stays_so(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(MEM0))
    hindsight("import", path)
    tea, port = sorted(memories(db, bank), key=lambda one: one["metadata"]["place"])
    db.call("forget", bank=bank, memory_id=tea["memory_id"], reason="asked to")
    path.write_text(json.dumps([MEM0[0], {**MEM0[1], "memory": "Alice's port is 50000"}]))
    assert hindsight("import", path, "--json").json["memories"] == {"there already": 1, "superseding": 1}
    (new,) = memories(db, bank)
    assert new["content"] == "Alice's port is 50000"
    assert (
        db.value("SELECT superseded_by FROM hindsight.memory WHERE memory_id = %s", (port["memory_id"],))
        == new["memory_id"]
    )


def test_a_bad_memory_of_a_dump_is_named(hindsight: CommandLine, tmp_path: Path) -> None:
    bad = [{"id": "3", "memory": None}, {"id": "4", "memory": " "}, {"id": "5", "memory": "x" * 10_001}, {"id": "6"}]
    (tmp_path / "dump.json").write_text(json.dumps([*MEM0, *bad]))
    ran = hindsight("import", "dump.json", "--skip-bad", "--json")
    assert (ran.code, [one["place"] for one in ran.json["problems"]]) == (
        1,
        ["memory 3", "memory 6", "memory 4", "memory 5"],
    )
    assert ran.json["memories"] == {"stored": 2}


MCP = [
    {"type": "entity", "name": "Ada_Lovelace", "entityType": "person", "observations": ["speaks French", "Ada Lovelace 喜欢数学"]},
    {"type": "entity", "name": "Analytical Society", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "Ada_Lovelace", "to": "Analytical Society", "relationType": "works_at"},
]  # fmt: skip


def test_the_mcp_memory_servers_file_becomes_memories_with_their_entities(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = write(tmp_path / "memory.jsonl", *MCP)
    ran = hindsight("import", path)
    assert (ran.code, "format mcp-memory" in ran.err) == (0, True), ran.err
    found = {one["content"]: one for one in memories(db, bank)}
    assert found.keys() == {
        "Ada Lovelace: speaks French",
        "Ada Lovelace 喜欢数学",
        "Ada_Lovelace works at Analytical Society",
    }
    assert "Ada_Lovelace" in found["Ada Lovelace: speaks French"]["entities"]
    assert found["Ada Lovelace 喜欢数学"]["tags"] == ["person"]
    assert {"Ada_Lovelace", "Analytical Society"} <= set(found["Ada_Lovelace works at Analytical Society"]["entities"])
    assert hindsight("import", path, "--json").json["memories"] == {"there already": 3}
    write(
        path,
        {"type": "entity", "name": "x", "observations": [7]},
        {"type": "wish"},
        {"type": "relation", "from": "a", "to": "b"},
    )
    ran = hindsight("import", path, "--skip-bad", "--json", "--format", "mcp-memory")
    assert [one["place"] for one in ran.json["problems"]] == ["line 1", "line 2", "line 3"]


def test_memories_come_in_by_our_own_lines_too(db: Database, bank: str, hindsight: CommandLine, tmp_path: Path) -> None:
    path = write(
        tmp_path / "memories.jsonl",
        {
            "memory": "项目用 PostgreSQL 18",
            "type": "decision",
            "tags": ["project"],
            "occurred_at": "2026-01-01",
            "id": "p",
        },
        {"memory": "parked on level 3", "expires_at": "2020-01-01T00:00:00Z"},
        {"memory": "x", "type": "wish"},
    )
    ran = hindsight("import", path, "--skip-bad", "--json")
    assert ran.json["memories"] == {"stored": 1}
    assert "unknown type 'wish'" in ran.err
    (found,) = memories(db, bank)
    assert (found["type"], found["tags"], found["occurred_at"].year) == ("decision", ["project"], 2026)


def test_a_turn_that_the_bank_refuses_is_named_and_left_out_and_the_rest_comes_in(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    db.call("set_redaction", bank=bank, policy="refuse")
    path = write(tmp_path / "t.jsonl", own("I like tea."), own("密码是 hunter2-Pa55"), own("我也喜欢咖啡"))
    assert hindsight("import", path).code == 2
    ran = hindsight("import", path, "--skip-bad", "--json")
    assert (ran.code, ran.json["turns"]) == (1, {"logged already": 1, "logged": 1})
    assert "line 2" in ran.err
    assert "hunter2" not in ran.err
    assert [content for *_, content in said(db, bank)] == ["I like tea.", "我也喜欢咖啡"]


def test_a_memory_with_a_secret_in_it_is_known_again_and_stays_forgotten(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "m.jsonl", {"id": "7", "memory": "root的密码是 Sup3rS3cret9"}, {"id": "8", "memory": "I like tea."}
    )
    assert hindsight("import", path, "--json").json["memories"] == {"stored": 2}
    assert hindsight("import", path, "--json").json["memories"] == {"there already": 2}
    (masked,) = [one for one in memories(db, bank) if "[password:1]" in one["content"]]
    db.call("forget", bank=bank, memory_id=masked["memory_id"], reason="not any more")
    assert hindsight("import", path, "--json").json["memories"] == {"there already": 2}


# ---- LoCoMo --------------------------------------------------------------------------------------------


def test_locomos_turns_read_as_in_the_evaluation(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    turn = {"speaker": "Ada", "text": "Hello 你好", "dia_id": "D1:1"}
    conversation = {
        "speaker_a": "Ada", "speaker_b": "Bob", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [turn],
        "session_2_date_time": "1:56 pm on 9 May, 2023", "session_2": [{**turn, "dia_id": "D2:1", "speaker": "Bob", "blip_caption": "a cat"}],
    }  # fmt: skip
    qa = [{"question": "who?", "evidence": ["D1:1"], "category": 1}]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "conv-1", "conversation": conversation, "qa": qa}]))
    ran = hindsight("import", path)
    assert (ran.code, "format locomo" in ran.err) == (0, True), ran.err
    (corpus,) = read_corpora(path, "locomo")
    assert [(one["session_id"], one["turn_id"], one["content"], one["occurred_at"]) for one in turns(db, bank)] == [
        (f"conv-1/{one.session_id}", one.passage_id, one.content, one.occurred_at) for one in corpus.passages
    ]


# ---- export --------------------------------------------------------------------------------------------


def test_an_export_holds_every_row_of_the_bank_and_none_of_another(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    other = f"other-{uuid.uuid4().hex[:8]}"
    for name in (other, bank):
        mark = f"{name} 标记"
        db.call("create_bank", bank=name)
        db.call("set_tags", bank=name, aliases=json.dumps({mark: ["x"]})) if name == other else db.rows(
            "SELECT hindsight.set_tags(%s, aliases => %s)", (name, json.dumps({mark: ["x"]}))
        )
        db.call("set_policy", bank=name, type="todo", weight=0.5)
        memory = db.one("store", bank=name, content=f"the port of {mark}", slot="port", session_id=mark)["memory_id"]
        second = db.one("store", bank=name, content=f"the new port of {mark}, Kubernetes (K8s)", slot="port")[
            "memory_id"
        ]
        db.call("link", bank=name, from_id=memory, to_id=second)
        db.call("forget", bank=name, memory_id=memory, reason=f"because of {mark}")
        db.call("note_recall", bank=name, memory_ids=[second])
        db.call("log_turn", bank=name, session_id=mark, role="user", content=f"I am {mark}")
        db.rows("SELECT hindsight.working_set(%s, %s, 'k', %s)", (name, mark, json.dumps(mark)))
        bank_id = db.value("SELECT bank_id FROM hindsight.bank WHERE name = %s", (name,))
        db.rows("INSERT INTO hindsight.memory_turn VALUES (%s, %s, %s, 1)", (bank_id, second, mark))
        db.rows("INSERT INTO hindsight.turn_archive VALUES (%s, '2026-01-01', %s, 1, '')", (bank_id, mark))
        db.rows("INSERT INTO hindsight.session_archive VALUES (%s, %s, '2026-01-01', '{7}', '{1}')", (bank_id, mark))
        db.call("note_usage", bank=name, purpose="distil", model=mark)
        db.call("maintain", bank=name)
        db.rows(
            "INSERT INTO hindsight.next_embedding (bank_id, memory_id, model_id, digest) VALUES (%s, %s, 1, '')",
            (bank_id, second),
        )
    assert hindsight("export", "all.jsonl").code == 0
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    every = db.rows(
        "SELECT c.table_name AS name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) "
        "WHERE c.table_schema = 'hindsight' AND c.column_name = 'bank_id' AND t.table_type = 'BASE TABLE' AND c.table_name !~ '^turn_[0-9]'"
    )
    for table in {row["name"] for row in every} - {"word_statistics", "entity"}:  # counted from the others
        held = db.value(f"SELECT count(*) FROM hindsight.{table} WHERE bank_id = %s", (bank_id,))
        assert held > 0, f"the test fills no {table}"
        assert sum(row["table"] == table for row in rows) == held, table
    columns = {column for row in rows if row["table"] == "memory" for column in row}
    assert {"content", "state", "deleted_at", "superseded_by", "metadata", "confidence"} - {"state"} <= columns
    assert other not in (tmp_path / "all.jsonl").read_text()
    assert hindsight("export").out == (tmp_path / "all.jsonl").read_text()
    refused = hindsight("export", "all.jsonl")
    assert (refused.code, "there already" in refused.err) == (2, True)
    assert hindsight("export", "--bank", "nobody's").code == 3


def test_what_was_exported_is_imported_elsewhere_with_its_turns_and_live_memories(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    hindsight(
        "import",
        write(
            tmp_path / "talk.jsonl",
            own("记住：端口是 49222", turn_id="a"),
            own("ok", "assistant"),
            own("x", session_id="s2"),
        ),
    )
    db.call("distil_waiting", bank=bank)
    db.call("store", bank=bank, content="MySQL 8.0", slot="db", type="decision")
    db.call("store", bank=bank, content="MySQL 8.4", slot="db", type="decision", tags=["project"])
    gone = db.one("store", bank=bank, content="will be forgotten")["memory_id"]
    db.call("forget", bank=bank, memory_id=gone, reason="x")
    todo = db.one("store", bank=bank, content="renew the permit", type="todo")["memory_id"]
    db.call("complete", bank=bank, memory_id=todo)
    doubted = db.one("store", bank=bank, content="made of it", derived_from=[todo])["memory_id"]
    db.call("forget", bank=bank, memory_id=todo, reason="x")
    (tmp_path / "manual.md").write_text("# A\n\n一段。\n")
    hindsight("import", "--as", "knowledge", "manual.md")
    for number, content in enumerate(("I like dark mode", "I prefer dark mode 编辑器", "Please always use dark mode")):
        db.call("store", bank=bank, content=content, type="preference", source="user", session_id=f"p{number}")
    (insight,) = db.call("reflect", bank=bank)
    assert hindsight("export", "all.jsonl.gz").code == 0
    db.call("forget", bank=bank, memory_id=insight["memory_id"], reason="x")
    elsewhere = f"elsewhere-{uuid.uuid4().hex[:8]}"
    ran = hindsight("import", "all.jsonl.gz", "--bank", elsewhere)
    assert ran.code == 0, ran.err
    kept = ("session_id", "sequence", "turn_id", "role", "content", "occurred_at", "distilled_at")
    assert [[one[name] for name in kept] for one in turns(db, elsewhere)] == [
        [one[name] for name in kept] for one in turns(db, bank)
    ]
    assert {one["content"]: one["slot"] for one in memories(db, elsewhere)} == {
        one["content"]: one["slot"] for one in memories(db, bank)
    }
    assert not {"will be forgotten", "renew the permit", "made of it"} & {
        one["content"] for one in db.call("state", bank=elsewhere)
    }
    assert db.one("get", bank=bank, memory_id=doubted)["state"] == "pending"
    before = memories(db, elsewhere)
    again = hindsight("import", "all.jsonl.gz", "--bank", elsewhere, "--json").json
    assert (again["turns"], list(again["memories"])) == ({"logged already": 3}, ["there already"])
    assert memories(db, elsewhere) == before
    assert hindsight("import", "--as", "knowledge", "manual.md", "--bank", elsewhere, "--json").json == {
        "manual.md": {"unchanged": 1}
    }


def test_a_generated_transcript_for_measuring_is_imported(
    db: Database, bank: str, hindsight: CommandLine, tmp_path: Path
) -> None:
    tool = Path(__file__).parents[2] / "tools" / "generate_transcript.py"
    made = subprocess.run([sys.executable, tool, "300", "7"], capture_output=True, check=True).stdout
    (tmp_path / "t.jsonl").write_bytes(made)
    assert hindsight("import", "t.jsonl", "--json").json["turns"] == {"logged": 300}
    assert len({session for session, _, _ in said(db, bank)}) == 43
