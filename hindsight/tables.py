"""What the command line and the demo show to people: results as lines and tables of text."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hindsight.results import (
    BankStatus,
    Change,
    Event,
    EventProblem,
    Matched,
    Memory,
    ModelUsage,
    Policy,
    QueuedSession,
    Recalled,
    Stored,
)

if TYPE_CHECKING:
    from hindsight.evaluation import Quality
    from hindsight.evaluation_pairs import Group

# Control characters and marks that turn the direction of writing: a memory must not steer the reader's terminal.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PIPED_WIDTH = 200  # of tables that go to a file or a program
_SPANS = [("year", 365 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60)]

COLUMNS = ["score", "similarity", "semantic", "lexical", "confidence", "decay", "weight"]


def show(*texts: RenderableType) -> None:
    """Prints to standard output. Lines are left whole, for the terminal to wrap and for `grep` to find."""
    stream = sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else _PIPED_WIDTH, highlight=False, markup=False)
    for text in texts:
        console.print(text, soft_wrap=isinstance(text, Text | str))


def visible(text: str) -> str:
    """`text` with characters that would steer a terminal spelled out."""
    return _UNSHOWABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def age(moment: datetime, now: datetime | None = None) -> str:
    """How long ago, in the largest unit of which at least one has passed: "3 days ago"."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    for unit, length in _SPANS:
        if abs(seconds) >= length:
            count = int(abs(seconds) // length)
            words = f"{count} {unit}{'' if count == 1 else 's'}"
            return f"{words} ago" if seconds > 0 else f"in {words}"
    return "just now"


def recalled_lines(results: Sequence[Recalled]) -> Iterable[Text]:
    """Each memory in three lines: the score with the parts that it is the product of, the content, and its origin."""
    yield Text("  ".join([*COLUMNS, "channels"]), style="bold")
    for found in results:
        numbers = [found.score, found.similarity, found.semantic, *(getattr(found, name) for name in COLUMNS[3:])]
        shown = ["-" if number is None else f"{number:.3f}" for number in numbers]
        parts = [f"{number:>{len(name)}}" for name, number in zip(COLUMNS, shown, strict=True)]
        yield Text("  ".join([*parts, ", ".join(found.channels)]), style="cyan")
        yield _indented(found.content)
        yield _origin(found)


def memory_table(memory: Memory) -> Table:
    """Every value of a memory that is set, one a line."""
    table = Table.grid(padding=(0, 2))
    for name in Memory.__slots__:
        if (value := getattr(memory, name)) not in (None, [], {}):
            table.add_row(Text(name, style="bold"), Text(visible(_shown(value))))
    return table


def stored_line(stored: Stored) -> Text:
    """What became of a memory, with its id and the reasons."""
    line = Text.assemble((stored.outcome, "bold"), f" {stored.memory_id}" if stored.memory_id else "")
    if stored.outcome in ("superseding", "superseded"):
        line.append(f" ({'in place of' if stored.outcome == 'superseding' else 'by'} {stored.related_id})")
    if stored.reasons:
        line.append(f": {visible('; '.join(stored.reasons))}")
    return line


def event_lines(events: Sequence[Event]) -> Iterable[Text]:
    """A memory's life: each event, then what it changed."""
    for event in events:
        line = Text.assemble(f"{event.at:%Y-%m-%d %H:%M:%S %Z}  ", (event.action, "bold"), f" by {event.principal}")
        if event.reason:
            line.append(f": {visible(event.reason)}")
        yield line
        before, after = event.before or {}, event.after or {}
        for name in [*before, *(after.keys() - before.keys())] if before else after:
            change = [_shown(values[name]) for values in (before, after) if values.get(name) not in (None, [], {})]
            if change:
                yield _indented(f"{name}: {' → '.join(change)}{'' if name in after else ' → nothing'}")


def memory_lines(memories: Sequence[Memory]) -> Iterable[Text]:
    """Each memory in two lines: what it says, and what it is."""
    for memory in memories:
        yield Text(visible(memory.content))
        yield _described(
            memory.state,
            memory.type,
            f"slot {memory.slot}" if memory.slot else None,
            f"confidence {memory.confidence:.2f}",
            f"pending: {memory.pending_reason}" if memory.pending_reason else None,
            _said(memory.occurred_at, memory.created_at),
            str(memory.memory_id),
        )


def matched_lines(matched: Sequence[Matched]) -> Iterable[Text]:
    """Each memory that a filter found in two lines: what it says, and what it is."""
    for one in matched:
        yield Text(visible(one.content))
        tags = f"tags {', '.join(one.tags)}" if one.tags else None
        session = f"session {one.session_id}" if one.session_id else None
        yield _described(one.type, tags, session, _said(one.occurred_at, one.created_at), str(one.memory_id))


def change_lines(changes: Sequence[Change]) -> Iterable[Text]:
    """Each change, then what it was before, where it replaced something."""
    for one in changes:
        why = f": {one.reason}" if one.reason else ""
        yield Text.assemble(f"{one.at:%Y-%m-%d %H:%M:%S %Z}  ", (one.change, "bold"), visible(f" {one.memory_id}{why}"))
        for content in (f"{one.previous} →" if one.previous else None, one.content):
            if content:
                yield _indented(content)


def problem_lines(problems: Sequence[EventProblem]) -> Iterable[Text]:
    """Each problem of a trail of events, with where it is."""
    for one in problems:
        places = (f"{name} {place}" for name, place in (("event", one.event_id), ("seal", one.seal_id)) if place)
        where = ", ".join(places)
        yield Text(visible(" · ".join(part for part in (one.problem, where, one.detail) if part)))


def plain_table() -> Table:
    """A table without lines, to which columns and rows are added."""
    return Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))


def policy_table(policies: Sequence[Policy]) -> Table:
    """What each type of memory is in a bank."""
    table = plain_table()
    for name in ("type", "decay rate", "weight", "ttl", "on conflict", "what it is"):
        table.add_column(name)
    for one in policies:
        ttl = str(one.ttl).removesuffix(", 0:00:00") if one.ttl > timedelta() else "for good"
        row = (one.type, f"{one.decay_rate:g}", f"{one.weight:g}", ttl, one.on_conflict, one.description)
        table.add_row(*map(visible, row))
    return table


def queue_table(sessions: Sequence[QueuedSession]) -> Table:
    """The sessions that wait to be distilled."""
    table = plain_table()
    for name in ("session", "state", "turns", "due", "attempts", "last error"):
        table.add_column(name)
    for one in sessions:
        due = f"{one.due_at:%Y-%m-%d %H:%M:%S}" if one.due_at else ""
        row = (one.session_id, one.state, str(one.waiting), due, str(one.attempts), one.last_error or "")
        table.add_row(*map(visible, row))
    return table


def usage_table(usage: Sequence[ModelUsage]) -> Table:
    """What language models have used, a line for each day, purpose and model, and the sum."""
    table = plain_table()
    names = ("day", "purpose", "model", "calls", "prompt_tokens", "completion_tokens", "failures")
    for name in names:
        table.add_column(name.replace("_", " "), justify="left" if name in names[:3] else "right")
    for one in usage:
        table.add_row(*(visible(str(getattr(one, name))) for name in names))
    sums = (str(sum(getattr(one, name) for one in usage)) for name in names[3:])
    table.add_row("all", "", "", *sums, style="bold")
    return table


def bank_table(banks: Sequence[BankStatus]) -> Table:
    """How many memories of each state every bank holds."""
    table = plain_table()
    names = [name for name in BankStatus.__slots__ if name != "dimensions"]
    for name in names:
        table.add_column(name, justify="left" if name in ("bank", "model") else "right")
    for bank in banks:
        values = (getattr(bank, name) for name in names)
        table.add_row(*(Text(visible("none" if value is None else str(value))) for value in values))
    return table


def quality_table(quality: Mapping[str, Mapping[str, Quality]], sql_ms: Mapping[str, float]) -> Table:
    """What each channel finds in each category, in percent, and the median time of its SQL."""
    table = plain_table()
    for name in ("channel", "category"):
        table.add_column(name)
    for name in ("questions", "R@5", "R@10", "R@20", "hit@5", "MRR", "SQL ms"):
        table.add_column(name, justify="right")
    for channel, categories in quality.items():
        for category, found in categories.items():
            shares = (found.recall_at_5, found.recall_at_10, found.recall_at_20, found.hit_at_5, found.mrr)
            is_whole = category == "all"
            table.add_row(
                channel if is_whole else "",
                visible(category),
                str(found.questions),
                *(f"{100 * share:.1f}" for share in shares),
                f"{sql_ms[channel]:.1f}" if is_whole else "",
                style="bold" if is_whole and channel == "ours" else "",
            )
    return table


def groups_table(groups: Sequence[Group]) -> Table:
    """What became of pairs of sentences, by split, label and language."""
    table = plain_table()
    rows = [dataclasses.asdict(group) for group in groups]
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if name in ("split", "label", "language") else "right")
    for row in rows:
        table.add_row(*(visible(str(value)) for value in row.values()))
    return table


def pairs_table(pairs: Mapping[str, str]) -> Table:
    """Names, and a value for each."""
    table = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(Text(name, style="bold"), Text(visible(value)))
    return table


def _origin(found: Recalled) -> Text:
    return _described(
        found.type,
        _said(found.occurred_at, found.created_at),
        f"session {found.session_id}" if found.session_id else None,
        f"slot {found.slot}" if found.slot else None,
        f"tags {', '.join(found.tags)}" if found.tags else None,
        f"done {age(found.completed_at)}" if found.completed_at else None,
        f"true until {found.valid_to:%Y-%m-%d}" if found.valid_to else None,
        f"pending: {found.pending_reason}" if found.pending_reason else None,
        f"relevance {found.relevance:.3f}" if found.relevance is not None else None,
        str(found.memory_id),
    )


def _described(*known: str | None) -> Text:
    return _indented(" · ".join(part for part in known if part), style="dim")


def _said(occurred_at: datetime | None, created_at: datetime) -> str:
    return f"said {age(occurred_at)}" if occurred_at else f"stored {age(created_at)}"


def _indented(text: str, style: str = "") -> Text:
    return Text(f"  {visible(text)}".replace("\n", "\n  "), style=style)


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S %Z} ({age(value)})"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | bool) else str(value)
