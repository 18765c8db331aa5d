"""The errors that Hindsight raises. All derive from HindsightError."""


class HindsightError(Exception):
    """What went wrong in Hindsight; the message says what to do about it."""


class ConfigurationError(HindsightError, ValueError):
    """A setting can't be used. The message names the setting, and never shows a secret."""


class EmbeddingError(HindsightError):
    """A text can't be embedded, or the embedding model answered with something that can't be used."""


class EmbeddingUnavailable(EmbeddingError):  # noqa: N818
    """The embedding model can't be reached now; the same call may succeed later."""


class EmbeddedUnavailable(HindsightError):  # noqa: N818
    """The embedded PostgreSQL isn't installed, or doesn't start."""
