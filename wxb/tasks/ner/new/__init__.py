"""`wxb new corpus` for texts with typed spans: lists of spans, lists of tags, or columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import regex

from wxb.core.errors import WxbError
from wxb.corpora.formats import Raw, raw_records
from wxb.corpora.layout import TABLES, decode
from wxb.corpora.records import RecordError
from wxb.tasks.ner.params import Fields
from wxb.tasks.ner.reading.conll import DOCUMENT, PREFIXES, cells, numbered_lines
from wxb.tasks.ner.reading.tokens import NUMBERS, join, with_spans
from wxb.tasks.recognition import (
    Content,
    Files,
    FlagError,
    Flags,
    Records,
    Row,
    fields_of,
    named,
    values,
)

# Known keys of spans, by the key of `fields` in params.yaml.
KEYS = {
    "start": ("start", "startposition", "startoffset", "begin", "startchar", "from"),
    "end": ("end", "endposition", "endoffset", "stop", "endchar", "to"),
    "type": ("label", "type", "entitytype", "entity", "tag", "category", "class"),
    "value": ("value", "entityvalue", "text", "mention", "surface", "word", "string"),
}
FLAGS = {"start": "start", "end": "end", "type": "tag"}  # by the key of `fields`
TAG = regex.compile(rf"O|[{''.join(sorted(PREFIXES))}]-.+")
SHARE = 0.99  # of lines with a tag; the reader rejects the others
# The phrases of CoNLL-2000, whose tags precede those of entities in CoNLL-2003.
CHUNKS = {*("ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP")}
NUMBERED = regex.compile(r".\d{1,2}")  # a character and its index in a word, as in Weibo


def recognize(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for records with spans or tags, or for column files; None for other files.

    Raises FlagError if spans, their keys or the column of tags are not known, and WxbError for tags
    without names.
    """
    is_tsv = all(file.suffix.lower() == ".tsv" for file in files.members)
    if (not files.has_fields or is_tsv) and (content := _columns(files, flags)):
        return content
    return _spans(files, records, flags) or _tags(files, records, flags)


def _spans(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for records with a list of spans."""
    rows = files.rows
    if not rows:
        return None
    first = {name: _first_span(files, name) for name in fields_of(rows)}
    keys = {name: _keys(span, flags) for name, span in first.items() if span}
    gold = flags.get("gold")
    lists = [name for name in keys if name == gold or (not gold and len(keys[name]) > 1)]
    complete = [name for name in lists if {*FLAGS} <= keys[name].keys()]
    if not lists or not (content := records.block(rows, {**flags, "gold": lists[0]})):
        return None
    if len(complete) > 1:
        raise FlagError(f"--gold: found spans in {' and '.join(complete)}; choose one")
    for name in lists if not complete else ():
        lacking = [f"--{flag}" for key, flag in FLAGS.items() if key not in keys[name]]
        raise FlagError(
            f"{' and '.join(lacking)}: found spans with the keys {', '.join(first[name])} in"
            f" {name!r}; name theirs"
        )
    spans = complete[0]
    content["fields"] |= {"spans": spans, "value": None, **keys[spans]}
    return content


def _first_span(files: Files, name: str) -> Mapping[str, Any]:
    """The first object in the lists of a field, in tables parsed from cells; empty without."""
    found = values(files.rows, name)
    if found and isinstance(found[0], str) and files.members[0].suffix.lower() in TABLES:
        if not found[0].startswith("[{"):
            return {}
        raws = (raw.content for file in files.members for raw in raw_records(file, parsed=name))
        found = values([raw for raw in raws if isinstance(raw, Mapping)], name)
    spans = next((value for value in found if isinstance(value, list)), [])
    return spans[0] if spans and isinstance(spans[0], Mapping) else {}


def _keys(span: Mapping[str, Any], flags: Flags) -> dict[str, str]:
    """The keys of a span by the keys of `fields`, as far as they are known."""
    keys = {key: flags[flag] for key, flag in FLAGS.items() if flag in flags}
    for key, known in KEYS.items():
        names = named([name for name in span if name not in keys.values()], known)
        if len(names) == 1 and key not in keys:
            keys[key] = names[0]
    return keys


def _tags(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for records with a list of tokens and a list of their tags."""
    rows: list[Row] = []
    for row in files.rows:
        content = with_spans(Raw("", row)).content
        if isinstance(content, RecordError) and content.reason == NUMBERS:
            raise WxbError(f"{files.path}: {content.reason}: {content.detail}")
        if isinstance(content, Mapping) and Fields().spans in content:
            texts = {*records.fields["input"]} - {Fields().input}
            rows.append({key: value for key, value in content.items() if key not in texts})
    return records.block(rows, flags) if rows else None


def _columns(files: Files, flags: Flags) -> Content | None:
    """The block for files with a token and its tag per line; None if fewer than half of them are.

    Raises WxbError for the first file that is not, and FlagError for several columns of tags.
    """
    tables = {file: _lines(file) for file in files.members}
    tags = {file: _tag_columns(lines) for file, lines in tables.items()}
    if "tag" in flags:
        tags = {file: [_index("tag", flags)] for file in tags}
    if 2 * sum(map(bool, tags.values())) < len(tags):
        return None
    for file, columns in tags.items():
        if not columns:
            raise WxbError(
                f"{file}: found {Files(file, (file,)).summary()}\nOther files here have a token and"
                " its tag per line, such as B-NAME; remove the file from the folder"
            )
    columns = [c for c in tags[files.members[0]] if all(c in found for found in tags.values())]
    if len(columns) != 1:
        raise FlagError(
            f"--tag: found tags in the columns {' and '.join(map(str, columns))}, counted from 0;"
            " choose one"
        )
    rows = [line for lines in tables.values() for line in lines if len(line) > columns[0]]
    if not rows:
        return None
    others = [
        c
        for c in range(min(map(len, rows)))
        if c not in tags[files.members[0]] and not all(row[c].isdigit() for row in rows)
    ]
    token = _index("input", flags) if "input" in flags else next(iter(others), None)
    if token is None:
        return None
    tokens = [row[token] for row in rows]
    conll: Content = {"token": token, "tag": columns[0], "join": join(tokens)}
    if sum(bool(NUMBERED.fullmatch(word)) for word in tokens) > 0.95 * len(tokens):
        conll["characters"] = True
    return {"conll": conll, "split": {"by": None, "test": 0.2, "valid": 0.1}}


def _index(flag: str, flags: Flags) -> int:
    if not flags[flag].isdecimal():
        raise FlagError(f"--{flag}: found {flags[flag]!r}; expected a column, counted from 0")
    return int(flags[flag])


def _lines(file: Path) -> list[list[str]]:
    """The cells of each line that has several; comments and marks of documents are skipped."""
    lines = [line for _, line in numbered_lines(decode(file)) if not line.startswith(DOCUMENT)]
    rows = [cells(line) for line in lines if line]
    full = [row for row in rows if len(row) > 1]
    return full if 2 * len(full) >= len(rows) and len(full) > 1 else []


def _tag_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns of tags, except those of phrases, or only of O, if there are others."""
    columns: list[tuple[bool, bool, int]] = []
    for column in range(max(map(len, rows), default=0)):
        found = [row[column].strip() for row in rows if len(row) > column]
        tags = [cell for cell in found if TAG.fullmatch(cell)]
        if len(tags) >= SHARE * len(rows):
            types = {tag[2:] for tag in tags} - {""}
            columns.append((not types, types <= CHUNKS, column))
    best = min(columns, default=())[:2]
    return [column for *rank, column in columns if tuple(rank) == best]
