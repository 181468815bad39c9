"""From predicted spans to edits: which spans are masked, and their replacements."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from threading import Lock
from typing import Any

from wxb import WxbError, progress_callback
from wxb.core.errors import choices
from wxb.masking.operators import DEFAULT, read_operators
from wxb.masking.placeholders import BRACKETS, Edit, Placeholders, apply_edits
from wxb.masking.rules import Listed, find_values

SIZE, CONTEXT = 6_000, 400  # characters of a part of a text, and of the text on either side of it
PARTS, CHARACTERS = 256, 100_000  # the most in a batch, all of which is in memory
DENIED = "DENIED"  # the type of values that --deny finds
_LINE = re.compile(r"\S(?:[^\r\n]*\S)?")  # without blanks at its ends
Range = tuple[int, int, str]  # of code points, with a type
_numbering = Lock()  # threads may share placeholders


class Masker:
    """Finds spans in texts and replaces them.

    `recognizer`: what `wxb.load` returns for an experiment that predicts spans. `operators`: as in
    `read_operators`. `mapping`: numbers the placeholders. `threshold`: the lowest score of a masked
    span. `only`: the types to mask; by default all. `allow` and `deny`: values that are never or
    always masked, as in `Listed`. `brackets`: around types and placeholders, one of
    BRACKETS. Raises WxbError for unknown types, and for a threshold if spans have no scores.
    """

    def __init__(
        self,
        recognizer: Any,
        operators: str | Mapping[str, Any] = "replace",
        mapping: Placeholders | None = None,
        *,
        threshold: float | None = None,
        only: Iterable[str] | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        brackets: str | None = None,
    ) -> None:
        self.recognizer, own = recognizer, read_operators(operators)
        self.mapping = Placeholders() if mapping is None else mapping
        self.threshold = recognizer.threshold if threshold is None else threshold
        if threshold is not None and not recognizer.has_scores:
            raise WxbError("threshold: the spans of this experiment have no scores")
        self.brackets, self.only = brackets or BRACKETS[0], {*(only or recognizer.types)}
        if self.brackets not in BRACKETS:
            raise WxbError(f"brackets: found {brackets!r}; expected {' or '.join(BRACKETS)}")
        self.allowed, self.denied = Listed(allow or ()), Listed(deny or ())
        for types, known in (
            (self.only, recognizer.types),
            (own, [*recognizer.types, DEFAULT, DENIED]),
        ):
            for type_ in sorted({*types} - {*known}):
                raise WxbError(f"the experiment has no type {type_!r}{choices(type_, known)}")
        self.operators = {t: own.get(t, own[DEFAULT]) for t in (*recognizer.types, DENIED)}
        self.only -= {t for t in self.only if self.operators[t].operator == "keep"}

    def mask(self, texts: Iterable[Any]) -> list[Any]:
        """The masked texts, in order. Values that are no texts, such as None, are kept."""
        if isinstance(texts, str):
            raise TypeError("mask: found one text; expected a list of them: mask([text])[0]")
        values = [*texts]
        rows = self.edits(value for value in values if isinstance(value, str))
        return [
            apply_edits(value, next(rows), self.brackets) if isinstance(value, str) else value
            for value in values
        ]

    def edits(self, texts: Iterable[str | None]) -> Iterator[list[Edit]]:
        """Yield the edits of each text, read in parts; None, where texts pause, has none."""
        spans: list[Range] = []
        for batch in _batches(texts):
            windows = [text[max(0, i - CONTEXT) : i + SIZE + CONTEXT] for text, i in batch]
            try:
                with progress_callback(lambda done, total: None):
                    rows = self.recognizer.candidates(windows, caption="mask")
            except Exception as error:  # it and its traceback may quote a text
                fault = f"one of {len(batch)} documents ({type(error).__name__})"
                raise WxbError(f"the model fails on {fault}; see wxb.load(...).predict") from None
            for (text, start), row in zip(batch, rows, strict=True):
                first = max(0, start - CONTEXT)
                spans += [
                    (first + span[0], first + span[1], span[2])
                    for span, score in row
                    if score >= self.threshold
                    and span[2] in self.only
                    and start - span[1] < first < start + SIZE - span[0]
                ]
                if start + SIZE >= len(text):
                    yield self._edits(text, spans)
                    spans = []

    def _edits(self, text: str, spans: Iterable[Range]) -> list[Edit]:
        ranges = [span for span in spans if text[slice(*span[:2])] not in self.allowed]
        ranges += [(*span, DENIED) for span in self.denied.find(text)]
        masked = [  # each line of a range by itself
            (*line.span(), type_)
            for start, end, type_ in (self._whole(text, ranges) if ranges else ())
            for line in _LINE.finditer(text, start, end)
        ]
        with _numbering:
            edits = self.mapping.escape(text, masked)
            edits += [
                Edit(start, end, self.operators[type_](text[start:end], type_, self.mapping))
                for start, end, type_ in masked
            ]
        return sorted(edits)

    def _whole(self, text: str, spans: Iterable[Range]) -> Iterator[Range]:
        """Disjoint ranges that cover spans, and the whole of known values that they are a part of.

        Those that overlap, and adjacent ones of a type, are one range of the type of the first.
        """
        values = (*find_values(text), *self.mapping.known.find(text))
        parts = [(start, -end, "") for start, end, _ in values]
        merged: list[Range] = []
        for start, end, type_ in sorted([*parts, *((start, -end, t) for start, end, t in spans)]):
            last = merged[-1] if merged else (-1, -1, "")
            if start < last[1] or (type_ and (start, type_) == last[1:]):
                start, end, type_ = merged.pop()[0], min(end, -last[1]), last[2] or type_
            merged.append((start, -end, type_))
        for start, end, type_ in merged:
            if type_ == DENIED or (type_ and text[start:end] not in self.allowed):
                yield start, end, type_


def _batches(texts: Iterable[str | None]) -> Iterator[list[tuple[str, int]]]:
    """Parts of texts, as texts with the start of a part, in lists; None ends a list."""
    batch: list[tuple[str, int]] = []
    characters = 0
    for text in chain(texts, [None]):
        for start in range(0, len(text or "") or 1, SIZE):
            if text is not None:
                batch.append((text, start))
                characters += min(len(text), SIZE)
            if batch and (text is None or len(batch) >= PARTS or characters >= CHARACTERS):
                yield batch
                batch, characters = [], 0
