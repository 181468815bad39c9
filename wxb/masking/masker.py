"""From predicted spans to edits: which spans are masked, and their replacements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from wxb import WxbError, progress_callback
from wxb.core.errors import choices
from wxb.masking.operators import DEFAULT, Keep, Operation, read_operators
from wxb.masking.placeholders import Edit, Placeholders, apply_edits
from wxb.masking.rules import find_values

DENIED = "DENIED"  # the type of values that --deny finds
Range = tuple[int, int, str]  # of code points, with a type

_numbering = Lock()  # threads may share placeholders


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
        masked = map(apply_edits, strings, self.edits(strings))
        return [next(masked) if isinstance(value, str) else value for value in values]

    def edits(self, texts: Sequence[str]) -> list[list[Edit]]:
        """The edits of each text."""
        try:
            with progress_callback(lambda done, total: None):
                rows = self.recognizer.candidates(texts, caption="mask")
        except Exception as error:
            # The error and its traceback may quote a text.
            raise WxbError(
                f"the model fails on one of {len(texts)} documents ({type(error).__name__}); for"
                " the reason, pass them to wxb.load(...).predict"
            ) from None
        return [self._edits(text, row) for text, row in zip(texts, rows, strict=True)]

    def _edits(self, text: str, row: Iterable[Any]) -> list[Edit]:
        spans = [span for span, score in row if score >= self.threshold and self._has(text, span)]
        if self.denied:
            spans += [(*match.span(), DENIED) for match in self.denied.finditer(text)]
        masked = _merge(spans)
        with _numbering:
            edits = self.mapping.escape(text, masked)
            for start, end, type_ in masked:
                new = self._operator(type_)(text[start:end], type_, self.mapping)
                edits.append(Edit(start, end, new))
        return sorted(edits)

    def _has(self, text: str, span: Range) -> bool:
        """Whether a span is of a type to mask, and not allowed."""
        start, end, type_ = span
        is_kept = isinstance(self._operator(type_), Keep)
        return type_ in self.only and not is_kept and not self._is_allowed(text[start:end])

    def unmasked_values(self, text: str, edits: Iterable[Edit]) -> list[str]:
        """The kinds of values that rules find and that have letters or digits outside of edits."""
        covered = {index for start, end, _ in edits for index in range(start, end)}
        return [
            kind
            for start, end, kind in find_values(text)
            if not self._is_allowed(text[start:end])
            and any(text[i].isalnum() and i not in covered for i in range(start, end))
        ]

    def _operator(self, type_: str) -> Operation:
        return self.operators.get(type_, self.operators[DEFAULT])

    def _is_allowed(self, value: str) -> bool:
        return bool(self.allowed and self.allowed.fullmatch(value))


def _merge(spans: Iterable[Range]) -> list[Range]:
    """Sorted disjoint spans: overlapping ones, and adjacent ones of a type, become one.

    It has the type of the first.
    """
    merged: list[Range] = []
    for start, end, type_ in sorted(spans, key=lambda span: span[0]):
        last = merged[-1] if merged else None
        if last and (start < last[1] or (start, type_) == last[1:]):
            merged[-1] = (last[0], max(end, last[1]), last[2])
        elif end > start:
            merged.append((start, end, type_))
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
