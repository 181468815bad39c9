"""Which fields of records hold text, spans, language and id, and which one groups records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError
from wxb.corpora.formats import raw_records
from wxb.tasks import values
from wxb.tasks.guessing import Guess
from wxb.tasks.ner.new.labels import Found, layout
from wxb.tasks.ner.params import Fields
from wxb.tasks.values import Files, Row, is_int

HEAD = 20  # records of a CSV file that tell which cells hold lists of spans
EVIDENCE = 5  # spans, their text, start, end and type


def guess(files: Files) -> Guess | None:
    """What a block of `corpora` should say of records with spans, `path` aside; None of others.

    Raises WxbError where spans are of no use as they are.
    """
    rows = [row for file in files.members for row in _rows(file)]
    best = _best_layout(rows, files.members[0])
    if best is None:
        return None
    found = best.layout
    others = [name for name in files.fields if name not in (best.spans, found.text)]
    language = values.language_of(rows, others)
    id_, by = values.id_of(rows, others), values.group_of(rows, others)
    fields = Fields(
        input=found.text,
        spans=best.spans,
        start=found.start,
        end=found.end,
        type=found.type,
        value=found.value,
        language=language,
        id=id_,
    )
    content: dict[str, Any] = {"fields": fields.model_dump()}
    why = {f"fields.{key}": f"guessed: {reason}" for key, reason in best.why().items()}
    why["fields.language"] = f"guessed: {values.shown(rows, language) or 'none has one'}"
    why["fields.id"] = f"guessed: {'its values are all different' if id_ else 'none has one'}"
    notes = []
    if fits := best.fits:
        why["fields.value"] += f"; {fits.told()}"
        if fits.half_open < fits.spans:
            content["repair"] = "by-value"
            why["repair"] = "guessed: finds a span whose offsets are wrong by its value"
        notes.append(
            f"offsets and {found.value!r}: {fits.told()}; {fits.in_text:,} values stand in the text"
        )
    content["split"] = values.divided(by)
    why |= values.why_divided(rows, by)
    return Guess(content, why, notes, EVIDENCE)


def _rows(file: Path) -> list[dict[str, Any]]:
    """The records of a file that are objects; lists in cells of CSV are read."""
    rows = [dict(r.content) for r in raw_records(file) if isinstance(r.content, Mapping)]
    if file.suffix.lower() in (".csv", ".tsv"):
        for name in _fields(rows[:HEAD]):
            cells = _cells(file, name)
            if not any(_is_list_of_spans(value) for _, value in islice(cells, HEAD)):
                continue
            parsed = dict(_cells(file, name))
            rows = [
                {**row, name: parsed.get(row[name], row[name])} if row[name] else row
                for row in rows
            ]
    return rows


def _cells(file: Path, name: str) -> Iterable[tuple[str, Any]]:
    """The cells of a CSV column, as text and as what they hold."""
    plain, parsed = (raw_records(file, parsed=parsed) for parsed in (None, name))
    for before, after in zip(plain, parsed, strict=True):
        if isinstance(before.content, Mapping) and isinstance(after.content, Mapping):
            yield before.content[name], after.content[name]


def _is_list_of_spans(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(span, Mapping) and sum(map(is_int, span.values())) >= 2 for span in value
    )


def _fields(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _best_layout(rows: Sequence[Row], file: Path) -> Found | None:
    """The field of spans and the text that they fit best, if any does."""
    candidates = []
    for name in _fields(rows):
        chosen = [row for row in rows if _is_list_of_spans(row.get(name))]
        if chosen and (best := layout(chosen, name)):
            candidates.append(best)
    if not candidates:
        return None
    best = max(candidates, key=Found.rank)
    if best.inclusive():
        end = best.layout.end
        raise WxbError(
            f"{file}: found spans that end within a word, and where it ends if {end!r} is the place"
            " of their last character; they have no value to find them by. Expected the place after"
            f" the last: add 1 to each {end!r}, and look again"
        )
    return best
