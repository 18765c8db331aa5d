"""What the functions return, as typed rows. Times are aware, in UTC or the database's zone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

TYPES = ("fact", "preference", "decision", "todo", "temporary", "hypothesis", "summary", "knowledge", "lesson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of a memory that was stored.

    outcome: stored, merged, pending, superseding, superseded, skipped, or taken: all that an adder is told.
    `related_id`: the memory it superseded, or that superseded it. `reasons`: why, in words. `memory_id` is None where
    nothing was kept (skipped), unless it says again what was corrected: then it is the memory that was.
    """

    memory_id: UUID | None
    outcome: str
    related_id: UUID | None
    reasons: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A memory that recall found, and why: score = similarity × confidence × decay × weight, each in [0, 1].

    similarity is the noisy-OR of `semantic` (None without an embedding), `lexical` and `activation` (what comes from
    linked memories). `channels` found it: vector, text, entity, slot, recency, links, session, pending.
    `completed_at`: when a todo was done. `valid_to`: until when it was true, of a value that another has followed.
    `pending_reason`: why it is not believed yet. `linked_from`: the memory that most of the activation comes from, by
    the `relation` (same_session for what was said beside it); `path`: the memories on the way there, of two hops two.
    `disputed_by`: the memories that contradict it, and outweigh it. `bank`: where it is kept.
    `relevance`: what a reranking endpoint gave it, on its model's scale; None without one. It makes the order then, and
    leaves the score as it is.
    """

    memory_id: UUID
    content: str
    type: str
    score: float
    similarity: float
    semantic: float | None
    lexical: float
    activation: float
    confidence: float
    decay: float
    weight: float
    channels: list[str]
    tags: list[str]
    entities: list[str]
    slot: str | None
    session_id: str | None
    source: str | None
    metadata: dict[str, Any]
    occurred_at: datetime | None
    created_at: datetime
    confirmed_at: datetime
    completed_at: datetime | None
    valid_to: datetime | None
    pending_reason: str | None
    linked_from: UUID | None
    relation: str | None
    path: list[UUID] | None
    disputed_by: list[UUID]
    bank: str
    relevance: float | None = None


class Recollection(list[Recalled]):
    """What recall found, best first, and `warnings`: a sentence for each step that was left out."""

    def __init__(self, found: Iterable[Recalled] = (), warnings: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.warnings = list(warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A memory that another is linked with. direction: "to" (the link goes to it) or "from"; weight in [0, 1].

    is_automatic: made by the database (same_entity, similar), and not by somebody.
    """

    memory_id: UUID
    direction: str
    relation: str
    weight: float
    content: str
    type: str
    linked_at: datetime
    is_automatic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A memory on the way from one to another, step 0 the first. The link that leads to it is None there.

    direction: "to" (the link goes to it) or "from".
    """

    step: int
    memory_id: UUID
    content: str
    type: str
    relation: str | None
    direction: str | None
    weight: float | None
    is_automatic: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """What a bank knows of an entity. kind: name, identifier, quantity, term. `names`: spellings and aliases.

    memories: how many live memories name it. `latest` and `important`: five of them each. `linked`: the ten entities
    that are named with it most often.
    """

    entity: str
    kind: str
    names: list[str]
    memories: int
    first_at: datetime
    last_at: datetime
    latest: list[UUID]
    important: list[UUID]
    linked: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEntity:
    """An entity that memories of a bank name, as `maintain` counted them last."""

    entity: str
    kind: str
    names: list[str]
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What recall found, and a block of text for a prompt that holds as much of it as `max_tokens` allow.

    citations: the memories that stand in the block, in its order, each there as `[m:<id>]`. tokens: about how many the
    block has. An empty block: nothing relevant is known. warnings: a sentence for each step that was left out.
    """

    block: str
    citations: list[UUID]
    tokens: int
    memories: list[Recalled]
    warnings: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAdvice:
    """Whether a message asks for memory, and why. It is true where `recall` is."""

    recall: bool
    reason: str

    def __bool__(self) -> bool:
        return self.recall


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory by its id. state: live, pending, expired, archived or superseded; of the past also deleted."""

    memory_id: UUID
    content: str
    type: str
    state: str
    tags: list[str]
    entities: list[str]
    slot: str | None
    context: str | None
    session_id: str | None
    source: str | None
    confidence: float
    importance: float
    metadata: dict[str, Any]
    occurred_at: datetime | None
    created_at: datetime
    confirmed_at: datetime
    confirmations: int
    changed_at: datetime
    expires_at: datetime | None
    completed_at: datetime | None
    superseded_by: UUID | None
    valid_to: datetime | None
    pending_reason: str | None
    version: int
    embedded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What forget or reject did. outcome: forgotten, or already forgotten."""

    memory_id: UUID
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """A memory that a filter of forget_matching found. outcome: forgotten, or would be forgotten (a dry run)."""

    memory_id: UUID
    outcome: str
    type: str
    content: str
    tags: list[str]
    session_id: str | None
    source: str | None
    occurred_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure took away: rows of what, and how many."""

    erased: str
    rows_erased: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What a bank redacts. policy: off, mask or refuse. patterns: kinds of its own, each with an expression."""

    policy: str
    kinds: list[str]
    patterns: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """How much was redacted of a kind, in how many writes, and when."""

    kind: str
    redacted: int
    writes: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a type of memory is in a bank.

    decay_rate: λ per day. weight: in [0, 1], of the score. ttl: how long it lives when it is not told, 0 for good.
    on_conflict: what a new value of a slot does: overwrite, history or confident.
    """

    type: str
    decay_rate: float
    weight: float
    ttl: timedelta
    on_conflict: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that a bank learned, corrected or forgot between two moments, as `diff` tells it.

    change: learned, corrected, believed, doubted, completed, forgotten, restored, expired or archived. previous: the
    content before a correction. related_id: the other memory of it.
    """

    at: datetime
    change: str
    memory_id: UUID
    content: str | None
    previous: str | None
    related_id: UUID | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProblem:
    """A gap or an edit that verify_events found in the trail of events."""

    problem: str
    event_id: int | None
    seal_id: int | None
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a memory's history: who did what, when and why, and the values that changed."""

    at: datetime
    principal: str
    action: str
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BankStatus:
    """What a bank holds: memories by state, those without an embedding yet, sessions and turns."""

    bank: str
    model: str | None
    dimensions: int | None
    live: int
    pending: int
    expired: int
    archived: int
    superseded: int
    deleted: int
    unembedded: int
    sessions: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingStatus:
    """How far the embeddings of a bank are.

    `reembedding`: where a change of its model is: embedding, switched, settling; None: none goes on. `other_model`: the
    model that is coming, or, after the switch, going. Of its `memories` (live or pending) `embedded` have their vector
    of the model that is worked for (the coming one while embedding), the others are `waiting`: some of them `claimed`
    by somebody who embeds them, some `failed`: tried again from `next_try_at` on. `unsettled`: have it beside them.
    """

    model: str | None
    dimensions: int | None
    reembedding: str | None
    other_model: str | None
    other_dimensions: int | None
    memories: int
    embedded: int
    waiting: int
    claimed: int
    failed: int
    unsettled: int
    next_try_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The versions of PostgreSQL, pgvector and the schema; `revision` is None when it was never migrated."""

    postgresql: str
    pgvector: str
    revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A registered embedding model: its cosines, and the settings and size of the index of its vectors.

    `floor`: of unrelated texts; `recall_threshold`, `merge_threshold`: from which a memory is relevant, or says the
    same. `m`, `ef_construction`, `ef_search`: pgvector's, of HNSW.
    """

    model: str
    dimensions: int
    floor: float
    recall_threshold: float
    merge_threshold: float
    m: int
    ef_construction: int
    ef_search: int
    index_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMemory:
    """A memory drawn at random, with its embedding."""

    memory_id: UUID
    content: str
    embedding: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an audit found. `finding`: the check; `other_id`: the other memory, of two.

    `remedy`: merge, withdraw or retag, which `resolve` does; review, where a person decides; link, which keeps what a
    language model has judged.
    """

    finding: str
    memory_id: UUID
    other_id: UUID | None
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedPair:
    """Two memories that may be about the same, and whose relation the rules can't tell; memory_id is the newer one."""

    memory_id: UUID
    other_id: UUID
    content: str
    other_content: str
    said_at: datetime
    other_said_at: datetime
    cosine: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """What a language model has used for a bank on a day (UTC), for a purpose: distil, judge, or a caller's own."""

    day: date
    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag of a bank: how many live memories have it, and its other spellings."""

    tag: str
    memories: int
    aliases: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A memory that is held because it looks planted. `author`: the principal that stored it."""

    memory_id: UUID
    content: str
    reason: str
    source: str | None
    author: str
    session_id: str | None
    held_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCount:
    """How much was held for a reason, by source and author, and what became of it.

    `wrongly`: the share of what was decided that was confirmed; None where nothing was decided.
    """

    reason: str
    source: str | None
    author: str
    held: int
    waiting: int
    rejected: int
    confirmed: int
    wrongly: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What was rejected (`kind` is rejected: by whom, when, why, and the words by which its like is held back).

    Or what was written down as a lesson (`kind` is written).
    """

    memory_id: UUID
    kind: str
    content: str
    reason: str | None
    source: str | None
    principal: str
    at: datetime
    words: list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """A bank that the caller may read, or works for. `to_embed`: it has memories without an embedding."""

    bank: str
    description: str | None
    rights: str | None
    owner: str | None
    model: str | None
    distil_mode: str
    to_embed: bool
    maintained_at: datetime | None
    audited_at: datetime | None
    findings: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepTurn:
    """A bank whose turn it is to be kept, and an owner, in whose name it is."""

    bank: str
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """What became of an insight: stored, pending, grown, believed, known, merged, skipped or refused, with the reasons.

    derived_from: the memories that it stands on. `more`: there is more to review, and no insight.
    """

    memory_id: UUID | None
    outcome: str
    content: str | None
    derived_from: list[UUID]
    reasons: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToReflect:
    """Groups of memories for a language model, of what changed `until` then (None: nothing has).

    Each memory has its memory_id, content, type and said_at, a day. is_done: nothing is left after them.
    """

    until: datetime | None
    is_done: bool
    groups: list[list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTurn:
    """The place of a turn in its session; `outcome`: logged, or logged already."""

    sequence: int
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """A session's desk: values by their keys, the last turns, the oldest first, and the tokens of both, about."""

    values: dict[str, Any]
    turns: list[dict[str, Any]]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A turn that a memory stands on. Without content: it was archived, into one of the files `archived_in`."""

    session_id: str
    sequence: int
    role: str | None
    content: str | None
    tool_calls: Any | None
    occurred_at: datetime | None
    archived_in: list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A memory that came from a document or a dump, with its place there. `state`: as of a Memory, or deleted."""

    memory_id: UUID
    place: str | None
    content: str
    state: str
    metadata: dict[str, Any]
    forgotten_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMonth:
    """The turns of a bank that were logged in a month (its first day, UTC); `waiting`: those not distilled yet."""

    month: date
    bank: str
    turns: int
    waiting: int
    is_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """A turn as it stands in an archive, with its place."""

    session_id: str
    sequence: int
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTurns:
    """What archive_month put away of a bank, and where it is now."""

    bank: str
    turns: int
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedSession:
    """A session that waits to be distilled. `state`: failed, claimed, due, waiting (for more turns) or off."""

    bank_name: str
    session_id: str
    state: str
    waiting: int
    due_at: datetime | None
    attempts: int
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """How many sessions were distilled, and of how many turns."""

    sessions: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedSession:
    """A session to distil: its turns that wait and the few before them: sequence, role, content, occurred_at.

    `owner`, `model`: the bank's owner and embedding model. `mode`: auto, model, rules or verbatim. `is_ending`: it is
    summarised with them.
    """

    bank_name: str
    owner: str | None
    model: str | None
    session_id: str
    claim: UUID
    mode: str
    attempts: int
    is_ending: bool
    turns: list[dict[str, Any]]
    before: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledMemory:
    """What became of a memory that was found in a session: an outcome of `store`, or refused, with its reasons."""

    memory_id: UUID | None
    outcome: str
    related_id: UUID | None
    reasons: list[str]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a principal may do in a bank: reader, adder, writer or owner; `types`: the only ones it may write."""

    principal: str
    rights: str
    types: list[str] | None
    granted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGrant:
    """Whom a token acts for, and what it is limited to: `scope` holds banks and rights, or neither."""

    name: str
    principal: str
    scope: dict[str, Any]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token of the servers: whom it acts for, its limits, and whether it holds: valid, expired or revoked."""

    name: str
    principal: str
    banks: list[str] | None
    rights: str | None
    state: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
