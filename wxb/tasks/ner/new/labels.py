"""Which keys of a span are its start, end, type and value, and which text they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from wxb.tasks.values import Row, is_int

Span = Mapping[str, Any]
Placed = tuple[str, Span, int, int]  # text, span, start and end

SAMPLE = 500  # records that tell the keys apart
NAMES = {
    "text": ("text", "full_text", "input", "source_text", "content", "sentence", "document"),
    "start": ("start", "start_position", "start_offset", "begin", "start_char", "from"),
    "end": ("end", "end_position", "end_offset", "stop", "end_char", "to"),
    "type": ("label", "type", "entity_type", "entity", "tag", "category", "class"),
    "value": ("value", "entity_value", "text", "mention", "surface", "word", "string"),
}


class Layout(NamedTuple):
    """The text that spans stand in, and the keys of a span; `value` may be missing."""

    text: str
    start: str
    end: str
    type: str
    value: str | None


class Fits(NamedTuple):
    """How many spans there are, and how many offsets select the span's value."""

    spans: int
    half_open: int
    inclusive: int
    in_text: int

    def told(self) -> str:
        """In words."""
        if self.half_open == self.spans:
            return f"all {self.spans:,} offsets fit it"
        told = f"{self.half_open:,} of {self.spans:,} offsets fit it"
        return told + (f", {self.inclusive:,} if `end` is included" if self.inclusive else "")


class Found(NamedTuple):
    """A layout of a field of spans, and how well it fits."""

    spans: str
    layout: Layout
    fits: Fits | None  # where spans have values
    clean: int  # spans that begin and end where words do
    clean_inclusive: int  # the same, if the last character belonged to them
    total: int

    def rank(self) -> tuple[float, int]:
        """By this the best of several fields is chosen."""
        fitting = self.fits.in_text if self.fits else self.clean
        return fitting / self.total, self.total

    def inclusive(self) -> bool:
        """Whether spans without values seem to end one character early."""
        return self.fits is None and self.clean_inclusive - self.clean > 0.3 * self.total

    def why(self) -> dict[str, str]:
        """The reason for each key, by name."""
        included = self.fits and 2 * self.fits.inclusive > self.fits.spans
        none = "spans have none that stands in the text"
        return {
            "input": "the spans fit it best",
            "spans": f"{self.total:,} spans",
            "start": "characters from 0",
            "end": "the last, included; see repair" if included else "one past the last",
            "type": "the kind of a span",
            "value": "what a span selects" if self.layout.value else none,
        }


def layout(rows: Sequence[Row], name: str) -> Found | None:
    """How the spans in a field are laid out; None where they have no two numbers and a type.

    Every pair of texts and values is tried on a sample: values stand in their text, types don't.
    """
    sample = list(_spans(rows[:SAMPLE], name))
    keys = list(dict.fromkeys(key for _, span in sample for key in span))
    numbers = [k for k in keys if _mostly(is_int(span.get(k)) for _, span in sample)]
    words = [k for k in keys if _mostly(isinstance(span.get(k), str) for _, span in sample)]
    fields = dict.fromkeys(field for row, _ in sample for field in row)
    texts = [f for f in fields if _mostly(isinstance(row.get(f), str) for row, _ in sample)]
    if len(numbers) < 2 or not texts:
        return None
    standing = {
        (text, key): sum(_stands(span.get(key), row.get(text)) for row, span in sample)
        for text in texts
        for key in words
    }
    value, most = None, max(standing.values(), default=0)
    if 2 * most >= len(sample):
        value = min(
            (key for (_, key), count in standing.items() if count == most),
            key=lambda key: _place("value", key),
        )
        texts = [text for text in texts if standing[text, value] == most]

    def fit(chosen: Layout) -> tuple[int, ...]:
        placed = list(_placed(sample, chosen))
        test = _selects(value) if value else _is_clean
        fitting = sum(test(*one) for one in placed)
        if value:  # ends that are wrong by one still tell which they are
            fitting = max(fitting, sum(test(*_longer(one)) for one in placed))
        inside = sum(0 <= start < end <= len(text) for text, _, start, end in placed)
        places = (_place(kind, getattr(chosen, kind)) for kind in ("start", "end", "text"))
        return fitting, inside, *(-place for place in places)

    pairs = list(permutations(numbers, 2))
    found = max((Layout(text, *pair, "", value) for text in texts for pair in pairs), key=fit)
    types = [key for key in words + numbers if key not in found]
    if not types:
        return None
    type_ = min(types, key=lambda key: (_place("type", key), _distinct(sample, key)))
    return _measured(rows, name, found._replace(type=type_))


def _measured(rows: Sequence[Row], name: str, found: Layout) -> Found:
    """A layout with its counts over all spans."""
    placed = list(_placed(_spans(rows, name), found))
    longer = list(map(_longer, placed))
    fits = None
    if found.value:
        test = _selects(found.value)
        fits = Fits(
            len(placed),
            sum(test(*one) for one in placed),
            sum(test(*one) for one in longer),
            sum(_stands(span.get(found.value), text) for text, span, *_ in placed),
        )
    clean, clean_longer = (sum(_is_clean(*one) for one in ones) for ones in (placed, longer))
    return Found(name, found, fits, clean, clean_longer, len(placed))


def _spans(rows: Sequence[Row], name: str) -> Iterator[tuple[Row, Span]]:
    for row in rows:
        for span in row[name]:
            if isinstance(span, Mapping):
                yield row, span


def _placed(spans: Iterable[tuple[Row, Span]], found: Layout) -> Iterator[Placed]:
    for row, span in spans:
        text, start, end = row.get(found.text), span.get(found.start), span.get(found.end)
        if isinstance(text, str) and isinstance(start, int) and isinstance(end, int):
            yield text, span, start, end


def _longer(placed: Placed) -> Placed:
    return *placed[:3], placed[3] + 1


def _selects(value: str) -> Callable[..., bool]:
    def test(text: str, span: Span, start: int, end: int) -> bool:
        return 0 <= start < end <= len(text) and text[start:end] == span.get(value)

    return test


def _is_clean(text: str, _: Span, start: int, end: int) -> bool:
    """Whether a stretch lies in the text, has no outer white space and cuts no word."""
    if not 0 <= start < end <= len(text) or text[start:end] != text[start:end].strip():
        return False
    return not any(
        text[at - 1 : at].isalnum() and text[at : at + 1].isalnum() for at in (start, end)
    )


def _stands(value: Any, text: Any) -> bool:
    return isinstance(value, str) and bool(value) and isinstance(text, str) and value in text


def _mostly(tests: Iterable[bool]) -> bool:
    outcomes = list(tests)
    return 2 * sum(outcomes) > len(outcomes)


def _place(kind: str, name: str) -> int:
    names = NAMES[kind]
    return names.index(name.lower()) if name.lower() in names else len(names)


def _distinct(sample: Sequence[tuple[Row, Span]], key: str) -> int:
    return len({span.get(key) for _, span in sample})
