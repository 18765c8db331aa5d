"""The commands on tokens of the servers: token create, token list, token revoke."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from hindsight import tables
from hindsight.command import AsJson, label_list, note, show
from hindsight.config import load_settings
from hindsight.sync_client import Hindsight

token = App(
    name="token",
    help="Tokens with which clients of `hindsight serve` come in.",
    default_parameter=Parameter(negative=""),
)


@token.command
def create(
    name: Annotated[str, Parameter(help="What to call it; no secret, and not used again.")],
    /,
    *,
    principal: Annotated[str, Parameter(help="Whom it acts for: grant_access gives that name its rights.")],
    banks: Annotated[
        list[str] | None, Parameter(name=["--banks", "--bank"], help="The only banks that it reaches.")
    ] = None,
    rights: Annotated[str | None, Parameter(help="The most that it may do: reader, adder, writer or owner.")] = None,
    ttl: Annotated[str | None, Parameter(help="How long it holds, such as 90 days; else until it is revoked.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token, and print it: it is shown once, and kept as a digest only. For operators."""
    with Hindsight.connect(settings=load_settings()) as client:
        made = client.create_token(name, principal, banks=label_list(banks), rights=rights, ttl=ttl)
    if as_json:
        show(True, {"name": name, "principal": principal, "token": made})
    else:
        sys.stdout.write(made + "\n")
        note(f"the token {name!r} acts for {principal!r}; it is not shown again")


@token.command(name="list")
def list_tokens(*, as_json: AsJson = False) -> None:
    """Show the tokens: whom each acts for, within what, when it was last used, and whether it holds."""
    with Hindsight.connect(settings=load_settings()) as client:
        found = client.access_tokens()
    table = tables.plain_table()
    for column in ("name", "principal", "banks", "rights", "state", "expires", "last used"):
        table.add_column(column)
    for one in found:
        times = (f"{at:%Y-%m-%d %H:%M}" if at else "never" for at in (one.expires_at, one.last_used_at))
        banks = "all" if one.banks is None else ", ".join(one.banks) or "none"
        table.add_row(*map(tables.visible, (one.name, one.principal, banks, one.rights or "all", one.state)), *times)
    show(as_json, found, table if found else "there are no tokens")


@token.command
def revoke(name: Annotated[str, Parameter(help="Its name, not the token.")], /, *, as_json: AsJson = False) -> None:
    """Take a token back: servers refuse it within seconds."""
    with Hindsight.connect(settings=load_settings()) as client:
        was_valid = client.revoke_token(name)
    show(as_json, {"revoked": was_valid}, "revoked" if was_valid else "it was revoked before")
