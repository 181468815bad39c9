"""Files of texts: the inputs of a command, the texts in them, and the outputs.

CSV and JSON are parsed and written again: values stay the same, but white space between JSON
tokens, JSON escapes and optional CSV quotes may change.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from tqdm import tqdm

from wxb import WxbError
from wxb.core.errors import did_you_mean
from wxb.core.files import publish

Format = Literal["text", "jsonl", "json", "csv"]
SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
}
DELIMITERS = ",;\t|"
# A batch ends at one of these limits; all of it is in memory.
DOCUMENTS, CHARACTERS = 256, 100_000

_BOM = "\ufeff"


class Source(NamedTuple):
    """An input, its name in errors, and its output file."""

    content: Path | bytes | None  # None: standard input
    name: str
    target: Path | None  # None: standard output

    def open(self) -> BinaryIO:
        """The content as a binary stream."""
        if isinstance(self.content, Path):
            return self.content.open("rb")
        return sys.stdin.buffer if self.content is None else io.BytesIO(self.content)


@dataclass(frozen=True)
class Layout:
    """Where the texts are in a file."""

    format: Format | None = None  # None: from the suffix
    lines: bool = False  # of text: each line is a document
    fields: Sequence[str] = ()  # of JSON: see `_json`; none: "text" in JSONL, all in JSON
    columns: Sequence[str] = ()  # of CSV; none: "text"

    def format_of(self, source: Source) -> Format:
        """The format of an input."""
        path = source.content if isinstance(source.content, Path) else Path()
        return self.format or SUFFIXES.get(path.suffix.lower(), "text")


class Record(NamedTuple):
    """Texts of a file, and how its part of the file is written with new ones."""

    texts: Sequence[str]
    render: Callable[[Sequence[str]], str]


def read(source: Source, layout: Layout) -> Iterator[Record]:
    """The records of an input.

    Raises WxbError if it cannot be read, is not UTF-8 or not in its format. Errors have the line
    number, never the content.
    """
    format_ = layout.format_of(source)
    try:
        with source.open() as file:
            is_whole = format_ == "json" or (format_ == "text" and not layout.lines)
            parts = iter([file.read()]) if is_whole else file  # only line feeds separate lines
            decoded = (_decode(part, source, number) for number, part in enumerate(parts, 1))
            first = next(decoded, "")
            if first.startswith(_BOM):
                yield _constant(_BOM)
            lines = chain(filter(None, [first.removeprefix(_BOM)]), decoded)
            if format_ == "text":
                yield from map(_text, lines)
            elif format_ == "csv":
                yield from _csv(lines, source, layout.columns or ["text"])
            else:
                fields = [field.replace("[]", "") for field in layout.fields]
                fields = fields or (["text"] if format_ == "jsonl" else [])
                for number, line in enumerate(lines, 1):
                    yield _json(line, f"{source.name}: line {number}", fields)
    except OSError as error:
        raise WxbError(f"{source.name}: cannot be read ({error.strerror})") from None


def _decode(content: bytes, source: Source, line: int) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line += content.count(b"\n", 0, error.start)
        raise WxbError(
            f"{source.name}: line {line}: byte 0x{content[error.start]:02x} is not UTF-8; convert"
            " the file first, e.g. with iconv --to-code UTF-8"
        ) from None


def _constant(content: str) -> Record:
    return Record([], lambda _: content)


def _text(content: str) -> Record:
    """A text without the end of its last line."""
    text = content.rstrip("\r\n")
    return Record([text], lambda new: new[0] + content[len(text) :])


def _json(content: str, where: str, fields: Sequence[str]) -> Record:
    """The strings of a JSON value in some fields; without fields, all of them.

    A field is a path of keys, such as `meta.text`; positions in lists do not count.
    """
    if not content.strip():
        return _constant(content)
    root: list[Any] = []
    try:
        root.append(json.loads(content, object_pairs_hook=_object))
        json.dumps(root, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise WxbError(f"{where}: no JSON ({reason}), or a key twice") from None
    strings: list[_Leaf] = []
    empty: set[str] = set()
    others: set[str] = set()
    for leaf in _leaves(root, ""):
        if isinstance(leaf.value, str):
            strings.append(leaf)
        else:
            (empty if leaf.value in (None, [], {}) else others).add(leaf.path)
    paths = {leaf.path for leaf in strings} | empty
    for field in fields:
        # An empty list or null may stand instead of a text, or of an object with texts.
        is_known = field in paths or field.startswith(tuple(f"{path}." for path in empty))
        if field in others or not is_known:
            raise WxbError(
                f"{where}: no text in the field {field!r}{did_you_mean(field, paths)}; name the"
                " text's field with --field"
            )
    strings = [leaf for leaf in strings if not fields or leaf.path in fields]
    end = content[len(content.rstrip()) :]

    def render(texts: Sequence[str]) -> str:
        for leaf, text in zip(strings, texts, strict=True):
            leaf.container[leaf.key] = text
        indent = 2 if "\n" in content.strip() else None
        return json.dumps(root[0], ensure_ascii=False, indent=indent) + end

    return Record([leaf.value for leaf in strings], render)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError
    return content


class _Leaf(NamedTuple):
    """A JSON value without values in it: its container and key there, and its path of keys."""

    container: Any
    key: Any
    path: str
    value: Any


def _leaves(value: Any, path: str) -> Iterator[_Leaf]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        own = f"{path}.{key}".removeprefix(".") if isinstance(value, dict) else path
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner, own)
        else:
            yield _Leaf(value, key, own, inner)


def _csv(lines: Iterator[str], source: Source, columns: Sequence[str]) -> Iterator[Record]:
    """The cells of some columns by their names in the first row; rows follow RFC 4180.

    The delimiter is the one of DELIMITERS that is most frequent in the first row.
    """
    csv.field_size_limit(2**31 - 1)
    first = next(lines, "")
    if not first:
        return
    delimiter = max(DELIMITERS, key=first.count)
    end = "\r\n" if first.endswith("\r\n") else "\n"
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)

    def record(row: list[str], indices: Sequence[int]) -> Record:
        def render(texts: Sequence[str]) -> str:
            cells = dict(zip(indices, texts, strict=True))
            line = io.StringIO()
            writer = csv.writer(line, delimiter=delimiter, lineterminator=end)
            writer.writerow([cells.get(index, cell) for index, cell in enumerate(row)])
            return line.getvalue()

        return Record([row[index] for index in indices], render)

    try:
        header = next(reader)
        for column in columns:
            if header.count(column) != 1:
                fault = f"{header.count(column)} columns {column!r}{did_you_mean(column, header)}"
                raise WxbError(
                    f"{source.name}: line 1: found {fault}; name the text's column with --column"
                )
        yield record(header, [])
        for row in reader:
            if row and len(row) != len(header):
                fault = f"found {len(row)} cells; expected {len(header)}"
                raise WxbError(f"{source.name}: line {reader.line_num}: {fault}")
            yield record(row, [header.index(column) for column in columns] if row else [])
    except csv.Error as error:
        raise WxbError(f"{source.name}: line {reader.line_num}: no CSV ({error})") from None


def rewrite(
    sources: Iterable[Source], layout: Layout, replace: Callable[[list[str]], Iterable[str]]
) -> None:
    """Write each input to its output, with new texts. Shows progress on a terminal.

    `replace` returns the new texts of some documents. Raises WxbError for inputs that cannot be
    read and outputs that cannot be written.
    """

    def parts() -> Iterator[tuple[Source, str]]:
        records = ((source, record) for source in sources for record in _records(source, layout))
        bar = tqdm(records, unit="doc", disable=None, file=sys.stderr, leave=False)
        for batch in batches(bar):
            new = iter(replace([text for _, record in batch for text in record.texts]))
            for source, record in batch:
                yield source, record.render([*islice(new, len(record.texts))])

    for target, group in groupby(parts(), key=lambda part: part[0].target):
        _write(target, (content.encode() for _, content in group))


def _records(source: Source, layout: Layout) -> Iterator[Record]:
    """The records of an input, at least one."""
    yield from read(source, layout)
    yield _constant("")


def batches(parts: Iterable[tuple[Source, Record]]) -> Iterator[list[tuple[Source, Record]]]:
    """Parts in lists of up to DOCUMENTS texts or about CHARACTERS characters."""
    batch: list[tuple[Source, Record]] = []
    characters = 0
    for part in parts:
        batch.append(part)
        characters += sum(map(len, part[1].texts))
        if len(batch) >= DOCUMENTS or characters >= CHARACTERS:
            yield batch
            batch, characters = [], 0
    yield batch


def _write(target: Path | None, contents: Iterable[bytes]) -> None:
    """Write to standard output at once, or to a file that is published when complete."""
    try:
        if target is None:
            for content in contents:
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
        elif target.is_dir():
            raise WxbError(f"{target}: found a folder; expected a file to write or replace")
        else:
            with publish(target) as (draft,), draft.open("wb") as file:
                file.writelines(contents)
    except BrokenPipeError:
        raise  # the reader has exited; typer then exits without a message
    except OSError as error:
        if target is None:  # Python would try to write buffered bytes again when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = target or "standard output"
        raise WxbError(f"{where}: cannot be written ({error.strerror})") from None
