"""From the spans of a text to its edits: which of them, and what takes their place."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from wxb import WxbError, followed
from wxb.masking.edits import Edit, applied, places
from wxb.masking.operators import DEFAULT, Keep, Number, Operators
from wxb.masking.placeholders import LITERAL, Placeholders


@dataclass
class Report:
    """Counts of what was done, and nothing of what was read."""

    experiment: str
    skipped: int = 0  # files and subfolders that cannot be read
    documents: int = 0
    characters: int = 0
    masked: Counter[str] = field(default_factory=Counter)  # spans, by type
    kept: Counter[str] = field(default_factory=Counter)  # by --allow or the operator keep
    escaped: int = 0  # placeholders of the mapping that the texts held already
    left: Counter[str] | None = None  # what is found in the masked texts, where that was asked
    documents_left: int = 0

    def told(self) -> dict[str, object]:
        """As JSON."""
        told: dict[str, object] = {
            "experiment": self.experiment,
            "skipped": self.skipped,
            "documents": self.documents,
            "characters": self.characters,
            "masked": dict(sorted(self.masked.items())),
            "kept": dict(sorted(self.kept.items())),
            "escaped": self.escaped,
        }
        if self.left is not None:
            told["left"] = dict(sorted(self.left.items()))
            told["documents_left"] = self.documents_left
        return told


class Masker:
    """Finds entities and says what takes their place.

    `recognizer` is what `wxb.load` returns for an experiment that finds spans: it has their
    `types`, a `threshold`, and predicts (span, score) pairs for each text, sorted and disjoint.
    `only` are the types to mask (None: all), `allowed` the values to leave. Numbers of placeholders
    are those of `mapping`; without one, each text has its own.
    """

    only: frozenset[str] | None = None
    allowed: frozenset[str] = frozenset()

    def __init__(
        self, recognizer: Any, operators: Operators, mapping: Placeholders | None = None
    ) -> None:
        self.recognizer, self.operators, self.mapping = recognizer, operators, mapping

    def edits(self, texts: Sequence[str], report: Report) -> list[list[Edit]]:
        """The edits of each text; the report counts them."""
        found = self._spans(texts)
        return [self._edits(text, row, report) for text, row in zip(texts, found, strict=True)]

    def verify(self, texts: Sequence[str], done: Sequence[list[Edit]], report: Report) -> None:
        """Count what would be masked in the masked texts, unless it is of what was put there."""
        masked = [applied(text, edits) for text, edits in zip(texts, done, strict=True)]
        report.left = report.left if report.left is not None else Counter()
        for text, row, edits in zip(masked, self._spans(masked), done, strict=True):
            ours = places(edits)
            left = [
                span.type
                for span, _ in row
                if not self._keeps(text, span.start, span.end, span.type)
                and _outside(text, span.start, span.end, ours)
            ]
            report.left.update(left)
            report.documents_left += bool(left)

    def _spans(self, texts: Sequence[str]) -> list[list[Any]]:
        """The spans of the types that are asked for; those of one type that touch are one.

        What takes long shows a bar of its own, below that of the documents.
        """
        bar = tqdm(desc="find", unit="batch", disable=None, file=sys.stderr, leave=False, delay=2)

        def follow(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            with bar, followed(follow):
                found = self.recognizer.predict(texts)
        except Exception as error:
            # The error may quote a text. Not even its traceback may be shown.
            raise WxbError(
                f"the model fails on one of {len(texts)} documents ({type(error).__name__}); to"
                " see why, give them to wxb.load(...).predict"
            ) from None
        return [
            _joined(one for one in row if self.only is None or one.span.type in self.only)
            for row in found
        ]

    def _edits(self, text: str, row: Sequence[Any], report: Report) -> list[Edit]:
        chosen = []
        for span, score in row:
            keeps = self._keeps(text, span.start, span.end, span.type)
            (report.kept if keeps else report.masked)[span.type] += 1
            if not keeps:
                chosen.append(Edit(span.start, span.end, "", span.type, score))
        numbers = Placeholders() if self.mapping is None else self.mapping
        escaped = numbers.escaped(text, chosen)
        report.escaped += len(escaped)
        report.documents += 1
        report.characters += len(text)
        new = [e._replace(new=self._new(text[e.start : e.end], e.type, numbers)) for e in chosen]
        return sorted([*new, *escaped]) if escaped else new

    def _new(self, value: str, type_: str | None, numbers: Placeholders) -> str:
        type_ = type_ or LITERAL
        operator = self._operator(type_)
        new: str = (
            numbers.of(type_, value) if isinstance(operator, Number) else operator(value, type_)
        )
        return new

    def _keeps(self, text: str, start: int, end: int, type_: str) -> bool:
        return isinstance(self._operator(type_), Keep) or text[start:end] in self.allowed

    def _operator(self, type_: str) -> Any:
        return self.operators.get(type_, self.operators[DEFAULT])


def _joined(row: Iterable[Any]) -> list[Any]:
    """Spans of one type that touch as one, as sure as the least sure of them."""
    joined: list[Any] = []
    for scored in row:
        span = scored.span
        last = joined[-1] if joined else None
        if last and (last.span.end, last.span.type) == (span.start, span.type):
            whole = last.span._replace(end=span.end)
            joined[-1] = last._replace(span=whole, score=min(last.score, scored.score))
        else:
            joined.append(scored)
    return joined


def _outside(text: str, start: int, end: int, ours: Sequence[tuple[int, int]]) -> bool:
    """Whether `start:end` holds letters or digits beside those in our (sorted) places."""
    reached = start
    for first, last in ours:
        if first >= end or any(map(str.isalnum, text[reached:first])):
            break
        reached = max(reached, last)
    return any(map(str.isalnum, text[reached:end]))
