"""How `wxb new` recognizes files that nobody has described, and guesses how to read them.

A task that it is to recognize has a folder `new` with two files: `records.yaml`, its records'
fields by the names that users give them (`Records`), and `study.yaml`, the blocks of a first study.
If its files are special, a function `guess(files, records)` in `new/__init__.py` is called instead
of `Records.guess`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field
from ruamel.yaml import YAML

from wxb.core.errors import WxbError
from wxb.core.params.section import Section
from wxb.core.params.tasks import FOLDER, names
from wxb.tasks import get
from wxb.tasks.values import (
    Files,
    Row,
    described,
    divided,
    group_of,
    id_of,
    is_int,
    language_of,
    shown,
    strings,
    why_divided,
)

RECORDS, STUDY = "records.yaml", "study.yaml"
MOST_CLASSES = 200
DISTINCT = 0.3  # of the texts of a field, at least: classes repeat


class Guess(NamedTuple):
    """Keys of a block of `corpora`, the reasons for them (by dotted key), and notes for the user.

    `evidence` is the number of things in the files that speak for the task: of several tasks, the
    one with the most is meant.
    """

    content: dict[str, Any]
    why: dict[str, str]
    notes: list[str]
    evidence: int


Kind = Literal["anything", "text", "texts", "classes", "messages", "absent", "unused"]


class Form(Section):
    """A form that records of a task have.

    `holds`: what some fields must hold. `text` is at least one text; `texts` are texts that seldom
    repeat; `classes` are few values; `messages` are lists of objects with `role` and `content`.
    A field that is `absent` must not be there; one that is `unused` is left out of the block.
    `files`: the key of the block that maps each file to its class, if the records do not name it.
    `evidence`: as in `Guess`; by default the number of fields that must be there.
    """

    holds: dict[str, Kind]
    files: str | None = None
    evidence: int | None = None


class Records(Section):
    """The file `new/records.yaml` of a task: how its records are recognized.

    `expected`: what they look like, for errors. `fields`: the names of each key of `fields` in a
    block of `corpora`, the likeliest first. `pair`: two fields with these names are the first two
    of these keys, in their order. `columns`: the first cells of lines divided by tabs, in files
    without fields. `forms`: the first that fits counts. `optional`: the keys that are null if no
    field is found. `groups`: the keys that may keep records together, by default all other fields.
    `why`: comments of the block by dotted key, instead of the usual ones.
    """

    expected: str
    fields: dict[str, list[str]] = Field(default={})
    pair: list[str] = Field(default=[])
    columns: list[str] = Field(default=[])
    forms: list[Form] = Field(default=[])
    optional: list[str] = Field(default=[])
    groups: list[str] | None = None
    why: dict[str, str] = Field(default={})

    def guess(self, files: Files) -> Guess | None:
        """What a block of `corpora` should say, `task` and `path` aside; None of other files.

        Raises WxbError for files that are of this task, but cannot be read as they are.
        """
        if self.columns:
            files = files.with_columns(self.columns)
        fields = self._by_names(files)
        for form in self.forms:
            fits = all(_holds(kind, files, fields.get(key)) for key, kind in form.holds.items())
            if fits and (form.files is None or _are_classes(files)):
                unused = {key for key, kind in form.holds.items() if kind == "unused"}
                used = {key: name for key, name in fields.items() if key not in unused}
                return self._block(files, form, used)
        return None

    def _by_names(self, files: Files) -> dict[str, str]:
        """The fields of files by key. Capitals, `_` and `-` of names do not count."""
        called = {_plain(name): name for name in reversed(files.fields)}
        fields: dict[str, str] = {}
        for key, likely in self.fields.items():
            name = next((called[n] for n in map(_plain, likely) if n in called), None)
            if name is not None and name not in fields.values():
                fields[key] = name
        pair = [name for name in files.fields if name.casefold() in self.pair]
        if len(pair) == 2 and fields.keys() != self.fields.keys():
            return dict(zip(self.fields, pair, strict=True))
        return fields

    def _block(self, files: Files, form: Form, fields: Mapping[str, str]) -> Guess:
        """The block for fields that fit a form: with language, id and group."""
        rows, others = files.rows, [name for name in files.fields if name not in fields.values()]
        own_id, language = id_of(rows, others), language_of(rows, others)
        keys = {**fields, "id": fields.get("id", own_id), "language": language}
        keys |= dict.fromkeys(key for key in self.optional if key not in fields)
        content: dict[str, Any] = {"columns": files.columns} if files.columns else {}
        why = {"columns": f"guessed: {len(rows):,} lines of as many cells, divided by tabs"}
        for key, name in fields.items():
            holds = shown if form.holds.get(key) == "classes" else described
            why[f"fields.{key}"] = f"guessed: {holds(rows, name)}"
        groups = self.groups if self.groups is None else [fields.get(key) for key in self.groups]
        by = group_of(rows, others if groups is None else filter(None, groups))
        content |= {"fields": keys, "split": divided(by)}
        why |= why_divided(rows, by) | self.why
        if self.groups == []:
            del content["split"]["by"]
        if form.files:
            content[form.files] = {escape(n): n.partition(".")[0].lower() for n in files.names}
            why[form.files] = "guessed: each file is a class"
        needed = [kind for kind in form.holds.values() if kind not in ("absent", "unused")]
        return Guess(content, why, [], form.evidence or len(needed))


class Hook(Protocol):
    """The module `new` of a task whose files are special."""

    def guess(self, files: Files, records: Records) -> Guess | None:
        """What a block of `corpora` should say of files; as `Records.guess`."""


def tasks() -> list[str]:
    """The tasks that are recognized."""
    return [name for name in names() if (_new(name) / RECORDS).exists()]


def records(task: str) -> Records:
    """How the records of a task are recognized."""
    return Records.model_validate(YAML(typ="safe").load(_new(task) / RECORDS))


def guess(task: str, files: Files) -> Guess | None:
    """What a block of `corpora` should say of files, if they are of a task; as `Records.guess`."""
    hook = get(task).new
    return hook.guess(files, records(task)) if hook else records(task).guess(files)


def template(task: str) -> str:
    """The blocks of a first study of a task; `$study` and `$corpus` stand for names."""
    return (_new(task) / STUDY).read_text(encoding="utf-8")


def _new(task: str) -> Path:
    return FOLDER / task / "new"


def _holds(kind: Kind, files: Files, name: str | None) -> bool:
    """Whether a field holds what a form says."""
    if name is None or kind in ("absent", "unused"):
        return kind == "unused" or (name is None and kind == "absent")
    match kind:
        case "text":
            return any(strings(files.rows, name))
        case "texts":
            return _are_texts([*strings(files.rows, name)])
        case "classes":
            return _are_few(files.rows, name)
        case "messages":
            return _are_messages(files, name)
        case _:
            return True


def _are_texts(values: Sequence[str]) -> bool:
    """Whether there are texts with letters, most of them different."""
    letters = sum(any(map(str.isalpha, value)) for value in values)
    return len({*values}) > DISTINCT * len(values) and 2 * letters > len(values)


def _are_few(rows: Sequence[Row], name: str) -> bool:
    values = [row[name] for row in rows if row.get(name) not in (None, "")]
    are_names = all(isinstance(value, str) or is_int(value) for value in values)
    return are_names and 2 <= len({*map(str, values)}) <= min(MOST_CLASSES, len(values) / 2)


def _are_messages(files: Files, name: str) -> bool:
    """Whether a field holds objects. Raises WxbError where they have other keys than messages."""
    lists = (row[name] for row in files.rows if isinstance(row.get(name), list) and row[name])
    keys = next(({*found[0]} for found in lists if isinstance(found[0], Mapping)), set())
    if keys and not {"role", "content"} <= keys:
        raise WxbError(
            f"{files.path}: found {name!r} of objects with {', '.join(sorted(keys))};"
            " expected the keys `role` (system, user, assistant) and `content`: rename them"
        )
    return bool(keys)


def _are_classes(files: Files) -> bool:
    """Whether each file may be a class: those of published splits are none."""
    return 2 <= len(files.members) <= MOST_CLASSES and not files.name_splits


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
