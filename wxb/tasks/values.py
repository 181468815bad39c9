"""The fields of files that nobody has described: what they hold, identify, name or group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wxb.corpora.formats import raw_records
from wxb.corpora.layout import SUFFIXES, decode

Row = Mapping[str, Any]

# Of esp.testa and esp.testb (CoNLL-2002) the first is for validation.
SPLITS = {
    "train": re.compile(r"train", re.IGNORECASE),
    "valid": re.compile(r"valid|dev|testa|(?<![a-z])val(?![a-z])", re.IGNORECASE),
    "test": re.compile(r"test(?!a(?![a-z]))", re.IGNORECASE),
}
FEWEST_GROUPS = 10  # fewer cannot be divided into shares of a tenth
SHOWN = 3  # lines of a file that holds no records, or values of a field

LANGUAGES = ("language", "lang", "locale")
IDS = ("id", "uid", "uuid", "guid", "key", "idx", "index")
GROUPS = {
    *("template", "group", "article", "author", "doc", "document", "source", "user", "speaker"),
    *("patient", "customer", "scene", "thread", "conversation", "dialog", "dialogue", "page"),
    *("file", "filename", "title", "url", "book", "chapter", "paper", "session", "account"),
}
LABELS = {
    *("label", "labels", "class", "category", "type", "tag", "tags", "sentiment", "topic"),
    *("intent", "rating", "score", "split", "fold", "language", "lang", "locale"),
}


@dataclass(frozen=True)
class Files:
    """The files at a path which may hold records, sorted: those of tables if any, else all."""

    path: Path
    members: Sequence[Path]
    columns: Sequence[str] = ()  # the names of cells, where tabs divide lines into as many

    def with_columns(self, names: Sequence[str]) -> Files:
        """The same files, read as lines with tabs if they have no fields and all their lines do.

        There are cells for all `names` at least; further ones are called `column 3`.
        """
        if self.are_tables or not self._cells:
            return self
        width = min(map(len, self._cells))
        more = [f"column {number}" for number in range(len(names) + 1, width + 1)]
        return replace(self, columns=[*names, *more]) if width >= len(names) else self

    @property
    def names(self) -> list[str]:
        """The names of the files, without folders."""
        return [file.name for file in self.members]

    @cached_property
    def _cells(self) -> list[list[str]]:
        lines = (line for file in self.members for line in decode(file).split("\n"))
        return [line.rstrip("\r").split("\t") for line in lines if line.strip()]

    @property
    def are_tables(self) -> bool:
        """Whether suffixes say that files hold records with fields."""
        return self.members[0].suffix.lower() in SUFFIXES

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The records with fields, of all files; cells of CSV are text."""
        if self.columns:
            return [dict(zip(self.columns, cells, strict=False)) for cells in self._cells]
        if not self.are_tables:
            return []
        every = (raw.content for file in self.members for raw in raw_records(file))
        return [dict(content) for content in every if isinstance(content, Mapping)]

    @cached_property
    def fields(self) -> list[str]:
        """The names of the fields, in the order in which records have them."""
        return list(dict.fromkeys(str(name) for row in self.rows for name in row))

    def fields_of(self, file: Path) -> set[str]:
        """The names of the fields of one of the files."""
        contents = (raw.content for raw in raw_records(file))
        return {name for row in contents if isinstance(row, Mapping) for name in row}

    @property
    def name_splits(self) -> bool:
        """Whether the name of a file says that it is a published split."""
        return any(p.search(file.name) for p in SPLITS.values() for file in self.members)

    def described(self) -> str:
        """What is there: the fields and what they hold, or the first lines."""
        if self.rows:
            return "fields " + "; ".join(f"{n!r}: {described(self.rows, n)}" for n in self.fields)
        if self.are_tables:
            return "no record that is an object with fields"
        lines = (line for line in decode(self.members[0]).split("\n") if line.strip())
        shown = [repr(line[:60]) for line, _ in zip(lines, range(SHOWN), strict=False)]
        return f"lines such as {'; '.join(shown)}"


def divided(by: str | None) -> dict[str, Any]:
    """`split` of a corpus by shares of its records, those of a group together."""
    return {"by": by, "test": 0.2, "valid": 0.1}


def why_divided(rows: Sequence[Row], by: str | None) -> dict[str, str]:
    """The reasons for `divided`."""
    group = f"guessed: {shown(rows, by)}" if by else "guessed: none repeats; by document"
    return {"split.by": group, "split.test": "share of records, of all"}


def language_of(rows: Sequence[Row], fields: Iterable[str]) -> str | None:
    """The field that names the language of a record."""
    named = (name for name in fields if words(name) & {*LANGUAGES})
    return next((n for n in named if any(isinstance(row.get(n), str) for row in rows)), None)


def id_of(rows: Sequence[Row], fields: Iterable[str]) -> str | None:
    """The field that identifies a record."""
    for name in fields:
        values = _values(rows, name)
        if words(name) & {*IDS} and values and len({*values}) == len(values):
            return name
    return None


def group_of(rows: Sequence[Row], fields: Iterable[str]) -> str | None:
    """The field whose values repeat as those of a template or an author do; never a label.

    A name that says so comes first; then the field with the most values, the finest division.
    """
    ranked = []
    for name in fields:
        values, said = _values(rows, name), words(name)
        if not values or said & LABELS:
            continue
        counts = Counter(values)
        named = bool(said & GROUPS)
        repeats = len(counts) < len(values) if named else 2 * len(counts) <= len(values)
        plain = named or all(isinstance(row[name], str) for row in rows)
        even = counts.most_common(1)[0][1] <= len(values) / 4
        if repeats and plain and even and len(counts) >= FEWEST_GROUPS:
            ranked.append((named, len(counts), name))
    return max(ranked)[2] if ranked else None


def words(name: str) -> set[str]:
    """`templateId` and `template_id` are the words template and id."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def shown(rows: Sequence[Row], name: str | None) -> str | None:
    """How many values a field has, and the most frequent."""
    if name is None:
        return None
    counts = Counter(str(row.get(name)) for row in rows)
    first = ", ".join(value[:20] for value, _ in counts.most_common(SHOWN))
    more = ", ..." if len(counts) > SHOWN else ""
    values = "value" if len(counts) == 1 else "values"
    records = "record" if len(rows) == 1 else "records"
    return f"{len(counts):,} {values} in {len(rows):,} {records} ({first}{more})"


def is_int(value: Any) -> bool:
    """Whether a JSON value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def described(rows: Sequence[Row], name: str) -> str:
    """What a field holds: `text, 2 values`, `list of list`."""
    values = [row[name] for row in rows if row.get(name) not in (None, "", [])]
    if not values:
        return "nothing"
    kind = Counter(map(_kind, values)).most_common(1)[0][0]
    if (
        kind in ("text", "number")
        and len(few := {str(value) for value in values}) < len(values) / 2
    ):
        return f"{kind}, {len(few):,} values"
    return kind


def strings(rows: Sequence[Row], name: str) -> Iterator[str]:
    """The values of a field that are texts."""
    return (row[name] for row in rows if isinstance(row.get(name), str))


def _kind(value: Any) -> str:
    match value:
        case str():
            return "text"
        case bool() | int() | float():
            return "number"
        case list():
            return f"list of {_kind(value[0])}s" if value else "empty list"
        case Mapping():
            return f"object ({', '.join(map(str, value))})"
        case _:
            return type(value).__name__


def _values(rows: Sequence[Row], name: str) -> list[str] | None:
    """The values of a field that each record has, as text; None for any other field."""
    values = [row.get(name) for row in rows]
    return (
        [str(v) for v in values] if all(isinstance(v, str) or is_int(v) for v in values) else None
    )
