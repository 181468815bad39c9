"""Sections of NER pages: F1 by type, errors with examples, published scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.baselines import trained
from wxb.reporting.charts.formatting import listed, origin, rounded
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.reporting.charts.scores import headline
from wxb.tasks.ner.metrics.outcomes import Outcome
from wxb.tasks.ner.page import published
from wxb.tasks.ner.page.confusions import confusions
from wxb.tasks.ner.page.examples import examples

MIN_SUPPORT = 30  # gold spans of a type, to name it as one of the worst
ERROR_NAMES = {
    Outcome.MISSED: "a missed span",
    Outcome.SPURIOUS: "a spurious span",
    Outcome.WRONG_TYPE: "a wrong type",
    Outcome.WRONG_BOUNDARY: "a wrong boundary",
    Outcome.WRONG_BOTH: "a wrong type and boundary",
}
OUTCOMES = {
    Outcome.CORRECT: "#2a9470",
    Outcome.MISSED: "#cf4f63",
    Outcome.SPURIOUS: "#9a63c4",
    Outcome.WRONG_BOUNDARY: "#a8841f",
    Outcome.WRONG_TYPE: "#2f7ebc",
    Outcome.WRONG_BOTH: "#7d7f87",
}
ERRORS: dict[str, str] = {
    outcome: fill for outcome, fill in OUTCOMES.items() if outcome != Outcome.CORRECT
}


class TypeRow(NamedTuple):
    """A row of the table of types: F1 by system, None if the system has no such type."""

    kind: str
    support: int | None  # our gold spans, the same for every experiment
    ours: list[float | None]
    published_support: str  # a number, or a range if the published systems differ
    published: list[float | None]


class Page(parts.Page):
    """F1 by type, errors with examples, published scores."""

    RULE = "A predicted span is correct if its start, end and type are."
    VALIDATION_NOTE = (
        "Taggers are validated by F1 over spans of tokens, without a threshold; generators by the"
        " accuracy of the tokens of their answers. Neither equals the F1 on test records."
    )
    USABLE_SCORE = 0.5  # F1
    PUBLISHED_SCORES: ClassVar = {system.name: system.f1 for system in published.SYSTEMS}

    def answer(self, row: Any) -> str:
        """The gold spans of a test record with their types."""
        spans = [f"{row.input[span.start : span.end]} ({span.type})" for span in row.gold]
        return ", ".join(spans) or "no span"

    def failures(self, system: Mapping[str, Any]) -> str:
        """The types with the lowest F1, and the most frequent kind of error."""
        return " ".join([*_weakest_types(system), *_most_frequent_error(system)])

    def parts(self, study: Study) -> list[Part]:
        """The sections on F1 by type, errors with examples, and published scores."""
        systems = study.comparison["systems"]
        context = {"systems": systems, "chips": study.chips}
        rows = {name: system["errors"] for name, system in systems.items()}
        errors = {"errors": figures.stacked(rows, ERRORS, x_title="spans")}
        types_html = render(
            __package__,
            "types.html",
            **context,
            headline=headline(study.comparison),
            types=type_rows(study.comparison),
            support=support_by_type(study.comparison),
            published=published,
        )
        mistakes_html = render(
            __package__,
            "mistakes.html",
            errors,
            **context,
            outcomes=OUTCOMES,
            errors=ERRORS,
            confusions={name: confusions(study.predictions[name]) for name in systems},
            examples={name: examples(study.predictions[name]) for name in systems},
        )
        names = trained(study.comparison)
        experiments = [study.params.experiments[name] for name in names]
        backbones = {e.backbone: study.params.backbones[e.backbone] for e in experiments}
        published_html = render(
            __package__,
            "published.html",
            published=published,
            comparison=study.comparison,
            systems={name: systems[name] for name in names},
            origin=origin(study.params.corpora[experiments[0].corpus]),
            backbones={
                name: block for name, block in backbones.items() if not block.is_tokenizer_only
            },
        )
        return [
            Part("types", "Types", "noise", types_html, {}),
            Part("mistakes", "Errors", "noise", mistakes_html, errors),
            Part("published", "Published scores", "training", published_html, {}),
        ]


def _weakest_types(system: Mapping[str, Any]) -> list[str]:
    """A sentence on the two types with the lowest F1; none without MIN_SUPPORT gold spans."""
    rows = {kind: row for kind, row in system["by_type"].items() if row["support"] >= MIN_SUPPORT}
    scores = [
        f"{kind} (F1 {rounded(rows[kind]['f1'])} on {rows[kind]['support']:,} gold spans)"
        for kind in sorted(rows, key=lambda kind: (rows[kind]["f1"], kind))[:2]
    ]
    if not scores:
        return []
    return [
        f"Of the types with at least {MIN_SUPPORT} gold spans, F1 is lowest for {listed(scores)}."
    ]


def _most_frequent_error(system: Mapping[str, Any]) -> list[str]:
    """A sentence on the most frequent kind of error; none without errors."""
    errors = {kind: system["errors"][kind] for kind in ERROR_NAMES}
    kind = max(errors, key=lambda kind: errors[kind])
    total = sum(errors.values())
    if not total:
        return []
    return [f"The most frequent error is {ERROR_NAMES[kind]}: {errors[kind]:,} of {total:,}."]


def type_rows(comparison: Mapping[str, Any]) -> list[TypeRow]:
    """The rows of the table of types: ours by number of gold spans, then only published ones."""
    ours = {name: system["by_type"] for name, system in comparison["systems"].items()}
    theirs = published.by_type()
    support = support_by_type(comparison)
    # Types without gold spans are left out, even if they are predicted.
    others = {
        kind: max(row[kind].support for row in theirs.values() if kind in row)
        for kind in dict.fromkeys(kind for rows in theirs.values() for kind in rows)
        if kind not in support
    }
    return [
        TypeRow(
            kind,
            support.get(kind),
            [rows[kind]["f1"] if kind in support else None for rows in ours.values()],
            _range([rows[kind].support for rows in theirs.values() if kind in rows]),
            [rows[kind].f1 if kind in rows else None for rows in theirs.values()],
        )
        for kind in [*support, *sorted(others, key=lambda kind: (-others[kind], kind))]
    ]


def support_by_type(comparison: Mapping[str, Any]) -> dict[str, int]:
    """The number of gold spans by type, most first; the same for all systems."""
    system = next(iter(comparison["systems"].values()))
    rows = {kind: row["support"] for kind, row in system["by_type"].items() if row["support"]}
    return dict(sorted(rows.items(), key=lambda row: (-row[1], row[0])))


def _range(numbers: list[int]) -> str:
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
