"""The trail of events: sealed behind writers who wait for nobody, and what an edit of it looks like."""

import threading
import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.conftest import Database


@pytest.fixture
def other(db: Database) -> Iterator[Database]:
    """A second connection."""
    database = Database(db.url)
    yield database
    database.close()


def sealed(db: Database, bank: str) -> int:
    """How many events one run of maintain has sealed."""
    return {row["task"]: row["affected"] for row in db.call("maintain", bank=bank)}["events sealed"]


def problems(db: Database, bank: str) -> list[str]:
    return [row["problem"] for row in db.call("verify_events", bank=bank)]


def seals(db: Database, bank: str) -> list[dict[str, object]]:
    return db.rows(
        "SELECT s.* FROM hindsight.event_seal s JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s ORDER BY seal_id",
        (bank,),
    )


def numbers(db: Database, bank: str) -> list[int]:
    """The numbers of the bank's events, oldest first."""
    rows = db.rows(
        "SELECT event_id FROM hindsight.event JOIN hindsight.bank b USING (bank_id) WHERE b.name = %s ORDER BY event_id",
        (bank,),
    )
    return [row["event_id"] for row in rows]


def store(db: Database, bank: str, *contents: str) -> None:
    for content in contents:
        db.call("store", bank=bank, content=content)


def leave_event(db: Database, bank: str) -> None:
    db.rows("SELECT hindsight._leave_event(bank_id, 'x', NULL) FROM hindsight.bank WHERE name = %s", (bank,))


class TestSealing:
    @pytest.mark.parametrize("contents", [("The port is 22", "The host is atlas"), ("端口是22", "主机叫 atlas")])
    def test_maintain_seals_what_is_there_and_the_trail_is_clean(
        self, db: Database, bank: str, contents: tuple[str, ...]
    ) -> None:
        store(db, bank, *contents)
        assert sealed(db, bank) == 3, "the bank's own event among them"
        assert problems(db, bank) == []
        (seal,) = seals(db, bank)
        assert (seal["seal_id"], seal["events"], seal["last_event"]) == (1, 3, numbers(db, bank)[-1])

    def test_nothing_new_is_no_seal(self, db: Database, bank: str) -> None:
        store(db, bank, "The port is 22")
        sealed(db, bank)
        assert sealed(db, bank) == 0
        assert len(seals(db, bank)) == 1

    def test_seals_form_a_chain(self, db: Database, bank: str) -> None:
        for number in range(20):
            store(db, bank, f"The port is {number}")
            sealed(db, bank)
        assert [seal["seal_id"] for seal in seals(db, bank)] == list(range(1, 21))
        assert problems(db, bank) == []

    def test_a_seal_holds_ten_thousand_events_at_most(self, db: Database, bank: str) -> None:
        db.rows(
            "SELECT count(hindsight._leave_event(bank_id, 'x', NULL)) FROM hindsight.bank, generate_series(1, 25000) "
            "WHERE name = %s",
            (bank,),
        )
        assert sealed(db, bank) == 25001
        assert [seal["events"] for seal in seals(db, bank)] == [10000, 10000, 5001]
        assert problems(db, bank) == []

    def test_what_is_committed_after_a_seal_was_opened_falls_into_it(
        self, db: Database, bank: str, other: Database
    ) -> None:
        with other.connection.transaction():
            store(other, bank, "written early, committed late")
            store(db, bank, "written late, committed early")
            assert sealed(db, bank) == 0, "a writer of before is still at work"
            (opened,) = seals(db, bank)
            assert opened["digest"] is None
            assert sealed(db, bank) == 0
            assert problems(db, bank) == []
        assert sealed(db, bank) == 3
        assert problems(db, bank) == []
        assert seals(db, bank)[0]["events"] == 3

    def test_a_writer_that_ends_without_an_end_in_order_is_waited_for(
        self, db: Database, bank: str, other: Database
    ) -> None:
        """The newest transaction that has ended says nothing of those that began before it and go on."""
        third = Database(db.url)
        other.connection.execute("BEGIN")
        third.connection.execute("BEGIN")
        other.rows("SELECT pg_current_xact_id()")  # the older number …
        leave_event(third, bank)  # a later number, an earlier event
        leave_event(other, bank)
        other.connection.execute("COMMIT")  # … ends first
        assert sealed(db, bank) == 0
        third.connection.execute("COMMIT")
        third.close()
        assert sealed(db, bank) == 3
        assert problems(db, bank) == []

    def test_a_transaction_that_has_written_opens_no_seal(self, db: Database, bank: str, other: Database) -> None:
        """Its number is lower than those of writers that came after it."""
        with db.connection.transaction():
            store(db, bank, "first")
            with other.connection.transaction():
                store(other, bank, "second")
                assert sealed(db, bank) == 0
            assert sealed(db, bank) == 0
            assert seals(db, bank) == []
        assert sealed(db, bank) == 3
        assert problems(db, bank) == []

    @pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
    def test_a_seal_in_an_older_snapshot_holds_what_that_sees(
        self, db: Database, bank: str, other: Database, level: str
    ) -> None:
        store(db, bank, "first")
        with db.connection.transaction():
            db.rows(f"SET TRANSACTION ISOLATION LEVEL {level}")
            db.rows("SELECT 1 FROM hindsight.bank LIMIT 1")
            store(other, bank, "second")
            sealed(db, bank)
        sealed(db, bank)
        assert sum(int(str(seal["events"])) for seal in seals(db, bank)) == 3
        assert problems(db, bank) == []

    def test_of_two_sealers_at_once_one_does_nothing(self, db: Database, bank: str, other: Database) -> None:
        store(db, bank, "The port is 22")
        with other.connection.transaction():
            assert sealed(other, bank) == 2
            assert sealed(db, bank) == 0
        assert sealed(db, bank) == 0
        assert len(seals(db, bank)) == 1

    def test_a_seal_opened_in_another_cluster_is_closed_here(self, db: Database, bank: str) -> None:
        """After a dump and a restore: the numbers of transactions are those of another cluster, maybe higher."""
        store(db, bank, "The port is 22")
        db.rows(
            "INSERT INTO hindsight.event_seal (bank_id, seal_id, last_event, settles_at) "
            "SELECT bank_id, 1, %s, '999999999999' FROM hindsight.bank WHERE name = %s",
            (numbers(db, bank)[-1], bank),
        )
        assert sealed(db, bank) == 2
        assert problems(db, bank) == []

    def test_the_numbers_of_events_are_drawn_one_by_one(self, db: Database) -> None:
        """Sessions that keep numbers in reserve would use low ones after a seal."""
        sequence = "SELECT seqcache FROM pg_sequence WHERE seqrelid = 'hindsight.event_event_id_seq'::regclass"
        assert db.value(sequence) == 1

    def test_another_time_zone_and_date_style_see_the_same_digests(
        self, db: Database, bank: str, other: Database
    ) -> None:
        db.call("store", bank=bank, content="用户明天出发", occurred_at="2026-03-01T08:00:00+08:00", ttl="3 days")
        other.rows("SET timezone = 'Asia/Shanghai'")
        other.rows("SET datestyle = 'German'")
        other.rows("SET intervalstyle = 'iso_8601'")
        other.rows("SET extra_float_digits = 0")
        other.rows("SET bytea_output = 'escape'")
        assert problems(other, bank) == []
        assert sealed(other, bank) == 2
        assert problems(db, bank) == problems(other, bank) == []

    def test_two_banks_have_trails_of_their_own(self, db: Database, bank: str) -> None:
        second = f"bank-{uuid.uuid4().hex[:10]}"
        db.call("create_bank", bank=second)
        for number in range(3):
            store(db, bank, f"first {number}")
            store(db, second, f"second {number}")
            assert sealed(db, bank) == (2 if number == 0 else 1)
            assert sealed(db, second) == (2 if number == 0 else 1)
        db.rows("DELETE FROM hindsight.event WHERE event_id = %s", (numbers(db, second)[1],))
        assert problems(db, bank) == []
        assert problems(db, second) == ["seal does not match"]

    def test_writers_and_sealers_at_once_leave_a_clean_trail(self, db: Database, bank: str) -> None:
        stop = threading.Event()
        failures: list[str] = []

        def write(number: int) -> None:
            database = Database(db.url)
            for turn in range(40):
                with database.connection.transaction(force_rollback=turn % 7 == 3):
                    for part in range(3):
                        store(database, bank, f"writer {number}, turn {turn}, part {part}")
            database.close()

        def seal() -> None:
            database = Database(db.url)
            while not stop.is_set():
                sealed(database, bank)
                failures.extend(problems(database, bank))
            database.close()

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        sealers = [threading.Thread(target=seal) for _ in range(2)]
        for thread in writers + sealers:
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        for thread in sealers:
            thread.join()
        sealed(db, bank)
        sealed(db, bank)
        assert failures == []
        assert problems(db, bank) == []
        assert sum(int(str(seal["events"])) for seal in seals(db, bank)) == len(numbers(db, bank)) == 1 + 4 * 34 * 3

    def test_no_writer_waits_for_a_sealer(self, db: Database, bank: str, other: Database) -> None:
        store(db, bank, "first")
        with other.connection.transaction():
            assert sealed(other, bank) == 2
            db.rows("SET statement_timeout = '2s'")
            store(db, bank, "second", "first")
            db.rows("RESET statement_timeout")


class TestVerifying:
    @pytest.fixture
    def trail(self, db: Database, bank: str) -> str:
        """Three seals of two events, and one event that is not sealed yet."""
        for number in range(3):
            store(db, bank, *(f"端口 {number} is {part}" for part in range(1 if number == 0 else 2)))
            assert sealed(db, bank) == 2
        store(db, bank, "the last")
        assert problems(db, bank) == []
        return bank

    @pytest.mark.parametrize(
        "assignment",
        [
            "reason = 'another'",
            "after = NULL",
            """after = jsonb_set(after, '{content}', '"another"')""",
            "before = '{}'",
            "salt = '\\x00'",
            "digest = '\\x00'",
        ],
    )
    @pytest.mark.parametrize("place", [2, -1])
    def test_a_changed_content_is_named(self, db: Database, trail: str, assignment: str, place: int) -> None:
        changed = numbers(db, trail)[place]
        db.rows(f"UPDATE hindsight.event SET {assignment} WHERE event_id = %s", (changed,))
        found = db.call("verify_events", bank=trail)
        assert (found[0]["problem"], found[0]["event_id"]) == ("event changed", changed)
        assert "stored by postgres" in found[0]["detail"]
        assert [row["problem"] for row in found[1:]] == (
            ["seal does not match"] if "digest" in assignment and place == 2 else []
        )

    @pytest.mark.parametrize(
        "assignment",
        ["principal = 'mallory'", "action = 'read'", "at = at + interval '1 microsecond'", "memory_id = gen_random_uuid()",
         "at = 'infinity'"],
    )  # fmt: skip
    def test_a_changed_author_time_or_subject_breaks_the_seal(self, db: Database, trail: str, assignment: str) -> None:
        db.rows(f"UPDATE hindsight.event SET {assignment} WHERE event_id = %s", (numbers(db, trail)[2],))
        (found,) = db.call("verify_events", bank=trail)
        assert (found["problem"], found["seal_id"]) == ("seal does not match", 2)
        assert "2 were sealed, 2 are there, and one of them" in found["detail"]

    def test_a_removed_event_breaks_the_seal(self, db: Database, trail: str) -> None:
        db.rows("DELETE FROM hindsight.event WHERE event_id = %s", (numbers(db, trail)[3],))
        (found,) = db.call("verify_events", bank=trail)
        assert (found["problem"], found["seal_id"]) == ("seal does not match", 2)
        assert "2 were sealed, 1 are there" in found["detail"]

    @pytest.mark.parametrize("place", [-5, 0, 1, "between"])
    def test_an_event_that_appears_in_a_sealed_range_breaks_the_seal(
        self, db: Database, trail: str, place: int | str
    ) -> None:
        if place == "between":
            second = place = numbers(db, trail)[1]
            db.rows("UPDATE hindsight.event SET event_id = DEFAULT WHERE event_id = %s", (second,))
        db.rows(
            "INSERT INTO hindsight.event (bank_id, event_id, principal, action, salt, digest) OVERRIDING SYSTEM VALUE "
            "SELECT bank_id, %s, 'mallory', 'stored', '', hindsight._event_digest('', NULL, NULL, NULL) "
            "FROM hindsight.bank WHERE name = %s",
            (place, trail),
        )
        found = db.call("verify_events", bank=trail)
        assert [(row["problem"], row["seal_id"]) for row in found] == [("seal does not match", 1)]

    @pytest.mark.parametrize("seal_id", [1, 2])
    def test_a_missing_seal_is_named(self, db: Database, trail: str, seal_id: int) -> None:
        db.rows(
            "DELETE FROM hindsight.event_seal s USING hindsight.bank b "
            "WHERE b.bank_id = s.bank_id AND b.name = %s AND seal_id = %s",
            (trail, seal_id),
        )
        (found,) = db.call("verify_events", bank=trail)
        assert (found["problem"], found["seal_id"]) == ("missing seal", seal_id)

    @pytest.mark.parametrize(
        ("assignment", "expected"),
        [
            ("digest = sha256(digest)", [("seal does not match", 2), ("seal does not match", 3)]),
            ("events = events + 1", [("seal does not match", 2)]),
            ("last_event = last_event - 1", [("seal does not match", 2), ("seal does not match", 3)]),
            ("digest = NULL, events = NULL, sealed_at = NULL", [("missing seal", 2)]),
        ],
    )
    def test_a_changed_seal_is_named(
        self, db: Database, trail: str, assignment: str, expected: list[tuple[str, int]]
    ) -> None:
        db.rows(
            f"UPDATE hindsight.event_seal s SET {assignment} FROM hindsight.bank b "
            "WHERE b.bank_id = s.bank_id AND b.name = %s AND seal_id = 2",
            (trail,),
        )
        assert [(row["problem"], row["seal_id"]) for row in db.call("verify_events", bank=trail)] == expected

    def test_content_that_went_without_an_erasure_is_named(self, db: Database, trail: str) -> None:
        number = numbers(db, trail)[2]
        db.rows(
            "UPDATE hindsight.event SET reason = NULL, before = NULL, after = NULL, salt = NULL WHERE event_id = %s",
            (number,),
        )
        (found,) = db.call("verify_events", bank=trail)
        assert (found["problem"], found["event_id"]) == ("content gone", number)

    def test_it_runs_where_nothing_can_be_written(self, db: Database, trail: str) -> None:
        with db.connection.transaction():
            db.rows("SET TRANSACTION READ ONLY")
            assert problems(db, trail) == []
            assert db.value("SELECT pg_current_xact_id_if_assigned()::text") is None
        assert db.value("SELECT provolatile::text FROM pg_proc WHERE proname = 'verify_events'") == "s"


@pytest.mark.parametrize("memberships", [("hindsight_app",), ("hindsight_reader",), ()])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE hindsight.event SET reason = ''",
        "DELETE FROM hindsight.event",
        "INSERT INTO hindsight.event (bank_id, principal, action, digest) VALUES (1, 'x', 'x', '')",
        "TRUNCATE hindsight.event",
        "UPDATE hindsight.event_seal SET events = 0",
        "DELETE FROM hindsight.event_seal",
        "INSERT INTO hindsight.event_seal (bank_id, seal_id, last_event, settles_at) VALUES (1, 1, 1, '1')",
        "SELECT hindsight._leave_event(1, 'x', NULL)",
        "SELECT hindsight._seal(1)",
    ],
)
def test_no_role_but_the_owner_writes_the_trail(
    shared_url: str, login: Callable[..., str], memberships: tuple[str, ...], statement: str
) -> None:
    database = Database(login(shared_url, *memberships))
    with pytest.raises(psycopg.Error, match="permission denied") as caught:
        database.rows(statement)
    assert caught.value.sqlstate == "42501"
    database.close()


def test_a_reader_verifies_its_bank_and_no_other(db: Database, bank: str, login: Callable[..., str]) -> None:
    store(db, bank, "The port is 22")
    reader = Database(login(db.url, "hindsight_reader"))
    with pytest.raises(psycopg.Error, match="unknown bank"):
        problems(reader, bank)
    db.call("grant_access", bank=bank, principal=reader.value("SELECT session_user"), rights="reader")
    assert problems(reader, bank) == []
    reader.close()
