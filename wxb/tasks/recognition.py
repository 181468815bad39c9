"""Recognize the task of files for `wxb new corpus`, by field names and signatures of formats.

A task that `wxb new` supports has a folder `new` with two files: `records.yaml`, the known names of
its fields (`Records`), and `study.yaml`, the blocks of a first study. A function `recognize(files,
records, flags)` in `new/__init__.py` replaces `Records.recognize`; `records` are the task's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field
from ruamel.yaml import YAML

from wxb.core.errors import WxbError
from wxb.core.params.section import Section
from wxb.core.params.tasks import FOLDER, names
from wxb.corpora.formats import raw_records
from wxb.corpora.layout import SUFFIXES, decode
from wxb.tasks import get

Content = dict[str, Any]  # of a block of `corpora`, without `task` and `path`
Row = Mapping[str, Any]
Flags = Mapping[str, str]  # fields or columns that the user named, by flag: {"input": "body"}

# In CoNLL-2002, esp.testa is for validation and esp.testb for the test.
SPLITS = {
    "train": re.compile(r"train", re.IGNORECASE),
    "valid": re.compile(r"valid(?!ated)|dev|testa|(?<![a-z])val(?![a-z])", re.IGNORECASE),
    "test": re.compile(r"test(?!a(?![a-z]))", re.IGNORECASE),
}
NO_GROUP = "-"  # of the flag --group
SHOWN, WIDTH = 3, 40  # values, or lines, that an error shows, and characters of one
MAX_FIELDS = 20  # that an error shows

# Known names of fields in all tasks, see `normalized`.
IDS = ("id", "uid", "uuid", "guid", "idx", "index", "key", "sentenceid", "recordid")
LANGUAGES = ("language", "lang", "locale")
GROUPS = (
    *("group", "groupid", "template", "templateid", "author", "authorid", "user", "userid"),
    *("speaker", "speakerid", "article", "articleid", "doc", "docid", "document", "documentid"),
    *("patient", "patientid", "thread", "threadid", "conversationid", "dialogid", "dialogueid"),
)


class FlagError(WxbError):
    """Raised for files that need an option of `wxb new corpus`, which the message names."""


@dataclass(frozen=True)
class Files:
    """The files at a path that may hold records, sorted: those with fields if any, else all.

    `columns`: the names of the columns of tables without a header.
    """

    path: Path
    members: tuple[Path, ...]
    columns: tuple[str, ...] = ()

    @property
    def has_fields(self) -> bool:
        """Whether the files hold records with fields."""
        return bool(self.columns) or self.members[0].suffix.lower() in SUFFIXES

    @cached_property
    def rows(self) -> list[Row]:
        """The objects in all files; none for files without fields."""
        columns, files = self.columns or None, self.members if self.has_fields else ()
        raws = (raw for file in files for raw in raw_records(file, columns=columns))
        return [raw.content for raw in raws if isinstance(raw.content, Mapping)]

    def lines(self, file: Path) -> Iterator[str]:
        """The lines of a file without fields that are not blank."""
        return filter(str.strip, decode(file).split("\n"))

    def summary(self) -> str:
        """The fields with some values, or else the first lines, for error messages."""
        if not self.has_fields:
            lines = [*islice(self.lines(self.members[0]), SHOWN)]
            return "\n  ".join(["the lines", *map(_shown, lines)])
        fields = fields_of(self.rows)[:MAX_FIELDS]
        if not fields:
            return "no record that is an object with fields"
        samples = {name: values(self.rows, name)[:SHOWN] for name in fields}
        shown = (f"{_shown(name)}: {', '.join(map(_shown, s))}" for name, s in samples.items())
        return "\n  ".join(["the fields", *shown])


class Records(Section):
    """The file `new/records.yaml` of a task: the names of its fields.

    `expected`: what records look like, for errors. `input` and `gold`: the keys of a block's
    `fields` that the flags --input and --gold name. `fields`: the known names for each of these
    keys. `pair`: if two fields have such names, they are the first two keys, in their order.
    `forms`: the keys of a record, of which the first list that is complete counts. `optional`: the
    keys that are null if no field has them. `groups`: the keys whose field groups records; by
    default, any field with a known name does.
    """

    expected: str
    input: str = "input"
    gold: str = ""
    fields: dict[str, list[str]] = Field(default={})
    pair: list[str] = Field(default=[])
    forms: list[list[str]] = Field(default=[])
    optional: list[str] = Field(default=[])
    groups: list[str] | None = None

    def recognize(self, files: Files, flags: Flags) -> Content | None:
        """The block for files of this task; None for other files.

        Raises FlagError if several fields have known names, and WxbError for files of this task
        that must be changed before they can be read.
        """
        return self.block(files.rows, flags, files.columns) if files.has_fields else None

    def block(self, rows: list[Row], flags: Flags, columns: tuple[str, ...] = ()) -> Content | None:
        """As `recognize`, for records."""
        found = self._candidates(rows, flags)
        form = next((form for form in self.forms if all(found.get(key) for key in form)), None)
        if form is None:
            return None
        for key in form:
            flag = {self.input: "input", self.gold: "gold"}.get(key, key)
            _single(flag, found[key], "choose one")
        fields: dict[str, Any] = dict.fromkeys(self.optional)
        fields |= {key: names[0] for key, names in found.items() if len(names) == 1}
        others = [name for name in fields_of(rows) if name not in fields.values()]
        ids = [n for n in named(others, IDS) if len({str(row.get(n)) for row in rows}) == len(rows)]
        fields = {"id": next(iter(ids), None), **fields}
        fields["language"] = next(iter(named(others, LANGUAGES)), None)
        content: Content = {"columns": [*columns]} if columns else {}
        return {**content, "fields": fields, "split": self._split(rows, fields, flags)}

    def _candidates(self, rows: list[Row], flags: Flags) -> dict[str, list[str]]:
        """The fields that may be each key. Case, spaces, `_` and `-` of names are ignored."""
        keys = {"input": self.input, "gold": self.gold}
        flags = {keys.get(flag, flag): name for flag, name in flags.items()}
        names = [name for name in fields_of(rows) if name not in flags.values()]
        found = {}
        for key, known in self.fields.items():
            usual = named(names, [*map(normalized, known)])
            candidates = [flags[key]] if key in flags else usual
            found[key] = [name for name in candidates if _fits(key, values(rows, name))]
            names = [name for name in names if [name] != found[key]]
        pair = named(names, [*map(normalized, self.pair)])
        if len(pair) == 2 and not all(found.values()):
            return dict(zip(self.fields, ([name] for name in pair), strict=True))
        return found

    def _split(self, rows: list[Row], fields: Content, flags: Flags) -> Content:
        """`split` of the block: shares of records, which stay together by a field, if any."""
        shares = {"test": 0.2, "valid": 0.1}
        if self.groups == []:
            return shares
        if group := flags.get("group"):
            return {"by": None if group == NO_GROUP else group, **shares}
        others = [name for name in fields_of(rows) if name not in fields.values()]
        groups = others if self.groups is None else filter(None, map(fields.get, self.groups))
        known = [n for n in groups if self.groups or normalized(n) in GROUPS]
        known = [name for name in known if all(row.get(name) not in (None, "") for row in rows)]
        advice = f"choose the field whose records stay in one split, or `{NO_GROUP}` for none"
        return {"by": _single("group", known, advice), **shares}


def tasks() -> list[str]:
    """The names of the tasks that `wxb new` supports."""
    return [name for name in names() if (FOLDER / name / "new/records.yaml").exists()]


def records(task: str) -> Records:
    """Load the `records.yaml` of a task."""
    return Records.model_validate(YAML(typ="safe").load(FOLDER / task / "new/records.yaml"))


def recognize(task: str, files: Files, flags: Flags | None = None) -> Content | None:
    """As `Records.recognize`, by the task's own function if it has one."""
    own, known = get(task).new, records(task)
    if own is None:
        return known.recognize(files, flags or {})
    content: Content | None = own.recognize(files, known, flags or {})
    return content


def template(task: str) -> str:
    """The text of a task's `study.yaml`, in which `$study` and `$corpus` stand for names."""
    return (FOLDER / task / "new/study.yaml").read_text(encoding="utf-8")


def normalized(name: str) -> str:
    """The name of a field without case, spaces, `_` and `-`."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def named(fields: list[str], known: list[str] | tuple[str, ...]) -> list[str]:
    """The fields with known names."""
    return [field for field in fields if normalized(field) in known]


def fields_of(rows: list[Row]) -> list[str]:
    """The names of all fields, in the order of their first record."""
    return list(dict.fromkeys(name for row in rows for name in row))


def values(rows: list[Row], name: str) -> list[Any]:
    """The values of a field that are not empty."""
    return [row[name] for row in rows if row.get(name) not in (None, "", [])]


def is_split(name: str) -> bool:
    """Whether a file or folder is named as a published split."""
    return any(pattern.search(name) for pattern in SPLITS.values())


def _fits(key: str, values: list[Any]) -> bool:
    """Whether a field has values, and these are lists of objects for the key `messages` only.

    Raises WxbError for lists of objects that are not messages.
    """
    first = values[0] if values else None
    if not (isinstance(first, list) and isinstance(first[0], Mapping)):
        return bool(values) and key != "messages" and not isinstance(first, list | Mapping)
    if key == "messages" and not {"role", "content"} <= {*first[0]}:
        raise WxbError(
            f"found objects with {', '.join(map(str, first[0]))}; expected messages with the keys"
            " `role` (system, user, assistant) and `content`: rename them"
        )
    return key == "messages"


def _single(flag: str, names: list[str], advice: str) -> str | None:
    """The name of a field, if any. Raises FlagError for several."""
    if len(names) > 1:
        raise FlagError(f"--{flag}: found {' and '.join(map(_shown, names))}; {advice}")
    return next(iter(names), None)


def _shown(value: Any) -> str:
    """A value of a record on one line, truncated."""
    text = ascii(value) if not str(value).isprintable() else repr(value)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
