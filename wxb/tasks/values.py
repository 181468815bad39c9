"""Files without a block in params.yaml: their fields, and which is the id, language or group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wxb.core.wording import counted
from wxb.corpora.formats import raw_records
from wxb.corpora.layout import SUFFIXES, TABLES, decode
from wxb.tasks import tables

Row = Mapping[str, Any]

# In CoNLL-2002, esp.testa is for validation and esp.testb for the test.
SPLITS = {
    "train": re.compile(r"train", re.IGNORECASE),
    "valid": re.compile(r"valid(?!ated)|dev|testa|(?<![a-z])val(?![a-z])", re.IGNORECASE),
    "test": re.compile(r"test(?!a(?![a-z]))", re.IGNORECASE),
}
MIN_GROUPS = 10  # fewer cannot be split into shares of a tenth
MAX_FIELDS = 12  # in a summary
SHOWN = 3  # lines of a file, or values of a field, in a summary

# Words of the names of fields.
LANGUAGES = {"language", "lang", "locale"}
IDS = {"id", "uid", "uuid", "guid", "key", "idx", "index"}
GROUPS = {
    *("template", "group", "article", "author", "doc", "document", "source", "user", "speaker"),
    *("patient", "customer", "scene", "thread", "conversation", "dialog", "dialogue", "page"),
    *("file", "filename", "title", "url", "book", "chapter", "paper", "session", "account"),
}
LABELS = {
    *("label", "labels", "class", "category", "type", "tag", "tags", "sentiment", "topic"),
    *("intent", "rating", "score", "split", "fold", *LANGUAGES),
}


@dataclass(frozen=True)
class Files:
    """The files at a path that may hold records, sorted: those with fields if any, else all."""

    path: Path
    members: Sequence[Path]
    columns: Sequence[str] = ()  # names of the cells of `table`, for files without fields

    @property
    def names(self) -> list[str]:
        """The names of the files, without folders."""
        return [file.name for file in self.members]

    @cached_property
    def table(self) -> tables.Cells:
        """The rows of tables, or of lines with tabs, with as many cells as most; else empty."""
        if self.has_fields and not self.are_tables:
            return []
        by_file = [rows for file in self.members if (rows := tables.read_cells(file))]
        rows = [row for rows in by_file for row in rows]
        if 2 * len(by_file) <= len(self.members):  # such as the annotations of brat
            return []
        return [row for row in rows if len(row) == len(rows[0])]

    @property
    def are_tables(self) -> bool:
        """Whether all files are CSV or TSV."""
        return all(file.suffix.lower() in TABLES for file in self.members)

    @property
    def has_fields(self) -> bool:
        """Whether the files hold records with fields, by the suffix of the first."""
        return self.members[0].suffix.lower() in SUFFIXES

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The objects in all files, or the rows of `table` by `columns`."""
        if self.columns:
            return [dict(zip(self.columns, cells, strict=True)) for cells in self.table]
        if not self.has_fields:
            return []
        contents = (raw.content for file in self.members for raw in raw_records(file))
        return [dict(content) for content in contents if isinstance(content, Mapping)]

    @cached_property
    def fields(self) -> list[str]:
        """The names of the fields, in the order of their first record."""
        return list(dict.fromkeys(str(name) for row in self.rows for name in row))

    @property
    def has_split_names(self) -> bool:
        """Whether the name of any file is that of a published split, such as `train.csv`."""
        return any(p.search(file.name) for p in SPLITS.values() for file in self.members)

    def summary(self) -> str:
        """The fields with their types, or else the first lines, for error messages."""
        if self.rows:
            shown = self.fields[:MAX_FIELDS]
            more = f"; and {len(self.fields) - len(shown)} more" if self.fields != shown else ""
            return f"fields {'; '.join(f'{n!r}: {field_type(self.rows, n)}' for n in shown)}{more}"
        if self.has_fields:
            return "no record that is an object with fields"
        lines = (line for line in decode(self.members[0]).split("\n") if line.strip())
        first = [repr(line[:60]) for line, _ in zip(lines, range(SHOWN), strict=False)]
        return f"lines such as {'; '.join(first)}"


def split_settings(by: str | None) -> dict[str, Any]:
    """`split` of a new corpus: shares of its records, which stay together by the field `by`."""
    return {"by": by, "test": 0.2, "valid": 0.1}


def split_reasons(rows: Sequence[Row], by: str | None) -> dict[str, str]:
    """The comments on `split_settings`, by dotted key."""
    group = f"guessed: {value_counts(rows, by)}" if by else "guessed: none repeats; by document"
    return {"split.by": group, "split.test": "share of all records"}


def language_field(rows: Sequence[Row], fields: Iterable[str]) -> str | None:
    """The first field of texts whose name means language, if any."""
    candidates = (name for name in fields if name_words(name) & LANGUAGES)
    return next((n for n in candidates if any(isinstance(row.get(n), str) for row in rows)), None)


def id_field(rows: Sequence[Row], fields: Iterable[str]) -> str | None:
    """The first field whose name means id, and whose values all differ, if any."""
    for name in fields:
        values = _values(rows, name)
        if name_words(name) & IDS and values and len({*values}) == len(values):
            return name
    return None


def group_field(rows: Sequence[Row], fields: Iterable[str]) -> str | None:
    """The field whose values repeat like those of a template or an author, if any; never a label.

    Fields with such a name come first, then the one with the most values, the finest grouping.
    """
    candidates = []
    for name in fields:
        values, words = _values(rows, name), name_words(name)
        if not values or words & LABELS:
            continue
        counts = Counter(values)
        is_group_name = bool(words & GROUPS)
        repeats = len(counts) < len(values) if is_group_name else 2 * len(counts) <= len(values)
        is_text = is_group_name or all(isinstance(row[name], str) for row in rows)
        is_even = counts.most_common(1)[0][1] <= len(values) / 4
        if repeats and is_text and is_even and len(counts) >= MIN_GROUPS:
            candidates.append((is_group_name, len(counts), name))
    return max(candidates)[2] if candidates else None


def name_words(name: str) -> set[str]:
    """The lower-case words of a field's name: template and id of `templateId` and `template_id`."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def value_counts(rows: Sequence[Row], name: str | None) -> str | None:
    """A text such as "2 values in 10 records (good, bad)", the most frequent first.

    A record without the field has the value None. None without a name.
    """
    if name is None:
        return None
    counts = Counter(str(row.get(name)) for row in rows)
    first = ", ".join(value[:20] for value, _ in counts.most_common(SHOWN))
    more = ", ..." if len(counts) > SHOWN else ""
    return f"{counted(len(counts), 'values')} in {counted(len(rows), 'records')} ({first}{more})"


def is_int(value: Any) -> bool:
    """Whether a JSON value is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def field_type(rows: Sequence[Row], name: str) -> str:
    """The most frequent type of a field's values, such as `text, 2 values` or `list of numbers`."""
    values = [row[name] for row in rows if row.get(name) not in (None, "", [])]
    if not values:
        return "nothing"
    kind = Counter(map(_kind, values)).most_common(1)[0][0]
    distinct = len(set(map(str, values)))
    if kind in ("text", "number") and distinct < len(values) / 2:
        return f"{kind}, {counted(distinct, 'values')}"
    return kind


def strings(rows: Sequence[Row], name: str) -> Iterator[str]:
    """The values of a field that are strings."""
    return (row[name] for row in rows if isinstance(row.get(name), str))


def _kind(value: Any) -> str:
    match value:
        case str():
            return "text"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case list():
            return f"list of {_kind(value[0])}s" if value else "empty list"
        case Mapping():
            return f"object ({', '.join(list(map(str, value))[:MAX_FIELDS])})"
        case _:
            return type(value).__name__


def _values(rows: Sequence[Row], name: str) -> list[str] | None:
    """The values of a field as text; None unless every record has a string or an integer."""
    values = [row.get(name) for row in rows]
    return [*map(str, values)] if all(isinstance(v, str) or is_int(v) for v in values) else None
