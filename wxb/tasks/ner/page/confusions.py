"""The most frequent confusions of a system: gold type, predicted type, and mentions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from wxb.tasks.ner.metrics import PredictionRow
from wxb.tasks.ner.metrics.outcomes import Finding, Outcome, compare

COUNT = 10  # confusions of a system
EXAMPLES = 3  # of a confusion, each with other mentions
CONTEXT = 24  # characters on either side of the mentions of an example
MAX_MENTION = 60  # characters; the rest is cut off


class Mentions(NamedTuple):
    """The gold and the predicted mention of an error, None without one, and the text around."""

    gold: str | None
    predicted: str | None
    context: str


class Confusion(NamedTuple):
    """Errors of one kind and the same two types, which are None if missed or spurious."""

    outcome: Outcome
    gold: str | None
    predicted: str | None
    total: int
    examples: list[Mentions]


def confusions(rows: Sequence[PredictionRow], count: int = COUNT) -> list[Confusion]:
    """The `count` most frequent confusions, most frequent first, with examples in their order."""
    mentions = defaultdict(list)
    for row in rows:
        for finding in compare(row.gold, row.predicted):
            if finding.outcome != Outcome.CORRECT:
                gold, predicted = (span and span.type for span in finding[1:])
                key = finding.outcome, gold, predicted
                mentions[key].append(_mentions(row.input, finding))
    ranked = sorted(mentions, key=lambda key: (-len(mentions[key]), *map(str, key)))
    return [
        Confusion(*key, len(mentions[key]), _different(mentions[key])) for key in ranked[:count]
    ]


def _different(mentions: Sequence[Mentions]) -> list[Mentions]:
    """The first examples of different mentions."""
    return list({example[:2]: example for example in reversed(mentions)}.values())[::-1][:EXAMPLES]


def _mentions(text: str, finding: Finding) -> Mentions:
    spans = [span for span in finding[1:] if span is not None]
    start = max(0, min(span.start for span in spans) - CONTEXT)
    end = min(len(text), max(span.end for span in spans) + CONTEXT)
    before, after = "…" * (start > 0), "…" * (end < len(text))
    gold, predicted = (
        None if span is None else _shortened(text[span.start : span.end]) for span in finding[1:]
    )
    return Mentions(gold, predicted, f"{before}{text[start:end]}{after}")


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_MENTION else f"{text[: MAX_MENTION - 1]}…"
