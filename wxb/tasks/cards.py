"""The base class of a task's model cards, and what several tasks have in theirs."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from wxb.core.errors import WxbError

NUMBERS = ("precision", "recall", "f1")


class Card(ABC):
    """What only the model cards of a task say."""

    TEMPLATE: ClassVar[Path]  # Markdown in Jinja: it begins with `card_data` between lines of ---
    TASK: ClassVar[str]  # the hub's name of what is scored
    TAGS: ClassVar[Sequence[str]]  # further tags on the hub
    SCORES: ClassVar[Sequence[str]]  # the keys of the scores in the metadata

    def pipeline(self, experiment: Any) -> str:
        """The hub's name of what the model does."""
        return self.TASK

    @abstractmethod
    def facts(
        self, experiment: Any, model: Path, predictions: Path, scores: Mapping[str, float]
    ) -> dict[str, Any]:
        """What only this template needs, from the folders of the model and its predictions.

        Raises WxbError if a file is missing.
        """


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
