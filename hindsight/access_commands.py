"""The commands on who may use a bank: access list, access grant, access revoke."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from hindsight import tables
from hindsight.command import COMMON, Common, label_list, show

access = App(
    name="access",
    help="Who may read, add to, write or own a bank.",
    default_parameter=Parameter(negative=""),
)

Principal = Annotated[str, Parameter(help="A database role, or the name that a token or a service acts for.")]


@access.command(name="list")
def list_access(*, common: Common = COMMON) -> None:
    """Show who may do what in a bank, and since when. For its readers."""
    client, bank = common.open()
    with client:
        found = client.access(bank)
    table = tables.plain_table()
    for column in ("principal", "rights", "types", "granted"):
        table.add_column(column)
    for one in found:
        types = "all" if one.types is None else ", ".join(one.types)
        table.add_row(tables.visible(one.principal), one.rights, types, f"{one.granted_at:%Y-%m-%d %H:%M}")
    show(common.as_json, found, table)


@access.command
def grant(
    principal: Principal,
    rights: Annotated[
        str, Parameter(help="reader; adder, which stores and reads nothing; writer, which does both; or owner.")
    ],
    /,
    *,
    types: Annotated[
        list[str] | None,
        Parameter(name=["--types", "--type"], help="The only types of memory that an adder or writer may write."),
    ] = None,
    common: Common = COMMON,
) -> None:
    """Give a principal rights on a bank, in place of those that it had. For its owner."""
    client, bank = common.open()
    with client:
        client.grant_access(bank, principal, rights, types=label_list(types))
    granted = {"bank": bank, "principal": principal, "rights": rights, "types": label_list(types)}
    show(common.as_json, granted, tables.visible(f"{principal} is {rights} of {bank}"))


@access.command
def revoke(principal: Principal, /, *, common: Common = COMMON) -> None:
    """Take a principal's rights on a bank. For its owner; the last owner stays."""
    client, bank = common.open()
    with client:
        had_any = client.revoke_access(bank, principal)
    show(common.as_json, {"revoked": had_any}, "revoked" if had_any else "it had no rights")
