"""Files of texts: the inputs of a command, the texts in them, and the outputs.

CSV and JSON are parsed and written again: values stay the same, but white space between JSON
tokens, JSON escapes and optional CSV quotes may change. All but JSON is read in parts.
"""

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from tqdm import tqdm

from wxb import WxbError
from wxb.core.errors import did_you_mean
from wxb.core.files import publish

Format = Literal["text", "markup", "jsonl", "json", "csv"]  # markup: a text with tags
SUFFIXES: dict[str, Format] = {
    **{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"},
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".txt", ".text", ".md", ".log"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xml"), "markup"),
}
# Formats whose structure would break, or hide values, if they were read as text.
OTHERS = re.compile(
    r"\.(jsonlines|geojson|ipynb|ya?ml|toml|psv|sql|parquet|arrow|xlsx?|ods|docx|odt|pdf|rtf|spacy)"
)
DELIMITERS = ",;\t|"
_NAME = r'"?[^\W\d][\w .#/()-]*"?'
STRUCTURES = {  # of the first two lines
    "JSON": re.compile(r'\s*(?:\{\s*"|\[\s*["{])'),
    "CSV": re.compile(rf"{_NAME}([,;\t|]){_NAME}(?:\1{_NAME})*\r?\n[^\n]*\1"),
}
BLOCK = 1 << 20  # bytes
# A batch ends at one of these limits; all of it is in memory.
DOCUMENTS, CHARACTERS = 256, 100_000
ENDS = ("\n\n", "\n\r\n", "\n", ". ", "。", " ")  # where a text is cut, the best first
T = TypeVar("T")


class Source(NamedTuple):
    """An input, its name in errors, its format, and its output file."""

    content: Path | bytes | None  # None: standard input
    name: str
    format: Format | None = None  # None: text, or an error if it looks like JSON or CSV
    target: Path | None = None  # None: standard output

    def open(self) -> Any:
        """The content as a binary stream."""
        if isinstance(self.content, Path):
            return self.content.open("rb")
        return sys.stdin.buffer if self.content is None else io.BytesIO(self.content)


class Layout(NamedTuple):
    """Where the texts are in a file."""

    lines: bool = False  # of text: each line is a document
    fields: Sequence[str] = ()  # of JSON: see `_json`; none: "text" in JSONL, all in JSON
    columns: Sequence[str] = ()  # of CSV; none: "text"


class Record(NamedTuple):
    """Texts of a file, and how its part of the file is written with new ones."""

    texts: Sequence[str]
    render: Callable[[Sequence[str]], str]


Batch = list[tuple[Source, Record]]


def format_of(path: Path, chosen: Format | None, default: Format | None) -> Format | None:
    """The format of a file: chosen, from its suffix, or the default.

    Raises WxbError for suffixes of formats that cannot be read.
    """
    suffix = path.suffix.lower()
    format_ = chosen or SUFFIXES.get(suffix) or default
    if not format_ and OTHERS.fullmatch(suffix):
        raise WxbError(f"{path}: {suffix} is no format of masking; choose one with --format")
    return format_


class Lines:
    """The lines of an input, with their ends. Only line feeds end lines.

    `is_waiting`: standard input has no more lines yet.
    """

    def __init__(self, source: Source) -> None:
        self.source, self.is_waiting = source, False

    def __iter__(self) -> Iterator[str]:
        """Raise WxbError if the input cannot be read, or is not UTF-8."""
        number = 0
        try:
            for left, line in self._split():
                number += 1
                self.is_waiting = left == 0 and self.source.content is None
                yield line.decode()
        except UnicodeDecodeError as error:
            fault = f"line {number}: byte 0x{error.object[error.start]:02x} is not UTF-8"
            advice = "convert the file first, e.g. with iconv --to-code UTF-8"
            raise WxbError(f"{self.source.name}: {fault}; {advice}") from None
        except OSError as error:
            raise WxbError(f"{self.source.name}: cannot be read ({error.strerror})") from None

    def _split(self) -> Iterator[tuple[int, bytes]]:
        """Lines, each with the number of those that were read after it."""
        rest, block = b"", b"\n"
        with self.source.open() as file:
            while block:
                block = file.read1(BLOCK)
                *lines, rest = (rest + block).split(b"\n")
                lines = [line + b"\n" for line in lines] if block else [rest][: len(rest)]
                yield from zip(range(len(lines))[::-1], lines, strict=True)


def read(source: Source, layout: Layout) -> Iterator[Record | None]:
    """The records of an input; None if it pauses.

    Raises WxbError if it is not in its format. Errors have the line number, never the content.
    """
    lines = Lines(source)
    rest = iter(lines)
    first = next(rest, "")
    mark = first[: first.startswith("\ufeff")]
    yield Record([], lambda _: mark)
    rest = chain(filter(None, [first[len(mark) :]]), rest)
    if source.format == "csv":
        records = _csv(rest, source, layout.columns or ["text"])
    elif source.format in ("json", "jsonl"):
        default = ["text"] if source.format == "jsonl" else []
        fields = [field.replace("[]", "") for field in layout.fields] or default
        values = ["".join(rest)] if source.format == "json" else rest
        records = (
            _json(line, f"{source.name}: line {number}", fields)
            for number, line in enumerate(values, start=1)
        )
    else:
        records = map(_text, rest if layout.lines else _parts(rest, source))
    for record in records:
        yield record
        if lines.is_waiting:
            yield None


def _parts(lines: Iterator[str], source: Source) -> Iterator[str]:
    """The text of some lines, in parts. Raises WxbError if it may be JSON or CSV."""
    text = "".join(islice(lines, 2))
    for format_, pattern in STRUCTURES.items():
        if not source.format and pattern.match(text):
            raise WxbError(f"{source.name}: looks like {format_}; choose a format with --format")
    for line in lines:
        text += line
        if len(text) > CHARACTERS:
            *parts, text = (text[start:end] for start, end in cuts(text, CHARACTERS // 2))
            yield from parts
    yield text


def cuts(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Start and end of parts of a text of up to `size` characters, whole paragraphs if possible."""
    start = 0
    while start < len(text):
        ends = ((text.rfind(end, start + size // 2, start + size), len(end)) for end in ENDS)
        end = next((index + length for index, length in ends if index >= 0), start + size)
        end = len(text) if len(text) - start <= size else end
        yield start, end
        start = end


def batches(items: Iterable[T | None], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in lists of up to DOCUMENTS items or about CHARACTERS characters; None ends a list."""
    batch: list[T] = []
    characters = 0
    for item in chain(items, [None]):
        if item is not None:
            batch.append(item)
            characters += size(item)
        if batch and (item is None or len(batch) >= DOCUMENTS or characters >= CHARACTERS):
            yield batch
            batch, characters = [], 0


def _text(content: str) -> Record:
    """A text without the end of its last line."""
    text = content.rstrip("\r\n")
    return Record([text], lambda new: new[0] + content[len(text) :])


def _json(content: str, place: str, fields: Sequence[str]) -> Record:
    """The strings of a JSON value in some fields; without fields, all of them.

    A field is a path of keys, such as `meta.text`; positions in lists do not count. An empty list
    or null may stand instead of a text, or of an object with texts.
    """
    if not content.strip():
        return Record([], lambda _: content)
    try:
        root = [json.loads(content, object_pairs_hook=_object)]
        leaves = [*_leaves(root, "")]
        json.dumps(root, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise WxbError(f"{place}: no JSON ({reason}), a key twice or a long number") from None
    strings = [(path, *leaf) for path, *leaf in leaves if isinstance(leaf[-1], str)]
    for field in fields:
        own = [(path, leaf[-1]) for path, *leaf in leaves if f"{field}.".startswith(f"{path}.")]
        if not own or any(v not in (None, [], {}) and (p, type(v)) != (field, str) for p, v in own):
            similar = did_you_mean(field, {path for path, *_ in strings})
            raise WxbError(
                f"{place}: no text in the field {field!r}{similar}; name it with --field"
            )
    texts = [leaf for path, *leaf in strings if not fields or path in fields]

    def render(new: Sequence[str]) -> str:
        for (box, key, _), text in zip(texts, new, strict=True):
            box[key] = text
        json_ = json.dumps(
            root[0], ensure_ascii=False, indent=2 if "\n" in content.strip() else None
        )
        return json_ + content[len(content.rstrip()) :]

    return Record([text for _, _, text in texts], render)


def _leaves(box: Any, path: str) -> Iterator[tuple[str, Any, Any, Any]]:
    """Path, list or object, key and value of the innermost values."""
    for key, value in box.items() if isinstance(box, dict) else enumerate(box):
        own = f"{path}.{key}".removeprefix(".") if isinstance(box, dict) else path
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, own)
        else:
            yield own, box, key, value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError
    return content


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

    def error(fault: object) -> WxbError:
        return WxbError(f"{source.name}: line {reader.line_num}: {fault}")

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
            if (count := header.count(column)) != 1:
                similar = did_you_mean(column, header)
                raise error(f"found {count} columns {column!r}{similar}; name one with --column")
        yield record(header, [])
        for row in reader:
            if row and len(row) != len(header):
                raise error(f"found {len(row)} cells; expected {len(header)}")
            yield record(row, [header.index(column) for column in columns] if row else [])
    except csv.Error as fault:
        raise error(f"no CSV ({fault})") from None


def rewrite(
    sources: Iterable[Source],
    layout: Layout,
    replace: Callable[[Batch], Iterable[str]],
    save: Callable[[], object] = lambda: None,
) -> None:
    """Write each input to its output, with new texts. Shows progress on a terminal.

    `replace` returns the new content of some records. `save` is called before output is visible.
    Raises WxbError for outputs that cannot be written.
    """
    records = (record and (s, record) for s in sources for record in read(s, layout))
    bar = tqdm(records, unit="doc", disable=None, file=sys.stderr, leave=False)
    parts = (
        (source.target, content.encode())
        for batch in batches(bar, lambda part: sum(map(len, part[1].texts)))
        for (source, _), content in zip(batch, replace(batch), strict=True)
    )
    for target, group in groupby(parts, key=lambda part: part[0]):
        _write(target, (content for _, content in group), save)


def rendered(batch: Batch, texts: Iterable[str]) -> list[str]:
    """The records of a batch with new texts."""
    new = iter(texts)
    return [record.render([*islice(new, len(record.texts))]) for _, record in batch]


def _write(target: Path | None, contents: Iterable[bytes], save: Callable[[], object]) -> None:
    """Write to standard output at once, or to a file that is published when complete."""
    try:
        if target is None:
            for content in contents:
                save()
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
        elif target.is_dir():
            raise WxbError(f"{target}: found a folder; expected a file to write or replace")
        else:
            with publish(target) as (draft,), draft.open("wb") as file:
                file.writelines(contents)
                save()
    except BrokenPipeError:
        raise  # the reader has exited; typer then exits without a message
    except OSError as error:
        if target is None:  # Python would try to write buffered bytes again when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = target or "standard output"
        raise WxbError(f"{where}: cannot be written ({error.strerror})") from None
