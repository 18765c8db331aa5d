"""Hindsight: long-term memory for agents, inside one PostgreSQL database."""

from hindsight.client import AsyncHindsight
from hindsight.config import Settings
from hindsight.errors import (
    AccessDenied,
    ConfigurationError,
    Conflict,
    DatabaseError,
    DatabaseUnavailable,
    EmbeddedUnavailable,
    EmbeddingError,
    EmbeddingUnavailable,
    HindsightError,
    InvalidArgument,
    InvalidContent,
    InvalidEmbedding,
    ModelMismatch,
    UnknownBank,
    UnknownMemory,
    UnknownModel,
)
from hindsight.results import BankStatus, Context, Event, Forgotten, Memory, RecallAdvice, Recalled, Stored, Versions
from hindsight.sync_client import Hindsight

__all__ = [
    "AccessDenied",
    "AsyncHindsight",
    "BankStatus",
    "ConfigurationError",
    "Conflict",
    "Context",
    "DatabaseError",
    "DatabaseUnavailable",
    "EmbeddedUnavailable",
    "EmbeddingError",
    "EmbeddingUnavailable",
    "Event",
    "Forgotten",
    "Hindsight",
    "HindsightError",
    "InvalidArgument",
    "InvalidContent",
    "InvalidEmbedding",
    "Memory",
    "ModelMismatch",
    "RecallAdvice",
    "Recalled",
    "Settings",
    "Stored",
    "UnknownBank",
    "UnknownMemory",
    "UnknownModel",
    "Versions",
]
