"""`hindsight audit --judge`: a language model judges near memories that the rules can't tell apart; nothing is lost by it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hindsight import AccessDenied, Hindsight, cli, language_model, pacing
from hindsight.config import load_settings
from hindsight.judging import SCHEMA, judge_from
from tests.conftest import Database
from tests.endpoint import Reply, Request, ScriptedEndpoint

PAIRS = {
    "same": ("Erin lives in Hangzhou near West Lake", "Erin's home is in Hangzhou near West Lake"),
    "evolved": ("张伟在北京的分公司上班", "张伟在上海的分公司上班"),
    "contradicting": ("The nightly backup goes to the Oslo bucket", "The nightly backup goes to the Berlin bucket"),
    "different": ("Grace runs the Denver marathon training", "Grace runs the Denver office training"),
}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, shared_url: str, tmp_path: Path) -> Iterator[ScriptedEndpoint]:
    """The judge's endpoint, and the settings that name it."""
    language_model._abilities.cache_clear()
    pacing.pace_of.cache_clear()
    with ScriptedEndpoint() as scripted:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DATABASE_URL", shared_url)
        monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "none")
        monkeypatch.setenv("HINDSIGHT_LLM_BASE_URL", scripted.url)
        monkeypatch.setenv("HINDSIGHT_LLM_MODEL", "small")
        monkeypatch.setenv("HINDSIGHT_JUDGE_MODEL", "large")
        monkeypatch.setenv("HINDSIGHT_LLM_RETRIES", "0")
        yield scripted


@pytest.fixture
def client(endpoint: ScriptedEndpoint) -> Iterator[Hindsight]:
    with Hindsight.connect(settings=load_settings()) as made:
        yield made


@pytest.fixture
def bank(client: Hindsight) -> str:
    """A bank with four pairs of memories, the newer one of each stored later."""
    name = f"judged-{uuid.uuid4().hex[:8]}"
    client.create_bank(name)
    for older, newer in PAIRS.values():
        client.store(name, older, importance=0.5, occurred_at="2026-01-05")
        client.store(name, newer, importance=0.5, occurred_at="2026-03-01")
    return name


def honest(request: Request) -> Reply:
    """What a good judge says: the verdicts that the pairs above stand under."""
    verdicts = []
    for pair in json.loads(request.body["messages"][1]["content"])["pairs"]:
        notes = (pair["earlier"]["note"], pair["later"]["note"])
        verdict = next((label for label, known in PAIRS.items() if known == notes), "different")
        verdicts.append({"pair": pair["pair"], "verdict": verdict})
    return Reply.chat({"verdicts": verdicts}, tokens=(500, 40))


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.run(["audit", *arguments])
    return code, *capsys.readouterr()


def report(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(run(*arguments, "--json", capsys=capsys)[1])


# ---- Which pairs ----------------------------------------------------------------------------------------


def test_pairs_that_the_rules_leave_open_are_undecided_the_newer_memory_first(client: Hindsight, bank: str) -> None:
    open_pairs = {(pair.other_content, pair.content) for pair in client.undecided(bank)}
    assert set(PAIRS.values()) <= open_pairs
    assert all(pair.other_said_at < pair.said_at for pair in client.undecided(bank))
    assert len(client.undecided(bank, most=2)) == 2


def test_what_the_rules_or_a_link_decide_is_not_asked(client: Hindsight, bank: str) -> None:
    client.store(bank, "网关支持隧道协议", importance=0.5)
    client.store(bank, "网关不支持隧道协议", importance=0.5)
    before = client.undecided(bank)
    assert not any("隧道" in pair.content for pair in before)
    client.link(bank, before[0].memory_id, before[0].other_id, "related")
    assert client.undecided(bank) == before
    for pair, relation in zip(before, ("same_as", "evolved_into", "contradicts", "differs_from"), strict=False):
        client.link(bank, pair.other_id, pair.memory_id, relation)
    left = {(pair.memory_id, pair.other_id) for pair in client.undecided(bank)}
    assert left == {(pair.memory_id, pair.other_id) for pair in before[4:]}
    client.unlink(bank, before[0].other_id, before[0].memory_id, "same_as")
    assert len(client.undecided(bank)) == len(left) + 1


def test_forgotten_memories_and_those_with_a_slot_each_are_no_pair(client: Hindsight, bank: str) -> None:
    ids = {memory.content: memory.memory_id for memory in client.state(bank)}
    for content, slot in zip(PAIRS["same"], ("erin.home", "erin.address"), strict=True):
        client.update(bank, ids[content], slot=slot)
    client.forget(bank, ids[PAIRS["evolved"][1]], reason="asked to")
    contents = {(pair.other_content, pair.content) for pair in client.undecided(bank)}
    assert not {PAIRS["same"], PAIRS["evolved"]} & contents
    assert PAIRS["contradicting"] in contents


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        ({"most": 0}, "HM004"),
        ({"most": 1001}, "HM004"),
        ({"most": None}, "HM004"),
        ({"bank": "no-such-bank"}, "HM001"),
    ],
)
def test_what_can_not_be_asked_is_refused(db: Database, bank: str, arguments: dict[str, Any], sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.call("undecided", **{"bank": bank, **arguments})
    assert caught.value.sqlstate == sqlstate


# ---- Verdicts -------------------------------------------------------------------------------------------


def test_verdicts_are_shown_as_findings_by_whom_and_nothing_is_changed(
    client: Hindsight, endpoint: ScriptedEndpoint, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.replies.append(honest)
    before = client.state(bank)
    code, out, err = run(bank, "--judge", capsys=capsys)
    assert (code, err) == (1, "")
    for words, label in [("says the same as", "same"), ("has followed", "evolved"), ("contradicts", "contradicting")]:
        older, newer = PAIRS[label]
        assert f'"{newer}" {words} "{older}": judged by large' in out
    assert not any(content in out for content in PAIRS["different"])
    assert out.splitlines()[0] == "contradictions"
    assert out.splitlines()[-1] == "3 findings: 3 to link"
    assert client.state(bank) == before


def test_the_judge_sees_small_numbers_dates_and_no_id(
    client: Hindsight, endpoint: ScriptedEndpoint, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.replies.append(honest)
    run(bank, "--judge", "--most", "3", capsys=capsys)
    (request,) = endpoint.requests
    assert request.body["model"] == "large"
    assert request.body["response_format"]["json_schema"]["schema"] == SCHEMA
    pairs = json.loads(request.body["messages"][1]["content"])["pairs"]
    assert [pair["pair"] for pair in pairs] == [1, 2, 3]
    assert {(pair["earlier"]["at"], pair["later"]["at"]) for pair in pairs} == {("2026-01-05", "2026-03-01")}
    assert not any(str(memory.memory_id) in json.dumps(request.body) for memory in client.state(bank))


def test_with_apply_verdicts_become_links_and_every_memory_stays_as_it_is(
    client: Hindsight, endpoint: ScriptedEndpoint, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.replies.append(honest)
    before = client.state(bank)
    found = report(bank, "--judge", "--apply", capsys=capsys)
    assert [one["outcome"] for one in found["applied"]] == ["linked"] * 3
    assert {one["remedy"] for one in found["findings"]} == {"review"}
    assert client.state(bank) == before
    links = {
        (neighbour.content, neighbour.relation, neighbour.direction, neighbour.weight)
        for memory in before
        for neighbour in client.neighbours(bank, memory.memory_id)
        if neighbour.direction == "to" and neighbour.content in [one for pair in PAIRS.values() for one in pair]
    }
    assert links >= {
        (PAIRS["same"][0], "same_as", "to", 0.5),
        (PAIRS["evolved"][1], "evolved_into", "to", 0.5),
        (PAIRS["contradicting"][0], "contradicts", "to", 0.5),
        (PAIRS["different"][0], "differs_from", "to", 0.0),
    }
    asked = len(endpoint.requests)
    again = report(bank, "--judge", "--apply", capsys=capsys)
    assert again["applied"] == []
    assert len(endpoint.requests) == asked, "what is decided is not asked again"
    by_links = {(one["finding"], one["remedy"]) for one in again["findings"]}
    assert by_links == {("contradictions", "review"), ("duplicates", "review")}
    assert any("they are linked so" in one["detail"] for one in again["findings"])


def test_many_pairs_are_asked_in_batches_and_each_is_counted(
    client: Hindsight, endpoint: ScriptedEndpoint, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client.store_many(bank, [{"content": f"The cabinet in hall {name} holds paper", "importance": 0.5} for name in
                             ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Juniper")])  # fmt: skip
    count = len(client.undecided(bank))
    assert count > 20
    endpoint.replies.extend([honest] * 5)
    found = report(bank, "--judge", capsys=capsys)
    assert found["judge"]["pairs"] == count == sum(found["judge"]["judged"].values())
    calls = -(-count // 20)
    assert len(endpoint.requests) == calls
    (used,) = client.usage(bank)
    assert (used.purpose, used.model, used.calls, used.failures) == ("judge", "large", calls, 0)
    assert (used.prompt_tokens, used.completion_tokens) == (500 * calls, 40 * calls)


@pytest.mark.parametrize(
    ("answer", "judged"),
    [
        ({"verdicts": []}, 0),
        ({"verdicts": [{"pair": 99, "verdict": "same"}, {"pair": 0, "verdict": "same"}]}, 0),
        ({"verdicts": [{"pair": 1, "verdict": "identical"}, {"pair": "1", "verdict": "same"}]}, 0),
        ({"verdicts": [{"pair": 1, "verdict": "same"}, {"pair": 1, "verdict": "different"}]}, 0),
        ({"verdicts": ["same", None, 5, {"verdict": "same"}, {"pair": True, "verdict": "same"}]}, 0),
        ({"verdicts": "all the same"}, 0),
        ({"verdicts": [{"pair": 1, "verdict": " Same "}]}, 1),
        ([{"pair": 1, "verdict": "contradicting"}, {"pair": 2, "verdict": "evolved"}], 2),
        ('{"verdicts": [{"pair": 1, "verdict": "same"}, {"pair": 2, "verd', 1),
    ],
)
def test_of_a_wrong_answer_what_is_no_verdict_counts_for_nothing_and_that_is_told(
    client: Hindsight,
    endpoint: ScriptedEndpoint,
    bank: str,
    capsys: pytest.CaptureFixture[str],
    answer: object,
    judged: int,
) -> None:
    endpoint.replies.append(Reply.chat(answer))
    count = len(client.undecided(bank))
    found = report(bank, "--judge", capsys=capsys)
    assert len(found["findings"]) == judged
    (problem,) = found["judge"]["problems"]
    assert problem.startswith(f"{count - judged} of {count} pairs have no usable verdict")


FAILURES: dict[str, Callable[[], Reply]] = {
    "nonsense": lambda: Reply.chat("我觉得它们差不多。"),
    "nothing": lambda: Reply.chat(""),
    "500": lambda: Reply.error(500),
    "429": lambda: Reply.error(429),
    "wrong key": lambda: Reply.error(401),
    "closed": lambda: Reply(close=True),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_call_that_fails_leaves_the_findings_of_the_rules_and_says_so(
    client: Hindsight,
    endpoint: ScriptedEndpoint,
    bank: str,
    capsys: pytest.CaptureFixture[str],
    failure: Callable[[], Reply],
) -> None:
    client.store(bank, "网关支持隧道协议", importance=0.5)
    client.store(bank, "网关不支持隧道协议", importance=0.5)
    endpoint.replies.append(failure())
    code, out, err = run(bank, "--judge", "--apply", capsys=capsys)
    assert code == 1
    assert '"网关不支持隧道协议" contradicts "网关支持隧道协议"' in out
    assert out.splitlines()[-1] == "1 findings: 1 to review"
    count = len(client.undecided(bank))
    assert err.startswith(f"hindsight: {count} of {count} pairs are not judged: large at 127.0.0.1:")
    assert [(used.calls, used.failures) for used in client.usage(bank)] == [(1, 1)]


def test_when_the_budget_of_the_day_is_spent_nothing_is_asked(
    client: Hindsight,
    endpoint: ScriptedEndpoint,
    bank: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HINDSIGHT_LLM_DAILY_TOKENS", "1000")
    client.note_usage(bank, "distil", "small", prompt_tokens=900, completion_tokens=100)
    _, _, err = run(bank, "--judge", capsys=capsys)
    assert "the 1000 tokens of the bank's day are spent" in err
    assert endpoint.requests == []


def test_other_checks_ask_nobody(
    client: Hindsight, endpoint: ScriptedEndpoint, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bank, "--judge", "--check", "tags", capsys=capsys)[0] == 0
    assert endpoint.requests == []
    endpoint.replies.append(honest)
    found = report(bank, "--judge", "--check", "duplicates", capsys=capsys)
    assert {one["finding"] for one in found["findings"]} == {"duplicates"}


def test_without_a_language_model_it_says_what_to_set(
    bank: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HINDSIGHT_LLM_BASE_URL")
    code, _, err = run(bank, "--judge", capsys=capsys)
    assert code == 2
    assert "Set HINDSIGHT_LLM_MODEL" in err


def test_a_reader_spends_nothing(
    client: Hindsight, endpoint: ScriptedEndpoint, bank: str, shared_url: str, login: Callable[..., str], db: Database
) -> None:
    url = login(shared_url, "hindsight_app")
    settings = load_settings()
    with Hindsight.connect(url, settings=settings) as reader:
        db.call("grant_access", bank=bank, principal=url.split("//")[1].split("@")[0], rights="reader")
        assert reader.undecided(bank)
        with pytest.raises(AccessDenied):
            judge_from(settings).judge(reader, bank, 10)
    assert endpoint.requests == []
