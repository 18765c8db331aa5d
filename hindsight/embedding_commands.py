"""The commands that give memories their embeddings: embed and reembed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hindsight import errors, tables
from hindsight.command import COMMON, Common, note, show
from hindsight.embeddings import Progress as Told
from hindsight.results import EmbeddingStatus
from hindsight.sync_client import Hindsight

BatchSize = Annotated[int, Parameter(help="Memories embedded at once.", validator=Number(gte=1, lte=10_000))]
_STEPS = {"embedding": "embedding", "indexing": "building an index", "switching": "switching", "settling": "settling"}


def embed(*, batch_size: BatchSize = 100, common: Common = COMMON) -> int:
    """Embed the memories of the bank that have no embedding yet, and those that failed before.

    Several at once share the work; broken off, it goes on the next time. Ends with 1 when the model refused some.
    """
    client, bank = common.open()
    with client:
        model = _model(client)
        with _bars(client, bank) as told:
            embedded = client.embed_pending(bank, batch_size, told)
        status = client.embedding_status(bank)
    _note_refused(bank, status)
    report = {"bank": bank, "model": model, "embedded": embedded, "waiting": status.waiting, "failed": status.failed}
    show(common.as_json, report, f"{embedded} memories embedded with {model}")
    return 1 if status.failed else 0


def reembed(
    *,
    model: Annotated[str | None, Parameter(help="The new model; by default the configured one.")] = None,
    batch_size: BatchSize = 100,
    keep_old: Annotated[
        bool,
        Parameter(help="Stop after the switch: queries of both models are answered until it is run again."),
    ] = False,
    without_refused: Annotated[
        bool, Parameter(help="Switch although the model refused some memories: words find them.")
    ] = False,
    status: Annotated[bool, Parameter(help="Only show how far it is.")] = False,
    cancel: Annotated[bool, Parameter(help="Give it up, before the switch; the old vectors were not touched.")] = False,
    common: Common = COMMON,
) -> None:
    """Make another embedding model the bank's, and embed its memories anew, while it goes on answering.

    New vectors are made beside the old ones, by which recall goes on; then the bank switches, and the old ones go.
    Broken off at any moment, the same command goes on from there; several at once share the work. Services that embed
    with the old model are answered until the switch, with --keep-old also after it.
    """
    if status + cancel + keep_old + without_refused > 1 and (status or cancel):
        raise errors.InvalidArgument("--status and --cancel stand alone", hint="Give one of them, and nothing else")
    client, bank = common.open(**({} if model is None else {"embedding_model": model}))
    with client:
        if status:
            found = client.embedding_status(bank)
            show(common.as_json, found, tables.pairs_table(_described(found)))
            return
        if cancel:
            dropped = client.cancel_reembedding(bank)
            show(common.as_json, {"bank": bank, "dropped": dropped}, f"given up: {dropped} new vectors are gone")
            return
        name = _model(client)
        before = client.embedding_status(bank)
        with _bars(client, bank) as told:
            embedded = client.reembed(
                bank, batch_size, keep_old=keep_old, without_refused=without_refused, progress=told
            )
        after = client.embedding_status(bank)
        if after.reembedding is None:
            _drop_indexes(client, {before.model, before.other_model, name})
    _note_refused(bank, after)
    report = {
        "bank": bank,
        "model": name,
        "embedded": embedded,
        "reembedding": after.reembedding,
        "failed": after.failed,
    }
    show(common.as_json, report, f"{embedded} memories embedded with {name}, which the bank {bank!r} uses now")
    if after.reembedding is not None:
        note(f"queries of {after.other_model} are answered as well; the same command without --keep-old ends that")


def _model(client: Hindsight) -> str:
    if client.embedder is None:
        raise errors.ConfigurationError("no embedding model is configured: set HINDSIGHT_EMBEDDING_PROVIDER")
    return client.embedder.model


def _drop_indexes(client: Hindsight, models: set[str | None]) -> None:
    try:
        client.drop_unused_indexes([one for one in models if one is not None])
    except errors.AccessDenied:
        note("the old index stays, which costs room only: an operator drops it (hindsight.unused_indexes)")


def _note_refused(bank: str, status: EmbeddingStatus) -> None:
    if status.failed:
        note(
            f"{status.failed} memories of the bank {bank!r} could not be embedded, and are found by their words; "
            f"tried again from {status.next_try_at:%Y-%m-%d %H:%M} on: {status.last_error}"
        )


def _described(status: EmbeddingStatus) -> dict[str, str]:
    values: dict[str, Any] = {name: getattr(status, name) for name in EmbeddingStatus.__slots__}
    return {name: str(value) for name, value in values.items() if value is not None}


@contextmanager
def _bars(client: Hindsight, bank: str) -> Iterator[Told]:
    """A bar for each step, on standard error."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars = {}

        def told(step: str, done: int) -> None:
            if step not in bars:
                status = client.embedding_status(bank)
                totals = {"embedding": status.waiting + done, "settling": status.unsettled + done}
                bars[step] = progress.add_task(_STEPS[step], total=totals.get(step))
            progress.advance(bars[step], done)

        yield told
