"""Replacements in a text, and the one way of carrying them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from wxb import WxbError


class Edit(NamedTuple):
    """`new` in place of the code points `start:end` of a text.

    Edits of one text are sorted and disjoint. `type` and `score` tell of the span it comes from;
    without one they are None.
    """

    start: int
    end: int
    new: str
    type: str | None = None
    score: float | None = None


def applied(units: Sequence[str], edits: Iterable[Edit], spell: Callable[[str], str] = str) -> str:
    """The text with its edits; all else is joined from `units` as they are.

    `units` say how each code point of the text is spelled where it stands (the text itself, or
    one JSON escape or character each), and `spell` spells what is new. Raises WxbError for edits
    that overlap or are not sorted: they could not be undone.
    """
    parts, reached = [], 0
    for edit in edits:
        if not reached <= edit.start <= edit.end:
            raise WxbError(
                f"the model gave spans that overlap or are not sorted: found one at {edit.start} to"
                f" {edit.end}, expected it to begin at {reached} or later; `disjoint` of"
                " wxb.tasks.ner.predictor chooses among such spans"
            )
        parts += [_joined(units[reached : edit.start]), spell(edit.new)]
        reached = edit.end
    return "".join([*parts, _joined(units[reached:])])


def gaps(text: str, edits: Iterable[Edit]) -> Iterator[tuple[int, int]]:
    """The stretches of a text that no edit touches."""
    reached = 0
    for edit in edits:
        yield reached, edit.start
        reached = edit.end
    yield reached, len(text)


def places(edits: Iterable[Edit]) -> list[tuple[int, int]]:
    """Where what is new stands in the edited text."""
    found, moved = [], 0
    for edit in edits:
        start = edit.start + moved
        found.append((start, start + len(edit.new)))
        moved += len(edit.new) - (edit.end - edit.start)
    return found


def _joined(units: Sequence[str]) -> str:
    return units if isinstance(units, str) else "".join(units)
