"""The one place where PostgreSQL URLs are read and made fit for a driver."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

from sqlalchemy.engine import URL

from hindsight.errors import ConfigurationError

Driver = Literal["asyncpg", "psycopg"]

_SCHEMES = {
    "postgres",
    "postgresql",
    "postgresql+asyncpg",
    "postgresql+psycopg",
}
_EXAMPLE = "write postgresql://user:password@host:5432/database, or postgresql://user@/database?host=/socket/directory"
_ENCODE = "If the password holds ? or %, percent-encode it (%3F, %25)"
# What asyncpg takes from a URL's query, as text, by its own name.
_ASYNCPG_QUERY = {"host", "port", "ssl", "target_session_attrs", "passfile", "krbsrvname", "gsslib"}
# What goes into connect_args instead: asyncpg wants a number, or a server setting.
_ASYNCPG_ARGS = {"connect_timeout", "application_name", "options"}
# libpq's own, in many hosted databases' URLs: left out rather than refused.
_ASYNCPG_NEEDLESS = {
    "channel_binding",
    "gssencmode",
    "sslcompression",
    "keepalives",
    "fallback_application_name",
}


def sqlalchemy_url(url: str, driver: Driver) -> URL:
    """`url` for SQLAlchemy's dialect of `driver`, whichever of the accepted schemes it is written with.

    Percent-encoded parts are decoded; in the password `/`, `:` and `@` may also stand as they are. A socket
    directory is `?host=/directory` or a percent-encoded host. `sslmode` and asyncpg's `ssl` are translated
    into each other. For asyncpg, `connect_timeout` (seconds), `application_name` and `options` are left to
    `asyncpg_connect_args`; channel_binding, gssencmode and the like, which asyncpg lacks, are left out.

    Raises ConfigurationError, which never shows the URL, for anything else than a PostgreSQL URL, and for a
    parameter that the driver can't honour.
    """
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        raise ConfigurationError(f"is not a PostgreSQL URL: it has no scheme; {_EXAMPLE}")
    if scheme.lower() not in _SCHEMES:
        shown = f" {scheme!r}" if scheme.isalpha() or scheme.startswith("postgres") else ""
        raise ConfigurationError(f"is not a PostgreSQL URL: its scheme{shown} is another; {_EXAMPLE}")
    location, _, query_text = rest.partition("?")
    credentials, at, address = location.rpartition("@")
    host_text, _, database = address.partition("/")
    user, colon, password = credentials.partition(":") if at else ("", "", "")

    if query_text and not all("=" in part for part in query_text.split("&")):
        raise ConfigurationError(f"is not a PostgreSQL URL: a parameter after its ? has no =. {_ENCODE}")
    query: dict[str, str | tuple[str, ...]] = dict(parse_qsl(query_text, keep_blank_values=True))
    in_query = {name: str(query.pop(name)) for name in ("user", "password", "dbname") if name in query}
    host, port = _host_and_port(host_text, query)
    return URL.create(
        f"postgresql+{driver}",
        username=in_query.get("user") or unquote(user) or None,
        password=in_query.get("password") or (unquote(password) if colon and password else None),
        host=host,
        port=port,
        database=in_query.get("dbname") or unquote(database) or None,
        query=_for_asyncpg(query) if driver == "asyncpg" else _for_psycopg(query),
    )


def asyncpg_connect_args(url: str) -> dict[str, Any]:
    """What of `url` asyncpg takes only as arguments: the `connect_args` of `create_async_engine`.

    `timeout` in seconds from connect_timeout; `server_settings` from application_name and options.
    """
    query = dict(parse_qsl(url.partition("?")[2]))
    arguments: dict[str, Any] = {}
    if "connect_timeout" in query:
        try:
            arguments["timeout"] = float(query["connect_timeout"])
        except ValueError:
            raise ConfigurationError(
                f"connect_timeout={query['connect_timeout'][:20]!r} is not a number of seconds"
            ) from None
    settings = {name: query[name] for name in ("application_name", "options") if name in query}
    if settings:
        arguments["server_settings"] = settings
    return arguments


def _host_and_port(text: str, query: dict[str, str | tuple[str, ...]]) -> tuple[str | None, int | None]:
    """The host and port; a socket directory or a list of hosts goes into `query`, as SQLAlchemy wants it."""
    if "," in text:
        query["host"] = tuple(part if ":" in part else f"{part}:5432" for part in text.split(","))
        return None, None
    if text.startswith("["):  # an IPv6 address
        host, _, port_text = text[1:].partition("]")
        port_text = port_text.removeprefix(":")
    else:
        host, _, port_text = text.partition(":")
        host = unquote(host)
    if port_text and not (port_text.isdecimal() and 0 < int(port_text) <= 65535):
        raise ConfigurationError(f"is not a PostgreSQL URL: its port is not a number from 1 to 65535. {_ENCODE}")
    port = int(port_text) if port_text else None
    if host.startswith("/"):
        query["host"] = host
        if port is not None:
            query["port"] = str(port)
        return None, None
    return host or None, port


def _for_psycopg(query: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    return {"sslmode" if name == "ssl" else name: value for name, value in query.items()}


def _for_asyncpg(query: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    kept = {"ssl" if name == "sslmode" else name: value for name, value in query.items()}
    kept = {name: v for name, v in kept.items() if name not in _ASYNCPG_ARGS | _ASYNCPG_NEEDLESS}
    unknown = sorted(kept.keys() - _ASYNCPG_QUERY)
    if unknown:
        raise ConfigurationError(
            f"has the parameter {unknown[0]!r}, which the driver asyncpg can't take from a URL; remove it"
            + (f" and set the environment variable PG{unknown[0].upper()}" if unknown[0].startswith("ssl") else "")
        )
    return kept
