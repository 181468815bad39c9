"""Edits of a text, and how to apply them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from wxb import WxbError


class Edit(NamedTuple):
    """A replacement of the code points `start:end` of a text by `new`.

    Edits of one text are sorted and disjoint. `type` and `score` are those of a predicted span, if
    the edit is of one.
    """

    start: int
    end: int
    new: str
    type: str | None = None
    score: float | None = None


def apply_edits(
    units: Sequence[str], edits: Iterable[Edit], escape: Callable[[str], str] = str
) -> str:
    """The text with its edits applied.

    `units` has one string per code point of the text: the text itself, or a list if some are
    written as JSON escapes. `escape` writes new text in the same way. Raises WxbError for edits
    that overlap, are not sorted, or end before they start.
    """
    parts, reached = [], 0
    for edit in edits:
        if not reached <= edit.start <= edit.end:
            raise WxbError(
                f"the model gave spans that overlap or are not sorted: found one at {edit.start} to"
                f" {edit.end}, expected it to begin at {reached} or later;"
                " `resolve_overlaps` of wxb.tasks.ner.predictor chooses among such spans"
            )
        parts += [_joined(units[reached : edit.start]), escape(edit.new)]
        reached = edit.end
    return "".join([*parts, _joined(units[reached:])])


def gaps(text: str, edits: Iterable[Edit]) -> Iterator[tuple[int, int]]:
    """The ranges of a text between its edits."""
    reached = 0
    for edit in edits:
        yield reached, edit.start
        reached = edit.end
    yield reached, len(text)


def new_ranges(edits: Iterable[Edit]) -> list[tuple[int, int]]:
    """The ranges of the replacements in the edited text."""
    ranges, shift = [], 0
    for edit in edits:
        start = edit.start + shift
        ranges.append((start, start + len(edit.new)))
        shift += len(edit.new) - (edit.end - edit.start)
    return ranges


def _joined(units: Sequence[str]) -> str:
    return units if isinstance(units, str) else "".join(units)
