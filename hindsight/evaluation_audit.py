"""`hindsight eval --format audit`: what an audit says of labelled pairs of statements."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from hindsight.evaluation_pairs import Pair
from hindsight.sync_client import Hindsight
from hindsight.tables import plain_table

VERDICTS = ("contradiction", "merge", "review", "nothing")


@dataclass(slots=True)
class Report:
    """What was measured. `verdicts`: split → "label language" → verdict → pairs.

    `across`: split → verdict → findings about two statements that are no pair: false, unless pairs of a file overlap.
    """

    model: str | None
    verdicts: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    across: dict[str, Counter[str]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_audit(pairs: list[Pair], client: Hindsight) -> Report:
    """Stores the statements of each split in a bank of its own, named eval-…, and audits it.

    They are embedded after all are stored, so that nothing is merged but equal texts before the audit sees it.
    """
    report = Report(client.embedder.model if client.embedder else None)
    for split in sorted({pair.split for pair in pairs}):
        chosen = [pair for pair in pairs if pair.split == split]
        found = _audited(chosen, client)
        verdicts: dict[str, Counter[str]] = {}
        for pair in chosen:
            verdict = found.pop(frozenset([pair.one, pair.other]), "nothing")
            verdicts.setdefault(f"{pair.label} {pair.language}", Counter())[verdict] += 1
        report.verdicts[split] = dict(sorted(verdicts.items()))
        report.across[split] = Counter(found.values())
    return report


def _audited(pairs: list[Pair], client: Hindsight) -> dict[frozenset[str], str]:
    """What the audit says of two contents."""
    bank = f"eval-{uuid.uuid4().hex[:6]}"
    client.create_bank(bank, description="Made by hindsight eval.")
    contents = sorted({content for pair in pairs for content in (pair.one, pair.other)})
    embedder, client.embedder = client.embedder, None
    stored = client.store_many(bank, [{"content": one, "source": "user", "importance": 0.5} for one in contents])
    client.embedder = embedder
    client.embed_pending(bank)
    by_id: dict[Any, list[str]] = {}
    for content, one in zip(contents, stored, strict=True):
        by_id.setdefault(one.memory_id, []).append(content)
    found = {frozenset(same): "merge" for same in by_id.values() if len(same) > 1}
    for finding in client.audit(bank, ["contradictions", "duplicates"], most=1000):
        verdict = "contradiction" if finding.finding == "contradictions" else finding.remedy
        for newer in by_id[finding.memory_id]:
            for older in by_id[finding.other_id]:
                found[frozenset([newer, older])] = verdict
    return found


def verdict_table(report: Report) -> Table:
    """How many pairs of each label get each verdict."""
    table = plain_table()
    for name in ("split", "pairs of statements", "pairs", *VERDICTS):
        table.add_column(name, justify="left" if name in ("split", "pairs of statements") else "right")
    for split, verdicts in report.verdicts.items():
        for label, counted in verdicts.items():
            table.add_row(split, label, str(counted.total()), *(str(counted[verdict]) for verdict in VERDICTS))
        across = report.across[split]
        table.add_row(split, "no pair", "", *(str(across[verdict]) for verdict in VERDICTS[:-1]), "")
    return table
