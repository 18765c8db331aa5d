"""The commands on what looks planted: quarantine, lessons."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from hindsight import tables
from hindsight.command import COMMON, Common, show
from hindsight.tables import visible

Most = Annotated[int, Parameter(help="How many at most.")]


def quarantine(*, most: Most = 100, common: Common = COMMON) -> None:
    """Show what is held because it looks planted, for `confirm` and `reject`, and how often that was right."""
    client, bank = common.open()
    with client:
        held, figures = client.quarantine(bank, most), client.quarantine_figures(bank)
    lines = []
    for one in held:
        lines += [
            visible(f"{one.held_at:%Y-%m-%d %H:%M} {one.memory_id} {one.reason}"),
            visible(f"  {one.content}"),
            visible(f"  from {one.source or 'nobody known'}, stored by {one.author}"),
        ]
    table = tables.plain_table()
    numbers = ("held", "waiting", "rejected", "confirmed")
    for name in ("reason", "source", "author", *numbers, "wrongly"):
        table.add_column(name, justify="right" if name in (*numbers, "wrongly") else "left")
    for count in figures:
        wrongly = "" if count.wrongly is None else f"{count.wrongly:.0%}"
        cells = (count.reason, count.source or "", count.author)
        table.add_row(*map(visible, cells), *(str(getattr(count, name)) for name in numbers), wrongly)
    show(
        common.as_json, {"held": held, "figures": figures}, *lines or ["nothing is held"], *([table] if figures else [])
    )


def lessons(*, most: Most = 100, common: Common = COMMON) -> None:
    """Show what the bank has learned from what was bad: what was rejected, which holds back its like, and why."""
    client, bank = common.open()
    with client:
        learned = client.lessons(bank, most)
    lines = []
    for one in learned:
        lines += [visible(f"{one.at:%Y-%m-%d %H:%M} {one.kind} {one.memory_id}"), visible(f"  {one.content}")]
        lines += [visible(f"  {one.reason}, by {one.principal}")] if one.reason else []
    show(common.as_json, learned, *lines or ["nothing was rejected"])
