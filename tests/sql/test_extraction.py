"""What is worth keeping of a turn, by rules, in English and Chinese: sentences, types, slots, replies, summaries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hindsight.config import Settings
from hindsight.engine import sync_engine
from hindsight.errors import InvalidArgument
from hindsight.evaluation_conversations import (
    Conversation,
    ConversationReport,
    Found,
    evaluate_conversations,
    read_conversations,
    rules,
)
from tests.conftest import Database

CONVERSATIONS = Path(__file__).parents[1] / "fixtures" / "conversations.jsonl"


def extract(db: Database, content: str | None, *before: str, role: str | None = "user") -> list[dict[str, Any]]:
    return db.rows(
        "SELECT * FROM hindsight.extract(%s::text, %s::text, %s::text)", (role, content, "\x1e".join(before) or None)
    )


def contents(db: Database, content: str, *before: str, role: str = "user") -> list[str]:
    return [row["content"] for row in extract(db, content, *before, role=role)]


@pytest.mark.parametrize(
    ("said", "type_", "slot"),
    [
        ("My name is Priya.", "fact", "user.name"),
        ("我叫李雷。", "fact", "user.name"),
        ("I live in Lisbon.", "fact", "user.location"),
        ("我住在杭州。", "fact", "user.location"),
        ("I use Neovim.", "fact", "user.editor"),
        ("我平时用 Neovim。", "fact", "user.editor"),
        ("I switched to NixOS.", "decision", "user.os"),
        ("我这台换成了 NixOS。", "decision", "user.os"),
        ("The project uses PostgreSQL 16.", "fact", "project.database"),
        ("项目用的是 PostgreSQL 16。", "fact", "project.database"),
        ("We decided to drop support for Python 3.9.", "decision", None),
        ("我们决定不再支持 Python 3.9。", "decision", None),
        ("I can't stand cilantro.", "preference", None),
        ("我受不了香菜。", "preference", None),
        ("Remind me to renew the certificate before 3 May.", "todo", None),
        ("I need to rotate the TLS certificate before March 1st.", "todo", None),
        ("提醒我5月3号之前续证书。", "todo", None),
        ("From now on answer me in German.", "preference", "user.language"),
        ("以后都用中文回答我。", "preference", "user.language"),
        ("Please don't deploy on Fridays.", "preference", None),
        ("请不要在周五发布。", "preference", None),
        ("The staging box listens on port 2222.", "fact", None),
        ("测试服务器的端口是2222。", "fact", None),
        ("My sister teaches chemistry in Leeds.", "fact", None),
        ("我姐在利兹教化学。", "fact", None),
    ],
)
def test_what_lasts_is_kept_as_it_was_said(db: Database, said: str, type_: str, slot: str | None) -> None:
    (row,) = extract(db, said)
    assert (row["content"], row["slot"]) == (said, slot)
    assert row["type"] in (type_, "fact") if type_ == "decision" and slot else row["type"] == type_
    assert (row["confidence"], row["source"], row["is_correction"]) == (0.9, "user", False)
    assert 0.5 <= row["importance"] <= 1


@pytest.mark.parametrize(
    "said",
    [
        "Hello there!",
        "ok thanks, that's perfect",
        "What port does staging use?",
        "I just installed MySQL.",
        "I'm tired today.",
        "If I used a Mac, I would not have this problem.",
        "Someone said Postgres is faster.",
        "My boss says we will all be replaced by 2030.",
        "Write it shorter, please.",
        "Imagine I am the king of France and I own ten castles.",
        "Maybe I'll try it on the weekend.",
        "You can watch it on channel 4.",
        "I feel a bit lost.",
        "The build fails with error 137.",
        'Translate this: "My name is Bob. I live in Paris."',
        "> I prefer the old layout. My number is 555-0134.",
        "```\nname = 'I live in Paris'\nport = 8080\n```",
        "你好！",
        "好的，谢谢",
        "测试环境用哪个端口？",
        "今天装了MySQL",
        "我好累",
        "如果我用 Mac 就没这问题了。",
        "听说 Postgres 更快。",
        "老板说2030年大家都要被取代。",
        "翻译一下",
        "写短一点",
        "假设我是国王，有十座城堡。",
        "可能周末试试",
        "你可以看第4频道。",
        "构建失败，错误码 137。",
        "把这句翻译成英文：“我叫王强，住在北京。”",
        "",
        " ",
        "...!!!",
    ],
)
def test_what_passes_or_is_not_meant_is_left_out(db: Database, said: str) -> None:
    assert contents(db, said) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "system", "Function", "developer"])
def test_only_people_tell_of_themselves(db: Database, role: str) -> None:
    assert contents(db, "Remember that my name is Priya and the port is 8080.", role=role) == []
    assert contents(db, "Remember that my name is Priya and the port is 8080.", role="Priya") != []


def test_the_story_of_a_problem_ends_as_one_fact_with_its_solution(db: Database) -> None:
    problem = "Docker Desktop won't start, it only says virtualization support not detected."
    advice = "Hardware virtualization is switched off. Reboot into the BIOS and enable Intel VT-x. Does that help?"
    assert contents(db, problem) == []
    (row,) = extract(db, "That did it, it starts now!", problem, advice)
    assert row["type"] == "fact"
    assert row["content"] == f"{problem} Solution: Reboot into the BIOS and enable Intel VT-x."
    problem, advice = "启动报错 virtualization support not detected。", "重启进 BIOS，把 VT-x 改成 Enabled。"
    assert contents(db, "好了，能启动了！", problem, advice) == [f"{problem}解决方法：{advice}"]
    assert contents(db, "好了，谢谢！", "帮我写一条命令", "ls -l") == []


def test_the_cure_that_is_told_counts_before_the_advice(db: Database) -> None:
    problem, advice = "curl returns 403 from the artifact store.", "Check the proxy."
    (found,) = contents(db, "A new token solved it.", problem, advice)
    assert found == f"{problem} Solution: A new token solved it."
    (found,) = contents(db, "换了新令牌就好了。", "下载制品返回 403。", "检查一下代理。")
    assert found == "下载制品返回 403。解决方法：换了新令牌就好了。"


@pytest.mark.parametrize("thanks", ["That fixed it, thank you!", "That worked, thanks!", "Great, that did the trick."])
def test_a_cure_that_is_only_thanked_for_is_the_one_that_was_advised_for_the_error_as_it_was_told(
    db: Database, thanks: str
) -> None:
    problem = "Docker Desktop won't start. It says 'virtualization support not detected'."
    advice = "Enable virtualization (VT-x) in the BIOS and reboot."
    assert contents(db, thanks, problem, advice) == [f"{problem} Solution: {advice}"]
    assert contents(db, "Enabling VT-x in the BIOS fixed it.", problem, advice) == [
        f"{problem} Solution: Enabling VT-x in the BIOS fixed it."
    ]


def test_a_cure_in_chinese_is_told_once_with_the_error(db: Database) -> None:
    problem = "Docker 启动不了。提示 virtualization support not detected"
    assert contents(db, "解决了，开启BIOS虚拟化之后就好了", problem, "请进入BIOS开启虚拟化后重启。") == [
        f"{problem}。解决方法：开启BIOS虚拟化之后就好了"
    ]


def test_a_choice_is_kept_with_what_was_chosen(db: Database) -> None:
    offer = "Two ways: 1. Redis with a TTL. 2. A table in PostgreSQL. Which one?"
    (row,) = extract(db, "The second one, we want no other service.", offer)
    assert row["type"] == "decision"
    assert "A table in PostgreSQL" in row["content"]
    assert "Redis" not in row["content"]
    (found,) = contents(db, "用第二个吧", "两个方案：1. Redis 集群。2. 进程内的 Caffeine。")
    assert found == "用第二个吧：进程内的 Caffeine"


def test_a_short_answer_is_kept_with_its_question(db: Database) -> None:
    (row,) = extract(db, "Neovim with a few plugins", "Which editor do you use?")
    assert (row["content"], row["slot"]) == ("Which editor do you use? Neovim with a few plugins", "user.editor")
    assert contents(db, "五口人", "你们家一共几个人吃饭？") == ["你们家一共几个人吃饭？五口人"]
    assert contents(db, "Yes, use eu-central-1", "Shall we use eu-central-1 for the backups?") == [
        "Shall we use eu-central-1 for the backups? Yes, use eu-central-1"
    ]
    assert contents(db, "yes please", "Shall I run the tests?") == []
    assert contents(db, "Great!", "How about roast chicken?") == []


@pytest.mark.parametrize(
    "said", ["No, sorry, it's 2222 actually.", "Wrong, our tables are in snake_case.", "不对，应该是2222。"]
)
def test_a_correction_is_marked_and_is_a_decision(db: Database, said: str) -> None:
    (row,) = extract(db, said, "Is the port 49222?")
    assert (row["type"], row["is_correction"]) == ("decision", True)


def test_a_doubt_makes_it_inferred_and_less_certain(db: Database) -> None:
    for said in ("I think the billing service runs on Java 11.", "计费服务好像跑在 Java 11 上。"):
        (row,) = extract(db, said)
        assert (row["type"], row["source"], row["confidence"]) == ("hypothesis", "inferred", 0.6)


def test_a_turn_is_cut_where_sentences_end_and_nowhere_else(db: Database) -> None:
    def sentences(turn: str) -> list[str]:
        return [row["sentence"] for row in db.rows("SELECT sentence FROM hindsight._sentences(%s)", (turn,))]

    assert sentences(
        'Hi! See https://acme.example/v1.2/x?y=1, v3.14. Dr. Lee said "No. Never." to it, e.g. at 2.5 GB?\n'
        "- We ship on Tuesdays\n2. We bill quarterly; on day 3...\n> quoted\n```\ncode. code.\n```\nEnd"
    ) == [
        "Hi!",
        "See https://acme.example/v1.2/x?y=1, v3.14.",
        'Dr. Lee said "No. Never." to it, e.g. at 2.5 GB?',
        "We ship on Tuesdays",
        "We bill quarterly;",
        "on day 3...",
        "End",
    ]
    assert sentences("我叫李雷。他说“不。绝不！”对吧？版本是8.0；好") == [
        "我叫李雷。",
        "他说“不。绝不！”对吧？",
        "版本是8.0；",
    ]


def test_remember_is_taken_off_and_counts_more(db: Database) -> None:
    for said, kept in (
        ("Remember that the vault is at 10.0.0.7.", "the vault is at 10.0.0.7."),
        ("记住：金库地址是10.0.0.7。", "金库地址是10.0.0.7。"),
    ):
        (row,) = extract(db, said)
        assert row["content"] == kept
        assert row["importance"] >= 0.8


@pytest.mark.parametrize(
    ("said", "is_explicit"),
    [
        ("Hm. Remember that I'm vegan.", True),
        ("I decided to stay.", True),
        ("From now on use tabs.", True),
        ("记住我吃素", True),
        ("以后都用中文", True),
        ("我决定用 Rust", True),
        ("Do you remember my name?", False),
        ("你还记得我叫什么吗？", False),
        ("I live in Lisbon.", False),
        ("```\nremember that\n```", False),
        ("", False),
    ],
)
def test_what_is_said_in_so_many_words_is_explicit(db: Database, said: str, is_explicit: bool) -> None:
    assert db.value("SELECT hindsight._is_explicit(%s)", (said,)) is is_explicit


@pytest.mark.parametrize(
    "said", ["I don't use vim.", "I use vim and emacs.", "My brother lives in Rome.", "我不用 vim。", "我弟住在罗马。"]
)
def test_in_doubt_there_is_no_slot(db: Database, said: str) -> None:
    assert [row["slot"] for row in extract(db, said)] in ([], [None])


def test_a_new_value_in_the_other_language_takes_the_place_of_the_old_one(db: Database, bank: str) -> None:
    for said in ("I live in Lisbon.", "我搬到杭州了。"):
        (row,) = extract(db, said)
        outcome = db.one("store", bank=bank, content=row["content"], slot=row["slot"], source=row["source"])["outcome"]
    assert outcome == "superseding"


def test_nothing_comes_of_nothing(db: Database) -> None:
    assert extract(db, None) == []
    assert extract(db, "My name is Priya.", role=None) == []


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60),
            st.sampled_from(
                ["I use vim. ", "my ", "不对，", "fixed it. ", "remember ", "“", '"', "`", "?", "我们", "1. "]
            ),
        ),
        max_size=12,
    )
)
def test_any_text_gives_valid_memories(db: Database, parts: list[str]) -> None:
    turn = "".join(parts)
    for row in extract(db, turn, turn, turn):
        assert row["content"].strip()
        assert row["type"] in ("fact", "preference", "decision", "todo", "hypothesis")
        assert 0.5 <= row["confidence"] <= 0.9
        assert 0 <= row["importance"] <= 1


@pytest.mark.parametrize(
    "unit", ["my ", "“", '"', "`", "1. ", "我在，", "i am, ", "don't put ", "a) b; ", "\n", "because "]
)
def test_long_hostile_turns_are_read_in_good_time(db: Database, unit: str) -> None:
    turn = (unit * 1_000_000)[:1_000_000]
    with db.connection.transaction():
        db.rows("SET LOCAL statement_timeout = '5s'")
        extract(db, turn, turn)


def test_verbatim_keeps_each_turn_that_matters_whole(db: Database) -> None:
    def verbatim(role: str, content: str) -> list[dict[str, Any]]:
        return db.rows("SELECT * FROM hindsight._verbatim(%s, %s)", (role, content))

    (row,) = verbatim("user", "Hm. I hate cilantro! And my flight is at 7.")
    assert (row["content"], row["type"]) == ("Hm. I hate cilantro! And my flight is at 7.", "preference")
    (row,) = verbatim("assistant", "The train takes three hours.")
    assert (row["type"], row["source"]) == ("fact", "inferred")
    (row,) = verbatim("tool", "PostgreSQL 18.1 on x86_64")
    assert (row["type"], row["source"]) == ("fact", "tool")
    assert verbatim("user", "ok, thanks!") == []
    assert verbatim("system", "You are a helpful assistant who always answers in French.") == []


def summary(db: Database, *memories: tuple[str, str]) -> str | None:
    contents, types = [memory[1] for memory in memories], [memory[0] for memory in memories]
    found: str | None = db.value("SELECT hindsight._summary_of(%s::text[], %s::text[])", (contents, types))
    return found


def test_a_summary_names_decisions_first_in_the_language_of_the_memories(db: Database) -> None:
    assert summary(
        db,
        ("todo", "Renew the certificate by Friday."),
        ("fact", "The API is on port 8080."),
        ("decision", "We use Kafka."),
    ) == (
        "Decided: We use Kafka. Known: The API is on port 8080. To do: Renew the certificate by Friday. "
        "About: API, Kafka."
    )
    assert summary(db, ("fact", "端口是8080。"), ("decision", "就用 Kafka 吧。")) == (
        "决定：就用 Kafka 吧。事实：端口是8080。涉及：Kafka。"
    )


def test_a_summary_is_short_and_one_memory_needs_none(db: Database) -> None:
    assert summary(db) is None
    assert summary(db, ("fact", "The API is on port 8080.")) is None
    assert summary(db, ("hypothesis", "Maybe A"), ("hypothesis", "Maybe B")) is None
    long = summary(db, *[("fact", f"Fact {number}: {'x' * 100}") for number in range(50)], ("todo", "Call Priya"))
    assert long is not None
    assert len(long) <= 600
    assert "To do: Call Priya" in long


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return read_conversations(CONVERSATIONS)


@pytest.fixture(scope="module")
def report(shared_url: str, conversations: list[Conversation]) -> Iterator[ConversationReport]:
    engine = sync_engine(shared_url, Settings())
    with engine.connect() as connection:
        yield evaluate_conversations(conversations, rules(connection))
    engine.dispose()


def test_the_labelled_set_is_large_half_chinese_and_a_third_held_out(conversations: list[Conversation]) -> None:
    assert len(conversations) >= 60
    assert sum(one.language == "zh" for one in conversations) >= len(conversations) / 2
    assert sum(one.split == "held_out" for one in conversations) >= len(conversations) / 3
    assert len({one.id for one in conversations}) == len(conversations)


@pytest.mark.parametrize(("split", "language"), [("all", "all"), ("held_out", "all"), ("all", "en"), ("all", "zh")])
def test_nine_of_ten_that_are_extracted_are_worth_it_and_seven_of_ten_are_found(
    report: ConversationReport, split: str, language: str
) -> None:
    (group,) = (one for one in report.groups if (one.split, one.language) == (split, language))
    assert group.precision is not None
    assert group.precision >= 0.9
    assert group.recall is not None
    assert group.recall >= 0.7


def test_the_counts_are_those_of_any_extractor(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "language": "en",
        "split": "tune",
        "turns": [{"role": "user", "content": "I'm on Arch and use fish."}],
        "keep": [
            {"holds": ["Arch"], "type": ["fact"], "slot": "user.os"},
            {"holds": ["Fish"], "type": ["fact", "preference"]},
            {"holds": ["missing"], "type": ["fact"]},
        ],
    }
    file = tmp_path / "conversations.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    found = [
        Found("Arch and fish", "fact", "user.os"),  # keeps two
        Found("fish again", "fact", None),  # a duplicate
        Found("arch", "decision", "user.os"),  # of another type
        Found("arch", "fact", None),  # without its slot
    ]
    report = evaluate_conversations(read_conversations(file), lambda conversation: found)
    (group,) = (one for one in report.groups if (one.split, one.language) == ("all", "all"))
    assert (group.extracted, group.right, group.keep, group.found) == (4, 1, 3, 2)
    assert [memory for _, memory in report.wrong] == found[1:]
    assert [keep.holds for _, keep in report.missed] == [("missing",)]
    assert report.as_dict()["groups"][-1]["precision"] == 0.25


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "no JSON", '{"id": 1, "language": "en", "split": "tune", "turns": 1}']
)
def test_a_file_of_another_format_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument):
        read_conversations(file)
    with pytest.raises(InvalidArgument, match="can't be read"):
        read_conversations(tmp_path / "none.jsonl")
