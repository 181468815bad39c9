"""Recognize the task of files for `wxb new corpus`, by field names and signatures of formats.

A task that `wxb new` supports has a folder `new` with two files: `records.yaml`, the known names of
its fields (`FieldNames`), and `study.yaml`, the blocks of a first study. A function
`recognize(files, field_names, flags)` in `new/__init__.py` replaces `FieldNames.recognize`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field
from ruamel.yaml import YAML

from wxb.core.errors import WxbError, choices
from wxb.core.params.section import Section
from wxb.core.params.tasks import FOLDER, names
from wxb.corpora.adapters import ANNOTATORS, OTHER, adapt, annotator_of
from wxb.corpora.formats import raw_records, with_parsed_cell
from wxb.corpora.layout import SUFFIXES, decode, decode_legacy, has_record_suffix
from wxb.corpora.records import RecordError
from wxb.tasks import get

Block = dict[str, Any]  # of a block of `corpora`, without `task` and `path`
Row = Mapping[str, Any]
Flags = Mapping[str, str]  # fields or columns that the user named, by flag: {"input": "body"}

# In CoNLL-2002, esp.testa is for validation and esp.testb for the test.
SPLITS = {
    "train": re.compile(r"(?<!s)train", re.IGNORECASE),
    "valid": re.compile(
        r"valid(?!ated)|dev(?!ic|ia)|testa|(?<![a-z])(val|eval)(?![a-z])", re.IGNORECASE
    ),
    "test": re.compile(r"(?<!con|pro|rea)(?<!la)test(?!a(?![a-z])|im)|hold.?out", re.IGNORECASE),
}
SPLIT_FIELDS = ("split", "fold", "set", "partition", "istrain", "istest")  # ends of names
NO_GROUP = "-"  # of the flag --group
SHARES = {"test": 0.2, "valid": 0.1}
SHOWN, WIDTH, MAX_FIELDS = 3, 40, 20  # values of a field, characters of one, fields in an error

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

    `columns`: the names of the columns of tables without a header. `annotator`: whose labels count.
    """

    path: Path
    members: tuple[Path, ...]
    columns: tuple[str, ...] = ()
    annotator: str | None = None

    @property
    def has_fields(self) -> bool:
        """Whether the files hold records with fields, by the suffix of the first, or `columns`."""
        return bool(self.columns) or self.members[0].suffix.lower() in SUFFIXES

    @cached_property
    def rows(self) -> list[Row]:
        """The valid records of files with fields; others are skipped.

        FlagError if --annotator is unknown, or missing though several labelled the same texts.
        """
        rows = [content for content in self._record_contents if isinstance(content, Mapping)]
        authors = {name for row in rows if (name := annotator_of(row))}
        strings = ([x for x in r.values() if isinstance(x, str)] for r in rows if annotator_of(r))
        texts = Counter(max(values, key=len, default="") for values in strings)
        if len(authors) > 1 and texts.total() > 1.1 * len(texts):
            raise FlagError(f"--annotator: found {', '.join(sorted(authors))}; name one")
        faults = sorted({e.args for e in self._record_contents if isinstance(e, RecordError)})
        if several := [detail for reason, detail in faults if reason == ANNOTATORS]:
            raise FlagError(f"--annotator: {several[0]}")
        if not rows and {reason for reason, _ in faults} == {OTHER}:
            annotators = {n for _, d in faults for n in d.removeprefix("found ").split(", ")}
            raise FlagError(f"--annotator: found {', '.join(sorted(annotators))}; name one")
        return rows

    @cached_property
    def _record_contents(self) -> list[Any]:
        """All records of files with fields, or RecordErrors; WxbError for unreadable files."""
        files = self.members if self.has_fields else ()
        names = self.columns or None
        raws = (raw for file in files for raw in raw_records(file, None, names, self.annotator))
        return [raw.content for raw in raws]

    def nonblank_lines(self, file: Path) -> Iterator[str]:
        """The nonblank lines of a file; with `has_record_suffix` it may have a legacy encoding."""
        text = decode_legacy(file)[0] if has_record_suffix(file) else decode(file)
        return filter(str.strip, text.split("\n"))

    def summary(self) -> str:
        """For errors: fields with some values, the first lines, or the first record's fault."""
        if self.has_fields and not self.rows and self._record_contents:
            first = self._record_contents[0]
            return ": ".join(first.args) if isinstance(first, RecordError) else _repr(first)
        if self.has_fields:
            names = fields_of(self.rows)[:MAX_FIELDS]
            examples = (", ".join(map(_repr, values(self.rows, name)[:SHOWN])) for name in names)
            lines = [f"{_repr(name)}: {each}" for name, each in zip(names, examples, strict=True)]
        else:
            lines = [_repr(line) for line in islice(self.nonblank_lines(self.members[0]), SHOWN)]
        return "\n  ".join([f"the {'fields' if self.has_fields else 'lines'}", *lines])


class FieldNames(Section):
    """The file `new/records.yaml` of a task: the names of its fields.

    `expected`: what records look like, for errors. `input` and `gold`: the keys of a block's
    `fields` that the flags --input and --gold name. `fields`: the known names for each of these
    keys. `pair`: if two fields have such names, they are the first two keys, in their order.
    `forms`: the keys of a record, of which the first list that is complete counts. `unused`: the
    keys that are null if no field has them. `groups`: the keys whose field groups records; by
    default, any field with a known name does.
    """

    expected: str
    input: str = "input"
    gold: str = ""
    fields: dict[str, list[str]] = Field(default={})
    pair: list[str] = Field(default=[])
    forms: list[list[str]] = Field(default=[])
    unused: list[str] = Field(default=[])
    groups: list[str] | None = None

    def recognize(self, files: Files, flags: Flags) -> Block | None:
        """As `corpus_block` for files of records; None for other files."""
        return self.corpus_block(files.rows, flags, files.columns) if files.has_fields else None

    def corpus_block(
        self, rows: Sequence[Row], flags: Flags, columns: Sequence[str] = ()
    ) -> Block | None:  # None if the records lack fields of every form
        """A block of `fields` (None: unused), `split` and any `columns`; an id has unique values.

        Raises FlagError as `_split` does, and if several fields fit a key of the form.
        """
        known = self._candidates(rows, flags)
        form = next((form for form in self.forms if all(known.get(key) for key in form)), None)
        if form is None:
            return None
        for flag, name in flags.items():
            if flag not in ("input", "gold") and not known.get(flag, [name]):
                fault = f"found no field {name!r} with values"
                raise FlagError(f"--{flag}: {fault}{choices(name, fields_of(rows))}")
        for key in (*form, *(() if "group" in flags else self.groups or ())):
            if known.get(key):
                flag = "speaker" if key == "speaker" else "gold" if key == self.gold else "input"
                only(flag, known[key])
        fields: dict[str, Any] = dict.fromkeys(self.unused)
        fields |= {key: names[0] for key, names in known.items() if len(names) == 1}
        for key, usual in (("id", IDS), ("language", LANGUAGES)):
            names = matching_fields(_other_fields(rows, fields), usual)
            if key == "id":
                unique = [n for n in names if len({*map(str, values(rows, n))}) == len(rows)]
                fields |= {} if unique or "id" not in names else {"id": None}  # else the default
                names = unique
            if key not in fields and names:
                fields[key] = names[0]
        content: Block = {"columns": [*columns]} if columns else {}
        return {**content, "fields": fields, "split": self._split(rows, fields, flags)}

    def _candidates(self, rows: Sequence[Row], flags: Flags) -> dict[str, list[str]]:
        """The fields that fit each key, by its flag or known names; by `pair` if a key has none."""
        keys = {"input": self.input, "gold": self.gold}
        flags = {keys.get(flag, flag): name for flag, name in flags.items()}
        if _fits("messages", values(rows, flags.get("instruction", ""))):
            flags["messages"] = flags.pop("instruction")
        names = _other_fields(rows, flags)
        known = {}
        for key, usual in self.fields.items():
            fields = [flags[key]] if key in flags else matching_fields(names, usual)
            known[key] = [name for name in fields if _fits(key, values(rows, name))]
            if len(known[key]) == 1 and key not in flags:
                names.remove(*known[key])
        pair = matching_fields(names, self.pair)
        pair = [name for name in pair if _fits("input", values(rows, name))]
        if len(pair) == 2 and not all(known.values()):
            return dict(zip(self.fields, ([name] for name in pair), strict=True))
        return known

    def _split(self, rows: Sequence[Row], fields: Block, flags: Flags) -> Block:
        """The value of `split`: SHARES, and `by`, a field or None, unless `groups` is empty.

        Without --group, raises FlagError for published splits, several groups or blank ones.
        """
        group = flags.get("group")
        names = [n for n in _other_fields(rows, fields) if normalized(n).endswith(SPLIT_FIELDS)]
        for name in () if group else names:
            contents = sorted({str(value) for value in values(rows, name)})
            if len(contents) > 1 and any(map(is_named_as_split, [name, *contents])):
                raise FlagError(
                    f"--group: {name!r} has the splits {', '.join(contents)}; write each to its own"
                    f" file, such as train.csv, or ignore them with {NO_GROUP} or a field of groups"
                )
        if self.groups == []:
            return SHARES
        if group:
            return {"by": None if group == NO_GROUP else group, **SHARES}
        names = matching_fields(_other_fields(rows, fields), GROUPS)
        if self.groups:
            names = [fields[key] for key in self.groups if key in fields]
        names = [name for name in names if all(name in row for row in rows)]
        for name in names:
            if count := sum(row[name] in (None, "") for row in rows):
                raise FlagError(
                    f"--group: {name!r} is blank in {count:,} of {len(rows):,} records; choose it,"
                    f" which rejects them, or {NO_GROUP}"
                )
        return {"by": only("group", names, f" or {NO_GROUP}") if names else None, **SHARES}


def supported_tasks() -> list[str]:
    """The names of the tasks that `wxb new` supports."""
    return [name for name in names() if (FOLDER / name / "new/records.yaml").exists()]


def field_names(task: str) -> FieldNames:
    """Load the `records.yaml` of a task."""
    return FieldNames.model_validate(YAML(typ="safe").load(FOLDER / task / "new/records.yaml"))


def recognize(task: str, files: Files, flags: Flags) -> Any:
    """The block for a task's files, else None, by the task's own `recognize` if it has one."""
    if task not in supported_tasks():
        return None
    own, known = get(task).new, field_names(task)
    return own.recognize(files, known, flags) if own else known.recognize(files, flags)


def template(task: str) -> str:
    """The text of a task's `study.yaml`, in which `$study` and `$corpus` stand for names."""
    return (FOLDER / task / "new/study.yaml").read_text(encoding="utf-8")


def only(flag: str, names: Sequence[Any], hint: str = "") -> Any:
    """The only one of `names`. Raises FlagError with `hint` for several, IndexError for none."""
    if len(names) > 1:
        raise FlagError(f"--{flag}: found {' and '.join(map(_repr, names))}; choose one{hint}")
    return names[0]


def normalized(name: str) -> str:
    """The name of a field without case, spaces, `_` and `-`."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def matching_fields(fields: Sequence[str], known: Sequence[str]) -> list[str]:
    """The fields with known names, as `normalized` compares them."""
    names = {*map(normalized, known)}
    return [field for field in fields if normalized(field) in names]


def fields_of(rows: Sequence[Row]) -> list[str]:
    """The names of all fields, in the order of their first record."""
    return list(dict.fromkeys(name for row in rows for name in row))


def values(rows: Sequence[Row], name: str) -> list[Any]:
    """The values of a field except None, empty texts and empty lists."""
    return [row[name] for row in rows if row.get(name) not in (None, "", [])]


def is_named_as_split(name: str) -> bool:
    """Whether the name of a file or field contains that of a published split, such as `train`."""
    return any(pattern.search(name) for pattern in SPLITS.values())


def _other_fields(rows: Sequence[Row], fields: Block | Flags) -> list[str]:
    return [name for name in fields_of(rows) if name not in fields.values()]


def _fits(key: str, values: Sequence[Any]) -> bool:
    """Whether a field has values, the first of which has the type of the key.

    `history` needs a list, `messages` one of messages, or its text. Others need no list or mapping;
    `label` also no text of one, such as "['O']". Most values of an `input` must have a letter.
    """
    if key == "history":
        return bool(values) and isinstance(values[0], list)
    if key == "label" and str(next(iter(values), "")).startswith(("[", "{")):
        return False
    if key == "input" and 2 * sum(any(map(str.isalpha, str(v))) for v in values) < len(values):
        return False  # dates or numbers
    if key != "messages":
        return bool(values) and not isinstance(values[0], list | Mapping)
    cell = next(iter(values), None)
    match adapt(with_parsed_cell({key: cell}, key) if isinstance(cell, str) else {key: cell}):
        case {"messages": [{"role": _, "content": _}, *_]}:
            return True
    return False


def escaped(text: str, width: int = 200) -> str:
    """A text on one line, truncated to `width`, with unprintable characters as escapes."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: 2 * width])
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _repr(value: Any) -> str:
    return escaped(ascii(value) if not str(value).isprintable() else repr(value), WIDTH)
