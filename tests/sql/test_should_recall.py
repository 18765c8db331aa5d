"""When a message asks for memory: a labelled set, what the bank knows, and messages that nobody writes."""

import csv
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Database

FIXTURE = Path(__file__).parents[1] / "fixtures" / "should_recall.tsv"
REASONS = {
    "past": "refers to the past: ",
    "user": "is about the user or their world: ",
    "follow": "follows up on what was said: ",
    "name": "the bank knows ",
    "chat": "small talk: ",
    "sum": "arithmetic: ",
    "general": "nothing in it refers to",
}
HAN = range(0x4E00, 0x9FFF)


def messages() -> list[dict[str, str]]:
    """Each with its label (yes, no) and what it is an example of."""
    with FIXTURE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, ["label", "kind", "message"], delimiter="\t", quoting=csv.QUOTE_NONE))


def is_chinese(message: str) -> bool:
    return any(ord(character) in HAN for character in message)


@pytest.fixture
def known(db: Database, bank: str) -> str:
    """A bank that knows some names."""
    for name in ("Alice", "张伟", "Project Atlas", "Atlas", "C++", "New York", "小黑"):
        db.call("store", bank=bank, content=f"about {name}", entities=[name])
    db.call("store", bank=bank, content="how it runs", tags=["docker", "汇率"], slot="user.os")
    db.call("store", bank=bank, content="where it listens", slot="ssh.port")
    return bank


def asked(db: Database, bank: str, message: str | None) -> tuple[bool, str]:
    found = db.one("should_recall", bank=bank, message=message)
    return found["recall"], found["reason"]


class TestTheLabelledSet:
    def test_it_is_large_and_half_chinese(self) -> None:
        labelled = messages()
        chinese = sum(is_chinese(row["message"]) for row in labelled)
        assert len(labelled) >= 120
        assert 0.45 <= chinese / len(labelled) <= 0.55
        assert {(row["label"] == "yes", row["kind"]) for row in labelled} == {
            *((True, kind) for kind in ("past", "user", "follow", "name")),
            *((False, kind) for kind in ("chat", "sum", "general")),
        }

    @pytest.mark.parametrize("chinese", [True, False])
    def test_precision_and_recall_are_at_least_95_percent_in_each_language(
        self, db: Database, known: str, chinese: bool
    ) -> None:
        right, wrong, missed = 0, [], []
        for row in messages():
            if is_chinese(row["message"]) == chinese:
                answer, reason = asked(db, known, row["message"])
                right += answer and row["label"] == "yes"
                wrong += [(row["message"], reason)] if answer and row["label"] == "no" else []
                missed += [(row["message"], reason)] if not answer and row["label"] == "yes" else []
        assert right / (right + len(wrong)) >= 0.95, wrong
        assert right / (right + len(missed)) >= 0.95, missed

    def test_nearly_all_are_answered_for_the_right_reason(self, db: Database, known: str) -> None:
        labelled = messages()
        others = [
            row for row in labelled if not asked(db, known, row["message"])[1].startswith(REASONS[row["kind"]])
        ]  # a message may have two cues: the first counts
        assert len(others) / len(labelled) <= 0.05, others


class TestTheReason:
    @pytest.mark.parametrize(
        ("message", "reason"),
        [
            ("Do it as before, please", "refers to the past: as before"),
            ("帮我看看上次的方案", "refers to the past: 上次"),
            ("Where do I live?", "is about the user or their world: do i"),
            ("那 Mac 呢？", "follows up on what was said: 那 mac 呢?"),
            ("好的，谢谢！", "small talk: 好的, 谢谢!"),
            ("3加5等于几", "arithmetic: 3 加 5 等于几"),
            ("Any news of alice?", "the bank knows Alice"),
            ("青霉素是谁发现的", "nothing in it refers to the past, to the user or to what the bank knows"),
        ],
    )
    def test_it_names_the_words_that_decided(self, db: Database, known: str, message: str, reason: str) -> None:
        assert asked(db, known, message)[1] == reason


class TestNames:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("docker-compose", "does Docker Compose restart by itself"),
            ("PostgreSQL", "POSTGRESQL或者MySQL"),
            ("汇率接口", "这个汇率接口很慢"),
            ("Zoë", "a present for zoë"),
            ("東京タワー", "明日東京タワーへ行く"),
            ("삼성전자", "삼성전자의 주가"),
            ("上海浦东机场", "去上海浦东机场要多久"),
            ("F#", "a F# exercise"),
        ],
    )
    def test_a_tag_or_entity_is_known_however_it_is_written(
        self, db: Database, bank: str, name: str, message: str
    ) -> None:
        assert asked(db, bank, message)[0] is False
        db.call("store", bank=bank, content="something", tags=[name])
        assert asked(db, bank, message) == (True, f"the bank knows {name.lower()}")  # as tags are kept

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("art", "a start is hard"),
            ("IT", "is it raining"),
            ("米", "十米有多高"),
            ("2024", "who won in 2024"),
            ("C++", "vitamin c"),
        ],
    )
    def test_a_name_inside_a_word_a_stop_word_a_character_and_a_number_are_none(
        self, db: Database, bank: str, name: str, message: str
    ) -> None:
        db.call("store", bank=bank, content="something", entities=[name])
        assert asked(db, bank, message)[0] is False

    def test_only_what_is_live_in_this_bank_is_known(self, db: Database, bank: str) -> None:
        other = f"bank-{uuid.uuid4().hex[:10]}"
        db.call("create_bank", bank=other)
        message = "the wombat eats"
        db.call("store", bank=other, content="x", tags=["wombat"])
        db.call("store", bank=bank, content="not believed", tags=["wombat"], confidence=0.3)
        assert asked(db, bank, message)[0] is False
        memory_id = db.one("store", bank=bank, content="believed", tags=["wombat"])["memory_id"]
        assert asked(db, bank, message)[0] is True
        db.rows(
            "UPDATE hindsight.memory SET expires_at = %s WHERE memory_id = %s",
            (datetime.now(UTC) - timedelta(1), memory_id),
        )
        assert asked(db, bank, message)[0] is False
        db.rows("UPDATE hindsight.memory SET expires_at = NULL WHERE memory_id = %s", (memory_id,))
        db.call("forget", bank=bank, memory_id=memory_id, reason="asked to")
        assert asked(db, bank, message)[0] is False


class TestWhatNobodyWrites:
    @pytest.mark.parametrize("message", [None, "", " \n\t", "\u3000\u00a0", "\u200b\ufeff"])
    def test_an_empty_message_asks_for_nothing(self, db: Database, bank: str, message: str | None) -> None:
        assert asked(db, bank, message) == (False, "the message is empty")

    @pytest.mark.parametrize(
        "message",
        [
            "a" * 50_000,
            "的" * 50_000,
            "呢" * 80,
            "thanks " * 7_000,
            "( " * 25_000,
            "and " * 12_000 + "?",
            "\U0001f600" * 9_000,
        ],
    )
    def test_a_message_of_fifty_thousand_characters_is_answered_at_once(
        self, db: Database, bank: str, message: str
    ) -> None:
        asked(db, bank, "the first call of a connection compiles the patterns")
        start = time.perf_counter()
        asked(db, bank, message)
        assert time.perf_counter() - start < 0.5

    def test_a_cue_at_either_end_of_a_long_message_is_heard(self, db: Database, bank: str) -> None:
        log = "2026-03-01 worker started\n" * 2000
        assert asked(db, bank, log)[0] is False
        assert asked(db, bank, f"和上次一样报错：\n{log}")[0] is True
        assert asked(db, bank, f"{log}\nIt was the same last time.")[0] is True

    def test_code_and_quotations_are_not_what_is_said(self, db: Database, bank: str) -> None:
        code = "```\n# as before, we decided last time\nprint('again')\n```"
        assert asked(db, bank, f"Explain this:\n{code}")[0] is False
        assert asked(db, bank, "Translate “上次我们说过的” into English")[0] is False
        assert asked(db, bank, '"What did you tell me last time?"')[0] is True

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        message=st.lists(
            st.one_of(
                st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
                st.sampled_from(
                    ["@", "\\m", "(", "[", "{1,40}", "上次", "again", "`", '"', "\\", "%s", "呢", "$1", "\n"]
                ),
            ),
            max_size=20,
        ).map("".join)
    )
    def test_any_message_has_an_answer_and_a_reason(self, db: Database, known: str, message: str) -> None:
        answer, reason = asked(db, known, message)
        assert answer in (True, False)
        assert reason


def test_the_rules_decide_in_about_a_millisecond(db: Database, known: str) -> None:
    """Ten times that, for slow machines: it is no query of vectors."""
    sentence = "Which of the two is faster for sorting a million integers, quicksort or radix sort?"
    asked(db, known, sentence)
    timed: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        asked(db, known, sentence)
        timed.append(time.perf_counter() - start)
    assert sorted(timed)[10] < 0.01
