"""The command that brings what is elsewhere into a bank: import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hindsight import errors, tables
from hindsight.command import COMMON, Common, note, show
from hindsight.importing import BadRecord, Importer, Report
from hindsight.sources import Source
from hindsight.sync_client import Hindsight
from hindsight.tables import visible
from hindsight.transcripts import Format, Problem, Record, Turn, detect, read

_STEP = 200  # records between two looks at how far a file has been read


def import_files(
    *paths: Annotated[
        Path, Parameter(help="Transcripts or dumps; with --as knowledge documents, or directories of them.")
    ],
    format: Annotated[
        Literal["auto"] | Format, Parameter(help="What the files are; auto finds it out by their content.")
    ] = "auto",
    as_: Annotated[
        Literal["knowledge"] | None,
        Parameter(name="--as", help="knowledge: Markdown and text documents, each passage a memory."),
    ] = None,
    root: Annotated[
        Path | None,
        Parameter(help="With --as knowledge: documents are known by their path from here; else from where you are."),
    ] = None,
    sessions: Annotated[str | None, Parameter(help="Only sessions whose id begins so.")] = None,
    no_close: Annotated[
        bool, Parameter(help="Leave the sessions open for turns to come: they are distilled when they have been idle.")
    ] = False,
    skip_bad: Annotated[
        bool, Parameter(help="Go on after what can't be imported, and name it; else the import ends there.")
    ] = False,
    common: Common = COMMON,
) -> int:
    """Import conversations, which the worker distils, memories, or documents. Run again, nothing comes in twice.

    Formats: jsonl (one turn a line, an archive, or what export wrote), chatgpt and claude (conversations.json, or the
    zip), mem0, mcp-memory, locomo. It may be interrupted and run again. With --skip-bad it ends with 1 if something
    was left out.
    """
    if not paths:
        raise errors.InvalidArgument(
            "import takes a file or more", hint="For example: hindsight import conversations.json"
        )
    if as_ == "knowledge":
        return _import_knowledge(paths, root or Path.cwd(), common)
    sources = [(source := Source(path), detect(source) if format == "auto" else format) for path in paths]
    client, bank = common.open()
    report = Report()
    with client:
        ensure_bank(client, bank)
        for source, its_format in sources:
            note(f"{source.path}: format {its_format}")

            def tell(problem: Problem, path: Path = source.path) -> None:
                note(f"{path}, {problem.place}: {problem.reason}")

            importer = Importer(client, bank, report, skips_bad=skip_bad, tell=tell)
            try:
                importer.take(_followed(source, read(source, its_format), sessions))
            except BadRecord as error:
                raise errors.InvalidContent(
                    f"{source.path}, {error}",
                    hint="What comes before it is imported. Mend it and run the same again, or add --skip-bad",
                ) from None
            if not no_close:
                importer.close_sessions()
    show(common.as_json, report.as_dict(), tables.pairs_table(_lines(report)))
    return 1 if report.problems else 0


def _import_knowledge(paths: Sequence[Path], root: Path, common: Common) -> int:
    from hindsight.documents_import import find_documents, import_document, missing_documents, read_passages  # slow

    documents = find_documents(paths, root)
    read_first = {
        name: read_passages(path) for name, path in documents.items()
    }  # what can't be read is told before anything is done
    client, bank = common.open()
    report = dict[str, dict[str, int]]()
    with client:
        ensure_bank(client, bank)
        for document in missing_documents(client.documents(bank), paths, root, documents):
            read_first[document] = ([], {})
            note(f"{document} is not there any more")
        with _progress() as progress:
            for document, (passages, front) in progress.track(read_first.items(), description="importing"):
                report[document] = dict(import_document(client, bank, document, passages, front))
    lines = {
        document: ", ".join(f"{count} {outcome}" for outcome, count in done.items()) or "nothing in it"
        for document, done in report.items()
    }
    show(common.as_json, report, tables.pairs_table(lines or {"imported": "nothing: there is no document"}))
    return 0


def ensure_bank(client: Hindsight, bank: str) -> None:
    """Makes the bank if it is not there yet."""
    if bank not in [one.bank for one in client.banks() if one.rights]:
        client.create_bank(bank)
        note(f"made the bank {bank!r}")


def _followed(source: Source, records: Iterator[Record], begin: str | None) -> Iterator[Record]:
    """The records that are wanted, with a progress bar."""
    with _progress() as progress:
        task = progress.add_task(visible(source.path.name), total=source.size)
        for number, record in enumerate(records):
            if number % _STEP == 0:
                progress.update(task, completed=source.position())
            if begin is None or not isinstance(record, Turn) or record.session_id.startswith(begin):
                yield record


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _lines(report: Report) -> dict[str, str]:
    lines = {"sessions": str(report.sessions)} if report.sessions else {}
    lines |= {f"turns {outcome}": str(count) for outcome, count in sorted(report.turns.items())}
    lines |= {f"memories {outcome}": str(count) for outcome, count in sorted(report.memories.items()) if count}
    if report.problems:
        lines["left out"] = str(len(report.problems))
    return lines or {"imported": "nothing: there is nothing in it"}
