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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations, groupby, product
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

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


@dataclass(frozen=True)
class Layout:
    """Where the texts are in a file."""

    format: Format | None = None  # None: from the suffix
    lines: bool = False  # of text: each line is a document
    fields: Sequence[str] = ()  # of JSON: see `_strings`; none: "text" in JSONL, all in JSON
    columns: Sequence[str] = ()  # of CSV; none: "text"

    def format_of(self, source: Source) -> Format:
        """The format of an input."""
        path = source.content if isinstance(source.content, Path) else Path()
        return self.format or SUFFIXES.get(path.suffix.lower(), "text")


class Record(NamedTuple):
    """Texts of a file, and how its part of the file is written with new ones."""

    texts: Sequence[str]
    render: Callable[[Sequence[str]], str]


def find_sources(path: Path, output: Path | None, *, one_output: bool = False) -> list[Source]:
    """The file at a path or the files of a folder, sorted, each with its output file.

    Files of a folder have the same relative path in `output`, unless they have one output. Hidden
    files are left out. Raises WxbError if there is no file, OSError for an unreadable folder.
    """
    if not path.is_dir():
        return [Source(path, str(path), output)]
    files: list[Path] = []
    for parent, folders, names in os.walk(path, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (Path(parent, name) for name in names if not name.startswith("."))
        files += filter(Path.is_file, visible)
    if not files:
        raise WxbError(f"{path}: has no files, or only hidden ones")
    return [
        Source(
            file, str(file), output if one_output or not output else output / file.relative_to(path)
        )
        for file in sorted(files)
    ]


def _raise(error: OSError) -> None:
    raise error


class Collision(NamedTuple):
    """Two options of a call, and their paths that are one file or lie in one another."""

    option: str
    path: Path
    other_option: str
    other_path: Path


def find_collision(paths: Mapping[str, Sequence[Path]]) -> Collision | None:
    """The first collision between the paths of two options, if there is one.

    Paths are compared with links resolved. Two paths of one file (hard links) collide too.
    """
    places = {path: (path.resolve(), _identity(path)) for path in chain(*paths.values())}
    for (option, own), (other_option, others) in combinations(paths.items(), 2):
        for path, other in product(own, others):
            (place, identity), (other_place, other_identity) = places[path], places[other]
            if (
                place.is_relative_to(other_place)
                or other_place.is_relative_to(place)
                or (identity and identity == other_identity)
            ):
                return Collision(option, path, other_option, other)
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a path; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def unreadable(sources: Iterable[Source], layout: Layout) -> dict[Source, str]:
    """The files that are not UTF-8, not in their format or not readable, with their error."""
    errors = {}
    for source in sources:
        if isinstance(source.content, Path) and source.content.is_file():  # a pipe is read once
            try:
                for _ in read(source, layout):
                    pass
            except WxbError as error:
                errors[source] = str(error)
    return errors


def read(source: Source, layout: Layout) -> Iterator[Record]:
    """The records of an input.

    Raises WxbError if it cannot be read, is not UTF-8 or not in its format. Errors have the line
    number, never the content.
    """
    format_ = layout.format_of(source)
    try:
        with _open(source) as file:
            is_whole = format_ == "json" or (format_ == "text" and not layout.lines)
            lines = iter([_decode(file.read(), source)] if is_whole else _lines(file, source))
            first = next(lines, "")
            if first.startswith(_BOM):
                yield _constant(_BOM)
            lines = chain(filter(None, [first.removeprefix(_BOM)]), lines)
            if format_ == "text":
                yield from map(_text, lines)
            elif format_ == "csv":
                yield from _csv(lines, source, layout.columns or ["text"])
            else:
                fields = layout.fields or (["text"] if format_ == "jsonl" else None)
                for number, line in enumerate(lines, 1):
                    yield _json(line, f"{source.name}: line {number}", fields)
    except OSError as error:
        raise WxbError(f"{source.name}: cannot be read ({error.strerror})") from None


@contextmanager
def _open(source: Source) -> Iterator[BinaryIO]:
    if isinstance(source.content, Path):
        with source.content.open("rb") as file:
            yield file
    else:
        yield sys.stdin.buffer if source.content is None else io.BytesIO(source.content)


def _lines(file: BinaryIO, source: Source) -> Iterator[str]:
    """Lines with their ends; only line feeds separate them."""
    return (_decode(line, source, number) for number, line in enumerate(file, 1))


def _decode(content: bytes, source: Source, line: int = 1) -> str:
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


def _json(content: str, where: str, fields: Sequence[str] | None) -> Record:
    """The strings of a JSON value in some fields, or all of them.

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
    leaves = [*_leaves(root, "")]
    paths = {path for *_, path in leaves}
    for field in fields or ():
        # An empty list or null may stand instead of an object with the field.
        if not any(path == field or field.startswith(f"{path}.") for path in paths):
            raise WxbError(
                f"{where}: no field {field!r}{did_you_mean(field, paths)}; name the text's field"
                " with --field"
            )
    places = []
    for container, key, path in leaves:
        value = container[key]
        if isinstance(value, str) and (fields is None or path in fields):
            places.append((container, key))
        elif fields and path in fields and value not in (None, [], {}):
            raise WxbError(f"{where}: field {path!r}: expected a string, found another value")
    end = content[len(content.rstrip()) :]

    def render(texts: Sequence[str]) -> str:
        for (container, key), text in zip(places, texts, strict=True):
            container[key] = text
        indent = 2 if "\n" in content.strip() else None
        return json.dumps(root[0], ensure_ascii=False, indent=indent) + end

    return Record([container[key] for container, key in places], render)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError
    return content


def _leaves(value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """The container, key and path of each value that has no values in it."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        own = f"{path}.{key}".removeprefix(".") if isinstance(value, dict) else path
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner, own)
        else:
            yield value, key, own


def _csv(lines: Iterator[str], source: Source, columns: Sequence[str]) -> Iterator[Record]:
    """The cells of some columns by their names in the first row; rows follow RFC 4180.

    The delimiter is the one of DELIMITERS that splits the first row into most cells, among them
    these names.
    """
    csv.field_size_limit(2**31 - 1)
    first = next(lines, None)
    if first is None:
        return
    headers = {mark: _header(first, mark) for mark in DELIMITERS}
    delimiter = max(
        headers, key=lambda mark: (len({*columns} & {*headers[mark]}), len(headers[mark]))
    )
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
        indices = [header.index(column) for column in columns]
        yield record(header, [])
        for row in reader:
            if row and len(row) <= max(indices):
                raise WxbError(
                    f"{source.name}: line {reader.line_num}: found {len(row)} cells; expected"
                    f" {len(header)}"
                )
            yield record(row, indices if row else [])
    except csv.Error as error:
        raise WxbError(f"{source.name}: line {reader.line_num}: no CSV ({error})") from None


def _header(line: str, delimiter: str) -> list[str]:
    """The cells of a line; empty if it is not valid."""
    try:
        return next(csv.reader([line.strip("\r\n")], delimiter=delimiter))
    except csv.Error:
        return []


def stream(sources: Iterable[Source], layout: Layout) -> Iterator[tuple[Source, Record]]:
    """The records of all inputs; the last of each is empty."""
    for source in sources:
        for record in read(source, layout):
            yield source, record
        yield source, _constant("")


def batches(parts: Iterable[tuple[Source, Record]]) -> Iterator[list[tuple[Source, Record]]]:
    """Parts in lists of up to DOCUMENTS texts or about CHARACTERS characters."""
    batch: list[tuple[Source, Record]] = []
    documents = characters = 0
    for part in parts:
        batch.append(part)
        documents += 1
        characters += sum(map(len, part[1].texts))
        if documents >= DOCUMENTS or characters >= CHARACTERS:
            yield batch
            batch, documents, characters = [], 0, 0
    yield batch


def write(parts: Iterable[tuple[Source, str]], save: Callable[[], None] | None = None) -> None:
    """Write the parts to the outputs of their inputs; files are published when complete.

    `save` is called before standard output is written and before a file is published. Raises
    WxbError if an output cannot be written.
    """
    save = save or (lambda: None)
    for target, group in groupby(parts, key=lambda part: part[0].target):
        contents = (content.encode() for _, content in group)
        if target is None:
            for content in contents:
                save()
                with standard_output() as file:
                    file.write(content)
                    file.flush()
            continue
        if target.exists() and not target.is_file():
            raise WxbError(f"{target}: found a folder or device; expected a file to replace")
        try:
            with publish(target) as (draft,):
                with draft.open("wb") as file:
                    file.writelines(contents)
                save()
        except OSError as error:
            raise WxbError(
                f"{target}: cannot be written ({error.strerror}); choose another --output"
            ) from None


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Standard output for bytes. Raises WxbError for write errors in the context."""
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        raise  # the reader has exited; typer then exits without a message
    except OSError as error:
        # Python would try to write buffered bytes again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise WxbError(f"standard output: cannot be written ({error.strerror})") from None
