"""Find the keys of spans (start, end, type, value) and the text that their offsets fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from wxb.tasks.values import Row, is_int

Span = Mapping[str, Any]
Occurrence = tuple[str, Span, int, int]  # text, span, start and end

SAMPLE = 500  # records from which the keys are found
# Usual names, the likeliest first.
NAMES = {
    "text": ("text", "full_text", "input", "source_text", "content", "sentence", "document"),
    "start": ("start", "start_position", "start_offset", "begin", "start_char", "from"),
    "end": ("end", "end_position", "end_offset", "stop", "end_char", "to"),
    "type": ("label", "type", "entity_type", "entity", "tag", "category", "class"),
    "value": ("value", "entity_value", "text", "mention", "surface", "word", "string"),
}


class Layout(NamedTuple):
    """The field of texts and the keys of spans; `value` is None if spans have no mention."""

    text: str
    start: str
    end: str
    type: str
    value: str | None


class OffsetFit(NamedTuple):
    """How many spans have offsets that select their value."""

    spans: int
    half_open: int
    inclusive: int  # if `end` is the last character
    in_text: int  # values that occur anywhere in their text

    def summary(self) -> str:
        """The counts as text, for a comment."""
        if self.half_open == self.spans:
            return f"all {self.spans:,} offsets fit it"
        text = f"{self.half_open:,} of {self.spans:,} offsets fit it"
        return text + (f", {self.inclusive:,} if `end` is included" if self.inclusive else "")


class Candidate(NamedTuple):
    """A field of spans with its layout, and counts of spans that fit it."""

    spans: str  # the name of the field
    layout: Layout
    fit: OffsetFit | None  # None if spans have no value
    whole_words: int  # spans that begin and end at word boundaries
    whole_words_inclusive: int  # the same, if `end` is the last character
    total: int

    def rank(self) -> tuple[float, int]:
        """The share of spans that fit, and their number, to choose the best candidate."""
        fitting = self.fit.in_text if self.fit else self.whole_words
        return fitting / self.total, self.total

    def seems_inclusive(self) -> bool:
        """Whether `end` seems to be the last character of spans; False if spans have values.

        True if an included `end` makes more spans whole words, by over 30% of all spans.
        """
        gain = self.whole_words_inclusive - self.whole_words
        return self.fit is None and gain > 0.3 * self.total

    def reasons(self) -> dict[str, str]:
        """A comment for each key of `fields`."""
        included = self.fit and 2 * self.fit.inclusive > self.fit.spans
        no_value = "no key of spans has text of the record"
        return {
            "input": "the offsets fit this text best",
            "spans": f"{self.total:,} spans",
            "start": "characters from 0",
            "end": "the last character, included; see repair" if included else "one past the last",
            "type": "the type of a span",
            "value": "the text of a span" if self.layout.value else no_value,
        }


def find_layout(rows: Sequence[Row], name: str) -> Candidate | None:
    """The layout of the spans in a field; None if they lack two numbers and a type.

    Tries all texts, keys of values and keys of offsets on a sample. A value, unlike a type, occurs
    in the text.
    """
    sample = list(_spans(rows[:SAMPLE], name))
    keys = list(dict.fromkeys(key for _, span in sample for key in span))
    numbers = [k for k in keys if _mostly(is_int(span.get(k)) for _, span in sample)]
    words = [k for k in keys if _mostly(isinstance(span.get(k), str) for _, span in sample)]
    fields = dict.fromkeys(field for row, _ in sample for field in row)
    texts = [f for f in fields if _mostly(isinstance(row.get(f), str) for row, _ in sample)]
    if len(numbers) < 2 or not texts:
        return None
    counts = {
        (text, key): sum(_occurs(span.get(key), row.get(text)) for row, span in sample)
        for text in texts
        for key in words
    }
    value, most = None, max(counts.values(), default=0)
    if 2 * most >= len(sample):
        value = min(
            (key for (_, key), count in counts.items() if count == most),
            key=lambda key: _name_rank("value", key),
        )
        texts = [text for text in texts if counts[text, value] == most]

    def score(layout: Layout) -> tuple[int, ...]:
        occurrences = list(_occurrences(sample, layout))
        test = _selects(value) if value else _is_whole_words
        fitting = sum(test(*occurrence) for occurrence in occurrences)
        if value:  # inclusive ends are repaired later
            inclusive = sum(test(*_with_inclusive_end(o)) for o in occurrences)
            fitting = max(fitting, inclusive)
        inside = sum(0 <= start < end <= len(text) for text, _, start, end in occurrences)
        ranks = (_name_rank(kind, getattr(layout, kind)) for kind in ("start", "end", "text"))
        return fitting, inside, *(-rank for rank in ranks)

    pairs = list(permutations(numbers, 2))
    best = max((Layout(text, *pair, "", value) for text in texts for pair in pairs), key=score)
    types = [key for key in words + numbers if key not in best]
    if not types:
        return None
    type_ = min(types, key=lambda key: (_name_rank("type", key), _distinct(sample, key)))
    return _candidate(rows, name, best._replace(type=type_))


def _candidate(rows: Sequence[Row], name: str, layout: Layout) -> Candidate:
    """Count the spans of a field that a layout fits: by their values, and by whole words.

    Each also with an inclusive end. Spans without a text and two integers are left out.
    """
    occurrences = list(_occurrences(_spans(rows, name), layout))
    inclusive = list(map(_with_inclusive_end, occurrences))
    fit = None
    if layout.value:
        test = _selects(layout.value)
        fit = OffsetFit(
            len(occurrences),
            sum(test(*occurrence) for occurrence in occurrences),
            sum(test(*occurrence) for occurrence in inclusive),
            sum(_occurs(span.get(layout.value), text) for text, span, *_ in occurrences),
        )
    whole_words, whole_words_inclusive = (
        sum(_is_whole_words(*occurrence) for occurrence in side)
        for side in (occurrences, inclusive)
    )
    return Candidate(name, layout, fit, whole_words, whole_words_inclusive, len(occurrences))


def _spans(rows: Sequence[Row], name: str) -> Iterator[tuple[Row, Span]]:
    """Each object in the list `row[name]`, with its row; every row must have this list."""
    for row in rows:
        for span in row[name]:
            if isinstance(span, Mapping):
                yield row, span


def _occurrences(spans: Iterable[tuple[Row, Span]], layout: Layout) -> Iterator[Occurrence]:
    """Yield the spans with a text and two integers."""
    for row, span in spans:
        text, start, end = row.get(layout.text), span.get(layout.start), span.get(layout.end)
        if isinstance(text, str) and isinstance(start, int) and isinstance(end, int):
            yield text, span, start, end


def _with_inclusive_end(occurrence: Occurrence) -> Occurrence:
    return *occurrence[:3], occurrence[3] + 1


def _selects(value: str) -> Callable[..., bool]:
    def test(text: str, span: Span, start: int, end: int) -> bool:
        return 0 <= start < end <= len(text) and text[start:end] == span.get(value)

    return test


def _is_whole_words(text: str, _: Span, start: int, end: int) -> bool:
    """Whether offsets are in the text, without outer white space, and split no word."""
    if not 0 <= start < end <= len(text) or text[start:end] != text[start:end].strip():
        return False
    return not any(
        text[edge - 1 : edge].isalnum() and text[edge : edge + 1].isalnum() for edge in (start, end)
    )


def _occurs(value: Any, text: Any) -> bool:
    return isinstance(value, str) and bool(value) and isinstance(text, str) and value in text


def _mostly(tests: Iterable[bool]) -> bool:
    outcomes = list(tests)
    return 2 * sum(outcomes) > len(outcomes)


def _name_rank(kind: str, name: str) -> int:
    """The index of a name among the usual ones; their number if it is none."""
    names = NAMES[kind]
    return names.index(name.lower()) if name.lower() in names else len(names)


def _distinct(sample: Sequence[tuple[Row, Span]], key: str) -> int:
    return len({span.get(key) for _, span in sample})
