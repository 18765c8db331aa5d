"""The async client: each method embeds where a text needs it, and calls the SQL function of its name.

`sync_client.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Never, cast
from uuid import UUID

from anyio.to_thread import run_sync

from hindsight import reranking, rewriting
from hindsight.agent_session import AgentSession
from hindsight.calls import (
    FORGET_ARGUMENTS,
    MOST_QUERIES,
    RECALL_ARGUMENTS,
    STORE_ARGUMENTS,
    UPDATE_ARGUMENTS,
    Duration,
    Identifiers,
    Labels,
    Moment,
    banks_of,
    chosen,
    conversation,
    labels,
    refuse_unstorable,
    reject_unknown,
    stated,
    stored_arguments,
)
from hindsight.conversations import AsyncConversations
from hindsight.model_endpoint import EndpointFailure
from hindsight.results import (
    Change,
    Context,
    Entity,
    Event,
    Forgotten,
    KnownEntity,
    Matched,
    Memory,
    Neighbour,
    RecallAdvice,
    Recalled,
    Recollection,
    Step,
    Stored,
)


class AsyncHindsight(AsyncConversations):
    """Long-term memory in PostgreSQL. Made by `connect`; an async context manager; safe for concurrent tasks.

    Every method raises the error class of the SQLSTATE that the function raised (see `hindsight.errors`),
    DatabaseUnavailable when the database can't be reached, and EmbeddingError when a text can't be embedded:
    then nothing was stored.
    """

    # Async only.
    def session(self, bank: str, session_id: str, *, closes: bool = True) -> AgentSession:
        """A conversation in an agent's loop: `before` the answer what is known, `after` it what was said is kept.

        async with client.session("alice", "s1") as s:
            context = await s.before(user_input)
            ...
            await s.after(user_input, answer)

        closes: the end of the block closes the session, which is then distilled and summarised.
        """
        return AgentSession(self, bank, session_id, closes=closes)

    # End of async only.
    async def store(
        self,
        bank: str,
        content: str,
        *,
        type: str | None = None,
        tags: Labels | None = None,
        session_id: str | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        source: str | None = None,
        slot: str | None = None,
        entities: Labels | None = None,
        context: str | None = None,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
        ttl: Duration | None = None,
        metadata: Mapping[str, Any] | None = None,
        supersedes: UUID | str | None = None,
        derived_from: Identifiers | None = None,
        **unknown: Never,
    ) -> Stored:
        """Stores one memory, and says what became of it: stored, merged, pending, superseding, superseded, skipped.

        type: fact (the default), preference, decision, todo, temporary, hypothesis, summary, knowledge or lesson.
        confidence: in [0, 1]; 0.9 by default, 0.6 of what was inferred; below 0.6 a memory is pending.
        importance: in [0, 1]; by default scored by rules, and what they find trivial is skipped.
        source: user, document, tool or inferred. slot: the key of a thing that has one value at a time.
        context: what was said around it, found by but not shown. occurred_at: when it was said; what was forgotten or
        corrected since then does not come back.
        expires_at, ttl: it ends then, or after so long ("7 days"); else as the policy of its type says.
        supersedes: the memory whose place it takes, whatever the policy; a guess takes that of no statement.
        derived_from: those that it was made of; where one of them is forgotten it is not believed any more.
        """
        reject_unknown("store", unknown, STORE_ARGUMENTS)
        given = {name: value for name, value in locals().items() if name in STORE_ARGUMENTS and value is not None}
        return (await self.store_many(bank, [given]))[0]

    async def store_many(self, bank: str, memories: Sequence[Mapping[str, Any]]) -> list[Stored]:
        """Stores memories, each a mapping of the arguments of `store`: all, or none when one is refused.

        Returns what became of each, in their order.
        """
        arguments = [stored_arguments(bank, memory) for memory in memories]
        vectors = await self.passages([given["content"] for given in arguments])
        # In one order for every writer, so that batches with contents in common do not deadlock. Those with a slot, or
        # superseding another, come first: their writers take turns.
        order = sorted(
            range(len(arguments)),
            key=lambda n: (
                not any(arguments[n].get(name) for name in ("slot", "supersedes", "derived_from")),
                arguments[n].get("slot") or "",
                arguments[n]["content"],
            ),
        )
        rows = await self._transaction("store", [{**arguments[n], **vectors[n]} for n in order])
        return [Stored(**row) for _, (row,) in sorted(zip(order, rows, strict=True), key=lambda pair: pair[0])]

    async def recall(
        self,
        bank: str | Sequence[str],
        query: str | Sequence[str] | None = "",
        *,
        top_k: int = 10,
        types: Labels | None = None,
        tags: Labels | None = None,
        all_tags: Labels | None = None,
        no_tags: Labels | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        session_id: str | None = None,
        entities: Labels | None = None,
        metadata: Mapping[str, Any] | None = None,
        min_confidence: float | None = None,
        min_score: float | None = None,
        hops: int | None = None,
        diversity: float | None = None,
        include_pending: bool = False,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        context: str | Sequence[str] | None = None,
        rerank: bool | None = None,
        rewrite: bool | None = None,
        **unknown: Never,
    ) -> Recollection:
        """The best live memories for a query, best first, at most `top_k` (1 to 1,000), relevant ones only.

        bank: one, or a list of up to 20, all readable by the caller; what several hold in the same words comes once.
        query: one, or up to nine: a memory counts by the query that it answers best. None lists what the bank holds,
        the freshest first.
        types, tags, entities: any of; all_tags: all of; no_tags: none of; an empty list does not filter.
        since, until: when it was said, else stored; a day as `until` is meant whole.
        metadata: contains these values, or compares: {"year": {"$gte": 2020}, "status": {"$in": ["open"]}}.
        min_confidence, min_score: in [0, 1]; a min_score takes the place of the default threshold of relevance.
        hops: 1 (the default) follows links, 2 also links of what is linked, 0 none.
        diversity: in [0, 1]; above 0 passes over repetition.
        include_pending: also what is not believed yet. as_of: what was believed at that moment. valid_at: what was true
        then, as it is known now: of a value with a history the one that held.
        rerank: let the reranker order what was found; rewrite: let the language model add queries, which `context`, the
        last lines of the conversation, makes better. None: as the settings say. Where one of them fails or takes too
        long, the result goes without it and has a warning.
        """
        reject_unknown("recall", unknown, RECALL_ARGUMENTS)
        queries: list[str] = [query] if isinstance(query, str) else [one or "" for one in query or [""]]
        said = conversation(context)
        asked = banks_of(bank)
        refuse_unstorable({**asked, "query": queries, "context": said})
        asks = any(one.strip() for one in queries)
        reranker = chosen("rerank", rerank, self._reranker, self._settings.rerank, reranking.UNCONFIGURED)
        rewriter = chosen("rewrite", rewrite, self._rewriter, self._settings.rewrite, rewriting.UNCONFIGURED)
        warnings = list[str]()
        if rewriter and asks:
            try:
                added = (await run_sync(rewriter.queries, queries[0], said))[1:]
                queries += added[: MOST_QUERIES - len(queries)]
            except EndpointFailure as failure:
                warnings.append(f"The query was not rewritten: {failure}")
        first, *further = [await self._embedded(one) for one in queries]
        found = await self._rows(
            Recalled,
            "recall" if "bank" in asked else "recall_across",
            **asked,
            query=queries[0],
            embedding=first,
            queries=queries[1:] or None,
            embeddings=further if any(further) else None,
            model=self.embedder.model if self.embedder and any((first, *further)) else None,
            top_k=reranking.candidates(top_k) if reranker and asks else top_k,
            types=labels(types, "types") or None,
            tags=labels(tags) or None,
            all_tags=labels(all_tags, "all_tags") or None,
            no_tags=labels(no_tags, "no_tags") or None,
            since=since,
            until=until,
            session_id=session_id,
            entities=labels(entities, "entities") or None,
            metadata=metadata,
            min_confidence=min_confidence,
            min_score=min_score,
            hops=hops,
            diversity=diversity,
            include_pending=include_pending,
            as_of=as_of,
            valid_at=valid_at,
        )
        if reranker and asks:
            try:
                found = await run_sync(reranking.reranked, reranker, "\n".join(queries), found)
            except EndpointFailure as failure:
                warnings.append(f"The results have their plain order: {failure}")
        return Recollection(found[:top_k], warnings)

    async def recall_context(
        self,
        bank: str | Sequence[str],
        query: str | Sequence[str] | None = "",
        *,
        max_tokens: int = 1000,
        **arguments: Any,
    ) -> Context:
        """What `recall` finds, as one block of text for a prompt, within `max_tokens` (1 to 1,000,000), with citations.

        bank, arguments: those of `recall`. Each memory stands on a line with its age and what makes it doubtful, and of
        several banks with its own. The best is there whatever the budget; one of more than 500 tokens is shortened.
        """
        memories = await self.recall(bank, query, **arguments)
        given = {
            "memory_ids": [memory.memory_id for memory in memories],
            "max_tokens": max_tokens,
            "as_of": arguments.get("as_of"),
            "valid_at": arguments.get("valid_at"),
        }
        asked = banks_of(bank)
        found = await self._transaction("context_block" if "bank" in asked else "context_across", [{**asked, **given}])
        return Context(**found[0][0], memories=memories, warnings=memories.warnings)

    async def should_recall(self, bank: str, message: str) -> RecallAdvice:
        """Whether a message refers to the past, to the user or to something that the bank knows, by rules; and why."""
        return (await self._rows(RecallAdvice, "should_recall", bank=bank, message=message))[0]

    async def get(self, bank: str, memory_id: UUID | str) -> Memory:
        """One memory by its id. A forgotten one is not there: UnknownMemory."""
        return (await self._rows(Memory, "get", bank=bank, memory_id=memory_id))[0]

    async def update(
        self,
        bank: str,
        memory_id: UUID | str,
        *,
        content: str | None = None,
        type: str | None = None,
        tags: Labels | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        slot: str | None = None,
        entities: Labels | None = None,
        context: str | None = None,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        clear: Labels | None = None,
        reason: str | None = None,
        expected_version: int | None = None,
        **unknown: Never,
    ) -> Memory:
        """Changes what is given and keeps the rest; the old values stay in the history. Returns the memory.

        clear: names of what shall be empty (slot, context, occurred_at, expires_at). expected_version: refuses
        with Conflict when somebody changed the memory since that version was read.
        """
        reject_unknown("update", unknown, UPDATE_ARGUMENTS)
        given = {name: value for name, value in locals().items() if name in UPDATE_ARGUMENTS and value is not None}
        refuse_unstorable({"content": content})
        (made,) = await self.passages([content]) if isinstance(content, str) else ({},)
        await self._value("update_memory", bank=bank, memory_id=memory_id, **given, **made)
        return await self.get(bank, memory_id)

    async def forget(self, bank: str, memory_id: UUID | str, reason: str) -> Forgotten:
        """Forgets a memory: gone from every channel at once, restorable; a second time changes nothing."""
        why = stated(reason, "forget")
        return (await self._rows(Forgotten, "forget", bank=bank, memory_id=memory_id, reason=why))[0]

    async def forget_matching(
        self,
        bank: str,
        reason: str,
        *,
        types: Labels | None = None,
        tags: Labels | None = None,
        all_tags: Labels | None = None,
        session_id: str | None = None,
        source: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        dry_run: bool = False,
        **unknown: Never,
    ) -> list[Matched]:
        """Forgets every memory that passes all of the filters, whatever its state; each can be restored.

        dry_run: only lists them. The filters are recall's; without any it is refused. Returns the memories, the newest
        first.
        """
        reject_unknown("forget_matching", unknown, FORGET_ARGUMENTS)
        given = {name: value for name, value in locals().items() if name in FORGET_ARGUMENTS}
        return await self._rows(
            Matched, "forget_matching", bank=bank, reason=stated(reason, "forget_matching"), **given
        )

    async def forget_bank(self, bank: str, reason: str) -> int:
        """Forgets every memory of a bank; each can be restored. For its owner. Returns how many."""
        return cast(int, await self._value("forget_bank", bank=bank, reason=stated(reason, "forget_bank")))

    async def restore(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Memory:
        """Takes a forgetting back. Conflict when its content or slot is taken meanwhile."""
        await self._value("restore", bank=bank, memory_id=memory_id, reason=reason)
        return await self.get(bank, memory_id)

    async def pending(self, bank: str, most: int = 100) -> list[Memory]:
        """What waits to be believed, the newest first: a queue to review with `confirm` and `reject`."""
        return await self._rows(Memory, "pending", bank=bank, most=most)

    async def confirm(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Memory:
        """Somebody who knows says that it is so: what was pending or a hypothesis is believed. Returns the memory."""
        await self._value("confirm", bank=bank, memory_id=memory_id, reason=reason)
        return await self.get(bank, memory_id)

    async def reject(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Forgotten:
        """Somebody who knows says that what is pending is not so: it is forgotten."""
        return (await self._rows(Forgotten, "reject", bank=bank, memory_id=memory_id, reason=reason))[0]

    async def complete(self, bank: str, memory_id: UUID | str, reason: str | None = None) -> Memory:
        """A todo is done: it stays, says so, and does not expire. Returns the memory."""
        await self._value("complete", bank=bank, memory_id=memory_id, reason=reason)
        return await self.get(bank, memory_id)

    async def note_recall(self, bank: str, memory_ids: Identifiers) -> int:
        """Says that memories were recalled, so that `maintain` puts none of them away as unused. Returns how many."""
        return cast(int, await self._value("note_recall", bank=bank, memory_ids=memory_ids))

    async def history(self, bank: str, memory_id: UUID | str) -> list[Event]:
        """A memory's life, oldest event first, its forgetting included."""
        return await self._rows(Event, "history", bank=bank, memory_id=memory_id)

    async def state(self, bank: str, as_of: Moment | None = None, states: Labels | None = None) -> list[Memory]:
        """What a bank held at a moment (now by default), as it was then, the newest first.

        states: live (the default), pending, expired, superseded, archived, deleted.
        """
        return await self._rows(Memory, "state", bank=bank, as_of=as_of, states=states)

    async def diff(self, bank: str, since: Moment, until: Moment | None = None) -> list[Change]:
        """What a bank learned, corrected and forgot between two moments, the oldest first; `until` now by default."""
        return await self._rows(Change, "diff", bank=bank, since=since, until=until)

    async def link(
        self,
        bank: str,
        from_id: UUID | str,
        to_id: UUID | str,
        relation: str = "related",
        weight: float = 1.0,
    ) -> bool:
        """Links one memory to another: recall of the one brings up the other. False: the same link was there.

        relation: related, causes, solves, part_of, contradicts, evolved_into, derived_from, or your own.
        weight: in [0, 1]; linking again changes it.
        """
        given = {"from_id": from_id, "to_id": to_id, "relation": relation, "weight": weight}
        return cast(bool, await self._value("link", bank=bank, **given))

    async def unlink(self, bank: str, from_id: UUID | str, to_id: UUID | str, relation: str | None = None) -> int:
        """Takes the links from one memory to another away, of one relation or all. Returns how many."""
        given = {"from_id": from_id, "to_id": to_id, "relation": relation}
        return cast(int, await self._value("unlink", bank=bank, **given))

    async def neighbours(self, bank: str, memory_id: UUID | str, most: int = 100) -> list[Neighbour]:
        """The live memories that a memory is linked with, either way: what somebody linked first, then the heaviest."""
        return await self._rows(Neighbour, "neighbours", bank=bank, memory_id=memory_id, most=most)

    async def path(self, bank: str, from_id: UUID | str, to_id: UUID | str, max_hops: int = 4) -> list[Step]:
        """The shortest way along at most `max_hops` links (1 to 6) from one memory to another; empty: there is none."""
        given = {"from_id": from_id, "to_id": to_id, "max_hops": max_hops}
        return await self._rows(Step, "path", bank=bank, **given)

    async def refresh_links(self, bank: str, most: int = 500) -> int:
        """Links new memories with what shares an entity or a meaning, as `maintain` does. 0: nothing is new."""
        return cast(int, await self._value("refresh_links", bank=bank, most=most))

    async def entity(self, bank: str, name: str) -> Entity | None:
        """What the bank knows of an entity, by any of its names; None: nothing names it."""
        rows = await self._rows(Entity, "entity", bank=bank, name=name)
        return rows[0] if rows else None

    async def known_entities(self, bank: str, most: int = 100, kinds: Labels | None = None) -> list[KnownEntity]:
        """The entities that most memories name, as `maintain` counted them. kinds: name, identifier, quantity, term."""
        return await self._rows(KnownEntity, "known_entities", bank=bank, most=most, kinds=kinds)
