"""The commands on the life of memories: what became of them, what is believed, what is forgotten."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from hindsight import errors, tables
from hindsight.command import COMMON, Common, label_list, note, show
from hindsight.memory_commands import SAID, MemoryId, Tags
from hindsight.results import TYPES

Reason = Annotated[str | None, Parameter(help="Why; kept in the memory's history.")]
WholeBank = Annotated[bool, Parameter(help="Every memory of the bank.")]


def history(memory_id: MemoryId, /, *, common: Common = COMMON) -> None:
    """Show a memory's life: who did what to it, when and why, its forgetting included."""
    client, bank = common.open()
    with client:
        events = client.history(bank, memory_id)
    show(common.as_json, events, *tables.event_lines(events))


def state(
    as_of: Annotated[str | None, Parameter(help=f"The moment; now by default. {SAID}")] = None,
    /,
    *,
    states: Annotated[
        list[str] | None,
        Parameter(name=["--states", "--state"], help="live (the default), pending, expired, superseded, …"),
    ] = None,
    common: Common = COMMON,
) -> None:
    """Show what the bank held at a moment, as it was then."""
    client, bank = common.open()
    with client:
        held = client.state(bank, as_of, label_list(states))
    show(common.as_json, held, *tables.memory_lines(held))


def diff(
    since: Annotated[str, Parameter(help=f"The first moment. {SAID}")],
    until: Annotated[str | None, Parameter(help="The last moment; now by default.")] = None,
    /,
    *,
    common: Common = COMMON,
) -> None:
    """Show what was learned, corrected and forgotten between two moments."""
    client, bank = common.open()
    with client:
        changes = client.diff(bank, since, until)
    show(common.as_json, changes, *tables.change_lines(changes))


def pending(
    *,
    most: Annotated[int, Parameter(help="How many at most.")] = 100,
    common: Common = COMMON,
) -> None:
    """Show what waits to be believed, for `confirm` and `reject`."""
    client, bank = common.open()
    with client:
        waiting = client.pending(bank, most)
    show(common.as_json, waiting, *tables.memory_lines(waiting))


def confirm(memory_id: MemoryId, /, *, reason: Reason = None, common: Common = COMMON) -> None:
    """Say that a memory is right: what was pending, or a hypothesis, is believed from now on."""
    client, bank = common.open()
    with client:
        confirmed = client.confirm(bank, memory_id, reason)
    show(common.as_json, confirmed, f"confirmed {confirmed.memory_id}: it is {confirmed.state}")


def reject(memory_id: MemoryId, /, *, reason: Reason = None, common: Common = COMMON) -> None:
    """Say that a pending memory is wrong: it is forgotten. `restore` takes that back."""
    client, bank = common.open()
    with client:
        rejected = client.reject(bank, memory_id, reason)
    show(common.as_json, rejected, f"{rejected.outcome} {rejected.memory_id}")


def complete(memory_id: MemoryId, /, *, reason: Reason = None, common: Common = COMMON) -> None:
    """Say that a todo is done: it stays, says so, and does not expire."""
    client, bank = common.open()
    with client:
        done = client.complete(bank, memory_id, reason)
    show(common.as_json, done, f"completed {done.memory_id}")


def forget(
    memory_id: Annotated[str | None, Parameter(help="The memory's id; or give filters.")] = None,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the history of what is forgotten.")],
    types: Annotated[
        list[str] | None, Parameter(name=["--types", "--type"], help=f"Any of: {', '.join(TYPES)}.")
    ] = None,
    tags: Tags = None,
    all_tags: Annotated[list[str] | None, Parameter(help="Tags that it has, all of them.")] = None,
    session_id: Annotated[str | None, Parameter(help="From this conversation.")] = None,
    source: Annotated[str | None, Parameter(help="user, document, tool or inferred.")] = None,
    since: Annotated[str | None, Parameter(help=f"Said (else stored) from then on. {SAID}")] = None,
    until: Annotated[str | None, Parameter(help=f"Said (else stored) until then. {SAID}")] = None,
    whole_bank: WholeBank = False,
    dry_run: Annotated[bool, Parameter(help="Only show what the filters match.")] = False,
    common: Common = COMMON,
) -> None:
    """Forget a memory, or all that pass the filters: no recall finds them any more. `restore` takes one back."""
    filters: dict[str, Any] = {
        "types": label_list(types),
        "tags": label_list(tags),
        "all_tags": label_list(all_tags),
        "session_id": session_id,
        "source": source,
        "since": since,
        "until": until,
    }
    is_filtered = any(value is not None for value in filters.values())
    if (memory_id is not None) + whole_bank + is_filtered != 1:
        raise errors.InvalidArgument(
            "forget takes one memory, or filters, or --whole-bank", hint="Give one of the three"
        )
    if dry_run and not is_filtered:
        raise errors.InvalidArgument("--dry-run shows what filters match", hint="Give filters, such as --tags")
    client, bank = common.open()
    with client:
        if memory_id is not None:
            forgotten = client.forget(bank, memory_id, reason)
            show(common.as_json, forgotten, f"{forgotten.outcome} {forgotten.memory_id}")
        elif whole_bank:
            count = client.forget_bank(bank, reason)
            show(common.as_json, {"bank": bank, "forgotten": count}, f"{count} forgotten")
        else:
            matched = client.forget_matching(bank, reason, dry_run=dry_run, **filters)
            show(common.as_json, matched, *tables.matched_lines(matched))
            note(f"{len(matched)} {'would be forgotten' if dry_run else 'forgotten'}")


def restore(memory_id: MemoryId, /, *, reason: Reason = None, common: Common = COMMON) -> None:
    """Take a forgetting back."""
    client, bank = common.open()
    with client:
        restored = client.restore(bank, memory_id, reason)
    show(common.as_json, restored, f"restored {restored.memory_id}: it is {restored.state}")
