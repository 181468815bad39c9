"""Recognize the task of files for `wxb new corpus`, and guess the block that reads them.

A task that `wxb new` supports has a folder `new` with two files: `records.yaml`, the usual names of
its fields (`Records`), and `study.yaml`, the blocks of a first study. A function
`guess(files, records)` in `new/__init__.py` replaces `Records.guess`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field
from ruamel.yaml import YAML

from wxb.core.errors import WxbError
from wxb.core.params.section import Section
from wxb.core.params.tasks import FOLDER, names
from wxb.tasks import get, tables
from wxb.tasks.tables import normalized
from wxb.tasks.values import (
    Files,
    Row,
    field_type,
    group_field,
    id_field,
    is_int,
    language_field,
    split_reasons,
    split_settings,
    strings,
    value_counts,
)

RECORDS, STUDY = "records.yaml", "study.yaml"
MAX_CLASSES = 200
MIN_DISTINCT = 0.3  # share of different values in a field of texts; classes repeat more


class Guess(NamedTuple):
    """A guess at a block of `corpora`.

    `content`: its keys, without `task` and `path`. `reasons`: comments on them by dotted key.
    `notes`: for the user. `evidence`: how many properties of the files the task explains; the task
    with the most wins.
    """

    content: dict[str, Any]
    reasons: dict[str, str]
    notes: list[str]
    evidence: int


Kind = Literal["anything", "text", "texts", "classes", "messages", "absent", "unused"]


class Form(Section):
    """One form of a task's records.

    `holds`: the kind of some fields. `text` has at least one text; `texts` are texts that seldom
    repeat; `classes` are few values; `messages` are lists of objects with `role` and `content`.
    An `absent` field must not exist; an `unused` one is left out of the block.
    `files`: the key of the block that maps each file to its class, if no field is the class.
    `evidence`: as in `Guess`; by default the number of required fields.
    """

    holds: dict[str, Kind]
    files: str | None = None
    evidence: int | None = None


class Records(Section):
    """The file `new/records.yaml` of a task: how its records are recognized.

    `expected`: what they look like, for errors. `fields`: for each key of a block's `fields`, the
    usual names, the likeliest first. `pair`: if two fields have such names, they are the first two
    of these keys, in their order. `columns`: names for tables, and lines with tabs, without a
    header. `forms`: the first that fits is used. `optional`: the keys that are null if no
    field is found. `groups`: the keys of fields that may group records, by default all fields
    without a key. `reasons`: comments of the block by dotted key, which replace the usual ones.
    """

    expected: str
    fields: dict[str, list[str]] = Field(default={})
    pair: list[str] = Field(default=[])
    columns: list[str] = Field(default=[])
    forms: list[Form] = Field(default=[])
    optional: list[str] = Field(default=[])
    groups: list[str] | None = None
    reasons: dict[str, str] = Field(default={})

    def guess(self, files: Files) -> Guess | None:
        """The block for files of this task; None for other files.

        Raises WxbError for files of this task that must be changed before they can be read.
        """
        if self.columns:
            files = self._with_columns(files)
        fields = self._fields_by_key(files)
        for form in self.forms:
            fits = all(_fits_kind(kind, files, fields.get(key)) for key, kind in form.holds.items())
            if fits and (form.files is None or _are_class_files(files)):
                unused = {key for key, kind in form.holds.items() if kind == "unused"}
                used = {key: name for key, name in fields.items() if key not in unused}
                return self._block(files, form, used)
        return None

    def _with_columns(self, files: Files) -> Files:
        """The files with names of columns if they are tables, or lines with tabs, without a header.

        Texts are the first columns of texts, or the longest ones after those of classes.
        """
        rows = files.table
        has_classes = any("classes" in form.holds.values() for form in self.forms)
        may_have_header = files.are_tables or has_classes
        if not rows or (may_have_header and tables.has_header(rows, known_names())):
            return files
        columns = [[row[index] for row in rows] for index in range(len(rows[0]))]
        classes = [i for i, values in enumerate(columns) if _are_few(values)][:1]
        if has_classes:
            others = [i for i in range(len(columns)) if i not in classes]
            text = tables.longest_column(rows, others)
            indices = [] if text is None else [text, *classes]
        elif classes and files.are_tables:
            return files  # texts with a class, whatever the other columns
        else:
            indices = [i for i, values in enumerate(columns) if _are_texts(values)][:2]
        if len(indices) < len(self.columns):
            return files
        return replace(files, columns=tables.name_columns(rows, self.columns, indices))

    def _fields_by_key(self, files: Files) -> dict[str, str]:
        """The names of the files' fields by key. Case, `_` and `-` of names are ignored."""
        by_name = {normalized(name): name for name in reversed(files.fields)}
        fields: dict[str, str] = {}
        for key, usual_names in self.fields.items():
            usual = map(normalized, usual_names)
            field = next((by_name[name] for name in usual if name in by_name), None)
            if field is not None and field not in fields.values():
                fields[key] = field
        pair = [name for name in files.fields if name.casefold() in self.pair]
        if len(pair) == 2 and fields.keys() != self.fields.keys():
            return dict(zip(self.fields, pair, strict=True))
        return fields

    def _block(self, files: Files, form: Form, fields: Mapping[str, str]) -> Guess:
        """The block for fields that fit a form, with language, id and group."""
        rows, others = files.rows, [name for name in files.fields if name not in fields.values()]
        id_, language = id_field(rows, others), language_field(rows, others)
        keys = {**fields, "id": fields.get("id", id_), "language": language}
        keys |= dict.fromkeys(key for key in self.optional if key not in fields)
        content: dict[str, Any] = {"columns": files.columns} if files.columns else {}
        reasons = {"columns": f"guessed: {len(rows):,} rows without a header"}
        for key, name in fields.items():
            describe = value_counts if form.holds.get(key) == "classes" else field_type
            reasons[f"fields.{key}"] = f"guessed: {describe(rows, name)}"
        groups = others if self.groups is None else [fields[k] for k in self.groups if k in fields]
        by = group_field(rows, groups)
        content |= {"fields": keys, "split": split_settings(by)}
        reasons |= split_reasons(rows, by) | self.reasons
        if self.groups == []:
            del content["split"]["by"]
        if form.files:
            content[form.files] = {escape(n): n.partition(".")[0].lower() for n in files.names}
            reasons[form.files] = "guessed: each file is a class"
        required = [kind for kind in form.holds.values() if kind not in ("absent", "unused")]
        return Guess(content, reasons, [], form.evidence or len(required))


@cache
def known_names() -> frozenset[str]:
    """The usual names of fields in all tasks, which a header may have."""
    every = [records(task) for task in tasks()]
    names = [name for r in every for usual in r.fields.values() for name in usual]
    return frozenset(map(normalized, names))


class Hook(Protocol):
    """The module `new` of a task that replaces `Records.guess`."""

    def guess(self, files: Files, records: Records) -> Guess | None:
        """As `Records.guess`, with the task's own `records`."""


def tasks() -> list[str]:
    """The names of the tasks that `wxb new` supports."""
    return [name for name in names() if (_folder(name) / RECORDS).exists()]


def records(task: str) -> Records:
    """Load the `records.yaml` of a task."""
    return Records.model_validate(YAML(typ="safe").load(_folder(task) / RECORDS))


def guess(task: str, files: Files) -> Guess | None:
    """The block of `corpora` for files, if they are of this task; else None.

    Raises WxbError for files of this task that must be changed before they can be read.
    """
    hook = get(task).new
    return hook.guess(files, records(task)) if hook else records(task).guess(files)


def template(task: str) -> str:
    """The text of a task's `study.yaml`, in which `$study` and `$corpus` stand for names."""
    return (_folder(task) / STUDY).read_text(encoding="utf-8")


def _folder(task: str) -> Path:
    return FOLDER / task / "new"


def _fits_kind(kind: Kind, files: Files, name: str | None) -> bool:
    """Whether a field, None if it does not exist, fits the kind that a form requires.

    Raises WxbError for lists of objects that are not messages.
    """
    if name is None or kind in ("absent", "unused"):
        return kind == "unused" or (name is None and kind == "absent")
    match kind:
        case "text":
            return any(strings(files.rows, name))
        case "texts":
            return _are_texts([*strings(files.rows, name)])
        case "classes":
            return _are_classes(files.rows, name)
        case "messages":
            return _are_messages(files, name)
        case _:
            return True


def _are_texts(values: Sequence[str]) -> bool:
    """Whether there are texts with letters, most of them different."""
    with_letters = sum(any(map(str.isalpha, value)) for value in values)
    return len({*values}) > MIN_DISTINCT * len(values) and 2 * with_letters > len(values)


def _are_classes(rows: Sequence[Row], name: str) -> bool:
    """Whether a field has few values, each for two records on average.

    All are strings or whole numbers, such as 5.0.
    """
    values = [row[name] for row in rows if row.get(name) not in (None, "", [])]
    are_names = all(isinstance(v, str) or is_int(v) or _is_whole(v) for v in values)
    return are_names and _are_few(values)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and (value != value or value.is_integer())


def _are_few(values: Sequence[Any]) -> bool:
    return 2 <= len({*map(str, values)}) <= min(MAX_CLASSES, len(values) / 2)


def _are_messages(files: Files, name: str) -> bool:
    """Whether a field holds lists of objects. Raises WxbError if these are no messages."""
    lists = (row[name] for row in files.rows if isinstance(row.get(name), list) and row[name])
    keys = next(({*items[0]} for items in lists if isinstance(items[0], Mapping)), set())
    if keys and not {"role", "content"} <= keys:
        raise WxbError(
            f"{files.path}: found {name!r} of objects with {', '.join(sorted(keys))};"
            " expected the keys `role` (system, user, assistant) and `content`: rename them"
        )
    return bool(keys)


def _are_class_files(files: Files) -> bool:
    """Whether each file may be a class: not those of published splits or of a single record."""
    is_few = 2 <= len(files.members) <= min(MAX_CLASSES, len(files.rows) / 2)
    return is_few and not files.has_split_names
