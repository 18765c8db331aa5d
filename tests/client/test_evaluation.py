"""`hindsight eval`: the figures are those that one gets by hand, in both formats and in both languages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hindsight import cli
from hindsight.config import load_settings
from hindsight.dataset import Question, read_corpora
from hindsight.embedding_cache import CachedEmbedder
from hindsight.errors import InvalidArgument
from hindsight.evaluation import Quality, by_category, evaluate, reciprocal_rank_fusion
from hindsight.evaluation_pairs import Group, evaluate_pairs, read_pairs
from hindsight.evaluation_redaction import Kind, Sentence, evaluate_redaction
from hindsight.sync_client import Hindsight

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_10_date_time": "1:56 pm on 8 August, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "We moved to Lisbon."}],
            "session_2_date_time": "9:05 am on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "What is your dog called?"},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "Zorro!", "blip_caption": "a photo of a poodle"},
                {"speaker": "Ann", "dia_id": "D2:3", "text": "Great!"},
                {"speaker": "Ann", "dia_id": "D2:4", "text": "Great!"},
            ],
        },
        "qa": [
            {"question": "Who has a poodle?", "evidence": ["D2:2"], "category": 4},
            {"question": "Where do they live, Lisbon?", "evidence": ["D10:1; D2:2"], "category": 1},
            {"question": "Was it great?", "evidence": ["D2:3", "D"], "category": 2},
            {"question": "Was never said", "evidence": ["D2:1"], "category": 5},
            {"question": "Without evidence", "evidence": [], "category": 4},
            {"question": "Evidence that is not there", "evidence": ["D7:7"], "category": 4},
        ],
    }
]
SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "外币汇率换算接口每天凌晨更新一次。",
                    "qas": [{"question": "汇率什么时候更新？"}, {"question": "换算接口"}],
                },
                {"context": "杭州西湖位于浙江省。", "qas": [{"question": "西湖在哪里？"}]},
            ]
        },
        {"paragraphs": [{"context": "The lighthouse was built in 1845.", "qas": [{"question": "When was it built?"}]}]},
    ]
}


class Toy:
    """An embedder of two dimensions: what names a poodle or a lake lies on the one, and the rest near the other."""

    model, dimensions, floor, recall_threshold, merge_threshold = "toy", 2, 0.0, 0.5, 0.9

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def query(self, text: str) -> list[float]:
        self.embedded.append(text)
        return [1.0, 0.0] if "poodle" in text else [0.0, 1.0]

    def passages(self, texts: Any) -> list[list[float]]:
        self.embedded += texts
        return [[1.0, 0.0] if "poodle" in text or "湖" in text else [0.5, 1.0] for text in texts]


def written(directory: Path, content: Any) -> Path:
    path = directory / "data.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def client(shared_url: str) -> Iterator[Hindsight]:
    with Hindsight.connect(shared_url, settings=load_settings(embedding_provider="none")) as client:
        yield client


def test_locomo_is_read_as_turns_with_the_turn_before_as_context(tmp_path: Path) -> None:
    (corpus,) = read_corpora(written(tmp_path, LOCOMO), "locomo")
    assert [passage.passage_id for passage in corpus.passages] == ["D2:1", "D2:2", "D2:3", "D2:4", "D10:1"]
    assert corpus.passages[1].content == "Bo: Zorro! [image: a photo of a poodle]"
    assert [passage.context for passage in corpus.passages[:3]] == [None, *(p.content for p in corpus.passages[:2])]
    assert corpus.passages[4].context == "Ann: Great!"  # of the session before
    assert [(sorted(question.gold), question.category) for question in corpus.questions] == [
        (["D2:2"], "single-hop"),
        (["D10:1", "D2:2"], "multi-hop"),
        (["D2:3"], "temporal"),
    ]


def test_squad_is_read_as_passages_each_the_gold_of_the_questions_under_it(tmp_path: Path) -> None:
    (corpus,) = read_corpora(written(tmp_path, SQUAD), "squad")
    assert [passage.content[:4] for passage in corpus.passages] == ["外币汇率", "杭州西湖", "The "]
    assert [sorted(question.gold) for question in corpus.questions] == [["0"], ["0"], ["1"], ["2"]]


@pytest.mark.parametrize("content", [[], {"data": []}, {"data": [{"paragraphs": 1}]}, [{"qa": []}], "text"])
@pytest.mark.parametrize("format", ["locomo", "squad"])
def test_a_file_of_another_format_is_refused_with_its_name(tmp_path: Path, content: Any, format: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"data\.json"):
        read_corpora(written(tmp_path, content), format)


def test_the_figures_are_those_computed_by_hand() -> None:
    def found(*ids: str) -> list[frozenset[str]]:
        return [frozenset([name]) for name in ids]

    others = [f"x{n}" for n in range(20)]
    outcomes = [
        (Question("two golds, ranks 1 and 8", frozenset("ab"), "one"), found("a", *others[:6], "b")),
        (Question("rank 6", frozenset("a"), "one"), found(*others[:5], "a")),
        (Question("rank 4, in a merged memory", frozenset("a"), "two"), [*found(*others[:3]), frozenset("az")]),
        (Question("rank 21 is too late", frozenset("a"), "two"), found(*others, "a")),
    ]
    figures = by_category(outcomes)
    assert list(figures) == ["all", "one", "two"]
    assert figures["all"] == Quality(4, 1.5 / 4, 3 / 4, 3 / 4, 2 / 4, pytest.approx((1 + 1 / 6 + 1 / 4) / 4))
    assert figures["one"] == Quality(2, 0.25, 1.0, 1.0, 0.5, pytest.approx((1 + 1 / 6) / 2))
    assert figures["two"] == Quality(2, 0.5, 0.5, 0.5, 0.5, 1 / 8)


def test_rank_fusion_puts_what_both_found_before_what_one_found_first() -> None:
    a, b, c = (uuid.uuid4() for _ in range(3))
    assert reciprocal_rank_fusion([[a, b], [c, b]]) == [b, a, c]


def test_each_channel_finds_what_it_can(client: Hindsight, shared_url: str, tmp_path: Path) -> None:
    client.embedder = Toy()
    corpora = read_corpora(written(tmp_path, LOCOMO), "locomo")
    report = evaluate(corpora, client, shared_url, load_settings())
    assert (report.memories, report.questions, report.model) == (5, 3, "toy")
    assert list(report.quality) == ["vector", "words", "rrf", "ours"]
    assert set(report.quality["ours"]) == {"all", "single-hop", "multi-hop", "temporal"}
    # The equal turns D2:3 and D2:4 are one memory, found by either's name.
    assert report.quality["words"]["temporal"] == Quality(1, 1, 1, 1, 1, 1)
    assert report.quality["words"]["multi-hop"] == Quality(1, 0.5, 0.5, 0.5, 1, 1)  # "Lisbon" names only one of two
    assert report.quality["vector"]["single-hop"] == Quality(1, 1, 1, 1, 1, 1)
    assert report.quality["ours"]["all"] == Quality(3, 1, 1, 1, 1, 1)
    assert all(time > 0 for time in [*report.sql_ms.values(), report.embedding_ms or 0])


def test_a_chinese_data_set_is_evaluated_by_words_alone(client: Hindsight, shared_url: str, tmp_path: Path) -> None:
    report = evaluate(read_corpora(written(tmp_path, SQUAD), "squad"), client, shared_url, load_settings())
    assert report.quality == {"ours": {"all": Quality(4, 1, 1, 1, 1, 1)}}
    assert report.embedding_ms is None
    with pytest.raises(InvalidArgument, match="embedding model"):
        evaluate([], client, shared_url, load_settings(), ["vector"])


def test_the_cache_embeds_each_text_once_for_each_side(tmp_path: Path) -> None:
    toy = Toy()
    cached = CachedEmbedder(toy, tmp_path / "cache")
    first = cached.passages(["湖", "sea", "湖"])
    assert first == [[1.0, 0.0], [0.5, 1.0], [1.0, 0.0]]
    cached.close()
    again = CachedEmbedder(toy, tmp_path / "cache")
    assert again.passages(["sea", "湖", "fish"]) == [first[1], first[0], [0.5, 1.0]]
    assert again.query("sea") == [0.0, 1.0]
    assert toy.embedded == ["湖", "sea", "fish", "sea"]
    (tmp_path / "other").write_text("not a cache, and long enough for SQLite to see that it is something else")
    with pytest.raises(InvalidArgument, match="other"):
        CachedEmbedder(toy, tmp_path / "other")


def test_the_command_prints_figures_for_people_and_for_programs(
    shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", shared_url)
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "none")
    line = ["eval", str(written(tmp_path, SQUAD)), "--format", "squad", "--here"]
    assert cli.run(line) == 0
    shown = capsys.readouterr().out
    assert "3 memories, 4 questions, no embedding model" in shown
    assert "R@10" in shown
    assert "100.0" in shown
    assert cli.run([*line, "--json", "--channels", "ours"]) == 0
    assert json.loads(capsys.readouterr().out)["quality"]["ours"]["all"]["recall_at_10"] == 1
    assert cli.run([*line, "--channels", "rrf"]) == 2
    assert cli.run(["eval", "missing.json", "--format", "squad"]) == 2


PAIRS = [
    ("same", "en", "The shop opens at 3 pm.", "The shop opens at 15:00."),
    ("evolved", "zh", "用的是 MySQL 8.0", "升级到 MySQL 8.4"),
    ("contradicting", "zh", "用户吃肉。", "用户不吃肉。"),
    ("contradicting", "zh", "灯很亮。", "灯亮。"),  # a wrong label: the words say the same
]


def pairs_file(directory: Path) -> Path:
    path = directory / "pairs.jsonl"
    rows = [{"label": a, "language": b, "split": "dev", "one": c, "other": d, "kind": "x"} for a, b, c, d in PAIRS]
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return path


def test_pairs_are_stored_one_after_the_other_and_what_was_merged_wrongly_is_named(
    client: Hindsight, shared_url: str, tmp_path: Path
) -> None:
    client.embedder = Toy()  # for which all of them are near
    report = evaluate_pairs(read_pairs(pairs_file(tmp_path)), client, shared_url, load_settings())
    assert report.groups == [
        Group("dev", "contradicting", "zh", 2, merged=1, merged_in_slot=1, superseding=1),
        Group("dev", "evolved", "zh", 1, superseding=1, evolved=1),
        Group("dev", "same", "en", 1, merged=1, merged_in_slot=1),
    ]
    assert [(pair.one, pair.other) for pair in report.wrong] == [("灯很亮。", "灯亮。")]


def test_without_an_embedding_model_other_words_are_not_merged(
    client: Hindsight, shared_url: str, tmp_path: Path
) -> None:
    report = evaluate_pairs(read_pairs(pairs_file(tmp_path)), client, shared_url, load_settings())
    assert (report.model, sum(group.merged for group in report.groups), report.wrong) == (None, 0, [])


@pytest.mark.parametrize("content", ["", "text", "[]", "{}", '{"label": "same"}'])
def test_a_file_without_pairs_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "pairs.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"pairs\.jsonl"):
        read_pairs(tmp_path / "pairs.jsonl")


def test_what_is_redacted_is_compared_with_the_labels_character_by_character(client: Hindsight) -> None:
    sentences = [
        Sentence("dev", "en", "a@example.org and 4111111111111111", (("email", "a@example.org"),)),
        Sentence("dev", "zh", "密码是hunter2zh，别说", (("password", "hunter2z"),)),
        Sentence("held_out", "en", "plain", ()),
        Sentence("held_out", "zh", "电话13800001111", (("phone", "13800001111"),)),
    ]
    report = evaluate_redaction(sentences, client)
    assert report.kinds == [
        Kind("dev", "card", wrong=1),
        Kind("dev", "email", 1, 1),
        Kind("dev", "password", 1, 0, 1),
        Kind("dev", "all", 2, 1, 2),
        Kind("held_out", "phone", 1, 1),
        Kind("held_out", "all", 1, 1),
    ]
    assert (report.kinds[3].recall, report.kinds[3].precision, report.kinds[0].recall) == (1 / 2, 1 / 3, None)
    assert report.missed == [(sentences[1].text, "password", "hunter2z")]
    assert {one[1:] for one in report.mistaken} == {("card", "4111111111111111"), ("password", "hunter2zh")}


def test_the_command_prints_what_is_redacted(
    shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", shared_url)
    row = {"split": "dev", "language": "en", "text": "a@example.org", "secrets": [{"kind": "phone", "value": "a@"}]}
    (tmp_path / "set.jsonl").write_text(json.dumps(row), encoding="utf-8")
    line = ["eval", str(tmp_path / "set.jsonl"), "--format", "redaction", "--here"]
    assert cli.run(line) == 0
    shown = capsys.readouterr().out
    assert "missed phone a@: a@example.org" in shown
    assert "no email a@example.org: a@example.org" in shown
    assert cli.run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kinds"][-1]["recall"] == 0
    for content in ("", "text", "[]", '{"text": "x"}'):
        (tmp_path / "set.jsonl").write_text(content, encoding="utf-8")
        assert cli.run(line) == 2
