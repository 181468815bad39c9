"""`wxb new corpus` for texts with typed spans: lists of spans, lists of tags, or columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import regex

from wxb.corpora.formats import Raw, raw_records
from wxb.corpora.layout import decode
from wxb.tasks.ner.params import Fields
from wxb.tasks.ner.reading.conll import DOCUMENT, PREFIXES, cells, numbered_lines
from wxb.tasks.ner.reading.tokens import join, with_spans
from wxb.tasks.recognition import (
    SHARES,
    Content,
    Files,
    FlagError,
    Flags,
    Records,
    Row,
    fields_of,
    named,
    only,
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


def recognize(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for records with spans or tags, or for column files; None for other files.

    Raises FlagError if spans, their keys or the column of tags are not known.
    """
    is_tsv = all(file.suffix.lower() == ".tsv" for file in files.members)
    if (not files.has_fields or is_tsv) and (content := _columns(files, flags)):
        return content
    return _spans(files, records, flags) or _tags(files, records, flags)


def _spans(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for records with a list of spans."""
    spans = {name: _first_span(files, name) for name in fields_of(files.rows)}
    keys = {name: _keys(span, flags) for name, span in spans.items() if span}
    gold = flags.get("gold")
    lists = [n for n in keys if (n == gold if gold else {"start", "end"} <= keys[n].keys())]
    lists = [n for n in lists if {*FLAGS} <= keys[n].keys()] or lists
    content = records.block(files.rows, {**flags, "gold": lists[0]}) if lists else None
    if content is None:
        return None
    name = only("gold", lists)
    if lacking := [f"--{flag}" for key, flag in FLAGS.items() if key not in keys[name]]:
        found = f"found spans with the keys {', '.join(spans[name])} in {name!r}"
        raise FlagError(f"{' and '.join(lacking)}: {found}; name theirs")
    content["fields"] |= {"spans": name, **keys[name]}
    return content


def _first_span(files: Files, name: str) -> Mapping[str, Any]:
    """The first object in the lists of a field, in tables parsed from cells; empty without."""
    lists = values(files.rows, name)
    if lists and isinstance(lists[0], str) and lists[0].startswith("[{"):
        raws = (raw.content for file in files.members for raw in raw_records(file, parsed=name))
        lists = values([raw for raw in raws if isinstance(raw, Mapping)], name)
    spans = next((value for value in lists if isinstance(value, list)), [None])
    return spans[0] if isinstance(spans[0], Mapping) else {}


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
    texts = {*records.fields["input"]} - {Fields().input}
    for row in files.rows:
        content = with_spans(Raw("", row)).content
        if isinstance(content, Mapping) and Fields().spans in content:
            rows.append({key: value for key, value in content.items() if key not in texts})
    return records.block(rows, flags) if rows else None


def _columns(files: Files, flags: Flags) -> Content | None:
    """The block for files with a token and its tag on each line; None for other files."""
    rows = [row for file in files.members for row in _rows(file)]
    columns = range(min(map(len, rows), default=0))
    tags = [c for c in columns if all(TAG.fullmatch(row[c]) for row in rows)]
    if not tags and "tag" not in flags:
        return None
    tag = _index("tag", flags) if "tag" in flags else only("tag", tags)
    # The first column may number the tokens of a sentence.
    others = (c for c in columns if c not in tags and not all(row[c].isdigit() for row in rows))
    token = _index("input", flags) if "input" in flags else next(others, None)
    if token is None:
        return None
    conll = {"token": token, "tag": tag, "join": join([row[token] for row in rows])}
    return {"conll": conll, "split": {"by": None, **SHARES}}


def _index(flag: str, flags: Flags) -> int:
    if not flags[flag].isdecimal():
        raise FlagError(f"--{flag}: found {flags[flag]!r}; expected a column, counted from 0")
    return int(flags[flag])


def _rows(file: Path) -> list[list[str]]:
    """The cells of each line that has several; comments and marks of documents are skipped."""
    lines = [line for _, line in numbered_lines(decode(file)) if not line.startswith(DOCUMENT)]
    return [row for line in lines if line and len(row := cells(line)) > 1]
