"""The commands that keep and find a bank's memories: store, recall, should-recall, get."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from hindsight import errors, tables
from hindsight.command import COMMON, Common, json_object, label_list, note, show, standard_input
from hindsight.results import TYPES


def _no_option(_: object, value: str) -> None:
    if value.startswith("-") and value != "-" and not any(map(str.isspace, value)):
        raise ValueError(
            "There is no such option. Give a text that begins with a hyphen on standard input: hindsight store -"
        )


MemoryId = Annotated[str, Parameter(help="The memory's id, as store and recall show it.")]
Tags = Annotated[list[str] | None, Parameter(name=["--tags", "--tag"], help="Tags: a,b or repeated.")]
SAID = "ISO 8601, UTC where it names no zone: 2026-03-01T09:30."


def store(
    content: Annotated[
        str,
        Parameter(
            help="The sentence; - reads it from standard input.", allow_leading_hyphen=True, validator=_no_option
        ),
    ],
    /,
    *,
    type: Annotated[str | None, Parameter(help=f"What it is: {', '.join(TYPES)}.")] = None,
    tags: Tags = None,
    slot: Annotated[str | None, Parameter(help="Key of a thing with one value at a time: project.database.")] = None,
    session_id: Annotated[str | None, Parameter(help="The conversation that it comes from.")] = None,
    confidence: Annotated[float | None, Parameter(help="0 to 1; 0.9 by default; under 0.6 it is pending.")] = None,
    importance: Annotated[
        float | None, Parameter(help="0 to 1; by default judged by rules, which skip small talk.")
    ] = None,
    source: Annotated[str | None, Parameter(help="user, document, tool or inferred.")] = None,
    entities: Annotated[list[str] | None, Parameter(help="Who and what it is about: a,b or repeated.")] = None,
    context: Annotated[str | None, Parameter(help="What was said around it: found by, not shown.")] = None,
    occurred_at: Annotated[str | None, Parameter(help=f"When it was said. {SAID}")] = None,
    expires_at: Annotated[str | None, Parameter(help=f"Not recalled from then on. {SAID}")] = None,
    ttl: Annotated[str | None, Parameter(help="Not recalled after so long: 7 days, 12 hours.")] = None,
    metadata: Annotated[str | None, Parameter(help="The application's own data: a JSON object.")] = None,
    supersedes: Annotated[str | None, Parameter(help="The id of the memory whose place it takes.")] = None,
    derived_from: Annotated[
        list[str] | None, Parameter(help="Ids of the memories that it was made of: a,b or repeated.")
    ] = None,
    common: Common = COMMON,
) -> None:
    """Store one memory, and say what became of it. The bank is made if it does not exist."""
    content = standard_input() if content == "-" else content
    client, bank = common.open()
    with client:
        attempt = partial(
            client.store,
            bank,
            content,
            type=type,
            tags=label_list(tags),
            slot=slot,
            session_id=session_id,
            confidence=confidence,
            importance=importance,
            source=source,
            entities=label_list(entities),
            context=context,
            occurred_at=occurred_at,
            expires_at=expires_at,
            ttl=ttl,
            metadata=json_object(metadata, "metadata"),
            supersedes=supersedes,
            derived_from=label_list(derived_from),
        )
        try:
            stored = attempt()
        except errors.UnknownBank:
            client.create_bank(bank)
            note(f"made the bank {bank!r}")
            stored = attempt()
    show(common.as_json, stored, tables.stored_line(stored))


def recall(
    query: Annotated[str, Parameter(help="A question or words; none lists the freshest.")] = "",
    /,
    *,
    top_k: Annotated[int, Parameter(name=["--top-k", "-k"], help="How many at most.")] = 10,
    types: Annotated[
        list[str] | None, Parameter(name=["--types", "--type"], help=f"Any of: {', '.join(TYPES)}.")
    ] = None,
    tags: Tags = None,
    all_tags: Annotated[list[str] | None, Parameter(help="Tags that it must have, all of them.")] = None,
    no_tags: Annotated[list[str] | None, Parameter(help="Tags that it must not have, none of them.")] = None,
    since: Annotated[str | None, Parameter(help=f"Said (else stored) from then on. {SAID}")] = None,
    until: Annotated[str | None, Parameter(help=f"Said (else stored) until then. {SAID}")] = None,
    session_id: Annotated[str | None, Parameter(help="From this conversation.")] = None,
    entities: Annotated[list[str] | None, Parameter(help="About any of these.")] = None,
    metadata: Annotated[str | None, Parameter(help='Metadata, by value or compared: {"year": {"$gte": 2020}}.')] = None,
    min_confidence: Annotated[float | None, Parameter(help="0 to 1; at least this sure.")] = None,
    min_score: Annotated[float | None, Parameter(help="0 to 1; by default, what is relevant.")] = None,
    hops: Annotated[int | None, Parameter(help="Links to follow one after the other: 0, 1 or 2; 1 by default.")] = None,
    diversity: Annotated[float | None, Parameter(help="0 to 1; passes over what repeats better results.")] = None,
    include_pending: Annotated[bool, Parameter(help="Also what is not believed yet.")] = False,
    as_of: Annotated[str | None, Parameter(help=f"What was believed at that moment. {SAID}")] = None,
    valid_at: Annotated[str | None, Parameter(help=f"What was true at that moment. {SAID}")] = None,
    rerank: Annotated[
        bool | None, Parameter(negative="--no-rerank", help="Let the reranker order them; HINDSIGHT_RERANK.")
    ] = None,
    rewrite: Annotated[
        bool | None, Parameter(negative="--no-rewrite", help="Let the language model add queries; HINDSIGHT_REWRITE.")
    ] = None,
    context: Annotated[str | None, Parameter(help="What was said before, for --rewrite.")] = None,
    block: Annotated[bool, Parameter(help="Show a block of text for a prompt instead.")] = False,
    max_tokens: Annotated[int, Parameter(help="How many tokens that block may have.")] = 1000,
    common: Common = COMMON,
) -> int:
    """Show the best memories for a query, each with its score and the parts that make it."""
    client, bank = common.open()
    with client:
        arguments: dict[str, Any] = {
            "top_k": top_k,
            "types": label_list(types),
            "tags": label_list(tags),
            "all_tags": label_list(all_tags),
            "no_tags": label_list(no_tags),
            "since": since,
            "until": until,
            "session_id": session_id,
            "entities": label_list(entities),
            "metadata": json_object(metadata, "metadata"),
            "min_confidence": min_confidence,
            "min_score": min_score,
            "hops": hops,
            "diversity": diversity,
            "include_pending": include_pending,
            "as_of": as_of,
            "valid_at": valid_at,
            "rerank": rerank,
            "rewrite": rewrite,
            "context": context,
        }
        if block:
            read = client.recall_context(bank, query, max_tokens=max_tokens, **arguments)
            show(common.as_json, read, *([read.block] if read.block else []))
            warnings, is_empty = read.warnings, not read.block
        else:
            found = client.recall(bank, query, **arguments)
            show(common.as_json, found, *(tables.recalled_lines(found) if found else []))
            warnings, is_empty = found.warnings, not found
    for warning in warnings:
        note(warning)
    if is_empty:
        note(f"nothing found in the bank {bank!r}")
    return 1 if is_empty else 0


def should_recall(
    message: Annotated[
        str,
        Parameter(help="The message; - reads it from standard input.", allow_leading_hyphen=True, validator=_no_option),
    ],
    /,
    *,
    common: Common = COMMON,
) -> int:
    """Say whether a message refers to the past or to something known, and why; exit code 1 if not."""
    message = standard_input() if message == "-" else message
    client, bank = common.open()
    with client:
        advice = client.should_recall(bank, message)
    show(common.as_json, advice, f"{'yes' if advice else 'no'}: {tables.visible(advice.reason)}")
    return 0 if advice else 1


def get(memory_id: MemoryId, /, *, common: Common = COMMON) -> None:
    """Show one memory, whatever its state but forgotten."""
    client, bank = common.open()
    with client:
        found = client.get(bank, memory_id)
    show(common.as_json, found, tables.memory_table(found))
