"""Sections of classification pages: scores by class, and confusions."""

from collections.abc import Iterator
from typing import Any

from wxb.reporting import parts
from wxb.reporting.parts import Example, Fold, Section, Study, by_category, confusion_table

ERRORS = 6  # texts of each system
MAX_CHARACTERS = 600  # of a text that is shown


class Page(parts.Page):
    """F1 by class, and confusions with misclassified texts."""

    RULE = "A prediction is correct if its class is the gold class."
    VALIDATION_NOTE = (
        "The curves show accuracy on the validation records. For logistic regression each point is"
        " one regularization strength, and an update is an iteration of its solver."
    )

    def sections(self, study: Study) -> list[Section]:
        """F1 by class, then the confusions of each system with the first texts it gets wrong."""
        classes = by_category("F1 by class", study.systems, "by_class", "f1")
        counts = {name: system["confusions"] for name, system in study.systems.items()}
        return [
            Section("classes", "Classes", classes),
            Section(
                "confusions",
                "Errors",
                [
                    "Rows are gold classes, columns predicted classes; then errors of the test.",
                    *(
                        Fold(name, [confusion_table("gold", counts[name]), *_first_errors(rows)])
                        for name, rows in study.predictions.items()
                    ),
                ],
            ),
        ]


def _first_errors(rows: Any) -> Iterator[Example]:
    """Yield the first ERRORS misclassified texts of any class, up to MAX_CHARACTERS of each."""
    for row in [row for row in rows if row.gold != row.predicted][:ERRORS]:
        predicted = f"{row.predicted} ({row.probabilities[row.predicted]:.2f})"
        text = ("text", row.input[:MAX_CHARACTERS])
        yield Example(row.id, [("gold", row.gold), ("predicted", predicted), text])
