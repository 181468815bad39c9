"""The parts of a classification page: scores by class, and confusions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.tasks.classification.page import worth

MAX_TABLE = 12  # classes; with more, the confusions are a chart instead of a table


class Page(parts.Page):
    """The page of a classification study."""

    RULE = "A prediction is correct if its class is the gold class."
    VALIDATION_NOTE = (
        "The curves show accuracy on the validation records. For logistic regression each point is"
        " one regularization strength, and a step is an iteration of its solver."
    )

    def failures(self, system: Mapping[str, Any]) -> str:
        """The class with the lowest recall, and the most frequent confusion."""
        sentences = []
        by_class = {name: row for name, row in system["by_class"].items() if row["support"]}
        if len(by_class) > 1:
            worst = min(by_class, key=lambda name: (by_class[name]["recall"], name))
            row = by_class[worst]
            sentences.append(
                f"Recall is lowest for {worst}: {row['recall']:.1%} of {row['support']:,} records."
            )
        errors = [
            (count, gold, predicted)
            for gold, row in system["confusions"].items()
            for predicted, count in row.items()
            if count and predicted != gold
        ]
        if not errors:
            return " ".join([*sentences, "It makes no errors."])
        count, gold, predicted = min(errors, key=lambda error: (-error[0], error[1:]))
        total = sum(count for count, _, _ in errors)
        sentences.append(
            f"The most frequent error is {gold} classified as {predicted}: {count:,} of {total:,}."
        )
        return " ".join(sentences)

    def parts(self, study: Study) -> list[Part]:
        """Classes with confusions, and the answer of `worth.sentence`."""
        systems = study.comparison["systems"]
        context = {"systems": systems, "chips": study.chips}
        classes = [*next(iter(systems.values()))["by_class"]]
        confusions = {}
        if len(classes) > MAX_TABLE:
            confusions = {f"confusions-{name}": _confusions(systems[name]) for name in systems}
        shown = {"classes": classes, "show_charts": bool(confusions)}
        classes_html = render(__package__, "classes.html", confusions, **context, **shown)
        return [
            Part("classes", "Classes", "noise", classes_html, confusions),
            Part("worth", "", "lead", worth.sentence(study), {}),
        ]


def _confusions(system: Mapping[str, Any]) -> figures.go.Figure:
    """The share of each predicted class in the records of each gold class."""
    import numpy as np

    names = [*system["confusions"]]
    counts = np.array([[*system["confusions"][gold].values()] for gold in names], float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return figures.matrix(shares, names, names, names=("gold", "predicted"), height=420)
