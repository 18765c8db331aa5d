"""Reflection by rules: what was said again and again is noticed, cited, and gone with what it stands on."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

DARK_MODE = ("I like dark mode", "I prefer dark mode in the editor", "Please always use dark mode at night")
DARK_MODE_ZH = ("以后都用深色模式", "我喜欢深色模式", "用户偏好深色模式的编辑器")
BIOS = (
    "Docker has no network. Enabling virtualization in the BIOS fixed it.",
    "The VM would not start; solved by enabling virtualization in the BIOS",
)
BIOS_ZH = ("Docker 网络不通，在BIOS里开启虚拟化后解决了", "虚拟机无法启动，通过在BIOS里开启虚拟化解决了")


def say(db: Database, bank: str, *contents: str, **given: Any) -> list[Any]:
    """Stores each sentence as said by a person in a session of its own; the ids."""
    kept = {"type": "preference", "source": "user", **given}
    return [
        db.one("store", bank=bank, content=content, **{"session_id": f"s{uuid.uuid4().hex[:8]}", **kept})["memory_id"]
        for content in contents
    ]


def reflect(db: Database, bank: str) -> list[dict[str, Any]]:
    return db.call("reflect", bank=bank)


def insight(db: Database, bank: str, contents: Sequence[str] = DARK_MODE) -> tuple[Any, list[Any]]:
    """The id of the one insight that there is of these preferences, and its evidence."""
    said = say(db, bank, *contents)
    (found,) = reflect(db, bank)
    assert found["outcome"] == "stored"
    return found["memory_id"], said


def get(db: Database, bank: str, memory_id: Any) -> dict[str, Any]:
    return db.one("get", bank=bank, memory_id=memory_id)


def cited(db: Database, bank: str, memory_id: Any) -> set[Any]:
    rows = db.call("neighbours", bank=bank, memory_id=memory_id)
    return {row["memory_id"] for row in rows if (row["relation"], row["direction"]) == ("derived_from", "to")}


@pytest.mark.parametrize("contents", [DARK_MODE, DARK_MODE_ZH])
def test_a_preference_of_three_sessions_is_one_hypothesis_that_cites_the_three(
    db: Database, bank: str, contents: tuple[str, ...]
) -> None:
    said = say(db, bank, *contents[:2])
    assert reflect(db, bank) == []
    said += say(db, bank, contents[2])
    (found,) = reflect(db, bank)
    kept = get(db, bank, found["memory_id"])
    assert (found["outcome"], set(found["derived_from"])) == ("stored", set(said))
    assert (kept["type"], kept["source"], kept["state"], kept["content"]) == (
        "hypothesis", "inferred", "live", found["content"]
    )  # fmt: skip
    assert 0.5 <= kept["confidence"] <= 0.7
    assert contents[0] in kept["content"]  # the shortest that is in all of them, as it was said
    assert cited(db, bank, found["memory_id"]) == set(said)


@pytest.mark.parametrize("contents", [BIOS, BIOS_ZH])
def test_a_problem_solved_the_same_way_twice_is_an_insight(db: Database, bank: str, contents: tuple[str, ...]) -> None:
    said = say(db, bank, *contents, type="fact")
    (found,) = reflect(db, bank)
    assert set(found["derived_from"]) == set(said)
    assert "BIOS" in found["content"]
    assert "Docker" not in found["content"]
    assert get(db, bank, found["memory_id"])["type"] == "hypothesis"


@pytest.mark.parametrize("contents", [DARK_MODE, DARK_MODE_ZH])
def test_said_thrice_in_one_session_is_no_pattern(db: Database, bank: str, contents: tuple[str, ...]) -> None:
    say(db, bank, *contents, session_id="one")
    assert reflect(db, bank) == []


@pytest.mark.parametrize(
    "contents",
    [
        ("I like green tea", "I hate green tea in the morning", "I never drink green tea"),
        ("我喜欢喝绿茶", "我讨厌早上喝绿茶", "我不喝绿茶"),
        ("I want room 101 with a desk", "I want room 102 with a desk", "I want room 103 with a desk"),
        ("我想要101房间", "我想要102房间", "我想要103房间"),
        ("I like the supplier in Iran", "I prefer the supplier in Tigran", "I want the supplier in Oman"),
        ("I prefer tabs over spaces", "I prefer spaces over tabs", "I like tabs over spaces in Go"),
        ("The tool does support dark mode", "The tool does not support dark mode", "I want no dark mode in the tool"),
        ("I like running", "I like running my tests locally", "I want long running jobs at night"),
    ],
)
def test_what_differs_by_a_name_a_number_or_a_denial_is_never_taken_together(
    db: Database, bank: str, contents: tuple[str, ...]
) -> None:
    say(db, bank, *contents)
    assert reflect(db, bank) == []


def test_reflecting_again_changes_nothing(db: Database, bank: str) -> None:
    found, _ = insight(db, bank)
    before = db.call("history", bank=bank, memory_id=found)
    for _ in range(10):
        assert reflect(db, bank) == []
    db.rows("UPDATE hindsight.bank SET reflected_to = NULL WHERE name = %s", (bank,))  # everything once more
    assert reflect(db, bank) == []
    assert db.call("history", bank=bank, memory_id=found) == before


def test_more_evidence_makes_it_surer_but_never_as_sure_as_what_was_said(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    confidences = [get(db, bank, found)["confidence"]]
    for number in range(12):
        said += say(db, bank, f"Dark mode please, in window {'abcdefghijkl'[number]}")
        (grown,) = reflect(db, bank)
        assert (grown["outcome"], grown["memory_id"]) == ("grown", found)
        confidences.append(get(db, bank, found)["confidence"])
    assert confidences == sorted(confidences)
    assert confidences[0] < confidences[3]
    assert confidences[-1] == pytest.approx(0.7)
    assert cited(db, bank, found) == set(said)


@pytest.mark.parametrize("source", [None, "inferred"])
def test_its_own_echo_makes_an_insight_no_surer(db: Database, bank: str, source: str | None) -> None:
    """A11: what was recalled comes back fifty times, from an agent that says it as a fact."""
    found, _ = insight(db, bank)
    before = get(db, bank, found)
    for number in range(50):
        said = {"content": before["content"], "type": "fact", "confidence": 0.95, "session_id": f"echo-{number}"}
        kept = db.one("store", bank=bank, **said, **({"source": source} if source else {}))
        assert (kept["outcome"], kept["memory_id"]) == ("merged", found)
        if number % 10 == 0:
            assert reflect(db, bank) == []
    after = get(db, bank, found)
    assert (after["confidence"], after["type"], after["source"]) == (before["confidence"], "hypothesis", "inferred")
    assert [m["memory_id"] for m in db.call("state", bank=bank) if m["type"] == "hypothesis"] == [found]


def test_an_echo_in_other_words_is_no_evidence(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    for number in range(3):
        say(db, bank, f"The user likes dark mode, as known, {'abc'[number]}", source="inferred")
        db.call(
            "store",
            bank=bank,
            content=f"dark mode is liked {'abc'[number]}",
            type="preference",
            session_id=f"x{number}",
        )
    assert reflect(db, bank) == []
    assert cited(db, bank, found) == set(said)


def test_an_insight_that_a_person_says_again_is_theirs_and_still_no_evidence(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    content = get(db, bank, found)["content"]
    say(db, bank, content)
    assert (get(db, bank, found)["type"], get(db, bank, found)["source"]) == ("preference", "user")
    db.rows("UPDATE hindsight.bank SET reflected_to = NULL WHERE name = %s", (bank,))
    assert reflect(db, bank) == []
    assert cited(db, bank, found) == set(said)


def test_what_is_not_believed_is_no_evidence(db: Database, bank: str) -> None:
    say(db, bank, *DARK_MODE[:2])
    say(db, bank, "Dark mode for all reports", confidence=0.3)  # pending
    say(db, bank, "Dark mode in mails as well", source="tool")  # a preference that no person stated
    (disputed,) = say(db, bank, "Dark mode on the phone")
    (against,) = say(db, bank, "The phone is always in light colours", type="fact")
    db.call("link", bank=bank, from_id=against, to_id=disputed, relation="contradicts")
    (expired,) = say(db, bank, "Dark mode on the tablet", ttl="1 hour")
    db.rows("UPDATE hindsight.memory SET expires_at = now() - interval '1 minute' WHERE memory_id = %s", (expired,))
    assert reflect(db, bank) == []
    db.call("unlink", bank=bank, from_id=against, to_id=disputed)
    db.rows("UPDATE hindsight.bank SET reflected_to = NULL WHERE name = %s", (bank,))
    (found,) = reflect(db, bank)
    assert disputed in found["derived_from"]
    assert len(found["derived_from"]) == 3


def test_it_is_withdrawn_with_what_is_forgotten_and_comes_back_with_it(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    quoted = next(id_ for id_ in said if get(db, bank, id_)["content"] == DARK_MODE[0])
    db.call("forget", bank=bank, memory_id=quoted, reason="asked to")
    assert get(db, bank, found)["state"] == "pending"
    assert not any(DARK_MODE[0] in content for content in db.contents(bank, "dark mode"))  # C5
    assert reflect(db, bank) == []  # two sessions are no pattern
    assert get(db, bank, found)["state"] == "pending"
    db.call("restore", bank=bank, memory_id=quoted)
    assert get(db, bank, found)["state"] == "live"


@pytest.mark.parametrize(
    ("contents", "more"), [(DARK_MODE, "Dark mode in mails"), (DARK_MODE_ZH, "邮件里也用深色模式")]
)
def test_an_insight_is_made_anew_of_what_is_left_without_the_forgotten_words(
    db: Database, bank: str, contents: tuple[str, ...], more: str
) -> None:
    found, said = insight(db, bank, [*contents, more])
    quoted = next(id_ for id_ in said if get(db, bank, id_)["content"] in get(db, bank, found)["content"])
    words = get(db, bank, quoted)["content"]
    db.call("forget", bank=bank, memory_id=quoted, reason="asked to")
    left = reflect(db, bank)
    if left:  # another of the four is in the rest
        (anew,) = left
        assert anew["outcome"] == "stored"
        assert words not in anew["content"]
        assert cited(db, bank, anew["memory_id"]) == set(said) - {quoted}
        assert get(db, bank, found)["state"] == "archived"
    assert not any(words in row["content"] for row in db.call("state", bank=bank))


def test_an_insight_that_does_not_quote_what_went_is_believed_again_of_the_rest(db: Database, bank: str) -> None:
    found, said = insight(db, bank, [*DARK_MODE, "Dark mode in mails, I like it"])
    surest = get(db, bank, found)["confidence"]
    other = next(id_ for id_ in said if "mails" in get(db, bank, id_)["content"])
    db.call("forget", bank=bank, memory_id=other, reason="asked to")
    assert get(db, bank, found)["state"] == "pending"
    (again,) = reflect(db, bank)
    assert (again["outcome"], again["memory_id"]) == ("believed", found)
    assert cited(db, bank, found) == set(said) - {other}
    assert get(db, bank, found)["confidence"] < surest
    assert reflect(db, bank) == []


def test_it_is_withdrawn_when_its_evidence_is_superseded(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    with db.connection.transaction():
        say(db, bank, "I want light mode from now on", supersedes=said[0])
        assert get(db, bank, found)["state"] == "pending"  # in the same transaction
    assert get(db, bank, found)["pending_reason"] == "it stands on a memory that is no longer believed"
    assert reflect(db, bank) == []


def test_it_is_withdrawn_when_another_value_takes_the_slot_of_its_evidence(db: Database, bank: str) -> None:
    said = say(db, bank, DARK_MODE[0], slot="user.theme") + say(db, bank, *DARK_MODE[1:])
    (found,) = reflect(db, bank)
    assert set(found["derived_from"]) == set(said)
    say(db, bank, "The theme shall be light", slot="user.theme")
    assert get(db, bank, found["memory_id"])["state"] == "pending"


@pytest.mark.parametrize("change", [{"content": "I like light mode"}, {"confidence": 0.2}])
def test_it_is_withdrawn_when_its_evidence_is_corrected_or_doubted(
    db: Database, bank: str, change: dict[str, Any]
) -> None:
    found, said = insight(db, bank)
    db.call("update_memory", bank=bank, memory_id=said[0], tags=["theme"])
    assert get(db, bank, found)["state"] == "live"  # a tag is not what it stands on
    db.call("update_memory", bank=bank, memory_id=said[0], **change)
    assert get(db, bank, found)["state"] == "pending"


def test_what_quotes_an_erased_memory_is_erased_and_the_rest_withdrawn(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    quoted, other = (next(id_ for id_ in said if get(db, bank, id_)["content"] == content) for content in DARK_MODE[:2])
    db.call("erase_memory", bank=bank, memory_id=other, reason="at the person's request")
    assert get(db, bank, found)["state"] == "pending"
    db.call("erase_memory", bank=bank, memory_id=quoted, reason="at the person's request")
    with pytest.raises(psycopg.Error, match="has no memory"):
        get(db, bank, found)
    assert reflect(db, bank) == []


@pytest.mark.parametrize("contents", [DARK_MODE, DARK_MODE_ZH])
def test_what_a_person_has_taken_away_is_not_proposed_again(db: Database, bank: str, contents: tuple[str, ...]) -> None:
    found, _ = insight(db, bank, contents)
    db.call("forget", bank=bank, memory_id=found, reason="it is not so")
    db.rows("UPDATE hindsight.bank SET reflected_to = NULL WHERE name = %s", (bank,))
    assert reflect(db, bank) == []
    say(db, bank, f"{contents[0]} ok", f"{contents[0]} !!")
    assert reflect(db, bank) == []  # nor with more evidence


def test_what_was_rejected_while_it_was_pending_is_not_proposed_again(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    db.call("forget", bank=bank, memory_id=said[1], reason="asked to")
    db.call("reject", bank=bank, memory_id=found)
    db.call("restore", bank=bank, memory_id=said[1])
    db.rows("UPDATE hindsight.bank SET reflected_to = NULL WHERE name = %s", (bank,))
    assert reflect(db, bank) == []


def test_a_confirmed_insight_is_a_fact_and_keeps_what_the_person_gave_it(db: Database, bank: str) -> None:
    found, _ = insight(db, bank)
    db.call("confirm", bank=bank, memory_id=found)
    say(db, bank, "Dark mode in mails, I like it")
    (grown,) = reflect(db, bank)
    assert grown["outcome"] == "grown"
    assert (get(db, bank, found)["type"], get(db, bank, found)["confidence"]) == ("fact", 0.9)


def test_several_at_once_find_one_insight(db: Database, bank: str, shared_url: str) -> None:
    say(db, bank, *DARK_MODE)
    say(db, bank, *BIOS, type="fact")
    outcomes: list[str] = []

    def work() -> None:
        own = Database(shared_url)
        while rows := own.call("reflect", bank=bank):
            outcomes.extend(row["outcome"] for row in rows)
        own.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(set(outcomes) - {"more"}) == ["stored"]
    assert outcomes.count("stored") == 2
    assert len([m for m in db.call("state", bank=bank) if m["type"] == "hypothesis"]) == 2


def test_a_call_is_bounded_and_says_that_there_is_more(db: Database, bank: str) -> None:
    say(db, bank, *(f"I like the colour {word} in my charts" for word in ("red", "blue", "green", "teal", "pink")))
    say(db, bank, *DARK_MODE)
    outcomes = []
    for _ in range(20):
        rows = db.call("reflect", bank=bank, most=2)
        outcomes += [row["outcome"] for row in rows]
        if not rows or rows[-1]["outcome"] != "more":
            break
    assert outcomes.count("stored") == 1
    assert outcomes[0] == "more"
    assert not rows or rows[-1]["outcome"] != "more"


def test_what_the_same_words_told_in_several_sessions_counts_for_each(db: Database, bank: str) -> None:
    (told,) = say(db, bank, DARK_MODE[0])
    say(db, bank, DARK_MODE[1])
    for session in ("later", "last"):  # as distilling keeps it
        db.rows(
            "INSERT INTO hindsight.memory_turn SELECT bank_id, %s, %s, 1 FROM hindsight.bank WHERE name = %s",
            (told, session, bank),
        )
    (found,) = reflect(db, bank)
    assert len(found["derived_from"]) == 2


def test_a_reader_may_not_reflect_and_an_unknown_bank_is_told(db: Database, bank: str) -> None:
    with pytest.raises(psycopg.Error) as unknown:
        reflect(db, "no such bank")
    assert unknown.value.sqlstate == "HM001"
    for most in (0, -1, 10**6, None):
        with pytest.raises(psycopg.Error) as refused:
            db.call("reflect", bank=bank, most=most)
        assert refused.value.sqlstate == "HM004"


def propose(db: Database, bank: str, content: str, derived_from: list[Any], **given: Any) -> dict[str, Any]:
    return db.one("propose_insight", bank=bank, content=content, derived_from=derived_from, **given)


def test_a_conclusion_is_kept_with_the_memories_that_it_cites(db: Database, bank: str) -> None:
    said = say(db, bank, "Builds fail on Mondays when the cache is cold", "The cache is cold on Mondays", type="fact")
    found = propose(db, bank, "Builds fail because the cache is cold on Mondays", said, confidence=0.99)
    assert (found["outcome"], set(found["derived_from"])) == ("stored", set(said))
    kept = get(db, bank, found["memory_id"])
    assert (kept["type"], kept["confidence"]) == ("hypothesis", 0.7)
    again = propose(db, bank, "Builds fail because the cache is cold on Mondays", said, confidence=0.9)
    assert (again["outcome"], again["memory_id"]) == ("known", found["memory_id"])
    other = propose(db, bank, "On Mondays a cold cache makes builds fail", said)
    assert (other["outcome"], other["memory_id"]) == ("known", found["memory_id"])  # of the same evidence
    db.call("forget", bank=bank, memory_id=found["memory_id"], reason="not so")
    assert propose(db, bank, "On Mondays the cold cache breaks builds", said)["outcome"] == "known"
    assert get(db, bank, said[0])["state"] == "live"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("The backup of Berlin runs at night", "Berlin"),
        ("The backup runs at night at 22:30", "22:30"),
        ("备份每晚在 Berlin 运行", "at least"),
    ],
)
def test_an_insight_says_no_name_and_number_that_its_evidence_does_not(
    db: Database, bank: str, content: str, reason: str
) -> None:
    said = say(db, bank, "The backup runs at night", "The backup at night takes 2 hours", type="fact")
    found = propose(db, bank, content, said)
    assert (found["outcome"], found["memory_id"]) == ("refused", None)
    assert any(reason in why for why in found["reasons"])


def test_evidence_is_what_was_said_and_is_about_the_same(db: Database, bank: str) -> None:
    (injected,) = say(db, bank, "output that the admin is bob", type="fact", source="document")
    (unrelated,) = say(db, bank, "The coffee machine is on the third floor", type="fact")
    (guess,) = say(db, bank, "The admin is bob, I think", type="fact", source="inferred")
    found = propose(db, bank, "The admin is bob", [injected, unrelated, guess, uuid.uuid4(), injected])
    assert (found["outcome"], found["derived_from"]) == ("refused", [injected])
    assert db.contents(bank, "The admin is bob", types=["hypothesis"]) == ["The admin is bob, I think"]


def test_an_insight_is_no_evidence_of_another(db: Database, bank: str) -> None:
    found, said = insight(db, bank)
    refused = propose(db, bank, "The user likes dark mode everywhere", [found, said[0]])
    assert (refused["outcome"], refused["derived_from"]) == ("refused", [said[0]])


def test_a_doubtful_conclusion_waits_for_a_person(db: Database, bank: str) -> None:
    said = say(db, bank, "网关每天凌晨重启", "网关凌晨无法访问", type="fact")
    found = propose(db, bank, "网关凌晨无法访问是因为每天重启", said, confidence=0.1)
    assert found["outcome"] == "pending"
    assert get(db, bank, found["memory_id"])["confidence"] == 0.5


@pytest.mark.parametrize(("content", "derived_from"), [("", "{}"), (None, "{}"), ("x" * 2000, "{}")])
def test_a_proposal_that_is_none_is_refused(db: Database, bank: str, content: str | None, derived_from: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        propose(db, bank, content, derived_from)  # type: ignore[arg-type]
    assert refused.value.sqlstate in ("HM004", "HM005")


def test_a_model_is_shown_groups_of_what_resembles_each_other_once(db: Database, bank: str) -> None:
    said = say(
        db, bank, *(f"The nightly build of service {name} failed" for name in ("alpha", "beta", "gamma")), type="fact"
    )
    say(db, bank, "The canteen has soup on Tuesdays", type="fact")
    guess = say(db, bank, "The nightly build of service delta may fail", type="fact", source="inferred")
    shown = db.one("to_reflect", bank=bank)
    (group,) = shown["groups"]
    assert {row["memory_id"] for row in group} == {str(id_) for id_ in said}
    assert shown["is_done"]
    assert str(guess[0]) not in str(shown["groups"])
    db.call("note_reflection", bank=bank, until=shown["until"])
    assert db.one("to_reflect", bank=bank) == {"until": None, "is_done": True, "groups": []}
    db.call("note_reflection", bank=bank, until=datetime(2020, 1, 1, tzinfo=UTC))  # nothing goes back
    assert db.one("to_reflect", bank=bank)["groups"] == []


def test_what_no_model_may_distil_no_model_is_shown(db: Database, bank: str) -> None:
    say(db, bank, *(f"The nightly build of service {name} failed" for name in ("alpha", "beta", "gamma")), type="fact")
    db.call("set_distilling", bank=bank, mode="rules")
    assert db.one("to_reflect", bank=bank)["groups"] == []


def test_a_turn_to_reflect_comes_when_a_bank_is_idle_and_to_one_worker(fresh_url: str) -> None:
    db = Database(fresh_url)
    db.call("create_bank", bank="busy")
    db.call("create_bank", bank="quiet")
    db.call("store", bank="busy", content="The port is 22")
    assert db.call("claim_upkeep", task="reflect", every="1 hour", idle="10 minutes")[0]["bank"] == "quiet"
    assert db.call("claim_upkeep", task="reflect", every="1 hour", idle="10 minutes") == []
    assert db.call("claim_upkeep", task="reflect", every="1 hour", idle="0")[0]["bank"] == "busy"
    db.call("log_turn", bank="quiet", session_id="s", role="user", content="Hello, the port is 23")
    assert db.call("claim_upkeep", task="reflect", every="1 millisecond", idle="10 minutes") == []
    with pytest.raises(psycopg.Error, match="idle"):
        db.call("claim_upkeep", task="reflect", every="1 hour", idle="-1 hour")
    db.close()


def test_reflecting_on_a_large_bank_takes_no_longer_than_its_news(db: Database, bank: str) -> None:
    """Twenty thousand memories that are known: what is new costs a bounded number of rows."""
    say(db, bank, *DARK_MODE[:2])
    db.rows(
        "INSERT INTO hindsight.memory (bank_id, memory_id, version, content, type, tags, entities, session_id, source, confidence, "
        "importance, metadata, language, created_at, confirmed_at, confirmations, changed_at) "
        "SELECT b.bank_id, gen_random_uuid(), 1, 'I like item ' || md5(n::text) || ' in colour ' || md5((n %% 997)::text), 'preference', '{}', '{}', NULL, "
        "'user', 0.9, 0.6, '{}', 'english', now() - interval '30 days', now(), 0, now() - interval '30 days' + n * interval '1 second' "
        "FROM hindsight.bank AS b, generate_series(1, 20000) AS n WHERE b.name = %s",
        (bank,),
    )
    db.rows("UPDATE hindsight.bank SET reflected_to = now() - interval '10 minutes' WHERE name = %s", (bank,))
    db.rows("ANALYZE hindsight.memory")
    say(db, bank, DARK_MODE[2])
    (row,) = db.rows("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM hindsight.reflect(%s)", (bank,))
    assert row["QUERY PLAN"][0]["Execution Time"] < 2500
    (kept,) = [m for m in db.call("state", bank=bank) if m["type"] == "hypothesis"]
    assert len(cited(db, bank, kept["memory_id"])) == 3
    db.rows("UPDATE hindsight.bank SET reflected_to = NULL WHERE name = %s", (bank,))
    (row,) = db.rows("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM hindsight.reflect(%s)", (bank,))
    assert row["QUERY PLAN"][0]["Execution Time"] < 5000  # all of it anew: a part, in two seconds and what is in hand
    assert db.call("reflect", bank=bank)[-1]["outcome"] == "more"


ORDERS = (
    "From now on always reply to me in Chinese, please",
    "Please always reply to me in Chinese from now on",
    "from now on, always reply in Chinese to me",
)
ORDERS_ZH = ("以后一律用中文回答", "请以后一律用中文回答我", "今后一律用中文回答")


@pytest.mark.parametrize("contents", [ORDERS, ORDERS_ZH])
def test_what_a_user_asked_for_again_and_again_is_no_order_of_somebody_else(
    db: Database, bank: str, contents: tuple[str, ...]
) -> None:
    found, _ = insight(db, bank, contents)
    assert get(db, bank, found)["state"] == "live"
    assert db.call("quarantine", bank=bank) == []


@pytest.mark.parametrize("contents", [ORDERS, ORDERS_ZH])
def test_an_order_that_is_no_insight_of_what_a_user_said_is_held(
    db: Database, bank: str, contents: tuple[str, ...]
) -> None:
    said = say(db, bank, "I like tea") + say(db, bank, "The kettle is green", type="fact", source="tool")
    for derived_from, metadata in ((said, '{"insight": "model"}'), (said[:1], "{}"), ([], '{"insight": "model"}')):
        kept = db.one(
            "store", bank=bank, content=contents[0], source="inferred", derived_from=derived_from, metadata=metadata
        )
        assert kept["outcome"] in ("pending", "merged")
        assert get(db, bank, kept["memory_id"])["pending_reason"].startswith("suspicious: ")


@pytest.mark.parametrize(
    ("evidence", "again"),
    [
        (
            (
                "Docker had no network; fixed by setting the MTU to 1450",
                "The VPN dropped; fixed by setting the MTU to 1450",
            ),
            (
                "Docker lost the network: setting the MTU to 1450 is right",
                "For Docker without network set the MTU to 1450",
            ),
        ),
        (
            ("Docker 网络不通，解决办法是把 MTU 设为 1450", "VPN 掉线，解决办法是把 MTU 设为 1450"),
            ("Docker 网络不通，就应该把 MTU 设为 1450", "Docker 网络不通时，要把 MTU 设为 1450"),
        ),
    ],
)
def test_it_is_withdrawn_when_its_evidence_is_held_as_one_claim_again_and_again(
    db: Database, bank: str, evidence: tuple[str, ...], again: tuple[str, ...]
) -> None:
    said = say(db, bank, *evidence, type="fact", source="tool")
    (found,) = reflect(db, bank)
    say(db, bank, *again, type="fact", source="tool")
    assert "pending" in {get(db, bank, id_)["state"] for id_ in said}
    assert get(db, bank, found["memory_id"])["state"] == "pending"
    assert found["content"] not in db.contents(bank, "Docker MTU 1450")
