"""The base class of a task's model cards, and the table of scores that several of them print."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from wxb.core.errors import require_output


class Card:
    """The template, metadata and scores of a task's model cards; the defaults fit any task."""

    TEMPLATE: ClassVar[str] = "card.md"  # a path in wxb/tasks: Markdown in Jinja
    TASK: ClassVar[str] = "other"  # the hub's name of the task
    TAGS: ClassVar[Sequence[str]] = ()  # further tags on the hub
    SCORES: ClassVar[Sequence[str]] = ()  # the keys of the scores in the metadata
    PURPOSE: ClassVar[str] = "A trained model."  # what it does, in a sentence
    EXAMPLE: ClassVar[str] = "..."  # an input of `predict`, as Python

    def pipeline(self, experiment: Any) -> str:
        """The hub's pipeline for the model; by default TASK."""
        return self.TASK

    def facts(
        self, experiment: Any, model: Path, predictions: Path, scores: Mapping[str, float]
    ) -> dict[str, Any]:
        """Further variables of TEMPLATE, from the folders of the model and its predictions.

        Raises WxbError if a file is missing.
        """
        return {}


def rows_by_f1(table: Path, name: str) -> list[dict[str, str]]:
    """The rows of a CSV file that `evaluate` wrote.

    The lowest F1 comes first; equal ones are sorted by the column `name`. Raises WxbError if the
    file does not exist.
    """
    require_output(table, f"evaluate@{table.parent.name}")
    with table.open(encoding="utf-8", newline="") as file:
        return sorted(csv.DictReader(file), key=lambda row: (float(row["f1"]), row[name]))
