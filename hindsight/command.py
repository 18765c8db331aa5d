"""What every command of the command line shares: its bank, its output, and the exit code of an error."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import RenderableType

from hindsight import errors, tables
from hindsight.calls import labels
from hindsight.config import Settings, load_settings
from hindsight.database import database_url
from hindsight.postgres_url import sqlalchemy_url
from hindsight.sync_client import Hindsight

EXIT_CODES: list[tuple[tuple[type[BaseException], ...], int]] = [
    ((errors.UnknownBank, errors.UnknownMemory, errors.UnknownModel), 3),
    ((errors.Conflict, errors.ModelMismatch), 4),
    ((errors.AccessDenied,), 5),
    ((errors.DatabaseUnavailable, errors.EmbeddedUnavailable, errors.EmbeddingUnavailable), 69),
    (
        (
            errors.ConfigurationError,
            errors.InvalidArgument,
            errors.InvalidContent,
            errors.SecretRefused,
            errors.EmbeddingError,
        ),
        2,
    ),
]
"""The exit code of each error, the first that fits; 70 for any other."""

AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON, for programs.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """What the commands on a bank take."""

    bank: Annotated[str | None, Parameter(help="The bank; HINDSIGHT_BANK, else 'default'.")] = None
    as_json: AsJson = False

    def open(self, **given: Any) -> tuple[Hindsight, str]:
        """A client, and the name of the bank. given: settings, instead of those of the environment."""
        settings = load_settings(**given)
        return Hindsight.connect(settings=settings), settings.bank if self.bank is None else self.bank


COMMON = Common()


def show(as_json: bool, value: Any, *texts: RenderableType) -> None:
    """Prints a result: `value` for programs, or `texts` for people."""
    if as_json:
        sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False, indent=2) + "\n")
    else:
        tables.show(*texts)


def note(message: str) -> None:
    """Says something beside the result, on standard error."""
    sys.stderr.write(f"hindsight: {tables.visible(message)}\n")


def exit_code(error: BaseException) -> int:
    """What the command ends with when `error` was raised."""
    return next((code for kinds, code in EXIT_CODES if isinstance(error, kinds)), 70)


def label_list(values: list[str] | None) -> list[str] | None:
    """Labels that were given one by one, with commas, or both."""
    return None if values is None else [label for value in values for label in labels(value) or []]


def json_object(text: str | None, argument: str) -> Any:
    """What a JSON text holds. Raises InvalidArgument."""
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise errors.InvalidArgument(f"{argument} is not JSON: {error}") from None


def standard_input() -> str:
    """All of standard input, without the white space around it. Raises InvalidContent."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise errors.InvalidContent(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from None


def database_name(settings: Settings) -> str:
    """Which database the settings mean, without its password."""
    url = sqlalchemy_url(database_url(settings), "psycopg")
    hosts = url.host or url.query.get("host") or "the local socket"
    host = hosts if isinstance(hosts, str) else ", ".join(hosts)
    port = f":{url.port}" if url.port else ""
    return f"{url.database or url.username} at {host}{port}" + ("" if settings.database_url else " (embedded)")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
