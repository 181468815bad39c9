"""What pages of studies tell of named entities: types, kinds of errors, examples, published F1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.formatting import listed, origin, rounded
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.reporting.charts.scores import headline
from wxb.tasks.ner.metrics.outcomes import Outcome
from wxb.tasks.ner.page import published
from wxb.tasks.ner.page.examples import examples

ENOUGH = 30  # gold spans, for the F1 of one type to be told
KINDS = {
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
    """F1 of one entity type by system; None where a side knows no such type."""

    kind: str
    support: int | None  # our gold spans, the same for every experiment
    ours: list[float | None]
    published_support: str  # a number, or two where the published systems differ
    published: list[float | None]


class Page(parts.Page):
    """Types, errors with examples, published F1."""

    RULE = "A span counts when its start, end and type are all right."
    WATCHED = (
        "A tagger is watched by the F1 of spans of tokens, before its threshold is chosen; a system"
        " that writes answers by its accuracy on their tokens. Neither is the F1 of the test."
    )
    USABLE = 0.5  # F1, below which nobody would use a recogniser
    PUBLISHED: ClassVar = {system.name: system.f1 for system in published.SYSTEMS}

    def failures(self, system: Mapping[str, Any]) -> str:
        """The types that a system finds worst, and its most frequent kind of error."""
        return " ".join([*_weakest(system), *_commonest(system)])

    def parts(self, study: Study) -> list[Part]:
        """Scores by type, errors with examples, and published figures."""
        systems = study.comparison["systems"]
        shown = {"systems": systems, "chips": figures.chips(systems)}
        rows = {name: system["errors"] for name, system in systems.items()}
        errors = {"errors": figures.stacked(rows, ERRORS, title="spans")}
        types_html = render(
            __package__,
            "types.html",
            **shown,
            headline=headline(study.comparison),
            types=types(study.comparison),
            support=support_of(study.comparison),
            published=published,
        )
        mistakes_html = render(
            __package__,
            "mistakes.html",
            errors,
            **shown,
            outcomes=OUTCOMES,
            errors=ERRORS,
            examples={name: examples(study.judged[name]) for name in systems},
        )
        experiments = [study.params.experiments[name] for name in systems]
        published_html = render(
            __package__,
            "published.html",
            published=published,
            comparison=study.comparison,
            systems=systems,
            origin=origin(study.params.corpora[experiments[0].corpus]),
            backbones={e.backbone: study.params.backbones[e.backbone] for e in experiments},
        )
        return [
            Part("types", "Types", "noise", types_html, {}),
            Part("mistakes", "Errors", "noise", mistakes_html, errors),
            Part("published", "Published figures", "training", published_html, {}),
        ]


def _weakest(system: Mapping[str, Any]) -> list[str]:
    """The two types with the lowest F1, of those with enough gold spans to say so."""
    rows = {kind: row for kind, row in system["by_type"].items() if row["support"] >= ENOUGH}
    scores = [
        f"{kind} (F1 {rounded(rows[kind]['f1'])} on {rows[kind]['support']:,} gold spans)"
        for kind in sorted(rows, key=lambda kind: (rows[kind]["f1"], kind))[:2]
    ]
    told = f"Of the types with {ENOUGH} gold spans or more, it finds {listed(scores)} worst."
    return [told] if scores else []


def _commonest(system: Mapping[str, Any]) -> list[str]:
    """The most frequent kind of error."""
    errors = {kind: system["errors"][kind] for kind in KINDS}
    kind = max(errors, key=lambda kind: errors[kind])
    total = sum(errors.values())
    return (
        [f"Its commonest error is {KINDS[kind]}: {errors[kind]:,} of {total:,}."] if total else []
    )


def types(comparison: Mapping[str, Any]) -> list[TypeRow]:
    """A row for each type of ours, most gold spans first, then those only others published."""
    ours = {name: system["by_type"] for name, system in comparison["systems"].items()}
    theirs = published.by_type()
    support = support_of(comparison)
    # A type that was only ever predicted, never gold, has no F1 to speak of.
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


def support_of(comparison: Mapping[str, Any]) -> dict[str, int]:
    """Gold spans by type, most first; every system judged the same ones."""
    system = next(iter(comparison["systems"].values()))
    rows = {kind: row["support"] for kind, row in system["by_type"].items() if row["support"]}
    return dict(sorted(rows.items(), key=lambda row: (-row[1], row[0])))


def _range(numbers: list[int]) -> str:
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
