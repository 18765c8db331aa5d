"""The commands that bring what a bank holds into files: archive, export."""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

from hindsight import errors
from hindsight.archiving import ArchiveFile, archive_file
from hindsight.command import AsJson, note, show
from hindsight.config import load_settings
from hindsight.results import TurnMonth
from hindsight.sync_client import Hindsight
from hindsight.tables import visible

_LOCKED = "55P03"
_ATTEMPTS = 10  # to lock a month's turns, five seconds each


def archive(
    *,
    before: Annotated[str, Parameter(help="Months before this one: 2026-06.")],
    to: Annotated[Path, Parameter(help="The directory for the files; one a bank and month.")],
    bank: Annotated[
        str | None,
        Parameter(help="Only write this bank's files: nothing is dropped, since a month belongs to all banks."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Put old months of turns into gzipped JSONL files, check them, and drop them from the database. For operators.

    `hindsight import FILE` brings them back. Memories still name their turns, and the file. A month with turns that
    are not distilled stays, and it ends with 1. Safe to interrupt, and to run again; no file is ever overwritten.
    """
    limit = _month(before)
    with Hindsight.connect(settings=load_settings()) as client:
        months = [one for one in client.turn_months() if one.month < limit]
        archived, left = list[dict[str, Any]](), list[str]()
        for month, of_banks in groupby(months, key=lambda one: one.month):
            wanted = list(of_banks)
            if reason := _unready(wanted):
                left.append(reason)
                note(reason)
                continue
            files = _files(client, [one for one in wanted if bank in (None, one.bank)], to)
            if bank is None:
                _drop(client, month, files)
            archived += [{"month": f"{month:%Y-%m}", "dropped": bank is None, **file.as_dict()} for file in files]
    lines = [f"{one['month']}  {one['turns']} turns of {one['bank']!r}: {one['location']}" for one in archived]
    show(as_json, {"archived": archived, "left": left}, *map(visible, lines or ["no month to archive"]))
    return 1 if left else 0


def export(
    file: Annotated[
        Path | None,
        Parameter(help="The file, which must not be there yet; gzipped if it ends in .gz. None: standard output."),
    ] = None,
    /,
    *,
    bank: Annotated[str | None, Parameter(help="The bank; HINDSIGHT_BANK, else 'default'.")] = None,
) -> None:
    """Write all that is known of a bank as lines of JSON: memories in every state, links, turns, events. For its owner.

    `hindsight import` takes turns and live memories from it. Turns that were archived are in their own files.
    """
    settings = load_settings()
    with Hindsight.connect(settings=settings) as client:
        rows = client.export_bank(settings.bank if bank is None else bank)
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        first = next(lines)  # whatever is wrong with the bank is told before there is a file
        if file is None:
            sys.stdout.writelines(itertools.chain([first], lines))
            return
        part = file.with_name(f".{file.name}.part")
        try:
            if file.exists():
                raise FileExistsError(errno.EEXIST, "it is there already")
            with part.open("wb") as raw, gzip.open(raw, "wb") if file.suffix == ".gz" else raw as stream:
                count = 0
                for line in itertools.chain([first], lines):
                    stream.write(line.encode())
                    count += 1
            part.rename(file)
        except OSError as error:
            raise errors.InvalidArgument(f"{file} can't be written: {error.strerror}") from None
        note(f"{count} rows in {file}")


def _month(text: str) -> date:
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])(-\d\d)?", text):
        raise errors.InvalidArgument(f"--before takes a month, got {text!r}", hint="For example: --before 2026-06")
    try:
        return date.fromisoformat(f"{text[:7]}-01")
    except ValueError as error:
        raise errors.InvalidArgument(f"--before takes a month, got {text!r}: {error}") from None


def _unready(months: Sequence[TurnMonth]) -> str | None:
    """Why a month can't be archived yet."""
    name = f"{months[0].month:%Y-%m}"
    if not months[0].is_over:
        return f"{name} is not over, and stays"
    waiting = [f"{one.waiting} of {one.bank!r}" for one in months if one.waiting]
    return f"{name} stays: turns that are not distilled yet: {', '.join(waiting)}" if waiting else None


def _files(client: Hindsight, months: Sequence[TurnMonth], directory: Path) -> list[ArchiveFile]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        named = f"{months[0].month:%Y-%m}" if months else ""
        return [
            archive_file(client, one.bank, one.month, directory) for one in progress.track(months, description=named)
        ]


def _drop(client: Hindsight, month: date, files: Sequence[ArchiveFile]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            client.archive_month(month, [file.as_dict() for file in files])
            return
        except errors.DatabaseError as error:
            if error.code != _LOCKED or attempt == _ATTEMPTS:
                raise
            note(f"somebody has been at the turns for five seconds, trying again ({attempt} of {_ATTEMPTS})")
            time.sleep(1)
