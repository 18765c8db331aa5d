"""The errors that Hindsight raises.

HindsightError
 ├─ ConfigurationError      a setting can't be used
 ├─ EmbeddedUnavailable     the embedded PostgreSQL isn't installed, or doesn't start
 ├─ EmbeddingError          a text can't be embedded
 │   ├─ EmbeddingUnavailable   …now
 │   └─ EmbeddingDenied        …nor any other: the key, the address or the model's name is wrong
 ├─ DatabaseUnavailable     the database can't be reached
 │   ├─ SchemaMissing          …it can, but was never migrated
 │   └─ TimedOut               …it can, but stopped the call, which took too long
 └─ DatabaseError           the database refused a call: one subclass for each SQLSTATE of class HM
"""

from __future__ import annotations

from typing import ClassVar


class HindsightError(Exception):
    """What went wrong in Hindsight; the message says what to do about it."""


class ConfigurationError(HindsightError, ValueError):
    """A setting can't be used. The message names the setting, and never shows a secret."""


class EmbeddingError(HindsightError):
    """A text can't be embedded, or the embedding model answered with something that can't be used."""


class EmbeddingUnavailable(EmbeddingError):  # noqa: N818
    """The embedding model can't be reached now; the same call may succeed later."""


class EmbeddingDenied(EmbeddingError):  # noqa: N818
    """The embedding endpoint takes no text at all: its key, its address or the model's name is wrong."""


class EmbeddedUnavailable(HindsightError):  # noqa: N818
    """The embedded PostgreSQL isn't installed, or doesn't start."""


class DatabaseUnavailable(HindsightError):  # noqa: N818
    """The database can't be reached."""


class SchemaMissing(DatabaseUnavailable):
    """The database has no schema `hindsight` yet: it was never migrated."""


class TimedOut(DatabaseUnavailable):
    """The database stopped a call, which took longer than it may."""


class DatabaseError(HindsightError):
    """The database refused a call. `sqlstate` and `hint` are PostgreSQL's."""

    sqlstate: ClassVar[str | None] = None

    def __init__(self, message: str, *, hint: str | None = None, sqlstate: str | None = None) -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.code = sqlstate or self.sqlstate


class UnknownBank(DatabaseError):  # noqa: N818
    """There is no such bank, or the caller has no rights on it."""

    sqlstate = "HM001"


class UnknownMemory(DatabaseError):  # noqa: N818
    """The bank has no such memory."""

    sqlstate = "HM002"


class AccessDenied(DatabaseError):  # noqa: N818
    """The caller may read the bank, but not do this."""

    sqlstate = "HM003"


class InvalidArgument(DatabaseError, ValueError):  # noqa: N818
    """An argument has a value that it can't have."""

    sqlstate = "HM004"


class InvalidContent(DatabaseError, ValueError):  # noqa: N818
    """A text is empty, too long, or holds a character that no text may hold."""

    sqlstate = "HM005"


class Conflict(DatabaseError):  # noqa: N818
    """What was asked for contradicts what another writer has done."""

    sqlstate = "HM006"


class SecretRefused(DatabaseError, ValueError):  # noqa: N818
    """A text holds personal data or secrets that the bank refuses. The message names the argument and the kinds."""

    sqlstate = "HM007"


class InvalidEmbedding(DatabaseError, ValueError):  # noqa: N818
    """An embedding has the wrong size, or no direction."""

    sqlstate = "HM010"


class ModelMismatch(DatabaseError):  # noqa: N818
    """The bank holds another model's embeddings."""

    sqlstate = "HM011"


class UnknownModel(DatabaseError):  # noqa: N818
    """The embedding model is not in the registry."""

    sqlstate = "HM012"


BY_SQLSTATE: dict[str, type[DatabaseError]] = {str(error.sqlstate): error for error in DatabaseError.__subclasses__()}
"""The exception class of each SQLSTATE of class HM."""
