"""What pages of studies tell of classes: scores by class, confusions, calibration, what decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.figures import Line
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.tasks.classification.page import worth
from wxb.tasks.classification.page.examples import examples

MANY = 12  # classes; of more the confusions are drawn, not printed


class Page(parts.Page):
    """Classes, confusions, calibration, and which words decide."""

    RULE = "A text counts when its class is right."
    WATCHED = (
        "A model is watched by its accuracy on the validation records. Of logistic regression each"
        " point is one strength of its regularization, and a step an iteration of its solver."
    )

    def failures(self, system: Mapping[str, Any]) -> str:
        """The class that a system finds worst, and its commonest confusion."""
        told = []
        found = {name: row for name, row in system["by_class"].items() if row["support"]}
        if len(found) > 1:
            worst = min(found, key=lambda name: (found[name]["recall"], name))
            told.append(
                f"Of {worst} it finds the least: {found[worst]['recall']:.1%} of"
                f" {found[worst]['support']:,}."
            )
        wrong = [
            (number, gold, name)
            for gold, row in system["confusions"].items()
            for name, number in row.items()
            if number and name != gold
        ]
        if not wrong:
            return " ".join([*told, "It makes no mistake."])
        number, gold, name = min(wrong, key=lambda one: (-one[0], one[1:]))
        total = sum(number for number, _, _ in wrong)
        told.append(f"Its commonest mistake is {gold} taken for {name}: {number:,} of {total:,}.")
        return " ".join(told)

    def parts(self, study: Study) -> list[Part]:
        """Scores by class with confusions, calibration, what decides; and the study's answer."""
        systems = study.comparison["systems"]
        shown = {"systems": systems, "chips": figures.chips(systems)}
        classes = [*next(iter(systems.values()))["by_class"]]
        drawn = {"reliability": _reliability(systems)}
        by_class = {f"confusions-{name}": _confusions(row) for name, row in systems.items()}
        by_class = by_class if len(classes) > MANY else {}
        experiments: Any = study.params.experiments  # of this task, whose encoding says it
        kept = [name for name in systems if experiments[name].encoding.giveaways == "kept"]
        return [
            Part(
                "classes",
                "Classes",
                "noise",
                render(__package__, "classes.html", by_class, **shown, classes=classes, many=MANY),
                by_class,
            ),
            Part(
                "calibration",
                "Calibration",
                "noise",
                render(__package__, "calibration.html", drawn, **shown),
                drawn,
            ),
            Part(
                "evidence",
                "What decides",
                "noise",
                render(
                    __package__,
                    "evidence.html",
                    **shown,
                    kept=kept,
                    further=study.comparison["further"],
                    told=sum(row.evidence is not None for row in next(iter(study.judged.values()))),
                    examples={name: examples(study.judged[name]) for name in systems},
                ),
                {},
            ),
            Part("worth", "", "lead", worth.sentence(study), {}),
        ]


def _reliability(systems: Mapping[str, Any]) -> figures.go.Figure:
    """Accuracy by confidence, and where both are the same."""
    lines = [
        Line(name, number, [(row["confidence"], row["accuracy"]) for row in system["calibration"]])
        for number, (name, system) in enumerate(systems.items())
    ]
    even = Line("as often right as it says", len(lines), [(0, 0.0), (1, 1.0)], dashed=True)
    return figures.curves([*lines, even], title="accuracy", step="confidence")


def _confusions(system: Mapping[str, Any]) -> figures.go.Figure:
    """How often each class is taken for each, of its records."""
    import numpy as np

    names = [*system["confusions"]]
    counts = np.array([[*system["confusions"][gold].values()] for gold in names], float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return figures.matrix(shares, names, names, names=("gold", "predicted"), height=420)
