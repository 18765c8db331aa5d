"""SQLAlchemy models of the tables, for applications that query them and for `alembic check`.

Read through them freely; write through the SQL functions (`hindsight.store` and the rest), which check access,
keep earlier versions and leave an event. Row-level security shows a login only the banks it was granted.
"""

from __future__ import annotations

import uuid
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Computed,
    Date,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP, TSVECTOR
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import UserDefinedType

CURRENT = "deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL"
"""Rows whose content is taken: live or pending."""
PENDING = f"{CURRENT} AND pending_reason IS NOT NULL"
LIVE = f"{CURRENT} AND pending_reason IS NULL"
"""The live predicate. Expiry is a matter of time, which no index can hold: it is checked at every read."""

Timestamp = TIMESTAMP(timezone=True)


class HalfVector(UserDefinedType[str]):
    """pgvector's `halfvec` without a size, as its text form (`[0.1,0.2]`)."""

    cache_ok = True

    def __init__(self, dimensions: int | None = None) -> None:
        self.dimensions = dimensions

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec" if self.dimensions is None else f"halfvec({self.dimensions})"


class Vector(HalfVector):
    """pgvector's `vector` without a size, as its text form."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "vector" if self.dimensions is None else f"vector({self.dimensions})"


class TransactionId(UserDefinedType[int]):
    """PostgreSQL's `xid8`."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


class Base(DeclarativeBase):
    metadata = MetaData(schema="hindsight")


class EmbeddingModel(Base):
    __tablename__ = "embedding_model"
    __table_args__ = (
        CheckConstraint("dimensions BETWEEN 1 AND 4000", name="embedding_model_dimensions_check"),
        CheckConstraint(
            "floor >= -1 AND floor < recall_threshold AND recall_threshold < merge_threshold AND merge_threshold <= 1",
            name="embedding_model_thresholds_check",
        ),
        CheckConstraint(
            "hnsw_m BETWEEN 2 AND 100 AND hnsw_ef_construction BETWEEN 4 AND 1000 "
            "AND hnsw_ef_construction >= 2 * hnsw_m AND hnsw_ef_search BETWEEN 1 AND 1000",
            name="embedding_model_hnsw_check",
        ),
        Index("embedding_model_name_key", "name", unique=True),
        {"comment": "The registry of embedding models, with the cosines that make their scores comparable."},
    )

    model_id: Mapped[int] = mapped_column(Integer, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text, comment="As the provider calls it.")
    dimensions: Mapped[int] = mapped_column(Integer, comment="Length of the model's vectors.")
    floor: Mapped[float] = mapped_column(Double, comment="The model's cosine for unrelated texts.")
    recall_threshold: Mapped[float] = mapped_column(Double, comment="Cosine from which a memory counts as relevant.")
    merge_threshold: Mapped[float] = mapped_column(Double, comment="Cosine from which two memories may say the same.")
    hnsw_m: Mapped[int] = mapped_column(
        Integer, server_default=text("24"), comment="Links of each vector in the model's HNSW index."
    )
    hnsw_ef_construction: Mapped[int] = mapped_column(
        Integer, server_default=text("128"), comment="Candidates looked at to place a vector in it."
    )
    hnsw_ef_search: Mapped[int] = mapped_column(
        Integer, server_default=text("80"), comment="Candidates that a search of it keeps."
    )
    created_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())


class MemoryType(Base):
    __tablename__ = "memory_type"
    __table_args__ = (
        CheckConstraint("decay_rate >= 0", name="memory_type_decay_rate_check"),
        CheckConstraint("weight BETWEEN 0 AND 1", name="memory_type_weight_check"),
        CheckConstraint("ttl >= '0'", name="memory_type_ttl_check"),
        CheckConstraint("on_conflict IN ('overwrite', 'history', 'confident')", name="memory_type_on_conflict_check"),
        {"comment": "The types of memory."},
    )

    type: Mapped[str] = mapped_column(Text, primary_key=True)
    decay_rate: Mapped[float | None] = mapped_column(Double, comment="λ per day; NULL: the bank's.")
    weight: Mapped[float] = mapped_column(Double, server_default=text("1"), comment="Type weight of the score.")
    ttl: Mapped[timedelta] = mapped_column(
        Interval,
        server_default=text("'0'"),
        comment="How long such a memory lives when it is not told; 0: for good.",
    )
    on_conflict: Mapped[str] = mapped_column(
        Text,
        server_default=text("'confident'"),
        comment="What a new value of a slot does: overwrite, history or confident.",
    )
    description: Mapped[str] = mapped_column(Text)


class Bank(Base):
    __tablename__ = "bank"
    __table_args__ = (
        CheckConstraint("decay_rate BETWEEN 0 AND 1", name="bank_decay_rate_check"),
        CheckConstraint("distil_mode IN ('auto', 'model', 'rules', 'verbatim', 'off')", name="bank_distil_mode_check"),
        CheckConstraint("distil_turns BETWEEN 1 AND 100", name="bank_distil_turns_check"),
        CheckConstraint("working_turns BETWEEN 1 AND 1000", name="bank_working_turns_check"),
        CheckConstraint("redaction IN ('off', 'mask', 'refuse')", name="bank_redaction_check"),
        CheckConstraint("reembedding IN ('embedding', 'switched', 'settling')", name="bank_reembedding_check"),
        CheckConstraint(
            "(reembedding IS NULL) = (other_model_id IS NULL) "
            "AND (switched_at IS NULL) = (coalesce(reembedding, 'embedding') = 'embedding')",
            name="bank_other_model_check",
        ),
        Index("bank_name_key", "name", unique=True),
        {"comment": "A store of memories with its own access list: the unit of isolation and of distribution."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    language: Mapped[str] = mapped_column(
        Text, server_default=text("'english'"), comment="Text-search configuration of new memories."
    )
    decay_rate: Mapped[float] = mapped_column(Double, server_default=text("0.01"), comment="λ per day.")
    model_id: Mapped[int | None] = mapped_column(
        ForeignKey("hindsight.embedding_model.model_id", name="bank_model_id_fkey"),
        comment="The embedding model of this bank; NULL until the first embedding.",
    )
    reembedding: Mapped[str | None] = mapped_column(
        Text,
        comment="Where a change of the model is: embedding, switched or settling; NULL: none is going on.",
    )
    other_model_id: Mapped[int | None] = mapped_column(
        ForeignKey("hindsight.embedding_model.model_id", name="bank_other_model_id_fkey"),
        comment="The model that is coming (embedding), or going (switched, settling).",
    )
    switched_at: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="When model_id became what it is; NULL when no change is going on."
    )
    documents: Mapped[int | None] = mapped_column(
        Integer,
        comment="Live memories when its words were last counted; NULL: small, counted at each recall.",
    )
    average_length: Mapped[float | None] = mapped_column(Double, comment="Mean lexemes of those memories.")
    allowed_tags: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="The tags that its memories may have; NULL: any."
    )
    distil_mode: Mapped[str] = mapped_column(
        Text,
        server_default=text("'auto'"),
        comment="How its sessions are distilled: auto (a model where the worker has one, else rules), model, rules, "
        "verbatim, off.",
    )
    distil_turns: Mapped[int] = mapped_column(
        Integer, server_default=text("4"), comment="A session is distilled when so many turns wait."
    )
    distil_idle: Mapped[timedelta] = mapped_column(
        Interval, server_default=text("'10 minutes'"), comment="Or when it has been idle for so long."
    )
    working_turns: Mapped[int] = mapped_column(
        Integer, server_default=text("20"), comment="How many of a session's last turns working_get returns."
    )
    maintained_at: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="When a worker last began to maintain it."
    )
    linked_to: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="Memories that changed until then have their automatic links."
    )
    link_round: Mapped[uuid.UUID | None] = mapped_column(
        Uuid, comment="The memory up to which all links were looked over, in the round that is on; NULL: none is."
    )
    audited_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When a worker last began to audit it.")
    reflected_at: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="When a worker last began to reflect on it."
    )
    reflected_to: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="Up to which change of a memory it has been reviewed by rules."
    )
    model_reflected_to: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="Up to which change of a memory it has been reviewed by a language model."
    )
    findings: Mapped[int | None] = mapped_column(Integer, comment="How many findings that audit had.")
    redaction: Mapped[str] = mapped_column(
        Text,
        server_default=text("'mask'"),
        comment="What becomes of personal data and secrets that are to be stored: off, mask or refuse.",
    )
    redaction_kinds: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="Of which kinds; NULL: of those that are redacted by default."
    )
    redaction_patterns: Mapped[dict[str, str] | None] = mapped_column(
        JSONB, comment="Kinds of the operator's own, each with an expression."
    )
    screening: Mapped[bool] = mapped_column(
        Boolean, server_default=text("true"), comment="Whether what is stored is screened for what looks planted."
    )
    created_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())


class BankType(Base):
    __tablename__ = "bank_type"
    __table_args__ = (
        CheckConstraint("decay_rate >= 0", name="bank_type_decay_rate_check"),
        CheckConstraint("weight BETWEEN 0 AND 1", name="bank_type_weight_check"),
        CheckConstraint("ttl >= '0'", name="bank_type_ttl_check"),
        CheckConstraint("on_conflict IN ('overwrite', 'history', 'confident')", name="bank_type_on_conflict_check"),
        {"comment": "Where a bank departs from the defaults of memory_type."},
    )

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="bank_type_bank_id_fkey"), primary_key=True
    )
    type: Mapped[str] = mapped_column(
        ForeignKey("hindsight.memory_type.type", name="bank_type_type_fkey"), primary_key=True
    )
    decay_rate: Mapped[float | None] = mapped_column(Double, comment="λ per day; NULL: the type's or the bank's.")
    weight: Mapped[float | None] = mapped_column(Double, comment="Type weight of the score; NULL: the type's.")
    ttl: Mapped[timedelta | None] = mapped_column(
        Interval,
        comment="How long such a memory lives when it is not told; 0: for good; NULL: as the type says.",
    )
    on_conflict: Mapped[str | None] = mapped_column(
        Text, comment="What a new value of a slot does; NULL: as the type says."
    )


class TagAlias(Base):
    __tablename__ = "tag_alias"
    __table_args__ = (
        CheckConstraint("alias <> tag", name="tag_alias_check"),
        {"comment": "Other spellings of a bank's tags."},
    )

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="tag_alias_bank_id_fkey"), primary_key=True
    )
    alias: Mapped[str] = mapped_column(Text, primary_key=True, comment="As it may be written.")
    tag: Mapped[str] = mapped_column(Text, comment="As it is kept.")


class Access(Base):
    __tablename__ = "access"
    __table_args__ = (
        CheckConstraint("rights IN ('reader', 'adder', 'writer', 'owner')", name="access_rights_check"),
        CheckConstraint("types IS NULL OR rights IN ('adder', 'writer')", name="access_types_check"),
        {"comment": "Who may use which bank."},
    )

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="access_bank_id_fkey"), primary_key=True
    )
    principal: Mapped[str] = mapped_column(Text, primary_key=True, comment="A database role, or a name it acts for.")
    rights: Mapped[str] = mapped_column(Text, comment="reader, adder, writer or owner.")
    types: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="The only types of memory that it may write; NULL: all."
    )
    granted_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())


class AccessToken(Base):
    __tablename__ = "access_token"
    __table_args__ = (
        Index("access_token_digest_key", "digest", unique=True),
        CheckConstraint("rights IN ('reader', 'adder', 'writer', 'owner')", name="access_token_rights_check"),
        {"comment": "Tokens of the servers. Only operators and servers read it, through functions."},
    )

    name: Mapped[str] = mapped_column(Text, primary_key=True, comment="What people call it; no secret.")
    digest: Mapped[bytes] = mapped_column(LargeBinary, comment="SHA-256 of the token, which is kept nowhere.")
    principal: Mapped[str] = mapped_column(Text, comment="Whom it acts for.")
    banks: Mapped[list[str] | None] = mapped_column(
        ARRAY(Text), comment="The only banks that it reaches; NULL: all of its principal."
    )
    rights: Mapped[str | None] = mapped_column(Text, comment="The most that it may do; NULL: what its principal may.")
    created_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())
    expires_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="It does not hold from then on.")
    last_used_at: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="When a server last saw it, to the minute."
    )
    revoked_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When it was taken back.")


class Session(Base):
    __tablename__ = "session"
    __table_args__ = (
        Index("session_due_idx", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("session_waiting_idx", "bank_id", postgresql_where=text("waiting > 0 OR due_at IS NOT NULL")),
        {"comment": "One conversation."},
    )

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="session_bank_id_fkey"), primary_key=True
    )
    session_id: Mapped[str] = mapped_column(Text, primary_key=True, comment="As the application calls it.")
    principal: Mapped[str | None] = mapped_column(
        Text, comment="Who logged its first turn: its memories are stored in that name."
    )
    last_sequence: Mapped[int] = mapped_column(Integer, server_default=text("0"), comment="Of its newest turn.")
    started_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())
    closed_at: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="When it was said to be over; NULL again when a turn follows."
    )
    summarised_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When its summary was made.")
    waiting: Mapped[int] = mapped_column(Integer, server_default=text("0"), comment="Turns that are not distilled yet.")
    due_at: Mapped[datetime | None] = mapped_column(
        Timestamp,
        comment="When it is to be distilled; while it is claimed, when the claim ends; NULL: nothing is to be done.",
    )
    claim: Mapped[uuid.UUID | None] = mapped_column(Uuid, comment="Of the worker that is at it.")
    attempts: Mapped[int] = mapped_column(
        Integer, server_default=text("0"), comment="Claims since it was last distilled."
    )
    last_error: Mapped[str | None] = mapped_column(Text, comment="Why the last attempt failed.")


class Turn(Base):
    __tablename__ = "turn"
    __table_args__ = (
        Index("turn_client_idx", "bank_id", "session_id", "turn_id", postgresql_where=text("turn_id IS NOT NULL")),
        Index(
            "turn_undistilled_idx",
            "bank_id",
            "session_id",
            "sequence",
            postgresql_where=text("distilled_at IS NULL"),
        ),
        {
            "comment": "One message of a session, as it was said. The raw layer: audit and source, never recalled. "
            "A partition a month.",
            "postgresql_partition_by": "RANGE (logged_at)",
        },
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    session_id: Mapped[str] = mapped_column(Text, primary_key=True)
    sequence: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="Place in the session, from 1."
    )
    turn_id: Mapped[str | None] = mapped_column(Text, comment="As the application calls it.")
    role: Mapped[str] = mapped_column(Text, comment="user, assistant, system, tool, …")
    content: Mapped[str] = mapped_column(Text)
    tool_calls: Mapped[Any | None] = mapped_column(JSONB, comment="Tool calls and their results, as they came.")
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSONB, server_default=text("'{}'"))
    occurred_at: Mapped[datetime] = mapped_column(Timestamp, comment="When it was said.")
    logged_at: Mapped[datetime] = mapped_column(
        Timestamp, primary_key=True, comment="When it was kept: its month (UTC) is its partition."
    )
    distilled_at: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="When its memories were stored, in the same transaction."
    )


class TurnArchive(Base):
    __tablename__ = "turn_archive"
    __table_args__ = ({"comment": "Months of turns that were put into files."},)

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="turn_archive_bank_id_fkey"), primary_key=True
    )
    month: Mapped[date] = mapped_column(Date, primary_key=True, comment="Its first day.")
    location: Mapped[str] = mapped_column(
        Text, primary_key=True, comment="Where the file was put, as whoever archived it said."
    )
    turns: Mapped[int] = mapped_column(BigInteger)
    digest: Mapped[bytes] = mapped_column(LargeBinary, comment="SHA-256 of the file.")
    archived_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())


class SessionArchive(Base):
    __tablename__ = "session_archive"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "session_id"],
            ["hindsight.session.bank_id", "hindsight.session.session_id"],
            name="session_archive_session_fkey",
        ),
        {"comment": "Which turns of a session were put into files: one that is logged again is no new one."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    session_id: Mapped[str] = mapped_column(Text, primary_key=True)
    month: Mapped[date] = mapped_column(Date, primary_key=True)
    sequences: Mapped[list[int]] = mapped_column(ARRAY(Integer), comment="Their places in the session, in order.")
    turn_keys: Mapped[list[int | None]] = mapped_column(
        ARRAY(BigInteger),
        comment="A hash of the turn_id of each, NULL where it had none, in the order of the sequences.",
    )


class WorkingValue(Base):
    __tablename__ = "working_value"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "session_id"],
            ["hindsight.session.bank_id", "hindsight.session.session_id"],
            name="working_value_session_fkey",
        ),
        Index("working_value_expiry_idx", "bank_id", "expires_at"),
        {"comment": "A session's desk: keys and values that expire, and are never recalled."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    session_id: Mapped[str] = mapped_column(Text, primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    value: Mapped[Any] = mapped_column(JSONB)
    expires_at: Mapped[datetime] = mapped_column(Timestamp, comment="Not seen from then on.")


class _MemoryColumns:
    """The columns that `memory` and `memory_version` share."""

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    memory_id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    version: Mapped[int] = mapped_column(Integer, comment="1 when stored, one more at each change.")
    content: Mapped[str] = mapped_column(Text)
    type: Mapped[str] = mapped_column(Text)
    tags: Mapped[list[str]] = mapped_column(ARRAY(Text))
    entities: Mapped[list[str]] = mapped_column(ARRAY(Text))
    slot: Mapped[str | None] = mapped_column(Text, comment="Key of a thing that has one value at a time.")
    context: Mapped[str | None] = mapped_column(Text, comment="What was said around it; found by, not shown.")
    session_id: Mapped[str | None] = mapped_column(Text)
    source: Mapped[str | None] = mapped_column(Text, comment="user, document, tool, inferred; NULL: unknown.")
    confidence: Mapped[float] = mapped_column(Double, comment="Belief in it, 0 to 1.")
    importance: Mapped[float] = mapped_column(Double, comment="Worth of keeping it, 0 to 1.")
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSONB, comment="The application's own data.")
    language: Mapped[str] = mapped_column(
        Text, comment="Text-search configuration, by name: pg_upgrade refuses a regconfig."
    )
    occurred_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When it was said or happened.")
    created_at: Mapped[datetime] = mapped_column(Timestamp, comment="When it was first stored.")
    confirmed_at: Mapped[datetime] = mapped_column(Timestamp, comment="When last confirmed: decay counts from here.")
    confirmations: Mapped[int] = mapped_column(Integer, comment="How often it was confirmed after it was stored.")
    changed_at: Mapped[datetime] = mapped_column(Timestamp, comment="When this version began.")
    expires_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="Not live from then on.")
    completed_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When a todo was done.")
    deleted_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When it was forgotten.")
    superseded_by: Mapped[uuid.UUID | None] = mapped_column(Uuid, comment="The memory that took its place.")
    archived_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When it was put away, as expired.")
    pending_reason: Mapped[str | None] = mapped_column(Text, comment="Why it is not believed yet.")
    model_id: Mapped[int | None] = mapped_column(Integer, comment="Embedding model of the embedding.")
    embedding: Mapped[str | None] = mapped_column(HalfVector, comment="Of the content, normalised; NULL: not yet made.")


class Memory(_MemoryColumns, Base):
    __tablename__ = "memory"
    __table_args__ = (
        ForeignKeyConstraint(["bank_id"], ["hindsight.bank.bank_id"], name="memory_bank_id_fkey"),
        ForeignKeyConstraint(["type"], ["hindsight.memory_type.type"], name="memory_type_fkey"),
        ForeignKeyConstraint(["model_id"], ["hindsight.embedding_model.model_id"], name="memory_model_id_fkey"),
        ForeignKeyConstraint(
            ["bank_id", "session_id"],
            ["hindsight.session.bank_id", "hindsight.session.session_id"],
            name="memory_session_fkey",
        ),
        CheckConstraint("confidence BETWEEN 0 AND 1", name="memory_confidence_check"),
        CheckConstraint("importance BETWEEN 0 AND 1", name="memory_importance_check"),
        CheckConstraint("(embedding IS NULL) = (model_id IS NULL)", name="memory_embedding_check"),
        CheckConstraint("superseded_by <> memory_id", name="memory_superseded_by_check"),
        Index("memory_content_key", "bank_id", "digest", unique=True, postgresql_where=text(CURRENT)),
        Index(
            "memory_slot_key",
            "bank_id",
            "slot",
            unique=True,
            postgresql_where=text(f"{LIVE} AND slot IS NOT NULL"),
        ),
        Index("memory_recency_idx", "bank_id", "confirmed_at", postgresql_where=text(LIVE)),
        Index("memory_changed_idx", "bank_id", "changed_at"),
        Index(
            "memory_document_idx",
            "bank_id",
            text("(metadata ->> 'document')"),
            postgresql_where=text("metadata ? 'document'"),
        ),
        Index(
            "memory_session_idx",
            "bank_id",
            "session_id",
            text("COALESCE(occurred_at, created_at)"),
            postgresql_where=text(LIVE),
        ),
        Index(
            "memory_words_idx",
            "bank_id",
            "document",
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
            postgresql_where=text(LIVE),
        ),
        Index(
            "memory_said_idx",
            "bank_id",
            "document",
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
            postgresql_where=text(f"{LIVE} AND source = 'user'"),
        ),
        Index(
            "memory_rejected_idx",
            "bank_id",
            "document",
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
            postgresql_where=text("deleted_at IS NOT NULL AND pending_reason IS NOT NULL"),
        ),
        Index(
            "memory_names_idx",
            text("_names_v1(bank_id, tags, entities, slot)"),  # as `alembic check` reads it, in our schema
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
            postgresql_where=text(f"{LIVE} AND (slot IS NOT NULL OR tags <> '{{}}' OR entities <> '{{}}')"),
        ),
        Index("memory_pending_idx", "bank_id", "changed_at", postgresql_where=text(PENDING)),
        Index(
            "memory_expiry_idx",
            "bank_id",
            "expires_at",
            postgresql_where=text(f"{CURRENT} AND expires_at IS NOT NULL"),
        ),
        Index(
            "memory_unembedded_idx",
            "bank_id",
            "created_at",
            postgresql_where=text(f"{CURRENT} AND embedding IS NULL"),
        ),
        Index(
            "memory_gone_content_idx",
            "bank_id",
            "digest",
            postgresql_where=text("deleted_at IS NOT NULL OR superseded_by IS NOT NULL"),
        ),
        Index(
            "memory_gone_idx",
            "bank_id",
            "changed_at",
            postgresql_where=text("deleted_at IS NOT NULL OR superseded_by IS NOT NULL"),
        ),
        Index(
            "memory_gone_slot_idx",
            "bank_id",
            "slot",
            postgresql_where=text("deleted_at IS NOT NULL AND slot IS NOT NULL"),
        ),
        Index(
            "memory_valid_idx",
            "bank_id",
            "slot",
            postgresql_where=text("deleted_at IS NULL AND archived_at IS NULL AND valid_to IS NOT NULL"),
        ),
        Index("memory_trivial_idx", "bank_id", "confirmed_at", postgresql_where=text(f"{LIVE} AND importance < 0.3")),
        Index(
            "memory_unused_idx",
            "bank_id",
            "confirmed_at",
            postgresql_where=text(f"{LIVE} AND importance >= 0.3 AND importance < 0.5 AND confirmations = 0"),
        ),
        {"comment": "One distilled sentence that is worth keeping. The layer that recall searches."},
    )

    valid_to: Mapped[datetime | None] = mapped_column(
        Timestamp,
        comment="Until when it was true, of a value that another has followed: it remains answerable by date.",
    )
    digest: Mapped[bytes] = mapped_column(
        LargeBinary,
        Computed("hindsight.content_digest_v1(content)", persisted=True),
        comment="Same content, same digest.",
    )
    document: Mapped[str] = mapped_column(
        TSVECTOR,
        Computed(
            "hindsight.document_tsv_v1(language, content, tags, entities, slot, context)",
            persisted=True,
        ),
        comment="The lexemes it is found by.",
    )


class MemoryVersion(_MemoryColumns, Base):
    __tablename__ = "memory_version"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "memory_id"],
            ["hindsight.memory.bank_id", "hindsight.memory.memory_id"],
            name="memory_version_memory_fkey",
        ),
        PrimaryKeyConstraint("bank_id", "memory_id", "version"),
        Index("memory_version_changed_idx", "bank_id", "changed_at"),
        Index("memory_version_content_idx", "bank_id", "digest"),
        Index(
            "memory_version_expiry_idx",
            "bank_id",
            "expires_at",
            postgresql_where=text(f"{CURRENT} AND expires_at IS NOT NULL"),
        ),
        {"comment": "What memories were before they changed: the past that recall(as_of) answers from."},
    )

    version: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    valid_to: Mapped[datetime | None] = mapped_column(
        Timestamp, comment="Until when it was true, of a value that another has followed."
    )
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    document: Mapped[str] = mapped_column(TSVECTOR)
    believed_until: Mapped[datetime] = mapped_column(Timestamp, comment="When the next version began.")


class NextEmbedding(Base):
    __tablename__ = "next_embedding"
    __table_args__ = (
        Index(
            "next_embedding_waiting_idx",
            "bank_id",
            "model_id",
            "not_before",
            postgresql_where=text("embedding IS NULL"),
        ),
        {
            "comment": "Embeddings on their way: claimed, refused, and, while a bank changes its model, "
            "those that are made already."
        },
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    memory_id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    model_id: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="Whose embedding it is."
    )
    digest: Mapped[bytes] = mapped_column(
        LargeBinary, comment="Of the content that it is of: once the memory has another, it counts no more."
    )
    embedding: Mapped[str | None] = mapped_column(HalfVector, comment="Of the content, normalised; NULL: not yet made.")
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"), comment="How often it failed.")
    not_before: Mapped[datetime] = mapped_column(
        Timestamp,
        server_default=func.now(),
        comment="Nobody takes it until then: somebody has claimed it, or it failed.",
    )
    is_claimed: Mapped[bool] = mapped_column(Boolean, server_default=text("false"), comment="Somebody is at it.")
    last_error: Mapped[str | None] = mapped_column(Text, comment="Why it failed.")


class Link(Base):
    __tablename__ = "link"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "from_id"], ["hindsight.memory.bank_id", "hindsight.memory.memory_id"], name="link_from_fkey"
        ),
        ForeignKeyConstraint(
            ["bank_id", "to_id"], ["hindsight.memory.bank_id", "hindsight.memory.memory_id"], name="link_to_fkey"
        ),
        CheckConstraint("weight BETWEEN 0 AND 1", name="link_weight_check"),
        Index(
            "link_key",
            "bank_id",
            "from_id",
            "to_id",
            "relation",
            unique=True,
            postgresql_where=text("removed_at IS NULL"),
        ),
        Index("link_from_idx", "bank_id", "from_id", "weight"),
        Index("link_to_idx", "bank_id", "to_id", "weight"),
        {"comment": "Typed, weighted, directed edges between memories: the association layer."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    link_id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    from_id: Mapped[uuid.UUID] = mapped_column(Uuid)
    to_id: Mapped[uuid.UUID] = mapped_column(Uuid)
    relation: Mapped[str] = mapped_column(
        Text,
        comment="related, causes, solves, part_of, contradicts, evolved_into, derived_from, or a user's own; "
        "same_entity and similar of automatic ones.",
    )
    weight: Mapped[float] = mapped_column(Double, comment="Strength, 0 to 1.")
    is_automatic: Mapped[bool] = mapped_column(
        Boolean,
        server_default=text("false"),
        comment="Made by maintain, which takes it away when there are better ones; what somebody linked stays.",
    )
    created_at: Mapped[datetime] = mapped_column(Timestamp, server_default=text("clock_timestamp()"))
    removed_at: Mapped[datetime | None] = mapped_column(Timestamp, comment="When it was taken away; NULL: it holds.")


class Entity(Base):
    __tablename__ = "entity"
    __table_args__ = (
        ForeignKeyConstraint(["bank_id"], ["hindsight.bank.bank_id"], name="entity_bank_id_fkey"),
        Index("entity_memories_idx", "bank_id", "memories"),
        {"comment": "What the live memories of a bank name, as maintain counted it last."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(Text, primary_key=True, comment="The name, whatever its case and width.")
    name: Mapped[str] = mapped_column(Text, comment="As most memories spell it.")
    kind: Mapped[str] = mapped_column(Text, comment="name, identifier, quantity or term.")
    memories: Mapped[int] = mapped_column(
        Integer, comment="How many live memories name it so; those that name it by an alias count there."
    )


class EntityAlias(Base):
    __tablename__ = "entity_alias"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "memory_id"],
            ["hindsight.memory.bank_id", "hindsight.memory.memory_id"],
            name="entity_alias_memory_fkey",
        ),
        Index("entity_alias_key_idx", "bank_id", "key"),
        {"comment": "Names that memories say are of one thing, either way; they count as long as the memory is live."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    memory_id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True, comment="The memory that says so.")
    key: Mapped[str] = mapped_column(Text, primary_key=True, comment="A name, whatever its case and width.")
    other_key: Mapped[str] = mapped_column(
        Text, primary_key=True, comment="The other name, whatever its case and width."
    )
    other_name: Mapped[str] = mapped_column(Text, comment="The other name, as the memory spells it.")


class Event(Base):
    __tablename__ = "event"
    __table_args__ = (
        ForeignKeyConstraint(["bank_id"], ["hindsight.bank.bank_id"], name="event_bank_id_fkey"),
        Index("event_memory_idx", "bank_id", "memory_id", "event_id"),
        Index("event_held_idx", "bank_id", "memory_id", postgresql_where=text("after ? 'pending_reason'")),
        Index("event_redacted_idx", "bank_id", "at", postgresql_where=text("action = 'redacted'")),
        {"comment": "The append-only audit trail: who did what to which memory, when, why, before and after."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    event_id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(Timestamp, server_default=text("clock_timestamp()"))
    principal: Mapped[str] = mapped_column(Text, comment="Who did it.")
    action: Mapped[str] = mapped_column(Text, comment="The function, or what it came to: stored, merged, …")
    memory_id: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    reason: Mapped[str | None] = mapped_column(Text)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB, comment="The values that changed, as they were.")
    after: Mapped[dict[str, Any] | None] = mapped_column(JSONB, comment="The values that changed, as they became.")
    request_id: Mapped[str | None] = mapped_column(Text, comment="Of the request that a service did it for.")
    salt: Mapped[bytes | None] = mapped_column(
        LargeBinary,
        comment="Random; goes with the content when that is erased, so that nobody can guess it from the digest.",
    )
    digest: Mapped[bytes] = mapped_column(
        LargeBinary, comment="Of salt, reason, before and after: what remains of them when they are erased."
    )


class EventSeal(Base):
    __tablename__ = "event_seal"
    __table_args__ = (
        ForeignKeyConstraint(["bank_id"], ["hindsight.bank.bank_id"], name="event_seal_bank_id_fkey"),
        CheckConstraint(
            "(digest IS NULL) = (sealed_at IS NULL) AND (digest IS NULL) = (events IS NULL)", name="event_seal_check"
        ),
        {"comment": "Seals of the event trail: each holds the digest of its events and of the seal before."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    seal_id: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="From 1, without gaps, in each bank."
    )
    last_event: Mapped[int] = mapped_column(
        BigInteger, comment="It seals the events after those of the seal before, up to this one."
    )
    events: Mapped[int | None] = mapped_column(Integer, comment="How many events it seals; NULL until it is closed.")
    digest: Mapped[bytes | None] = mapped_column(LargeBinary, comment="NULL until it is closed.")
    settles_at: Mapped[int] = mapped_column(
        TransactionId,
        comment="When every transaction before this one has ended, no event up to last_event can come any more.",
    )
    sealed_at: Mapped[datetime | None] = mapped_column(Timestamp)


class MemoryUse(Base):
    __tablename__ = "memory_use"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "memory_id"],
            ["hindsight.memory.bank_id", "hindsight.memory.memory_id"],
            name="memory_use_memory_fkey",
        ),
        Index("memory_use_first_idx", "bank_id", "first_at"),
        {"comment": "How often memories were recalled, as far as whoever recalled them said so (note_recall)."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    memory_id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    recalls: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    first_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())
    last_at: Mapped[datetime] = mapped_column(Timestamp, server_default=func.now())


class MemoryTurn(Base):
    __tablename__ = "memory_turn"
    __table_args__ = (
        ForeignKeyConstraint(
            ["bank_id", "memory_id"],
            ["hindsight.memory.bank_id", "hindsight.memory.memory_id"],
            name="memory_turn_memory_fkey",
        ),
        {"comment": "The turns that memories were distilled from. A turn may be archived."},
    )

    bank_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    memory_id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True)
    session_id: Mapped[str] = mapped_column(Text, primary_key=True)
    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


class WordStatistics(Base):
    __tablename__ = "word_statistics"
    __table_args__ = (
        {"comment": "Document frequencies of a large bank's words, refreshed by maintain; small banks are counted."},
    )

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="word_statistics_bank_id_fkey"), primary_key=True
    )
    word: Mapped[str] = mapped_column(Text(collation="C"), primary_key=True)
    documents: Mapped[int] = mapped_column(Integer, comment="Live memories that hold the word.")


class ModelUsage(Base):
    __tablename__ = "model_usage"
    __table_args__ = ({"comment": "What language models have used for a bank, by day, purpose and model."},)

    bank_id: Mapped[int] = mapped_column(
        ForeignKey("hindsight.bank.bank_id", name="model_usage_bank_id_fkey"), primary_key=True
    )
    day: Mapped[date] = mapped_column(Date, primary_key=True, comment="In UTC.")
    purpose: Mapped[str] = mapped_column(Text, primary_key=True, comment="distil, judge, or a user's own.")
    model: Mapped[str] = mapped_column(Text, primary_key=True)
    calls: Mapped[int] = mapped_column(BigInteger)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger, comment="How many of the calls failed.")


class QueryEmbedding(Base):
    __tablename__ = "query_embedding"
    __table_args__ = (
        Index("query_embedding_expiry_idx", "expires_at"),
        {
            "comment": "Embeddings of queries that were asked a moment ago: a cache, which may be lost at any time.",
            "prefixes": ["UNLOGGED"],
        },
    )

    principal: Mapped[str] = mapped_column(Text, primary_key=True, comment="Who asked, and is alone answered by it.")
    model_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    digest: Mapped[bytes] = mapped_column(
        LargeBinary, primary_key=True, comment="SHA-256 of the query, whose text is not kept."
    )
    embedding: Mapped[str] = mapped_column(Vector)
    expires_at: Mapped[datetime] = mapped_column(Timestamp, comment="Not used from then on.")
