"""`hindsight eval --format conversations`: the same set by the rules and by a language model, and passages as turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hindsight.config import Settings
from hindsight.dataset import Corpus, Passage, Question
from hindsight.distiller import distiller_from
from hindsight.evaluation import evaluate
from hindsight.evaluation_conversations import by_model, evaluate_conversations, read_conversations
from hindsight.sync_client import Hindsight
from tests.endpoint import Reply, ScriptedEndpoint

CONVERSATIONS = [
    {"id": "en-1", "language": "en", "split": "tune", "turns": [{"role": "user", "content": "I decided to use PostgreSQL."}],
     "keep": [{"holds": ["PostgreSQL"], "type": ["decision"]}]},
    {"id": "zh-1", "language": "zh", "split": "tune", "turns": [{"role": "user", "content": "你好"}], "keep": []},
    {"id": "zh-2", "language": "zh", "split": "tune", "turns": [{"role": "user", "content": "我住在上海"}],
     "keep": [{"holds": ["上海"], "type": ["fact"]}]},
]  # fmt: skip


def answered(*contents: str) -> Reply:
    usual = {"turns": [1], "said": True, "confidence": 0.9, "importance": 0.7, "is_correction": False, "tags": [], "entities": [],
             "slot": None, "at": None, "relation": "none", "known": None}  # fmt: skip
    memories = [{**usual, "content": content, "type": "decision"} for content in contents]
    return Reply.chat(json.dumps({"memories": memories, "summary": None}))


def test_a_model_is_measured_by_the_same_set_and_what_it_does_not_answer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "conversations.jsonl"
    path.write_text("\n".join(map(json.dumps, CONVERSATIONS)), encoding="utf-8")
    with ScriptedEndpoint() as endpoint:
        endpoint.replies.extend(
            [answered("The user decided to use PostgreSQL."), answered("The user says hello."), Reply.error(401)]
        )
        distiller = distiller_from(Settings(llm_base_url=endpoint.url, llm_model="m", llm_retries=0))
        assert distiller is not None
        report = evaluate_conversations(read_conversations(path), by_model(distiller))
    total = report.groups[-1]
    assert (total.extracted, total.right, total.keep, total.found) == (2, 1, 2, 1)
    assert [place for place, _ in report.wrong] == ["zh-1"]
    assert [place for place, _ in report.missed] == ["zh-2"]
    assert [place for place, _ in report.failed] == ["zh-2"]


@pytest.mark.parametrize("as_turns", [False, True])
def test_passages_are_found_alike_whether_they_are_stored_or_distilled(fresh_url: str, as_turns: bool) -> None:
    corpus = Corpus(
        "talk",
        [
            Passage("a", "Ann: The SSH port of web-1 is 2222.", None, "s1"),
            Passage("b", "Bo: 测试环境的数据库是MySQL 8.4。", "Ann: The SSH port of web-1 is 2222.", "s1"),
            Passage("c", "Ann: We moved the office to Lisbon in May.", None, "s2"),
        ],
        [Question("Which port does SSH have?", frozenset("a"), "x"), Question("数据库是什么", frozenset("b"), "x")],
    )
    settings = Settings(embedding_provider="none")
    with Hindsight.connect(fresh_url, settings=settings) as client:
        report = evaluate([corpus], client, fresh_url, settings, as_turns=as_turns)
    assert report.quality["ours"]["all"].mrr == 1
