"""Sessions as a queue: when they are due, who has claimed them, and that each turn is distilled once."""

import json
import threading
import uuid
from typing import Any

import psycopg
import pytest

from tests.conftest import Database


def say(db: Database, bank: str, *contents: str, session_id: str = "s1", role: str = "user") -> None:
    turns = [{"role": role, "content": content} for content in contents]
    db.call("log_turns", bank=bank, session_id=session_id, turns=json.dumps(turns))


def state(db: Database, bank: str) -> list[str]:
    return [row["state"] for row in db.call("queue", bank=bank)]


def claim(db: Database, bank: str, **arguments: Any) -> dict[str, Any]:
    (row,) = db.call("claim_session", bank=bank, **arguments)
    return row


def finish(db: Database, claimed: dict[str, Any], *memories: dict[str, Any]) -> list[dict[str, Any]]:
    return db.rows(
        "SELECT * FROM hindsight.distil(%s, %s, %s, %s, %s, %s)",
        (claimed["bank_name"], claimed["session_id"], claimed["claim"], [t["sequence"] for t in claimed["turns"]],
         json.dumps(memories), claimed["is_ending"]),
    )  # fmt: skip


def test_a_session_waits_for_more_turns_and_is_due_after_four(db: Database, bank: str) -> None:
    say(db, bank, "We had lunch near the river.", "And a coffee.", "Then we walked home.")
    assert state(db, bank) == ["waiting"]
    say(db, bank, "It was a long way.")
    assert state(db, bank) == ["due"]


@pytest.mark.parametrize("told", ["Remember that the SSH port is 2222.", "记住：SSH端口是49222"])
def test_an_explicit_statement_makes_its_session_due_at_once(db: Database, bank: str, told: str) -> None:
    say(db, bank, told)
    assert state(db, bank) == ["due"]


def test_a_closed_session_is_due_and_a_turn_opens_it_again(db: Database, bank: str) -> None:
    say(db, bank, "We had lunch near the river.")
    db.call("close_session", bank=bank, session_id="s1")
    assert state(db, bank) == ["due"]
    closed = "SELECT closed_at FROM hindsight.session s JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s"
    assert db.value(closed, (bank,)) is not None
    say(db, bank, "One more thing.")
    assert db.value(closed, (bank,)) is None


def test_an_idle_session_is_due_after_the_time_that_its_bank_says(db: Database, bank: str) -> None:
    db.call("set_distilling", bank=bank, after_idle="0")
    say(db, bank, "We had lunch near the river.")
    assert state(db, bank) == ["due"]


def test_a_claimed_session_is_given_to_nobody_else_until_the_claim_ends(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    first = claim(db, bank, lease="1 second")
    assert db.call("claim_session", bank=bank) == []
    assert state(db, bank) == ["claimed"]
    db.rows("SELECT pg_sleep(1.1)")
    second = claim(db, bank)
    assert second["claim"] != first["claim"]
    assert second["attempts"] == 2
    with pytest.raises(psycopg.Error, match="has ended") as caught:
        finish(db, first, {"content": "The SSH port is 2222.", "source": "user", "turns": [1]})
    assert caught.value.sqlstate == "HM006"
    assert db.contents(bank) == []
    assert [
        row["outcome"]
        for row in finish(db, second, {"content": "The SSH port is 2222.", "source": "user", "turns": [1]})
    ] == ["stored"]


def test_a_turn_that_comes_while_its_session_is_claimed_waits_for_the_next_claim(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    first = claim(db, bank)
    say(db, bank, "Remember that the host is web-1.")
    assert db.call("claim_session", bank=bank) == []
    finish(db, first)
    second = claim(db, bank)
    assert [turn["content"] for turn in second["turns"]] == ["Remember that the host is web-1."]
    assert [turn["content"] for turn in second["before"]] == ["Remember that the SSH port is 2222."]


def test_what_failed_says_why_and_is_tried_again_later(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    for attempt in (1, 2):
        claimed = claim(db, bank)
        db.call(
            "release_session", bank=bank, session_id="s1", claim=claimed["claim"], error="the endpoint answered 500"
        )
        (row,) = db.call("queue", bank=bank)
        assert (row["state"], row["attempts"], row["last_error"]) == ("failed", attempt, "the endpoint answered 500")
        wait = db.value("SELECT extract(epoch FROM %s - now())", (row["due_at"],))
        assert 7 * attempt < wait < 26
        assert db.call("claim_session", bank=bank) == []
        db.rows("UPDATE hindsight.session SET due_at = now() WHERE session_id = 's1' AND last_error IS NOT NULL")
    assert db.value("SELECT hindsight.retry(%s)", (bank,)) == 1
    assert claim(db, bank)["attempts"] == 1


def test_every_turn_of_many_sessions_is_distilled_once_by_many_workers(db: Database, bank: str) -> None:
    for number in range(30):
        say(db, bank, f"Remember that host web-{number} listens on port {4000 + number}.", session_id=f"s{number}")
    seen: list[tuple[str, int]] = []

    def work() -> None:
        own = Database(db.url)
        while claimed := own.call("claim_session", bank=bank):
            finish(own, claimed[0])
            seen.extend((claimed[0]["session_id"], turn["sequence"]) for turn in claimed[0]["turns"])
        own.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted((f"s{number}", 1) for number in range(30))
    assert state(db, bank) == []


def test_a_long_session_is_handed_out_in_parts_and_summarised_with_the_last(db: Database, bank: str) -> None:
    say(db, bank, *(f"We looked at log file {number} together." for number in range(60)))
    db.call("close_session", bank=bank, session_id="s1")
    first = claim(db, bank)
    assert (len(first["turns"]), first["is_ending"]) == (40, False)
    finish(
        db, first, {"content": "The team decided on PostgreSQL.", "type": "decision", "source": "user", "turns": [3]}
    )
    second = claim(db, bank)
    assert (len(second["turns"]), second["is_ending"]) == (20, True)
    assert second["turns"][0]["sequence"] == 41
    finish(db, second, {"content": "The log files are in /var/log/app.", "source": "user", "turns": [42]})
    (summary,) = [row for row in db.call("state", bank=bank) if row["type"] == "summary"]
    assert "PostgreSQL" in summary["content"]
    assert state(db, bank) == []


def test_a_summary_is_doubted_when_what_it_stands_on_is_forgotten(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    db.call("close_session", bank=bank, session_id="s1")
    told = finish(db, claim(db, bank), {"content": "The SSH port is 2222.", "source": "user", "turns": [1]},
                  {"content": "The SSH host is web-1.", "source": "user", "turns": [1]})  # fmt: skip
    assert any(row["type"] == "summary" for row in db.call("recall", bank=bank, query="SSH port 2222"))
    port = next(row["memory_id"] for row in told if "2222" in row["content"])
    db.call("forget", bank=bank, memory_id=port, reason="wrong")
    assert db.contents(bank, "SSH") == ["The SSH host is web-1."]


def test_a_memory_that_store_refuses_is_told_and_holds_nothing_up(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    told = finish(db, claim(db, bank), {"content": "", "turns": [1]}, {"content": "x", "type": "nonsense"},
                  {"content": "y", "confidence": "much"}, {"content": "SSH端口是2222", "source": "user", "turns": [1]})  # fmt: skip
    assert sorted(row["outcome"] for row in told) == ["refused", "refused", "refused", "stored"]
    assert all(row["reasons"] for row in told if row["outcome"] == "refused")
    assert db.contents(bank) == ["SSH端口是2222"]


def test_what_distilled_sessions_say_again_does_not_bring_back_what_was_forgotten_or_corrected(
    db: Database, bank: str
) -> None:
    say(db, bank, "The SSH port is 22.")
    db.call("close_session", bank=bank, session_id="s1")
    finish(db, claim(db, bank), {"content": "The SSH port is 22.", "slot": "ssh.port", "source": "user", "turns": [1]})
    db.call("store", bank=bank, content="The SSH port is 2222.", slot="ssh.port", source="user")
    db.rows("UPDATE hindsight.turn SET distilled_at = NULL WHERE session_id = 's1'")
    db.rows("UPDATE hindsight.session SET waiting = 1, due_at = now() WHERE session_id = 's1' AND bank_id = "
            "(SELECT bank_id FROM hindsight.bank WHERE name = %s)", (bank,))  # fmt: skip
    finish(db, claim(db, bank), {"content": "The SSH port is 22.", "slot": "ssh.port", "source": "user", "turns": [1]})
    assert (
        next(content for content in db.contents(bank, "SSH port") if "summary" not in content)
        == "The SSH port is 2222."
    )


def test_what_the_model_takes_for_the_same_is_told_again_unless_a_number_differs(db: Database, bank: str) -> None:
    known = db.one("store", bank=bank, content="The staging host listens on port 4000.", source="user")["memory_id"]
    say(db, bank, "Remember: port 4000 is where staging listens.", "Remember: staging listens on port 4100.")
    told = finish(
        db, claim(db, bank),
        {"content": "Staging is reached at 4000.", "relation": "same", "related_id": str(known), "source": "user", "turns": [1]},
        {"content": "Staging is reached at 4100.", "relation": "same", "related_id": str(known), "source": "user", "turns": [2]},
    )  # fmt: skip
    assert sorted((row["outcome"], row["memory_id"] == known) for row in told) == [("merged", True), ("stored", False)]


def test_evolved_takes_the_place_and_contradicts_leaves_both_and_a_link(db: Database, bank: str) -> None:
    old = db.one("store", bank=bank, content="项目用的是MySQL 8.0", source="user")["memory_id"]
    other = db.one("store", bank=bank, content="The office is in Berlin.", source="user")["memory_id"]
    say(db, bank, "记住：我们升级到MySQL 8.4了", "Remember: the office is in Hamburg.")
    told = finish(
        db, claim(db, bank),
        {"content": "项目现在用MySQL 8.4", "relation": "evolved", "related_id": str(old), "source": "user", "turns": [1]},
        {"content": "The company sits in Hamburg.", "relation": "contradicts", "related_id": str(other), "source": "user", "turns": [2]},
    )  # fmt: skip
    assert sorted(row["outcome"] for row in told) == ["stored", "superseding"]
    assert db.call("get", bank=bank, memory_id=old)[0]["state"] == "superseded"
    (linked,) = db.call("neighbours", bank=bank, memory_id=other)
    assert linked["relation"] == "contradicts"


def test_a_guess_does_not_take_the_place_of_what_was_said(db: Database, bank: str) -> None:
    old = db.one("store", bank=bank, content="The office is in Berlin.", source="user")["memory_id"]
    say(db, bank, "Remember to look at the lease.")
    finish(db, claim(db, bank), {"content": "The office moved to Hamburg.", "relation": "evolved", "related_id": str(old),
                                 "source": "inferred", "confidence": 0.7, "turns": [1]})  # fmt: skip
    assert db.call("get", bank=bank, memory_id=old)[0]["state"] == "live"


def test_sources_are_the_turns_as_they_were_said(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.", "记住：SSH端口是49222")
    (first, second) = finish(db, claim(db, bank), {"content": "The SSH port is 2222.", "source": "user", "turns": [1]},
                             {"content": "SSH端口是49222", "source": "user", "turns": [2]})  # fmt: skip
    said = {
        row["content"]: db.call("sources", bank=bank, memory_id=row["memory_id"])[0]["content"]
        for row in (first, second)
    }
    assert said == {
        "The SSH port is 2222.": "Remember that the SSH port is 2222.",
        "SSH端口是49222": "记住：SSH端口是49222",
    }
    with pytest.raises(psycopg.Error) as caught:
        db.call("sources", bank=bank, memory_id=uuid.uuid4())
    assert caught.value.sqlstate == "HM002"


def test_rules_distil_without_a_worker_and_verbatim_keeps_turns_as_they_are(db: Database, bank: str) -> None:
    db.call("set_distilling", bank=bank, mode="verbatim")
    say(db, bank, "Remember that the SSH port is 2222.", "ok")
    assert db.one("distil_waiting", bank=bank) == {"sessions": 1, "turns": 2}
    assert db.contents(bank) == ["Remember that the SSH port is 2222."]


def test_a_bank_that_is_off_keeps_its_turns_until_it_is_on(db: Database, bank: str) -> None:
    db.call("set_distilling", bank=bank, mode="off")
    say(db, bank, "Remember that the SSH port is 2222.")
    assert state(db, bank) == ["off"]
    assert db.call("claim_session", bank=bank) == []
    db.call("set_distilling", bank=bank, mode="rules", after_turns=1)
    assert state(db, bank) == ["due"]


def test_a_session_of_a_bank_that_is_left_to_a_model_is_not_distilled_by_rules(db: Database, bank: str) -> None:
    db.call("set_distilling", bank=bank, mode="model")
    say(db, bank, "Remember that the SSH port is 2222.")
    assert db.one("distil_waiting", bank=bank) == {"sessions": 0, "turns": 0}
    assert claim(db, bank)["mode"] == "model"


@pytest.mark.parametrize(
    ("call", "arguments", "sqlstate"),
    [("set_distilling", {"mode": "magic"}, "HM004"), ("set_distilling", {"after_turns": 0}, "HM004"), ("set_distilling", {"after_idle": "-1 day"}, "HM004"),
     ("claim_session", {"lease": "0"}, "HM004"), ("close_session", {"session_id": "nobody"}, "HM002"), ("log_turns", {"session_id": "s", "turns": "{}"}, "HM004"),
     ("log_turns", {"session_id": "s", "turns": "[1]"}, "HM004"), ("log_turns", {"session_id": "s", "turns": '[{"role": "user", "text": "x"}]'}, "HM004"),
     ("log_turns", {"session_id": "s", "turns": '[{"role": "user", "content": "x", "sequence": "many"}]'}, "HM004"), ("queue", {"most": 0}, "HM004")],
)  # fmt: skip
def test_bad_input_is_refused_with_what_is_right(
    db: Database, bank: str, call: str, arguments: dict[str, Any], sqlstate: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.call(call, bank=bank, **arguments)
    assert caught.value.sqlstate == sqlstate
    assert caught.value.diag.message_hint


def test_one_bad_turn_keeps_its_batch_out(db: Database, bank: str) -> None:
    turns = [{"role": "user", "content": "fine"}, {"role": "user", "content": " "}]
    with pytest.raises(psycopg.Error):
        db.call("log_turns", bank=bank, session_id="s1", turns=json.dumps(turns))
    assert db.value("SELECT turns FROM hindsight.status() WHERE bank = %s", (bank,)) == 0


def test_a_turn_with_an_id_of_the_application_is_logged_once_by_many_writers(db: Database, bank: str) -> None:
    turns = json.dumps([{"role": "user", "content": f"turn {n}", "turn_id": f"t{n}"} for n in range(20)])

    def write() -> None:
        own = Database(db.url)
        own.call("log_turns", bank=bank, session_id="s1", turns=turns)
        own.close()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.value("SELECT turns FROM hindsight.status() WHERE bank = %s", (bank,)) == 20


def test_another_turn_under_an_id_that_is_taken_is_a_conflict(db: Database, bank: str) -> None:
    db.call("log_turns", bank=bank, session_id="s1", turns='[{"role": "user", "content": "one", "turn_id": "a"}]')
    with pytest.raises(psycopg.Error, match="another turn 'a'") as caught:
        db.call("log_turns", bank=bank, session_id="s1", turns='[{"role": "user", "content": "two", "turn_id": "a"}]')
    assert caught.value.sqlstate == "HM006"


def test_a_reader_sees_the_queue_and_claims_nothing(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    db.call("grant_access", bank=bank, principal="agent-7", rights="reader")
    db.rows("SELECT set_config('hindsight.principal', 'agent-7', false)")
    try:
        assert state(db, bank) == ["due"]
        with pytest.raises(psycopg.Error) as caught:
            db.call("claim_session", bank=bank)
        assert caught.value.sqlstate == "HM003"
        assert db.call("claim_session") == []
    finally:
        db.rows("SELECT set_config('hindsight.principal', '', false)")


def test_memories_are_stored_in_the_name_of_whoever_logged_the_session(db: Database, bank: str) -> None:
    db.call("grant_access", bank=bank, principal="agent-7", rights="writer")
    db.rows("SELECT set_config('hindsight.principal', 'agent-7', false)")
    say(db, bank, "Remember that the SSH port is 2222.")
    db.rows("SELECT set_config('hindsight.principal', '', false)")
    (told,) = finish(db, claim(db, bank), {"content": "The SSH port is 2222.", "source": "user", "turns": [1]})
    assert db.call("history", bank=bank, memory_id=told["memory_id"])[0]["principal"] == "agent-7"
    assert db.value("SELECT hindsight.principal()") != "agent-7"


@pytest.mark.parametrize("policy", ["mask", "refuse"])
@pytest.mark.parametrize("session_id", ["+86 138 1234 5678", "alice@example.com", "x" * 200, "会话\n1"])
def test_a_session_is_summarised_whatever_its_id(db: Database, bank: str, policy: str, session_id: str) -> None:
    db.call("set_redaction", bank=bank, policy=policy)
    say(db, bank, "Remember that host web-7 is in rack 9.", "我决定以后都用Go写解析器", session_id=session_id)
    db.call("close_session", bank=bank, session_id=session_id)
    db.call("distil_waiting", bank=bank)
    types = [row["type"] for row in db.call("state", bank=bank)]
    assert sorted(types) == ["decision", "fact", "summary"]
    assert db.call("queue", bank=bank) == []


def test_a_secret_of_an_earlier_policy_costs_no_memory_beside_it(db: Database, bank: str) -> None:
    db.call("set_redaction", bank=bank, policy="off")
    say(db, bank, "记住：web-1的密码是 hunter2-Pa55", "Remember that my cat is called Mimi.")
    db.call("close_session", bank=bank, session_id="s1")
    db.call("set_redaction", bank=bank, policy="refuse")
    claimed = claim(db, bank)
    found = db.value("SELECT hindsight.extract_turns(%s, %s)", (json.dumps(claimed["turns"]), "[]"))
    claimed["summary"] = "The password: hunter2-Pa55 is for web-1."
    kept = db.rows(
        "SELECT * FROM hindsight.distil(%s, %s, %s, %s, %s, true, %s)",
        (
            bank,
            "s1",
            claimed["claim"],
            [t["sequence"] for t in claimed["turns"]],
            json.dumps(found),
            claimed["summary"],
        ),
    )
    assert sorted(row["outcome"] for row in kept) == [
        "refused",
        "refused",
        "stored",
    ]  # the memory, the summary; the cat
    assert db.contents(bank, "cat") == ["my cat is called Mimi."]
    assert db.call("queue", bank=bank) == []
    trail = db.rows("SELECT * FROM hindsight.memory WHERE context LIKE '%%hunter2%%'")
    assert trail == []
    assert not any("hunter2" in str(row["reasons"]) for row in kept)


def test_a_session_whose_worker_is_gone_is_nobodys_once_its_bank_distils_no_more(db: Database, bank: str) -> None:
    say(db, bank, "记住：SSH端口是49222")
    claim(db, bank, lease="1 second")
    db.call("set_distilling", bank=bank, mode="off")
    db.rows("SELECT pg_sleep(1.1)")
    assert db.call("claim_session", bank=bank) == []
    db.call("set_distilling", bank=bank, mode="auto")
    assert claim(db, bank)["session_id"] == "s1"


def test_a_service_that_acts_for_nobody_may_claim_of_a_bank_that_it_names(
    db: Database, bank: str, login: Any, shared_url: str
) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    service = Database(login(shared_url, "hindsight_app"))
    assert claim(service, bank)["session_id"] == "s1"
    service.rows("SELECT set_config('hindsight.principal', 'stranger', false)")
    with pytest.raises(psycopg.Error, match="unknown bank"):
        claim(service, bank)
    service.close()


def test_turns_that_follow_a_failure_do_not_hurry_the_next_attempt(db: Database, bank: str) -> None:
    say(db, bank, "Remember that the SSH port is 2222.")
    claimed = claim(db, bank)
    release = "SELECT hindsight.release_session(%s, 's1', %s, 'answered 429')"
    at = next(iter(db.rows(release, (bank, claimed["claim"]))[0].values()))
    say(db, bank, "记住：SSH端口是49222", "a", "b", "c")
    (waiting,) = db.call("queue", bank=bank)
    assert (waiting["state"], waiting["waiting"], waiting["due_at"]) == ("failed", 5, at)
    assert db.call("claim_session", bank=bank) == []
