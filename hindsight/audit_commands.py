"""The command on a bank's quality: audit, by rules, and by a language model where they can't tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.text import Text

from hindsight.command import COMMON, Common, label_list, note, show
from hindsight.config import load_settings
from hindsight.judging import Judge, Judgement, judge_from
from hindsight.results import Finding
from hindsight.sync_client import Hindsight
from hindsight.tables import visible

CHECKS = ("contradictions", "duplicates", "stale", "orphans", "hypotheses", "sources", "tags")
ROUND = 1000  # findings of each check that are applied before the bank is audited again


def audit(
    bank: Annotated[str | None, Parameter(help="The bank; HINDSIGHT_BANK, else 'default'.")] = None,
    /,
    *,
    check: Annotated[
        list[str] | None, Parameter(name=["--check", "--checks"], help=f"Some of: {', '.join(CHECKS)}.")
    ] = None,
    most: Annotated[
        int, Parameter(help="How many findings of each check at most.", validator=Number(gte=1, lte=1000))
    ] = 100,
    apply: Annotated[
        bool, Parameter(help="Put right what can be without a loss: merge, withdraw, retag, link.")
    ] = False,
    judge: Annotated[bool, Parameter(help="Let the language model judge near memories that the rules can't.")] = False,
    common: Common = COMMON,
) -> int:
    """Show what is wrong, or may be, with a bank's memories. With --apply, what is left is for a person to decide.

    With --judge the language model is asked about near pairs that the rules leave open; with --apply its verdicts
    become links, which change no memory. Ends with 1 when there are findings.
    """
    client, name = replace(common, bank=bank if common.bank is None else common.bank).open()
    checks = label_list(check)
    judging = judge_from(load_settings()) if judge else None
    with client:
        applied = list(_apply(client, name, checks)) if apply else []
        findings = client.audit(name, checks, most=most)
        report: dict[str, Any] = {"bank": name, "applied": applied, "findings": findings}
        if judging and (not checks or {"contradictions", "duplicates"} & set(checks)):
            judgement = judging.judge(client, name, most)
            if apply:
                applied += _kept(client, name, judging, judgement)
            report["findings"] = findings = _judged(findings, judgement, checks, is_kept=apply)
            report["judge"] = {
                "model": judgement.model,
                "pairs": judgement.pairs,
                "judged": Counter(one.verdict for one in judgement.verdicts),
                "problems": judgement.problems,
            }
            for problem in judgement.problems:
                note(problem)
    show(common.as_json, report, *_lines(applied, findings))
    return 1 if findings else 0


def _kept(client: Hindsight, bank: str, judge: Judge, judgement: Judgement) -> Iterator[dict[str, Any]]:
    """Keeps each verdict as a link: what was done, with the finding. That two differ is kept too, and no finding."""
    for verdict in judgement.verdicts:
        outcome = judge.keep(client, bank, verdict)
        if verdict.finding and outcome != "left":
            yield {"outcome": outcome, "finding": verdict.finding}


def _judged(
    findings: Sequence[Finding], judgement: Judgement, checks: Sequence[str] | None, *, is_kept: bool
) -> list[Finding]:
    """The findings and those of the judge. What it says of a pair replaces what the rules were unsure of."""
    said = {(one.pair.memory_id, one.pair.other_id): one for one in judgement.verdicts}
    others = [one for one in findings if one.finding != "duplicates" or (one.memory_id, one.other_id) not in said]
    found = [one for verdict in said.values() if (one := verdict.finding) and (not checks or one.finding in checks)]
    mine = [replace(one, remedy="review") if is_kept else one for one in found]
    return sorted([*others, *mine], key=lambda one: CHECKS.index(one.finding))


def _apply(client: Hindsight, bank: str, checks: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Resolves what has a remedy, and audits again until nothing has: each finding with what was done."""
    while True:
        before = client.audit(bank, checks, most=ROUND)
        done = [
            (one, client.resolve(bank, one.finding, one.memory_id, one.other_id))
            for one in before
            if one.remedy != "review"
        ]
        yield from ({"outcome": outcome, "finding": one} for one, outcome in done if outcome != "left")
        if all(outcome == "left" for _, outcome in done):
            return


def _lines(applied: Sequence[dict[str, Any]], findings: Sequence[Finding]) -> Iterable[Text]:
    for done in applied:
        yield Text(f"{done['outcome']}: {visible(done['finding'].detail)}")
    for check, found in groupby(findings, key=lambda one: one.finding):
        yield Text(check, style="bold")
        for one in found:
            yield Text(f"  {visible(one.detail)}")
            ids = [str(one.memory_id), *([str(one.other_id)] if one.other_id else [])]
            yield Text(f"  {' · '.join([one.remedy, *ids])}", style="dim")
    remedies = Counter(one.remedy for one in findings)
    told = ", ".join(f"{count} to {remedy}" for remedy, count in sorted(remedies.items()))
    yield Text(f"{len(findings)} findings: {told}" if findings else "no findings")
