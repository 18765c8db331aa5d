"""The command on what a bank redacts: redaction."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from hindsight import tables
from hindsight.command import COMMON, Common, json_object, label_list, show

KINDS = ("private_key", "api_key", "password", "card", "iban", "resident_id", "ssn", "phone", "email", "ip")


def redaction(
    policy: Annotated[
        str | None, Parameter(help="off, mask (placeholders) or refuse; without one nothing changes.")
    ] = None,
    /,
    *,
    kinds: Annotated[
        list[str] | None, Parameter(name=["--kinds", "--kind"], help=f"Of which kinds: {', '.join(KINDS)}.")
    ] = None,
    patterns: Annotated[
        str | None, Parameter(help="""Kinds of your own, as JSON: '{"employee": "EMP[0-9]{6}"}'; {} takes them away.""")
    ] = None,
    common: Common = COMMON,
) -> None:
    """Show what the bank redacts, and how much it has; or change what becomes of personal data and secrets."""
    chosen, own = label_list(kinds), json_object(patterns, "patterns")
    client, bank = common.open()
    with client:
        if any(given is not None for given in (policy, chosen, own)):
            client.set_redaction(bank, policy, kinds=chosen, patterns=own)
        rules, counted = client.redaction(bank), client.redactions(bank)
    lines = {"policy": rules.policy, "kinds": ", ".join(rules.kinds), **rules.patterns}
    report = {"bank": bank, "redaction": rules, "redacted": counted}
    table = tables.plain_table()
    for name in ("redacted", "how many", "writes", "first", "last"):
        table.add_column(name)
    for one in counted:
        times = (f"{at:%Y-%m-%d %H:%M}" for at in (one.first_at, one.last_at))
        table.add_row(one.kind, str(one.redacted), str(one.writes), *times)
    show(common.as_json, report, tables.pairs_table(lines), *([table] if counted else []))
