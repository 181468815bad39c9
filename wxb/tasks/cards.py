"""What the modules `card` of tasks have in common."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from wxb.errors import WxbError

NUMBERS = ("precision", "recall", "f1")


def worst_first(table: Path, by: str) -> list[dict[str, Any]]:
    """The rows of a table of NUMBERS that evaluate wrote: the worst F1 first, then ordered by `by`.

    Raises WxbError where it did not.
    """
    if not table.exists():
        raise WxbError(
            f"{table}: not there yet; run `dvc repro evaluate@{table.parent.name}` first"
        )
    with table.open(encoding="utf-8", newline="") as file:
        rows = [
            {**row, **{key: float(row[key]) for key in NUMBERS}} for row in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda row: (row["f1"], row[by]))
