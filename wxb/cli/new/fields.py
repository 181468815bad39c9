"""Which fields of records hold text, spans, language and id, and which one groups records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wxb.cli.new.labels import Found, described, is_int, layout, share
from wxb.cli.new.layout import Guess
from wxb.corpora.formats import raw_records
from wxb.errors import WxbError
from wxb.tasks.ner.params import Fields

Row = Mapping[str, Any]

HEAD = 20  # records of a CSV file that tell which cells hold lists of spans

LANGUAGES = {"language", "lang", "locale"}
IDS = {"id", "uid", "uuid", "guid", "key", "idx", "index"}
GROUPS = {
    *("template", "group", "article", "author", "doc", "document", "source", "user", "speaker"),
    *("patient", "customer", "scene", "thread", "conversation", "dialog", "dialogue", "page"),
    *("file", "filename", "title", "url", "book", "chapter", "paper", "session", "account"),
}
LABELS = {
    *("label", "labels", "class", "category", "type", "tag", "tags", "sentiment", "topic"),
    *("intent", "rating", "score", "split", "fold", "language", "lang", "locale"),
}
FEWEST_GROUPS = 10  # fewer cannot be divided into shares of a tenth

EXPECTED = (
    "expected records such as {text: ..., spans: [{start: 0, end: 3, type: NAME}]}: a text, and a"
    " list of spans with whole numbers from `start` up to, not including, `end`. Convert the file"
    " to that, or say in params.yaml what its fields are called (`corpora.<name>.fields`;"
    " docs/adding-a-corpus.md). Records without spans are for another task: take a block of"
    " `corpora` in params/*.yaml as an example"
)


def guess(files: Sequence[Path]) -> Guess:
    """What a block of `corpora` should say of these files, `path` aside.

    Raises WxbError where no field holds spans, or no text fits them; it tells what was found.
    """
    rows = [row for file in files for row in _rows(file)]
    if not rows:
        raise WxbError(f"{files[0]}: found no record that is an object with fields; {EXPECTED}")
    best = _best_layout(rows, files[0])
    found = best.layout
    others = [name for name in _fields(rows) if name not in (best.spans, found.text)]
    language = next((name for name in others if _is_language(rows, name)), None)
    id_, by = _id(rows, others), _group(rows, others)
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
    why["fields.language"] = f"guessed: {_shown(rows, language) or 'none has one'}"
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
    content["split"] = {"by": by, "test": 0.2, "valid": 0.1}
    why["split.by"] = f"guessed: {_shown(rows, by)}" if by else "guessed: none repeats; by document"
    why["split.test"] = "share of records, of all"
    return Guess(content, why, notes)


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


def _best_layout(rows: Sequence[Row], file: Path) -> Found:
    """The field of spans and the text that they fit best."""
    candidates = []
    for name in _fields(rows):
        chosen = [row for row in rows if _is_list_of_spans(row.get(name))]
        if chosen and (best := layout(chosen, name)):
            candidates.append(best)
    if not candidates:
        shapes = "; ".join(f"{name!r}: {described(rows, name)}" for name in _fields(rows))
        raise WxbError(f"{file}: found fields {shapes}; {EXPECTED}")
    best = max(candidates, key=Found.rank)
    if best.inclusive():
        end = best.layout.end
        raise WxbError(
            f"{file}: found spans that end within a word, and where it ends if {end!r} is the place"
            " of their last character; they have no value to find them by. Expected the place after"
            f" the last: add 1 to each {end!r}, and look again"
        )
    return best


def _words(name: str) -> set[str]:
    """`templateId` and `template_id` are the words template and id."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def _values(rows: Sequence[Row], name: str) -> list[str] | None:
    """The values of a field that each record has, as text; None for any other field."""
    values = [row.get(name) for row in rows]
    return (
        [str(v) for v in values] if all(isinstance(v, str) or is_int(v) for v in values) else None
    )


def _is_language(rows: Sequence[Row], name: str) -> bool:
    return bool(_words(name) & LANGUAGES) and any(isinstance(row.get(name), str) for row in rows)


def _id(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    for name in names:
        values = _values(rows, name)
        if _words(name) & IDS and values and len({*values}) == len(values):
            return name
    return None


def _group(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    """The field whose values repeat as those of a template or an author do; never a label.

    A name that says so comes first; then the field with the most values, the finest division.
    """
    ranked = []
    for name in names:
        values, words = _values(rows, name), _words(name)
        if not values or words & LABELS:
            continue
        counts = Counter(values)
        named = bool(words & GROUPS)
        repeats = len(counts) < len(values) if named else 2 * len(counts) <= len(values)
        plain = named or all(isinstance(row[name], str) for row in rows)
        even = counts.most_common(1)[0][1] <= len(values) / 4
        if repeats and plain and even and len(counts) >= FEWEST_GROUPS:
            ranked.append((named, len(counts), name))
    return max(ranked)[2] if ranked else None


def _shown(rows: Sequence[Row], name: str | None) -> str | None:
    """How many values a field has, and the most frequent."""
    if name is None:
        return None
    counts = Counter(str(row.get(name)) for row in rows)
    first = ", ".join(value[:20] for value, _ in counts.most_common(3))
    more = ", ..." if len(counts) > 3 else ""
    values = "value" if len(counts) == 1 else "values"
    return f"{len(counts):,} {values} in {share(len(rows))} ({first}{more})"
