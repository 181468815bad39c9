"""Find the fields of records that are text, spans, language, id and group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError
from wxb.corpora.formats import raw_records
from wxb.corpora.records import RecordError
from wxb.tasks import values
from wxb.tasks.guessing import Guess
from wxb.tasks.ner.new.labels import NAMES, Candidate, find_layout
from wxb.tasks.ner.params import Fields
from wxb.tasks.ner.reading.tokens import NUMBERS, with_spans
from wxb.tasks.values import Files, Row, is_int

HEAD = 20  # records of a CSV file in which lists of spans are looked for
EVIDENCE = 5  # spans, their text, start, end and type


def guess(files: Files) -> Guess | None:
    """The block for records with spans; None of other records.

    Raises WxbError if the ends of spans without values are wrong.
    """
    rows = [row for file in files.members for row in _rows(file)]
    best = _best_candidate(rows, files)
    if best is None:
        rows = [row for file in files.members for row in _tagged_rows(file)]
        best = _best_candidate(rows, files)
    if best is None:
        return None
    layout = best.layout
    others = [name for name in files.fields if name not in (best.spans, layout.text)]
    language = values.language_field(rows, others)
    id_, by = values.id_field(rows, others), values.group_field(rows, others)
    keys = {key: name for key, name in layout._asdict().items() if key != "text"}
    fields = Fields(input=layout.text, spans=best.spans, **keys, language=language, id=id_)
    content: dict[str, Any] = {"fields": fields.model_dump()}
    reasons = {f"fields.{key}": f"guessed: {reason}" for key, reason in best.reasons().items()}
    reasons["fields.language"] = f"guessed: {values.value_counts(rows, language) or 'none'}"
    reasons["fields.id"] = f"guessed: {'its values all differ' if id_ else 'none'}"
    notes = []
    if fit := best.fit:
        reasons["fields.value"] += f"; {fit.summary()}"
        if fit.half_open < fit.spans:
            content["repair"] = "by-value"
            reasons["repair"] = "guessed: locates spans with wrong offsets by their value"
        notes.append(
            f"offsets and {layout.value!r}: {fit.summary()}; {fit.in_text:,} values occur in the"
            " text"
        )
    content["split"] = values.split_settings(by)
    reasons |= values.split_reasons(rows, by)
    return Guess(content, reasons, notes, EVIDENCE)


def _rows(file: Path) -> list[dict[str, Any]]:
    """The records of a file that are objects; lists of spans in cells of CSV are parsed."""
    rows = [dict(r.content) for r in raw_records(file) if isinstance(r.content, Mapping)]
    if file.suffix.lower() in (".csv", ".tsv"):
        for name in [*rows[0]] if rows else []:
            if not any(_is_list_of_spans(value) for _, value in islice(_cells(file, name), HEAD)):
                continue
            parsed = dict(_cells(file, name))
            rows = [
                {**row, name: parsed.get(row[name], row[name])} if row[name] else row
                for row in rows
            ]
    return rows


def _tagged_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The records of a file that have tokens and tags, without other texts.

    Raises WxbError for tags without names.
    """
    others = {*NAMES["text"]} - {Fields().input}
    for raw in map(with_spans, raw_records(file)):
        if isinstance(raw.content, RecordError) and raw.content.reason == NUMBERS:
            raise WxbError(f"{file}: {raw.place}: {raw.content.reason}: {raw.content.detail}")
        if isinstance(raw.content, Mapping) and Fields().spans in raw.content:
            yield {key: value for key, value in raw.content.items() if key not in others}


def _cells(file: Path, name: str) -> Iterable[tuple[str, Any]]:
    """Yield the cells of a CSV column that are texts, as text and parsed."""
    plain, parsed = (raw_records(file, parsed=column) for column in (None, name))
    for before, after in zip(plain, parsed, strict=True):
        contents = before.content, after.content
        if all(isinstance(content, Mapping) for content in contents):
            cell, value = (content[name] for content in contents)
            if isinstance(cell, str):
                yield cell, value


def _is_list_of_spans(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(span, Mapping) and sum(map(is_int, span.values())) >= 2 for span in value
    )


def _best_candidate(rows: Sequence[Row], files: Files) -> Candidate | None:
    """The field of spans whose offsets fit a text best, if any."""
    candidates = []
    for name in dict.fromkeys([*files.fields, Fields().spans]):
        rows_with_spans = [row for row in rows if _is_list_of_spans(row.get(name))]
        if rows_with_spans and (candidate := find_layout(rows_with_spans, name)):
            candidates.append(candidate)
    if not candidates:
        return None
    best = max(candidates, key=Candidate.rank)
    if best.seems_inclusive():
        end = best.layout.end
        raise WxbError(
            f"{files.members[0]}: found spans that end within a word, but at its end if {end!r} is"
            " the last character; they have no value to repair them by. Expected one past the last"
            f" character: add 1 to each {end!r}, and run this again"
        )
    return best
