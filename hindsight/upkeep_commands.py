"""The commands of whoever keeps a bank: policy, maintain, verify, erase."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from cyclopts import Parameter

from hindsight import errors, tables
from hindsight.command import COMMON, Common, note, show
from hindsight.results import TYPES


def policy(
    type: Annotated[str | None, Parameter(help=f"The type to change: {', '.join(TYPES)}; none shows all.")] = None,
    /,
    *,
    ttl: Annotated[
        str | None, Parameter(help="How long such a memory lives when it is not told: 30 days; 0: for good.")
    ] = None,
    on_conflict: Annotated[
        str | None, Parameter(help="What a new value of a slot does: overwrite, history or confident.")
    ] = None,
    decay_rate: Annotated[float | None, Parameter(help="λ per day, 0 to 1.")] = None,
    weight: Annotated[float | None, Parameter(help="Its weight in the score, 0 to 1.")] = None,
    common: Common = COMMON,
) -> None:
    """Show what each type of memory is in the bank, or change one type."""
    changes = (ttl, on_conflict, decay_rate, weight)
    if (type is None) != all(change is None for change in changes):
        raise errors.InvalidArgument(
            "a type and what to change of it go together", hint="For example: hindsight policy todo --ttl '60 days'"
        )
    client, bank = common.open()
    with client:
        if type is not None:
            client.set_policy(bank, type, ttl=ttl, on_conflict=on_conflict, decay_rate=decay_rate, weight=weight)
        found = client.policies(bank)
    show(common.as_json, found, tables.policy_table(found))


def maintain(*, common: Common = COMMON) -> None:
    """Put away what is due, seal the trail of events, and count the words of a large bank, in small batches."""
    client, bank = common.open()
    with client:
        done = client.maintain(bank)
    show(common.as_json, done, tables.pairs_table({task: str(affected) for task, affected in done.items()}))


def usage(
    *,
    since: Annotated[str | None, Parameter(help="From that day (UTC) on; by default the last 30 days.")] = None,
    common: Common = COMMON,
) -> None:
    """Show what language models have used for the bank: calls and tokens by day, purpose and model."""
    client, bank = common.open()
    with client:
        found = client.usage(bank, datetime.now(UTC) - timedelta(days=30) if since is None else since)
    show(common.as_json, found, tables.usage_table(found) if found else "nothing was used")


def verify(*, common: Common = COMMON) -> int:
    """Look for gaps and edits in the bank's trail of events; exit code 1 if there are any."""
    client, bank = common.open()
    with client:
        problems = client.verify_events(bank)
    show(common.as_json, problems, *tables.problem_lines(problems))
    if not problems:
        note(f"the events of the bank {bank!r} are as they were written")
    return 1 if problems else 0


def erase(
    memory_id: Annotated[str | None, Parameter(help="The memory's id.")] = None,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the trail of events, so no content in it.")],
    whole_bank: Annotated[bool, Parameter(help="Everything that the bank holds.")] = False,
    yes: Annotated[bool, Parameter(help="Needed: nothing brings back what is erased.")] = False,
    common: Common = COMMON,
) -> None:
    """Remove the content of a memory, or of a bank, for good: for the law. What `forget` takes away can be restored."""
    if (memory_id is not None) == whole_bank:
        raise errors.InvalidArgument("erase takes one memory, or --whole-bank", hint="Give one of the two")
    client, bank = common.open()
    if not yes:
        what = f"the bank {bank!r}" if memory_id is None else f"the memory {memory_id}"
        raise errors.InvalidArgument(f"nothing brings back what is erased: {what}", hint="Add --yes to go on")
    with client:
        erased = client.erase_bank(bank, reason) if memory_id is None else client.erase_memory(bank, memory_id, reason)
    show(common.as_json, erased, tables.pairs_table({one.erased: str(one.rows_erased) for one in erased}))
