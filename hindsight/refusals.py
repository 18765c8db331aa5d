"""What a client is told when a call fails: a status, a code, a sentence, a hint; never SQL, a URL or a stack."""

from __future__ import annotations

from dataclasses import dataclass

from hindsight.errors import (
    AccessDenied,
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
    SchemaMissing,
    SecretRefused,
    TimedOut,
    UnknownBank,
    UnknownMemory,
    UnknownModel,
)

STATUS: dict[type[HindsightError], int] = {
    InvalidArgument: 400,
    InvalidContent: 400,
    AccessDenied: 403,
    UnknownBank: 404,
    UnknownMemory: 404,
    Conflict: 409,
    SecretRefused: 422,
    InvalidEmbedding: 422,
    ModelMismatch: 422,
    UnknownModel: 422,
    EmbeddingUnavailable: 503,
    EmbeddingError: 422,
    DatabaseUnavailable: 503,
    EmbeddedUnavailable: 503,
}
"""The HTTP status of an error class and of its subclasses; 500 for every other."""

_REFUSES = (503, "the database refuses the server's connection: see the server's log")
_BY_CLASS_OF_SQLSTATE = {
    "22": (400, "the database can't take a value that was sent"),
    "25": (403, "the database is read-only: a standby answers recall and get, nothing that writes"),
    "28": _REFUSES,
    "3D": _REFUSES,
    "54": (400, "a text that was sent is too long for the index of its words"),
    "55": _REFUSES,
    "40": (409, "many writers contend for this memory: send the same call again"),
    "42": (500, "the database refused the call: see the server's log"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """status: HTTP's. code: an SQLSTATE of class HM, or a word."""

    status: int
    code: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


INTERNAL = Refusal(status=500, code="internal", message="something went wrong inside the server; its log tells what")


def refusal(error: Exception) -> Refusal:
    """What the client is told about an error. An error that is not Hindsight's own tells nothing."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), None)
    if isinstance(error, TimedOut):
        hint = "Ask for less at once, or try again later; whoever runs the server sets HINDSIGHT_STATEMENT_TIMEOUT"
        return Refusal(status=503, code="timed_out", message="the call took longer than it may", hint=hint)
    if isinstance(error, DatabaseUnavailable):
        missing = isinstance(error, SchemaMissing)
        message = "the database has no schema hindsight yet" if missing else "the database can't be reached"
        hint = "Run: hindsight migrate" if missing else "Try again later"
        return Refusal(status=503, code="database_unavailable", message=message, hint=hint)
    if isinstance(error, DatabaseError):
        if status is not None:
            return Refusal(status=status, code=error.code or "database", message=error.message, hint=error.hint)
        status, message = _BY_CLASS_OF_SQLSTATE.get((error.code or "")[:2], (500, INTERNAL.message))
        return Refusal(status=status, code=error.code or "database", message=message)
    if status is not None:
        return Refusal(status=status, code=_word(type(error)), message=str(error))
    return INTERNAL


def is_internal(told: Refusal) -> bool:
    """Whether the error belongs in the server's log, since the client is not told what it was."""
    return told.status == 500 or told.message == _REFUSES[1]


def _word(kind: type[Exception]) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).strip("_")
