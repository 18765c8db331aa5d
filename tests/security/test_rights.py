"""Rights finer than reader, writer and owner: who may only add, and of which types; what a scope takes away; who may see who has them."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

SECRET = "Alice is going to leave the company in May"
GUESSES = [SECRET, "Alice 将于五月离职", "the sky over the harbour was green"]


@pytest.fixture
def connect(shared_url: str, login: Callable[..., str]) -> Iterator[Callable[..., Database]]:
    opened: list[Database] = []

    def make(*memberships: str) -> Database:
        opened.append(Database(login(shared_url, *(memberships or ("hindsight_app",)))))
        return opened[-1]

    yield make
    for database in opened:
        database.close()


def me(database: Database) -> str:
    return str(database.value("SELECT session_user"))


def refused(sqlstate: str, work: Callable[[], object]) -> str:
    with pytest.raises(psycopg.Error) as caught:
        work()
    assert caught.value.sqlstate == sqlstate, caught.value
    assert caught.value.diag.message_hint or sqlstate == "42501"
    return f"{caught.value.diag.message_primary} {caught.value.diag.message_hint}"


def grant(db: Database, bank: str, guest: Database, rights: str, types: list[str] | None = None) -> Database:
    db.call("grant_access", bank=bank, principal=me(guest), rights=rights, types=types)
    return guest


class TestAdder:
    """It stores, and learns nothing of what the bank holds."""

    @pytest.fixture
    def adder(self, connect: Callable[..., Database], db: Database, bank: str) -> Database:
        return grant(db, bank, connect(), "adder")

    def test_what_it_stores_others_recall(self, db: Database, bank: str, adder: Database) -> None:
        stored = adder.one("store", bank=bank, content="汇率接口每天凌晨更新一次", type="fact")
        assert stored == {"memory_id": None, "outcome": "taken", "related_id": None, "reasons": []}
        assert db.contents(bank, "汇率") == ["汇率接口每天凌晨更新一次"]

    @pytest.mark.parametrize(
        "call",
        [
            "recall(%(bank)s, 'x')", "recall_context(%(bank)s, 'x')", "should_recall(%(bank)s, 'x')", "get(%(bank)s, %(id)s)",
            "history(%(bank)s, %(id)s)", "state(%(bank)s, now())", "diff(%(bank)s, now())", "pending(%(bank)s)", "tags(%(bank)s)",
            "audit(%(bank)s)", "queue(%(bank)s)", "neighbours(%(bank)s, %(id)s)", "sources(%(bank)s, %(id)s)", "access(%(bank)s)",
            "redactions(%(bank)s)", "usage(%(bank)s)", "documents(%(bank)s)", "working_get(%(bank)s, 's1')", "export_bank(%(bank)s)",
            "note_recall(%(bank)s, ARRAY[%(id)s]::uuid[])", "update_memory(%(bank)s, %(id)s, 'y')", "forget(%(bank)s, %(id)s, 'y')",
            "confirm(%(bank)s, %(id)s)", "link(%(bank)s, %(id)s, %(id)s)", "log_turn(%(bank)s, 's1', 'user', 'hello')",
            "claim_unembedded(%(bank)s)", "maintain(%(bank)s)", "embedding_status(%(bank)s)", "verify_events(%(bank)s)",
            "grant_access(%(bank)s, 'agent-7', 'reader')",
        ],
    )  # fmt: skip
    def test_it_calls_nothing_else(self, db: Database, bank: str, adder: Database, call: str) -> None:
        given = {"bank": bank, "id": db.one("store", bank=bank, content=SECRET)["memory_id"]}
        said = refused("HM003", lambda: adder.rows(f"SELECT * FROM hindsight.{call}", given))
        assert "is adder of bank" in said
        assert SECRET not in said

    def test_it_selects_no_row_and_no_list_names_the_bank(self, db: Database, bank: str, adder: Database) -> None:
        db.call("store", bank=bank, content=SECRET, session_id="s1")
        for table in ("bank", "access", "memory", "live_memory", "event", "session", "turn"):
            assert adder.value(f"SELECT count(*) FROM hindsight.{table}") == 0, table
        for function in ("status", "banks", "queue"):
            assert adder.rows(f"SELECT * FROM hindsight.{function}()") == [], function

    @pytest.mark.parametrize("guess", GUESSES)
    @pytest.mark.parametrize("slot", [None, "alice.plan"])
    @pytest.mark.parametrize("fate", ["live", "forgotten", "corrected", "pending", "expired"])
    def test_its_answer_is_the_same_whatever_the_bank_holds(
        self, db: Database, bank: str, adder: Database, guess: str, slot: str | None, fate: str
    ) -> None:
        given: dict[str, Any] = {"bank": bank, "content": SECRET, "slot": "alice.plan", "tags": ["hr"]}
        if fate == "expired":
            given["ttl"] = "1 ms"
        kept = db.one("store", **given, confidence=0.4 if fate == "pending" else 0.95)["memory_id"]
        if fate == "forgotten":
            db.call("forget", bank=bank, memory_id=kept, reason="asked to")
        if fate == "corrected":
            db.call("store", bank=bank, content="Alice stays", slot="alice.plan")
        for confidence in (None, 0.3, 0.99):
            stored = adder.one(
                "store",
                bank=bank,
                content=guess,
                slot=slot,
                confidence=confidence,
                session_id="s1",
                occurred_at="2020-01-01",
            )
            assert (stored["memory_id"], stored["outcome"], stored["related_id"]) == (None, "taken", None)
            assert stored["reasons"] == (
                ["confidence 0.3 is under 0.6: kept, not believed until confirmed"] if confidence == 0.3 else []
            )

    @pytest.mark.parametrize("argument", ["supersedes", "derived_from"])
    def test_it_names_no_memory_whether_there_is_one_or_not(
        self, db: Database, bank: str, adder: Database, argument: str
    ) -> None:
        said = set()
        for named in (db.one("store", bank=bank, content=SECRET)["memory_id"], uuid.uuid4()):
            value = named if argument == "supersedes" else [named]
            said.add(refused("HM003", lambda v=value: adder.call("store", bank=bank, content="x y z", **{argument: v})))
        assert len(said) == 1, "the two are not told apart"

    def test_what_its_own_words_come_to_it_is_told(self, bank: str, adder: Database) -> None:
        assert adder.one("store", bank=bank, content="ok thanks")["outcome"] == "skipped"
        stored = adder.one("store", bank=bank, content="The card is 4111 1111 1111 1111")
        assert (stored["outcome"], stored["reasons"]) == ("taken", ["redacted: card"])
        assert "at most 10000" in refused("HM005", lambda: adder.call("store", bank=bank, content="x" * 10_001))

    def test_who_added_it_stands_in_the_history(self, db: Database, bank: str, adder: Database) -> None:
        adder.call("store", bank=bank, content="The port is 22")
        (found,) = db.call("recall", bank=bank, query="port")
        assert [row["principal"] for row in db.call("history", bank=bank, memory_id=found["memory_id"])] == [me(adder)]


class TestTypes:
    """An agent that may add hypotheses and no facts."""

    @pytest.fixture(params=["adder", "writer"])
    def guesser(
        self, request: pytest.FixtureRequest, connect: Callable[..., Database], db: Database, bank: str
    ) -> Database:
        return grant(db, bank, connect(), request.param, ["hypothesis", "todo"])

    @pytest.fixture
    def writer(self, connect: Callable[..., Database], db: Database, bank: str) -> Database:
        return grant(db, bank, connect(), "writer", ["hypothesis"])

    def test_it_stores_what_it_may(self, db: Database, bank: str, guesser: Database) -> None:
        guesser.call("store", bank=bank, content="Bob may prefer tea", type="hypothesis")
        guesser.call("store", bank=bank, content="Bob's team uses Rust", type="fact", source="inferred")
        found = db.call("recall", bank=bank, query="Bob tea Rust", include_pending=True)
        assert {row["type"] for row in found} == {"hypothesis"}

    def test_another_type_is_refused_and_nothing_is_kept(self, db: Database, bank: str, guesser: Database) -> None:
        for kind in ("fact", "decision", "lesson"):
            said = refused(
                "HM003",
                lambda k=kind: guesser.call("store", bank=bank, content="Bob prefers tea", type=k, source="user"),
            )
            assert f"may write only hypothesis, todo, not a memory of type {kind}" in said
        assert db.contents(bank) == []

    def test_saying_a_fact_again_as_a_guess_does_not_confirm_it(
        self, db: Database, bank: str, guesser: Database
    ) -> None:
        fact = db.one("store", bank=bank, content="Bob prefers tea", tags=["tea"])["memory_id"]
        before = db.one("get", bank=bank, memory_id=fact)
        stored = guesser.one("store", bank=bank, content="Bob prefers tea", type="hypothesis", tags=["mine"])
        if stored["outcome"] != "taken":  # an adder's answer
            assert (stored["outcome"], stored["memory_id"]) == ("skipped", fact)
            assert stored["reasons"] == ["it is known as a fact, which the writer may not change"]
        assert db.one("get", bank=bank, memory_id=fact) == before

    def test_a_slot_keeps_what_it_may_not_write(self, db: Database, bank: str, guesser: Database) -> None:
        db.call("store", bank=bank, content="The port is 22", slot="port")
        guesser.call("store", bank=bank, content="open port 2222", slot="port", type="todo", confidence=0.99)
        assert db.contents(bank, "port") == ["The port is 22"]

    def test_a_slot_of_what_it_may_write_is_taken(self, db: Database, bank: str, guesser: Database) -> None:
        db.call("store", bank=bank, content="open port 22", slot="port", type="todo")
        guesser.call("store", bank=bank, content="open port 2222", slot="port", type="todo")
        assert db.contents(bank, "port") == ["open port 2222"]

    def test_it_changes_forgets_and_confirms_only_what_it_may_write(
        self, db: Database, bank: str, writer: Database
    ) -> None:
        fact = db.one("store", bank=bank, content="Bob prefers tea")["memory_id"]
        gone = db.one("store", bank=bank, content="Bob was in Rome")["memory_id"]
        db.call("forget", bank=bank, memory_id=gone, reason="asked to")
        guess = writer.one("store", bank=bank, content="Bob may like Oslo", type="hypothesis", confidence=0.7)[
            "memory_id"
        ]
        for change in (
            lambda: writer.call("update_memory", bank=bank, memory_id=fact, content="Bob prefers coffee"),
            lambda: writer.call("forget", bank=bank, memory_id=fact, reason="asked to"),
            lambda: writer.call("restore", bank=bank, memory_id=gone),
            lambda: writer.call("confirm", bank=bank, memory_id=fact),
            lambda: writer.call("confirm", bank=bank, memory_id=guess),  # it would be a fact
            lambda: writer.call("update_memory", bank=bank, memory_id=guess, type="fact"),
            lambda: writer.call("store", bank=bank, content="Bob left", type="hypothesis", supersedes=fact),
        ):
            assert "may write only hypothesis" in refused("HM003", change)
        writer.call("update_memory", bank=bank, memory_id=guess, content="Bob may like Bergen")
        writer.call("forget", bank=bank, memory_id=guess, reason="no")
        assert db.contents(bank, "Bob") == ["Bob prefers tea"]

    @pytest.mark.parametrize(
        "call",
        [
            "forget_matching(%(bank)s, 'asked to', types => '{fact}')", "maintain(%(bank)s)", "resolve(%(bank)s, 'tags', %(id)s)",
            "link(%(bank)s, %(id)s, %(id)s)", "unlink(%(bank)s, %(id)s, %(id)s)", "claim_session(%(bank)s)", "retry(%(bank)s)",
            "retry_embeddings(%(bank)s)", "note_audit(%(bank)s, 0)",
        ],
    )  # fmt: skip
    def test_what_may_change_memories_of_any_type_is_not_for_it(
        self, db: Database, bank: str, writer: Database, call: str
    ) -> None:
        given = {"bank": bank, "id": db.one("store", bank=bank, content="Bob prefers tea")["memory_id"]}
        said = refused("HM003", lambda: writer.rows(f"SELECT * FROM hindsight.{call}", given))
        assert "may write only hypothesis" in said
        assert "any type" in said

    def test_of_its_conversations_only_what_it_may_write_is_kept(
        self, db: Database, bank: str, writer: Database
    ) -> None:
        writer.call("log_turn", bank=bank, session_id="s1", role="user", content="Remember that the SSH port is 2222.")
        writer.call("close_session", bank=bank, session_id="s1")
        assert db.one("distil_waiting", bank=bank)["turns"] == 1
        assert db.contents(bank, "SSH port") == [], "a fact in the name of one that may not write facts"

    def test_they_are_seen_lifted_and_checked(self, db: Database, bank: str, guesser: Database) -> None:
        listed = {row["principal"]: (row["rights"], row["types"]) for row in db.call("access", bank=bank)}
        rights = listed[me(guesser)][0]
        assert listed == {me(guesser): (rights, ["hypothesis", "todo"]), "postgres": ("owner", None)}
        grant(db, bank, guesser, rights)
        guesser.call("store", bank=bank, content="Bob prefers tea", type="fact")
        for types in ([], ["opinion"], [None]):
            refused("HM004", lambda t=types: grant(db, bank, guesser, rights, t))
        for other in ("reader", "owner"):
            said = refused("HM004", lambda o=other: grant(db, bank, guesser, o, ["todo"]))
            assert "types limit what an adder or a writer may write" in said


class TestAccessList:
    def test_readers_see_it_and_strangers_do_not(
        self, connect: Callable[..., Database], db: Database, bank: str
    ) -> None:
        reader, stranger = grant(db, bank, connect("hindsight_reader"), "reader"), connect()
        assert [row["principal"] for row in reader.call("access", bank=bank)] == sorted([me(reader), "postgres"])
        assert "unknown bank" in refused("HM001", lambda: stranger.call("access", bank=bank))

    def test_unknown_rights_are_refused(self, db: Database, bank: str) -> None:
        for rights in ("admin", "", None, "Reader"):
            refused("HM004", lambda r=rights: db.call("grant_access", bank=bank, principal="agent-7", rights=r))


class TestScope:
    """What a service has narrowed a transaction to."""

    RIGHTS = ("reader", "adder", "writer", "owner")

    def acting(self, service: Database, principal: str, scope: dict[str, Any] | str, work: Callable[[], Any]) -> Any:
        with service.connection.transaction():
            service.rows("SELECT set_config('hindsight.principal', %s, true)", (principal,))
            text = scope if isinstance(scope, str) else json.dumps(scope)
            service.rows("SELECT set_config('hindsight.scope', %s, true)", (text,))
            return work()

    @pytest.mark.parametrize("scope", RIGHTS)
    @pytest.mark.parametrize("rights", RIGHTS)
    def test_rights_are_what_both_allow(
        self, connect: Callable[..., Database], db: Database, bank: str, rights: str, scope: str
    ) -> None:
        contains = {"reader": {"r"}, "adder": {"a"}, "writer": {"r", "a", "w"}, "owner": {"r", "a", "w", "o"}}
        both = contains[rights] & contains[scope]
        service, agent = connect("hindsight_service"), f"agent-{uuid.uuid4()}"
        db.call("grant_access", bank=bank, principal=agent, rights=rights)
        memory = db.one("store", bank=bank, content="The port is 22")["memory_id"]
        calls: dict[str, Callable[[], Any]] = {
            "r": lambda: service.call("recall", bank=bank, query="port"),
            "a": lambda: service.call("store", bank=bank, content="The host is web-7"),
            "w": lambda: service.call("update_memory", bank=bank, memory_id=memory, tags=["x"]),
            "o": lambda: service.call("set_redaction", bank=bank, policy="mask"),
        }
        for right, call in calls.items():
            if right in both:
                self.acting(service, agent, {"rights": scope}, call)
            else:
                refused(
                    "HM003" if both else "HM001",
                    lambda c=call: self.acting(service, agent, {"rights": scope, "banks": [bank]}, c),
                )

    def test_a_bank_outside_of_it_is_not_there(self, connect: Callable[..., Database], db: Database, bank: str) -> None:
        service, agent = connect("hindsight_service"), f"agent-{uuid.uuid4()}"
        other = f"bank-{uuid.uuid4().hex[:10]}"
        db.call("create_bank", bank=other)
        for name in (bank, other):
            db.call("grant_access", bank=name, principal=agent, rights="owner")
        scope = {"banks": [bank]}
        seen = self.acting(service, agent, scope, lambda: service.rows("SELECT name FROM hindsight.bank"))
        assert seen == [{"name": bank}]
        assert "unknown bank" in refused(
            "HM001", lambda: self.acting(service, agent, scope, lambda: service.call("recall", bank=other))
        )
        assert len(self.acting(service, agent, {}, lambda: service.rows("SELECT name FROM hindsight.bank"))) == 2

    @pytest.mark.parametrize("scope", [{"banks": ["another"]}, {"rights": "writer"}])
    def test_it_lets_no_bank_be_made_beside(self, connect: Callable[..., Database], scope: dict[str, Any]) -> None:
        service, name = connect("hindsight_service"), f"bank-{uuid.uuid4().hex[:10]}"
        refused("HM003", lambda: self.acting(service, "agent-7", scope, lambda: service.call("create_bank", bank=name)))

    @pytest.mark.parametrize(
        "scope", ["not json", "[]", '"x"', '{"banks": null}', '{"banks": {}}', '{"rights": "all"}', '{"bank": ["x"]}']
    )
    def test_what_is_no_scope_lets_nobody_in(
        self, connect: Callable[..., Database], db: Database, bank: str, scope: str
    ) -> None:
        service, agent = connect("hindsight_service"), f"agent-{uuid.uuid4()}"
        db.call("grant_access", bank=bank, principal=agent, rights="owner")
        with pytest.raises(psycopg.Error) as caught:
            self.acting(service, agent, scope, lambda: service.call("recall", bank=bank))
        assert caught.value.sqlstate in ("HM001", "HM003", "22P02", "22023")

    def test_an_operator_within_a_scope_is_none(self, db: Database, bank: str) -> None:
        refused(
            "HM001",
            lambda: self.acting(db, "", {"banks": ["another"]}, lambda: db.call("recall", bank=bank)),
        )
        refused(
            "HM003",
            lambda: self.acting(db, "", {"rights": "reader"}, lambda: db.call("set_index", model="x")),
        )

    def test_naming_an_operators_login_gives_none_of_its_rights(
        self, db: Database, bank: str, login: Any, shared_url: str
    ) -> None:
        operator = Database(login(shared_url, "hindsight_owner", "hindsight_service"))
        operator.call("recall", bank=bank)
        refused("HM001", lambda: self.acting(operator, me(operator), "", lambda: operator.call("recall", bank=bank)))
        operator.close()


class TestRevokingInUse:
    def test_writers_at_work_end_at_once_without_a_deadlock(
        self, connect: Callable[..., Database], db: Database, bank: str
    ) -> None:
        guests = [grant(db, bank, connect(), "writer") for _ in range(3)]
        codes: list[str | None] = []
        acknowledged: list[str] = []
        going = threading.Event()

        def work(guest: Database, number: int) -> None:
            for turn in range(300):
                content = f"The port of host {number} was {turn + 1000}"
                try:
                    guest.call("store", bank=bank, content=content)
                except psycopg.Error as error:
                    codes.append(error.sqlstate)
                    return
                acknowledged.append(content)
                if turn == 3:
                    going.set()

        threads = [threading.Thread(target=work, args=(guest, number)) for number, guest in enumerate(guests)]
        for thread in threads:
            thread.start()
        assert going.wait(60)
        for guest in guests:
            db.call("revoke_access", bank=bank, principal=me(guest))
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert codes == ["HM001"] * 3
        kept = db.value(
            "SELECT count(*) FROM hindsight.memory JOIN hindsight.bank USING (bank_id) WHERE name = %s", (bank,)
        )
        assert kept == len(acknowledged), "each that was acknowledged, and no other"

    def test_an_open_transaction_is_refused_from_the_next_statement_on(
        self, connect: Callable[..., Database], db: Database, bank: str
    ) -> None:
        guest = grant(db, bank, connect(), "writer")
        with guest.connection.transaction(force_rollback=True):
            guest.call("store", bank=bank, content="The port is 22")
            db.call("revoke_access", bank=bank, principal=me(guest))
            refused("HM001", lambda: guest.call("store", bank=bank, content="The port is 23"))
        assert db.contents(bank) == []
