"""What must hold under `hindsight stress`: at every moment, and of the whole when the writers have stopped."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection
from rich.console import RenderableType

from hindsight.calls import RETRIED
from hindsight.stress_writer import EXPECTED, Tally, Write
from hindsight.tables import visible

# Counted over the table itself, by conditions written out: the unique indexes, which are to be proved, answer nothing.
_NO_INDEX = (
    "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SET jit = off; "
    "SET max_parallel_workers_per_gather = 0"
)
_DOUBLES = """
    SELECT 'slot ' || slot, count(*) FROM hindsight.memory
    WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL
      AND slot IS NOT NULL
    GROUP BY bank_id, slot HAVING count(*) > 1
    UNION ALL
    SELECT 'content ' || min(content), count(*) FROM hindsight.memory
    WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL
    GROUP BY bank_id, digest HAVING count(*) > 1
"""
_BANKS = "(SELECT bank_id FROM hindsight.bank WHERE name = ANY (%(banks)s))"
_VERSIONS = f"""
    SELECT memory_id, version, metadata ->> 'write' FROM hindsight.memory WHERE bank_id IN {_BANKS}
    UNION ALL
    SELECT memory_id, version, metadata ->> 'write' FROM hindsight.memory_version WHERE bank_id IN {_BANKS}
"""  # noqa: S608 no value is put in
_DELETED = f"SELECT memory_id, deleted_at IS NOT NULL FROM hindsight.memory WHERE bank_id IN {_BANKS}"  # noqa: S608
_EVENTS = f"SELECT action, count(*) FROM hindsight.event WHERE bank_id IN {_BANKS} GROUP BY action"  # noqa: S608
# Every version has one event, whoever made it; links and what was skipped leave events that change no memory.
_UNEVEN = f"""
    SELECT m.memory_id, m.version, v.kept, v.highest, e.events
    FROM hindsight.memory AS m
    LEFT JOIN (SELECT memory_id, count(*) AS kept, max(version) AS highest FROM hindsight.memory_version
               WHERE bank_id IN {_BANKS} GROUP BY memory_id) AS v USING (memory_id)
    LEFT JOIN (SELECT memory_id, count(*) AS events FROM hindsight.event
               WHERE bank_id IN {_BANKS} AND action NOT IN ('linked', 'unlinked', 'skipped')
               GROUP BY memory_id) AS e USING (memory_id)
    WHERE m.bank_id IN {_BANKS}
      AND (m.version <> 1 + coalesce(v.kept, 0) OR coalesce(v.highest, 0) <> m.version - 1
           OR e.events IS DISTINCT FROM m.version)
"""  # noqa: S608
# What one writer's call did to another memory is in no answer: it is counted in the versions.
_TURNS = f"""
    WITH v AS (
      SELECT memory_id, version, archived_at, superseded_by FROM hindsight.memory WHERE bank_id IN {_BANKS}
      UNION ALL
      SELECT memory_id, version, archived_at, superseded_by FROM hindsight.memory_version WHERE bank_id IN {_BANKS}
    ), turn AS (
      SELECT archived_at IS NOT NULL AND lag(archived_at) OVER life IS NULL AS is_archived,
             superseded_by IS NOT NULL AND lag(superseded_by) OVER life IS NULL AS is_superseded
      FROM v WINDOW life AS (PARTITION BY memory_id ORDER BY version)
    )
    SELECT (SELECT count(*) FROM turn WHERE is_archived),
           (SELECT count(*) FROM hindsight.event WHERE bank_id IN {_BANKS} AND after ? 'archived_at'),
           (SELECT count(*) FROM turn WHERE is_superseded),
           (SELECT count(*) FROM hindsight.event WHERE bank_id IN {_BANKS} AND after ? 'superseded_by')
"""  # noqa: S608
_VERIFY = "SELECT 1 FROM pg_proc WHERE pronamespace = 'hindsight'::regnamespace AND proname = 'verify_events'"
_PAST = {
    "update_memory": "updated",
    "restore": "restored",
    "confirm": "confirmed",
    "link": "linked",
    "unlink": "unlinked",
}
_PROBLEMS = "SELECT problem, event_id, seal_id, detail FROM hindsight.verify_events(%s) LIMIT 5"


@dataclass(slots=True)
class Invariant:
    """Something that must hold, and what was seen: an empty list where it does."""

    name: str
    broken: list[str]


def verdicts(invariants: Iterable[Invariant]) -> Iterator[RenderableType]:
    """A line for each invariant: that it holds, or that it is broken, and by what."""
    for invariant in invariants:
        verdict = "BROKEN" if invariant.broken else "holds"
        yield visible(f"{verdict}: {invariant.name} {' '.join(invariant.broken)}".rstrip())


class Watch:
    """A connection that looks for doubles, again and again, while writers work."""

    def __init__(self, url: str) -> None:
        self.looks = 0
        self.doubles: list[str] = []
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(_NO_INDEX)

    def run(self, stop: threading.Event) -> None:
        with self._connection:
            while True:
                is_last = stop.wait(0.02)
                self.doubles += [f"{count} of {what}" for what, count in self._connection.execute(_DOUBLES)]
                self.looks += 1
                if is_last:
                    return


def check(connection: Connection[Any], banks: Sequence[str], tallies: Sequence[Tally], watch: Watch) -> list[Invariant]:
    """What holds and what does not, after the writers have stopped."""
    writes = [write for tally in tallies for write in tally.writes]
    refused = {sqlstate for tally in tallies for _, sqlstate in tally.refused}
    return [
        Invariant("no deadlock or serialization failure reached a caller", sorted(refused & RETRIED)),
        Invariant("nothing was refused but what another writer had changed", sorted(refused - EXPECTED - RETRIED)),
        Invariant("at every look one live memory of a slot, and one of a content, at most", watch.doubles[:5]),
        *ledger(connection, banks, writes),
    ]  # fmt: skip


def ledger(connection: Connection[Any], banks: Sequence[str], writes: Sequence[Write]) -> list[Invariant]:
    """The acknowledged writes against what is stored: versions, states and events."""
    given = {"banks": list(banks)}
    versions = connection.execute(_VERSIONS, given).fetchall()
    deleted = dict(connection.execute(_DELETED, given).fetchall())
    events = Counter(dict(connection.execute(_EVENTS, given).fetchall()))
    uneven = connection.execute(_UNEVEN, given).fetchall()
    ((archived, archived_events, superseded, superseded_events),) = connection.execute(_TURNS, given).fetchall()
    erased = {write.given["memory_id"] for write in writes if write.function == "erase_memory"}
    acknowledged = acknowledged_events(writes)
    merged_links = sum(_links(write, is_merged=True) for write in writes)  # which may have been there before
    different = [
        f"{action}: {acknowledged[action]} acknowledged, {events[action]} events"
        for action in sorted(acknowledged)
        if not 0 <= events[action] - acknowledged[action] <= (merged_links if action == "linked" else 0)
    ]
    if (archived, superseded) != (archived_events, superseded_events):
        different.append(f"archived {archived}, {archived_events} events; superseded {superseded}, {superseded_events}")
    invariants = [
        Invariant("every acknowledged write is a version of its memory", list(_lost(writes, versions, erased))[:5]),
        Invariant("no write is there that was not acknowledged", list(_unknown(writes, versions))[:5]),
        Invariant("what was last forgotten is gone, what was last restored is not", list(_turned(writes, deleted))[:5]),
        Invariant("acknowledged writes and events are the same number, by action", different),
        Invariant("versions follow without a gap, each with one event", [str(row) for row in uneven[:5]]),
    ]  # fmt: skip
    if connection.execute(_VERIFY).fetchall():
        problems = [row for bank in banks for row in connection.execute(_PROBLEMS, (bank,)).fetchall()]
        invariants.append(Invariant("verify_events finds nothing", [str(row) for row in problems]))
    return invariants


def acknowledged_events(writes: Iterable[Write]) -> Counter[str]:
    """How many events of each action the answers account for. What a call did to another memory is not among them."""
    actions = ["stored", "merged", "pending", "superseding", "skipped", "updated", "forgotten", "rejected", "restored"]
    counts = Counter[str](dict.fromkeys([*actions, "confirmed", "completed", "linked", "unlinked"], 0))
    completed = set()
    for write in writes:
        outcomes = [row["outcome"] for row in write.rows if "outcome" in row]
        match write.function:
            case "store":
                counts.update(outcome for outcome in outcomes if outcome != "superseded")
                counts["linked"] += _links(write, is_merged=False)
            case "forget" | "forget_matching":
                counts["forgotten"] += outcomes.count("forgotten")
            case "reject":
                counts["rejected"] += outcomes.count("forgotten")
            case "update_memory" | "restore" | "confirm":
                counts[_PAST[write.function]] += 1
            case "complete":  # a second time it returns the first one's moment
                completed.add((write.given["memory_id"], write.rows[0]["complete"]))
            case "link" | "unlink":
                counts[_PAST[write.function]] += int(write.rows[0][write.function])
    counts["completed"] = len(completed)
    return counts


def _links(write: Write, is_merged: bool) -> int:
    """Links to what a stored memory was derived from."""
    outcome = write.rows[0]["outcome"] if write.function == "store" else "skipped"
    return 0 if outcome == "skipped" or (outcome == "merged") != is_merged else len(write.given.get("derived_from", []))


def _written(write: Write) -> str | None:
    metadata = write.given.get("metadata")
    return None if metadata is None else str(metadata.obj["write"])


def _lost(writes: Iterable[Write], versions: Sequence[Any], erased: set[UUID]) -> Iterator[str]:
    """Acknowledged stores and updates that no version of their memory shows; of an update, the one that it returned."""
    kept = {(memory_id, token) for memory_id, _, token in versions}
    exact = set(versions)
    for write in writes:
        token = _written(write)
        if write.function == "store" and write.rows[0]["outcome"] != "skipped":
            memory_id = write.rows[0]["memory_id"]
            is_kept = (memory_id, token) in kept
        elif write.function == "update_memory":
            memory_id = write.given["memory_id"]
            is_kept = (memory_id, write.rows[0]["update_memory"], token) in exact
        else:
            continue
        if not is_kept and memory_id not in erased:
            yield f"{write.function} {token} of {memory_id}"


def _unknown(writes: Iterable[Write], versions: Sequence[Any]) -> Iterator[str]:
    acknowledged = {_written(write) for write in writes}
    for memory_id, version, token in versions:
        if token not in acknowledged:
            yield f"{token} in version {version} of {memory_id}"


def _turned(writes: Iterable[Write], deleted: dict[UUID, bool]) -> Iterator[str]:
    """Memories that are not as the last forgetting or restoring left them, where one of these surely was the last."""
    gone: dict[UUID, list[Write]] = {}
    back: dict[UUID, list[Write]] = {}
    for write in writes:
        if write.function in ("forget", "forget_matching", "reject"):
            for row in write.rows:
                gone.setdefault(row["memory_id"], []).append(write)
        elif write.function == "restore":
            back.setdefault(write.given["memory_id"], []).append(write)
    for memory_id in (gone.keys() | back.keys()) & deleted.keys():
        forgettings, restorings = gone.get(memory_id, []), back.get(memory_id, [])
        last_begun = max((write.started for write in forgettings), default=0.0)
        last_ended = max((write.ended for write in forgettings), default=0.0)
        if last_begun > max((write.ended for write in restorings), default=0.0) and not deleted[memory_id]:
            yield f"{memory_id} was forgotten and is there"
        if max((write.started for write in restorings), default=0.0) > last_ended and deleted[memory_id]:
            yield f"{memory_id} was restored and is gone"
