"""Sections of NER pages: F1 by type, and errors with examples."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

import numpy as np

from wxb.reporting import figures, parts
from wxb.reporting.formatting import Table, words
from wxb.reporting.parts import Charts, Example, Fold, Section, Study, by_category, marked
from wxb.tasks.ner.metrics import Finding, Outcome, PredictionRow, findings
from wxb.tasks.ner.record import Span

ERRORS = [*map(Outcome, ("missed", "spurious", "wrong_boundary", "wrong_type", "wrong_both"))]
OUTCOMES = {Outcome.CORRECT: figures.OTHERS, **dict(zip(ERRORS, figures.ERRORS, strict=True))}
RECORDS = 5  # examples of a system: one for each kind of error, if all occur
CONFUSIONS, MENTIONS = 10, 3  # of a system, and examples of each with other mentions
THRESHOLDS = np.linspace(0, 1, 21)
CONTEXT = 24  # characters on either side of the mentions of an example
MAX_MENTION = 60  # characters; the rest is cut off
MAX_GAP = 160  # characters without a span; longer gaps are shortened
GAP_EDGE = 60  # characters kept at either end of a shortened gap

Piece = tuple[str, str, str]  # text, colour and label, as `marked` takes them


class Page(parts.Page):
    """F1 by type, and errors with examples."""

    RULE = "A predicted span is correct if its start, end and type are."
    VALIDATION_NOTE = (
        "Taggers are validated by F1 over spans of tokens, without a threshold; generators by the"
        " accuracy of the tokens of their answers. Neither equals the F1 on test records."
    )

    def sections(self, study: Study) -> list[Section]:
        """F1 by type; errors: counts, precision-recall curves, confusions and marked records."""
        systems = study.systems
        note = (
            "Each gold and each predicted span has one outcome. Wrong type: correct offsets. Wrong"
            " boundary: correct type, with an overlap. Wrong both: an overlap only. Records are"
            " chosen to show each error; most have fewer. Confusions are shares of the gold type."
        )
        outcomes, curves = parts.error_table("Outcomes", systems), precision_recall_curves(study)
        errors = [
            Fold(name, [confusions(rows), *type_matrix(rows), *examples(rows)])
            for name, rows in study.predictions.items()
        ]
        return [
            Section("types", "F1 by type", by_category("F1 by type", systems, "by_type", "f1")),
            Section("mistakes", "Errors", [note, outcomes, *curves, *errors]),
        ]


def confusions(rows: Sequence[PredictionRow]) -> Table:
    """The most frequent errors by gold type, predicted type ("–": none) and kind, with examples."""
    mentions: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in rows:
        for finding in findings(row.gold, row.predicted):
            if finding.outcome != Outcome.CORRECT:
                gold, predicted = (span.type if span else "–" for span in finding[1:])
                mentions[gold, predicted, words(finding.outcome)].append(_mention(row, finding))
    ranked = sorted(mentions, key=lambda key: (-len(mentions[key]), key))
    return Table(
        "Most frequent confusions",
        ["gold", "predicted", "error", "count", "examples"],
        [
            [*key, f"{len(mentions[key]):,}", "\n".join([*dict.fromkeys(mentions[key])][:MENTIONS])]
            for key in ranked[:CONFUSIONS]
        ],
    )


def type_matrix(rows: Sequence[PredictionRow]) -> list[Charts]:  # empty without spans
    """A chart of predicted types by gold type (rows), as shares of a row; "–" is no span."""
    counts_by_pair = Counter(
        tuple(span.type if span else "–" for span in finding[1:])
        for row in rows
        for finding in findings(row.gold, row.predicted)
    )
    types = sorted({t for pair in counts_by_pair for t in pair}, key=lambda t: (t == "–", t))
    if not types:
        return []
    counts = np.array([[counts_by_pair[gold, predicted] for predicted in types] for gold in types])
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    chart = figures.matrix(shares, types, types, names=("gold", "predicted"))
    return [Charts({"Confusions": chart})]


def precision_recall_curves(study: Study) -> list[Charts]:  # also omits systems of one point
    """At most one chart, a point per threshold; omits systems below half of the highest recall."""
    lines = []
    for series, (name, rows) in enumerate(study.predictions.items()):
        scores = np.array([score for row in rows for score in row.scores])
        correct = np.array([span in row.gold for row in rows for span in row.predicted], bool)
        gold = sum(len(row.gold) for row in rows)
        kept = {f"threshold {limit:.2f}": correct[scores >= limit] for limit in THRESHOLDS}
        points = {(k.sum() / gold, k.mean()): note for note, k in kept.items() if k.any()}
        if len(points) > 1:
            lines.append(figures.Line(name, series, [*points], notes=[*points.values()]))
    half = max([0.0, *(recall for line in lines for recall, _ in line.points)]) / 2
    lines = [line for line in lines if max(line.points)[0] >= half]
    chart = figures.curves(lines, x_title="recall", y_title="precision")
    chart.update_xaxes(autorangeoptions_clipmin=np.floor(10 * half) / 10, rangemode="normal")
    chart.update_yaxes(rangemode="normal")
    legend = {line.name: study.chips[line.name] for line in lines}
    return [Charts({"Precision against recall, by threshold": chart}, legend)] if lines else []


def _mention(row: PredictionRow, finding: Finding) -> str:
    """Format an error as `gold → predicted in text around both`; long mentions are cut."""
    spans = [span for span in finding[1:] if span is not None]
    start = max(0, min(span.start for span in spans) - CONTEXT)
    end = min(len(row.input), max(span.end for span in spans) + CONTEXT)
    gold, predicted = (
        f"“{row.input[span.start : span.end][:MAX_MENTION]}”" if span else "–"
        for span in finding[1:]
    )
    return f"{gold} → {predicted} in “{row.input[start:end]}”"


def examples(rows: Sequence[PredictionRow], count: int = RECORDS) -> Iterator[Example]:
    """At most `count` records: one for each kind of error in turn, then any others."""
    by_row = [findings(row.gold, row.predicted) for row in rows]
    indices_by_error = [
        [index for index, row in enumerate(by_row) if any(f.outcome == kind for f in row)]
        for kind in ERRORS
    ]
    in_turn = [i for turn in zip_longest(*indices_by_error) for i in turn if i is not None]
    for index in list(dict.fromkeys([*in_turn, *range(len(rows))]))[:count]:
        gold = [(f.gold, f.outcome) for f in by_row[index] if f.gold]
        predicted = [(f.predicted, f.outcome) for f in by_row[index] if f.predicted]
        sides = {"gold": gold, "predicted": predicted}
        text = rows[index].input
        lines = [(side, marked(pieces(text, spans))) for side, spans in sides.items()]
        yield Example(rows[index].id, lines)


def pieces(text: str, spans: Sequence[tuple[Span, Outcome]]) -> list[Piece]:
    """Split a text at the edges of its spans, which may overlap, and shorten long gaps.

    A piece has the colour of its first span, and the types and errors of those that end there.
    """
    edges = sorted({0, len(text), *(edge for span, _ in spans for edge in span[:2])})
    parts = []
    for start, end in pairwise(edges):
        over = [(span, kind) for span, kind in spans if span.start <= start and end <= span.end]
        labels = [
            span.type if kind == Outcome.CORRECT else f"{span.type} · {words(kind)}"
            for span, kind in over
            if span.end == end
        ]
        part = text[start:end]
        if not over and len(part) > MAX_GAP:
            part = f"{part[:GAP_EDGE]} … {part[-GAP_EDGE:]}"
        parts.append((part, OUTCOMES[over[0][1]] if over else "", ", ".join(labels)))
    return parts
