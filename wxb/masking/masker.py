"""From predicted spans to edits: which spans are masked, and their replacements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from wxb import WxbError, progress_callback
from wxb.core.errors import choices
from wxb.masking.operators import DEFAULT, Keep, Operation, read_operators
from wxb.masking.placeholders import Edit, Placeholders, apply_edits
from wxb.masking.rules import find_values

DENIED = "DENIED"  # the type of values that --deny finds

_numbering = Lock()  # threads may share placeholders


@dataclass
class Report:
    """Counts of documents and spans, without any values."""

    experiment: str = ""
    skipped: int = 0  # unreadable files
    documents: int = 0
    characters: int = 0
    masked: Counter[str] = field(default_factory=Counter)  # spans, by type
    kept: Counter[str] = field(default_factory=Counter)  # by --allow or the operator keep
    escaped: int = 0  # placeholders of the mapping that were in the texts
    left: Counter[str] | None = None  # values found by rules but not masked; None without --verify
    documents_left: int = 0  # with such values

    def to_json(self) -> dict[str, object]:
        """The report as JSON values."""
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
            if self.left is not None or name not in ("left", "documents_left")
        }


class Masker:
    """Finds spans in texts and replaces them.

    `recognizer`: what `wxb.load` returns for an experiment that predicts spans. It has `types` and
    a `threshold`, and its `candidates` are (span, score) pairs for each text. `operators`: as in
    `read_operators`. `mapping`: numbers the placeholders; by default each masker has its own.
    `threshold`: the lowest score of a masked span; by default the recognizer's. `only`: the types
    to mask; by default all. `allow` and `deny`: values that are never or always masked, as in
    `read_patterns`. Raises WxbError for types that the recognizer lacks.
    """

    def __init__(
        self,
        recognizer: Any,
        operators: str | Mapping[str, Any] = "replace",
        mapping: Placeholders | None = None,
        *,
        threshold: float | None = None,
        only: Iterable[str] = (),
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
    ) -> None:
        self.recognizer, self.operators = recognizer, read_operators(operators)
        self.mapping = Placeholders() if mapping is None else mapping
        self.threshold = recognizer.threshold if threshold is None else threshold
        self.only = {*only} or {*recognizer.types}
        self.allowed, self.denied = read_patterns(allow), read_patterns(deny)
        for types, known in (
            (self.only, recognizer.types),
            (self.operators, [*recognizer.types, DEFAULT, DENIED]),
        ):
            for type_ in sorted({*types} - {*known}):
                raise WxbError(f"the experiment has no type {type_!r}{choices(type_, known)}")

    def mask(self, texts: Iterable[Any]) -> list[Any]:
        """The masked texts, in order. Values that are no texts, such as None, are kept."""
        if isinstance(texts, str):
            raise TypeError("mask: found one text; expected a list of them: mask([text])[0]")
        values = [*texts]
        strings = [value for value in values if isinstance(value, str)]
        masked = map(apply_edits, strings, self.edits(strings, Report()))
        return [next(masked) if isinstance(value, str) else value for value in values]

    def edits(self, texts: Sequence[str], report: Report) -> list[list[Edit]]:
        """The edits of each text; adds them to the counts of the report."""
        try:
            with progress_callback(lambda done, total: None):
                rows = self.recognizer.candidates(texts, label="mask")
        except Exception as error:
            # The error and its traceback may quote a text.
            raise WxbError(
                f"the model fails on one of {len(texts)} documents ({type(error).__name__}); for"
                " the reason, pass them to wxb.load(...).predict"
            ) from None
        return [self._edits(text, row, report) for text, row in zip(texts, rows, strict=True)]

    def _edits(self, text: str, row: Iterable[Any], report: Report) -> list[Edit]:
        kept: list[Edit] = []
        spans: list[Edit] = []
        for (start, end, type_), score in row:
            if score >= self.threshold and type_ in self.only:
                is_kept = isinstance(self._operator(type_), Keep)
                is_kept |= self._is_allowed(text[start:end])
                (kept if is_kept else spans).append(Edit(start, end, "", type_, score))
        if self.denied:
            spans += [Edit(*match.span(), "", DENIED, 1.0) for match in self.denied.finditer(text)]
        masked = _merge(spans)
        report.documents += 1
        report.characters += len(text)
        report.masked.update(str(span.type) for span in masked)
        report.kept.update(str(span.type) for span in kept)
        if report.left is not None:
            left = self._unmasked_values(text, [*masked, *kept])
            report.left.update(left)
            report.documents_left += bool(left)
        with _numbering:
            escapes = self.mapping.escape(text, masked)
            edits = [span._replace(new=self._replacement(text, span)) for span in masked]
        report.escaped += len(escapes)
        return sorted([*edits, *escapes])

    def _unmasked_values(self, text: str, spans: Iterable[Edit]) -> list[str]:
        """The types of values that rules find and that have letters or digits outside of spans."""
        covered = {index for span in spans for index in range(span.start, span.end)}
        return [
            value.type
            for value in find_values(text)
            if not self._is_allowed(text[value.start : value.end])
            and any(text[i].isalnum() and i not in covered for i in range(value.start, value.end))
        ]

    def _replacement(self, text: str, span: Edit) -> str:
        type_ = str(span.type)
        return self._operator(type_)(text[span.start : span.end], type_, self.mapping)

    def _operator(self, type_: str) -> Operation:
        return self.operators.get(type_, self.operators[DEFAULT])

    def _is_allowed(self, value: str) -> bool:
        return bool(self.allowed and self.allowed.fullmatch(value))


def _merge(spans: Iterable[Edit]) -> list[Edit]:
    """Sorted disjoint spans: overlapping ones, and adjacent ones of a type, become one.

    It has the type of the first and the lowest score.
    """
    merged: list[Edit] = []
    for span in sorted(spans, key=lambda span: span.start):
        last = merged[-1] if merged else None
        if last and (span.start, span.type != last.type) < (last.end, True):
            score = min(span.score or 0, last.score or 0)
            merged[-1] = last._replace(end=max(span.end, last.end), score=score)
        elif span.end > span.start:
            merged.append(span)
    return merged


def read_patterns(items: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for values, `/regular expressions/`, and files `@PATH` with one of them per line.

    Values match as whole words. Raises WxbError for an unreadable file or expression.
    """
    lines: list[str] = []
    for item in items:
        try:
            content = Path(item[1:]).read_text("utf-8") if item.startswith("@") else item
        except (OSError, UnicodeDecodeError) as error:
            raise WxbError(f"{item}: expected a text file in UTF-8 ({error})") from None
        lines += filter(None, map(str.strip, content.splitlines()))
    try:
        return re.compile("|".join(map(_pattern, lines))) if lines else None
    except re.error as error:
        raise WxbError(f"no regular expression: {error}; expected values or /.../") from None


def _pattern(line: str) -> str:
    if len(line) > 2 and line[0] == line[-1] == "/":
        return f"(?:{line[1:-1]})"
    # Scripts without spaces have no boundaries.
    first, last = (r"(?a:\b)" if c.isascii() and c.isalnum() else "" for c in (line[0], line[-1]))
    return first + re.escape(line) + last
