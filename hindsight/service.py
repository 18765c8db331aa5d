"""What the servers serve: one client, opened once, and the calls that MCP tools and REST routes run with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from hindsight import metrics
from hindsight.arguments import (
    Choice,
    Flag,
    Identifier,
    Identifiers,
    JsonObject,
    LabelList,
    Number,
    Required,
    Text,
    Type,
    Types,
    Whole,
    Word,
)
from hindsight.authentication import caller
from hindsight.calls import identifier
from hindsight.client import AsyncHindsight
from hindsight.config import Settings
from hindsight.conversation_service import ConversationService
from hindsight.errors import DatabaseUnavailable, InvalidArgument, UnknownBank, UnknownMemory
from hindsight.recall_notes import RecallNotes
from hindsight.results import TYPES, Change, Context, Event, Forgotten, Lesson, Matched, Memory, RecallAdvice, Stored
from hindsight.worker import working

log = logging.getLogger("hindsight.server")

_NO_MEMORY = UUID(int=0)
_LONGEST_PAUSE = 5.0
SLOWEST_CALL = 30.0
"""Seconds that a statement may take for a client, unless settings say otherwise; the worker's may take longer."""
_ONE_TYPE: dict[str, Any] = {"enum": list(TYPES)}
_SOME_TYPES: dict[str, Any] = {"items": {"type": "string", "enum": list(TYPES)}}
_UNIT: dict[str, Any] = {"minimum": 0, "maximum": 1}
_VERDICTS = ("right", "wrong", "done")
_WHEN = "ISO 8601, UTC where it names no zone."

Bank = Annotated[Word, Field(description="The bank of memories. Leave out for the usual one.")]
MemoryId = Annotated[Identifier, Field(description="The memory's id, as memory_recall and memory_store return it.")]


class MemoryService(ConversationService):
    """The calls of the servers on one client, which `opened` opens and closes.

    The parameters of `store`, `recall`, `update`, `forget`, `confirm` and `history` are the parameters of the MCP tools
    and the fields of the REST routes. A call that names no bank means `settings.bank`. What is recalled is noted in
    the database, after the answer.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._client: AsyncHindsight | None = None
        self._notes: RecallNotes | None = None

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[MemoryService]:
        """Opens the client, waits for its database, and makes the usual bank; inside itself it changes nothing.

        Raises DatabaseUnavailable when the database or its schema is not there within `settings.connect_timeout`.
        """
        if self._client is not None:
            yield self
            return
        async with await AsyncHindsight.connect(settings=self.settings) as client:
            await self._wait_for(client)
            async with RecallNotes() as notes, working(client, self.settings):
                self._client, self._notes = client.within(self.settings.statement_timeout or SLOWEST_CALL), notes
                metrics.observe_pool(client.engine.pool)
                try:
                    yield self
                finally:
                    self._client = self._notes = None

    async def _wait_for(self, client: AsyncHindsight) -> None:
        deadline = time.monotonic() + self.settings.connect_timeout
        pause = 0.1
        while True:
            try:
                try:
                    await _touch(client, self.settings.bank)
                except UnknownBank:
                    await client.create_bank(self.settings.bank)
                return
            except DatabaseUnavailable as error:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DatabaseUnavailable(
                        f"{error} (waited {self.settings.connect_timeout:g} seconds: HINDSIGHT_CONNECT_TIMEOUT)"
                    ) from None
                log.warning("waiting for the database, %.0f seconds more: %s", left, error)
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)

    @property
    def base(self) -> AsyncHindsight:
        """The client that is the server itself, while the service is opened."""
        if self._client is None:
            raise RuntimeError("the memory service is not opened")
        return self._client

    @property
    def client(self) -> AsyncHindsight:
        """The client of this request: of whom its token acts for, else of the server itself."""
        acting = caller()
        return self.base if acting is None else self.base.acting_for(*acting)

    async def check(self) -> None:
        """Raises DatabaseUnavailable unless the database answers and has the schema."""
        with contextlib.suppress(UnknownBank):
            await _touch(self.base, self.settings.bank)

    async def store(
        self,
        content: Annotated[
            Required,
            Field(description="One sentence that is understood without the conversation. At most 10,000 characters."),
        ],
        type: Annotated[Type, Field(description="What it is; fact if left out.", json_schema_extra=_ONE_TYPE)] = None,
        tags: Annotated[LabelList, Field(description="Topics to filter by, such as docker or billing.")] = None,
        session_id: Annotated[Text, Field(description="The conversation it comes from.")] = None,
        confidence: Annotated[
            Number,
            Field(
                description="How sure it is, 0 to 1; 0.9 if left out, 0.6 if inferred. Under 0.6: kept, not recalled "
                "until confirmed.",
                json_schema_extra=_UNIT,
            ),
        ] = None,
        importance: Annotated[
            Number,
            Field(
                description="How much it matters, 0 to 1. Left out: judged by rules, and small talk is skipped.",
                json_schema_extra=_UNIT,
            ),
        ] = None,
        source: Annotated[
            Word,
            Field(
                description="Where it comes from; a fact that is inferred is kept as a hypothesis.",
                json_schema_extra={"enum": ["user", "document", "tool", "inferred"]},
            ),
        ] = None,
        slot: Annotated[
            Text,
            Field(
                description="Key of a thing that has one value at a time, such as user.os: a new value takes the place "
                "of the old one."
            ),
        ] = None,
        entities: Annotated[LabelList, Field(description="People, products and places it is about.")] = None,
        context: Annotated[Text, Field(description="What was said around it: found by, but not shown.")] = None,
        occurred_at: Annotated[Text, Field(description=f"When it happened or was said. {_WHEN}")] = None,
        expires_at: Annotated[Text, Field(description=f"When it stops being true, if that is known. {_WHEN}")] = None,
        ttl: Annotated[
            Text, Field(description="Or how long it holds, such as 7 days or 12 hours; for good if both are left out.")
        ] = None,
        metadata: Annotated[JsonObject, Field(description="Anything else, as a JSON object.")] = None,
        supersedes: Annotated[
            Word, Field(description="The id of the memory whose place it takes, because that one holds no more.")
        ] = None,
        derived_from: Annotated[
            Identifiers,
            Field(description="Ids of the memories it is concluded from; it is doubted when one is forgotten."),
        ] = None,
        bank: Bank = None,
    ) -> Stored:
        """Stores a memory."""
        return await self.client.store(
            bank or self.settings.bank,
            content,
            type=type,
            tags=tags,
            session_id=session_id,
            confidence=confidence,
            importance=importance,
            source=source,
            slot=slot,
            entities=entities,
            context=context,
            occurred_at=occurred_at,
            expires_at=expires_at,
            ttl=ttl,
            metadata=metadata,
            supersedes=supersedes,
            derived_from=derived_from,
        )

    async def recall(
        self,
        query: Annotated[
            Text,
            Field(
                description="The question or topic, in the user's own words. Left out: the latest memories. "
                "At most 10,000 characters."
            ),
        ] = None,
        top_k: Annotated[
            Whole,
            Field(
                description="How many memories at most, 1 to 1,000; 10 if left out.",
                json_schema_extra={"minimum": 1, "maximum": 1000},
            ),
        ] = None,
        types: Annotated[Types, Field(description="Only these types.", json_schema_extra=_SOME_TYPES)] = None,
        tags: Annotated[LabelList, Field(description="Only memories with any of these tags.")] = None,
        all_tags: Annotated[LabelList, Field(description="Only memories with all of these tags.")] = None,
        no_tags: Annotated[LabelList, Field(description="Only memories with none of these tags.")] = None,
        since: Annotated[Text, Field(description=f"Only what happened or was stored from then on. {_WHEN}")] = None,
        until: Annotated[Text, Field(description=f"Only what happened or was stored up to then. {_WHEN}")] = None,
        session_id: Annotated[
            Text, Field(description="Only memories of this conversation. Leave out to search everything.")
        ] = None,
        entities: Annotated[LabelList, Field(description="Only memories about any of these.")] = None,
        metadata: Annotated[
            JsonObject,
            Field(
                description='Only memories whose metadata has these values, or compares so: {"year": {"$gte": 2020}}, '
                "with $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists."
            ),
        ] = None,
        min_confidence: Annotated[
            Number, Field(description="Only what is at least this sure, 0 to 1.", json_schema_extra=_UNIT)
        ] = None,
        min_score: Annotated[
            Number,
            Field(
                description="Only scores from here on, 0 to 1, instead of the usual threshold of relevance.",
                json_schema_extra=_UNIT,
            ),
        ] = None,
        hops: Annotated[
            Whole,
            Field(
                description="1 also follows links between memories, 2 two in a row, 0 none; 1 if left out.",
                json_schema_extra={"minimum": 0, "maximum": 2},
            ),
        ] = None,
        diversity: Annotated[
            Number,
            Field(description="Above 0, up to 1: pass over what repeats better results.", json_schema_extra=_UNIT),
        ] = None,
        include_pending: Annotated[
            Flag, Field(description="Also what is not believed yet, such as guesses of low confidence.")
        ] = False,
        as_of: Annotated[Text, Field(description=f"Answer with what was believed at that time. {_WHEN}")] = None,
        valid_at: Annotated[
            Text,
            Field(description=f"Answer with what was true at that time, such as an earlier version. {_WHEN}"),
        ] = None,
        context: Annotated[
            Text,
            Field(description="The last lines of the conversation, where the query is not understood without them."),
        ] = None,
        rerank: Annotated[
            Choice, Field(description="Let the reranker order what was found; else as configured.")
        ] = None,
        rewrite: Annotated[
            Choice, Field(description="Let the language model add search queries; else as configured.")
        ] = None,
        max_tokens: Annotated[
            Whole,
            Field(
                description="How many tokens the text of the answer may have; 1,000 if left out.",
                json_schema_extra={"minimum": 1, "maximum": 1_000_000},
            ),
        ] = None,
        bank: Bank = None,
        banks: Annotated[LabelList, Field(description="Or several banks to search at once, at most 20.")] = None,
    ) -> Context:
        """The best memories for a query, best first, and as text for a prompt. An empty filter filters nothing."""
        if bank and banks:
            raise InvalidArgument("recall got both bank and banks", hint="Send one of them")
        found = await self.client.recall_context(
            banks or bank or self.settings.bank,
            query or "",
            max_tokens=1000 if max_tokens is None else max_tokens,
            top_k=10 if top_k is None else top_k,
            types=types,
            tags=tags,
            all_tags=all_tags,
            no_tags=no_tags,
            since=since,
            until=until,
            session_id=session_id,
            entities=entities,
            metadata=metadata or None,
            min_confidence=min_confidence,
            min_score=min_score,
            hops=hops,
            diversity=diversity,
            include_pending=include_pending,
            as_of=as_of,
            valid_at=valid_at,
            context=context,
            rerank=rerank,
            rewrite=rewrite,
        )
        for warning in found.warnings:
            log.warning("recall: %s", warning)
        if self._notes is not None:
            for name in dict.fromkeys(memory.bank for memory in found.memories):
                recalled = [memory.memory_id for memory in found.memories if memory.bank == name]
                self._notes.add(self.client, name, recalled)
        return found

    async def should_recall(self, message: Required, bank: Bank = None) -> RecallAdvice:
        """Whether a message asks for memory."""
        return await self.client.should_recall(bank or self.settings.bank, message)

    async def get(self, memory_id: MemoryId, bank: Bank = None) -> Memory:
        """One memory by its id."""
        return await self.client.get(bank or self.settings.bank, memory_id)

    async def update(
        self,
        memory_id: MemoryId,
        content: Annotated[Text, Field(description="The sentence as it is right.")] = None,
        type: Annotated[Type, Field(description="Another type.", json_schema_extra=_ONE_TYPE)] = None,
        tags: Annotated[
            LabelList, Field(description="The tags it has from now on; an empty list takes all away.")
        ] = None,
        confidence: Annotated[
            Number,
            Field(
                description="How sure it is now, 0 to 1. From 0.6 on a pending memory is believed.",
                json_schema_extra=_UNIT,
            ),
        ] = None,
        importance: Annotated[
            Number, Field(description="How much it matters now, 0 to 1.", json_schema_extra=_UNIT)
        ] = None,
        slot: Annotated[Text, Field(description="The key of the one thing it is the value of.")] = None,
        entities: Annotated[LabelList, Field(description="What it is about from now on.")] = None,
        context: Annotated[Text, Field(description="What was said around it.")] = None,
        occurred_at: Annotated[Text, Field(description=f"When it happened or was said. {_WHEN}")] = None,
        expires_at: Annotated[Text, Field(description=f"When it stops being true. {_WHEN}")] = None,
        metadata: Annotated[JsonObject, Field(description="The metadata it has from now on.")] = None,
        clear: Annotated[
            LabelList,
            Field(
                description="What shall be empty.",
                json_schema_extra={
                    "items": {"type": "string", "enum": ["slot", "context", "occurred_at", "expires_at"]}
                },
            ),
        ] = None,
        reason: Annotated[Text, Field(description="Why; kept in the memory's history.")] = None,
        expected_version: Annotated[
            Whole, Field(description="Refuse when somebody changed the memory since this version was read.")
        ] = None,
        bank: Bank = None,
    ) -> Memory:
        """Changes what is given of a memory, and keeps the rest."""
        changes: dict[str, Any] = {
            "content": content,
            "type": type,
            "tags": tags,
            "confidence": confidence,
            "importance": importance,
            "slot": slot,
            "entities": entities,
            "context": context,
            "occurred_at": occurred_at,
            "expires_at": expires_at,
            "metadata": metadata,
            "clear": clear,
        }
        if all(value is None for value in changes.values()):
            raise InvalidArgument("this changes nothing", hint=f"Give {', '.join(changes)}")
        return await self.client.update(
            bank or self.settings.bank, memory_id, reason=reason, expected_version=expected_version, **changes
        )

    async def forget(
        self,
        memory_id: MemoryId,
        reason: Annotated[Required, Field(description="Why; kept in the memory's history.")],
        bank: Bank = None,
    ) -> Forgotten:
        """Forgets a memory."""
        return await self.client.forget(bank or self.settings.bank, memory_id, reason)

    async def confirm(
        self,
        memory_id: MemoryId,
        verdict: Annotated[
            Type,
            Field(
                description="right: it is so, and is believed from now on. wrong: it was pending, and is not so. "
                "done: the todo is done.",
                json_schema_extra={"enum": list(_VERDICTS)},
            ),
        ] = "right",
        reason: Annotated[Text, Field(description="Why, such as the user's words; kept in its history.")] = None,
        bank: Bank = None,
    ) -> Memory | Forgotten:
        """Says of a memory that it is right, wrong or done."""
        bank = bank or self.settings.bank
        match verdict:
            case "right":
                return await self.client.confirm(bank, memory_id, reason)
            case "wrong":
                return await self.client.reject(bank, memory_id, reason)
            case "done":
                return await self.client.complete(bank, memory_id, reason)
        raise InvalidArgument(f"unknown verdict {verdict!r}", hint=f"It is one of {', '.join(_VERDICTS)}")

    async def history(self, memory_id: MemoryId, bank: Bank = None) -> list[Event]:
        """A memory's life."""
        return await self.client.history(bank or self.settings.bank, memory_id)

    # ---- what MCP offers in its full set of tools ----------------------------------------------------------

    async def link(
        self,
        from_id: Annotated[Identifier, Field(description="The memory that the link goes from: the cause, the part.")],
        to_id: Annotated[Identifier, Field(description="The memory that it goes to: the effect, the whole.")],
        relation: Annotated[
            Text,
            Field(
                description="related (if left out), causes, solves, part_of, contradicts, evolved_into, derived_from, "
                "or a word of your own."
            ),
        ] = None,
        weight: Annotated[
            Number, Field(description="How strong it is, 0 to 1; 1 if left out.", json_schema_extra=_UNIT)
        ] = None,
        bank: Bank = None,
    ) -> dict[str, Any]:
        """Links one memory to another."""
        given = (identifier(from_id, "from_id"), identifier(to_id, "to_id"), relation or "related")
        linked = await self.client.link(bank or self.settings.bank, *given, 1.0 if weight is None else weight)
        return {"linked": linked, **dict(zip(("from_id", "to_id", "relation"), given, strict=True))}

    async def lessons(
        self,
        most: Annotated[Whole, Field(description="How many at most; 20 if left out.")] = None,
        bank: Bank = None,
    ) -> dict[str, list[Lesson]]:
        """What was rejected, and what was written down as a lesson."""
        return {"lessons": await self.client.lessons(bank or self.settings.bank, 20 if most is None else most)}

    # ---- what only REST offers ----------------------------------------------------------------------------

    async def forget_matching(
        self,
        reason: Required,
        types: Types = None,
        tags: LabelList = None,
        all_tags: LabelList = None,
        session_id: Text = None,
        source: Word = None,
        since: Text = None,
        until: Text = None,
        dry_run: Flag = False,
        bank: Bank = None,
    ) -> list[Matched]:
        """Forgets every memory that passes the filters, or lists them."""
        filters: dict[str, Any] = {"types": types, "tags": tags, "all_tags": all_tags, "session_id": session_id}
        filters |= {"source": source, "since": since, "until": until, "dry_run": dry_run}
        return await self.client.forget_matching(bank or self.settings.bank, reason, **filters)

    async def restore(self, memory_id: MemoryId, reason: Text = None, bank: Bank = None) -> Memory:
        """Takes a forgetting back."""
        return await self.client.restore(bank or self.settings.bank, memory_id, reason)

    async def pending(self, most: Whole = None, bank: Bank = None) -> list[Memory]:
        """What waits to be believed."""
        return await self.client.pending(bank or self.settings.bank, 100 if most is None else most)

    async def state(self, as_of: Text = None, states: LabelList = None, bank: Bank = None) -> list[Memory]:
        """What the bank held at a moment."""
        return await self.client.state(bank or self.settings.bank, as_of, states)

    async def diff(self, since: Required, until: Text = None, bank: Bank = None) -> list[Change]:
        """What the bank learned, corrected and forgot between two moments."""
        return await self.client.diff(bank or self.settings.bank, since, until)

    async def maintain(self, bank: Bank = None) -> dict[str, int]:
        """Keeps the bank: puts away what is due, and seals its events."""
        return await self.client.maintain(bank or self.settings.bank)


async def _touch(client: AsyncHindsight, bank: str) -> None:
    """Asks the database for as little as tells that it answers, has the schema, and knows the bank."""
    with contextlib.suppress(UnknownMemory):
        await client.get(bank, _NO_MEMORY)
