"""From predicted spans to edits: which spans are masked, and their replacements."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from wxb import WxbError, progress_callback
from wxb.masking.edits import Edit, apply_edits, new_ranges
from wxb.masking.operators import DEFAULT, Keep, Number, Operators
from wxb.masking.placeholders import LITERAL, Placeholders
from wxb.masking.rules import find_values


@dataclass
class Report:
    """Counts of documents and spans, without any values."""

    experiment: str
    skipped: int = 0  # unreadable files and subfolders
    documents: int = 0
    characters: int = 0
    masked: Counter[str] = field(default_factory=Counter)  # spans, by type
    kept: Counter[str] = field(default_factory=Counter)  # by --allow or the operator keep
    escaped: int = 0  # placeholders of the mapping that were in the texts
    left: Counter[str] | None = None  # spans in the masked texts, by type; None without verify
    documents_left: int = 0  # with such spans

    def to_json(self) -> dict[str, object]:
        """The report as JSON values."""
        content: dict[str, object] = {
            "experiment": self.experiment,
            "skipped": self.skipped,
            "documents": self.documents,
            "characters": self.characters,
            "masked": dict(sorted(self.masked.items())),
            "kept": dict(sorted(self.kept.items())),
            "escaped": self.escaped,
        }
        if self.left is not None:
            content["left"] = dict(sorted(self.left.items()))
            content["documents_left"] = self.documents_left
        return content


class Masker:
    """Finds spans in texts and replaces them.

    `recognizer`: what `wxb.load` returns for an experiment that predicts spans. It has `types` and
    a `threshold`, and predicts sorted, disjoint (span, score) pairs for each text. `only`: the
    types to mask (None: all). `allowed`: values that are kept. Placeholders are numbered by
    `mapping`, or without one in each text from 1.
    """

    only: frozenset[str] | None = None
    allowed: frozenset[str] = frozenset()

    def __init__(
        self, recognizer: Any, operators: Operators, mapping: Placeholders | None = None
    ) -> None:
        self.recognizer, self.operators, self.mapping = recognizer, operators, mapping

    def edits(self, texts: Sequence[str], report: Report) -> list[list[Edit]]:
        """The edits of each text; adds them to the counts of the report."""
        return [
            self._edits(text, spans, report)
            for text, spans in zip(texts, self._spans(texts), strict=True)
        ]

    def verify(self, texts: Sequence[str], edits: Sequence[list[Edit]], report: Report) -> None:
        """Predict on the masked texts, and add spans outside of replacements to the report.

        Values that rules find are added too, unless the model marks them or only some types are
        masked.
        """
        masked = [apply_edits(text, row) for text, row in zip(texts, edits, strict=True)]
        report.left = report.left if report.left is not None else Counter()
        for text, scored, row in zip(masked, self._spans(masked), edits, strict=True):
            ranges, spans = new_ranges(row), [span for span, _ in scored]
            if self.only is None:
                spans += [
                    value
                    for value in find_values(text)
                    if not any(value.start < s.end and s.start < value.end for s in spans)
                ]
            left = [
                span.type
                for span in spans
                if not self._is_kept(text, span.start, span.end, span.type)
                and _is_outside(text, span.start, span.end, ranges)
            ]
            report.left.update(left)
            report.documents_left += bool(left)

    def _spans(self, texts: Sequence[str]) -> list[list[Any]]:
        """The spans of the types to mask in each text, adjacent ones of one type merged.

        Long predictions show a second progress bar.
        """
        bar = tqdm(desc="find", unit="batch", disable=None, file=sys.stderr, leave=False, delay=2)

        def follow(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            with bar, progress_callback(follow):
                rows = self.recognizer.predict(texts)
        except Exception as error:
            # The error and its traceback may quote a text.
            raise WxbError(
                f"the model fails on one of {len(texts)} documents ({type(error).__name__}); for"
                " the reason, pass them to wxb.load(...).predict"
            ) from None
        return [
            _merge_adjacent(
                scored for scored in row if self.only is None or scored.span.type in self.only
            )
            for row in rows
        ]

    def _edits(self, text: str, spans: Sequence[Any], report: Report) -> list[Edit]:
        masked = []
        for span, score in spans:
            is_kept = self._is_kept(text, span.start, span.end, span.type)
            (report.kept if is_kept else report.masked)[span.type] += 1
            if not is_kept:
                masked.append(Edit(span.start, span.end, "", span.type, score))
        placeholders = Placeholders() if self.mapping is None else self.mapping
        escapes = placeholders.escape(text, masked)
        report.escaped += len(escapes)
        report.documents += 1
        report.characters += len(text)
        edits = [
            e._replace(new=self._replacement(text[e.start : e.end], e.type, placeholders))
            for e in masked
        ]
        return sorted([*edits, *escapes]) if escapes else edits

    def _replacement(self, value: str, type_: str | None, placeholders: Placeholders) -> str:
        type_ = type_ or LITERAL
        operator = self._operator(type_)
        if isinstance(operator, Number):
            return placeholders.placeholder(type_, value)
        return str(operator(value, type_))

    def _is_kept(self, text: str, start: int, end: int, type_: str) -> bool:
        return isinstance(self._operator(type_), Keep) or text[start:end] in self.allowed

    def _operator(self, type_: str) -> Any:
        return self.operators.get(type_, self.operators[DEFAULT])


def _merge_adjacent(row: Iterable[Any]) -> list[Any]:
    """Scored spans, where adjacent ones of one type are merged with the lowest score."""
    merged: list[Any] = []
    for scored in row:
        span = scored.span
        last = merged[-1] if merged else None
        if last and (last.span.end, last.span.type) == (span.start, span.type):
            both = last.span._replace(end=span.end)
            merged[-1] = last._replace(span=both, score=min(last.score, scored.score))
        else:
            merged.append(scored)
    return merged


def _is_outside(text: str, start: int, end: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether `start:end` has letters or digits outside of sorted ranges."""
    reached = start
    for first, last in ranges:
        if first >= end or any(map(str.isalnum, text[reached:first])):
            break
        reached = max(reached, last)
    return any(map(str.isalnum, text[reached:end]))
