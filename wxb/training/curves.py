"""The curves of a training."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_curves(folder: Path, history: Sequence[Mapping[str, float]]) -> None:
    """Write a CSV file (`step`, value) per metric of a history to a new folder, for `dvc plots`."""
    folder.mkdir(parents=True)
    for name in sorted({key for row in history for key in row} - {"step", "epoch"}):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["step", name])
            rows.writerows([row["step"], row[name]] for row in history if name in row)
