"""Files of texts: the inputs of a command, the texts in them, and the outputs.

CSV and JSON are parsed and written again: values stay the same, but white space between JSON
tokens, JSON escapes and optional CSV quotes may change. All but JSON is read in parts.
"""

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import chain, groupby, islice, repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from tqdm import tqdm

from wxb import WxbError
from wxb.core.errors import did_you_mean
from wxb.core.files import publish
from wxb.masking.placeholders import BRACKETS, Edit, apply_edits

Format = Literal["text", "markup", "jsonl", "json", "csv"]  # markup: a text with tags
SUFFIXES: dict[str, Format] = {
    **{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"},
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".txt", ".text", ".log"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xml", ".svg", ".md", ".markdown"), "markup"),
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
    "HTML or XML": re.compile(r"\s*<(?:[?!]|html\b)", re.IGNORECASE),
}
BLOCK = 1 << 20  # bytes
# A batch ends at one of these limits; all of it is in memory.
DOCUMENTS, CHARACTERS = 256, 100_000
HIDDEN = "\ufdd0"  # a noncharacter of Unicode
T = TypeVar("T")


class Record(NamedTuple):
    """Texts of a file, and how its part of the file is written with new ones."""

    texts: Sequence[str]
    render: Callable[[Sequence[str]], str]


@dataclass
class Source:
    """An input, how its texts are found, and its output file.

    `number` is that of the last line. `left` is how many lines were read after it: 0 if the input
    pauses.
    """

    content: Any  # a path or binary stream
    name: str  # in errors
    format: Format | None = None  # None: text, or an error if it looks like another format
    target: Path | None = None  # None: standard output
    names: Sequence[str] = ()  # of columns or fields with texts; none: all strings of JSON
    by_line: bool = False  # each line of a text is a document
    number: int = 0
    left: int = 0

    def error(self, fault: object) -> WxbError:
        """An error with the number of the last line, never its content."""
        return WxbError(f"{self.name}: line {self.number}: {fault}")

    def lines(self) -> Iterator[str]:
        """The lines with their ends, which are line feeds only.

        Raises WxbError if the input cannot be read, or is not UTF-8.
        """
        content, rest, block = self.content, b"", b"\n"
        try:
            with content.open("rb") if isinstance(content, Path) else content as file:
                while block:
                    block = file.read1(BLOCK)
                    *lines, rest = (rest + block).split(b"\n")
                    lines = [line + b"\n" for line in lines] if block else [rest] * bool(rest)
                    for self.left, line in zip(range(len(lines))[::-1], lines, strict=True):
                        self.number += 1
                        yield line.decode()
        except UnicodeDecodeError as error:
            fault = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
            raise self.error(f"{fault}; convert the file first, e.g. with iconv -t UTF-8") from None
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})") from None

    def records(self) -> Iterator[Record | None]:
        """The records of the input; None if it pauses. Raises WxbError for a wrong format."""
        lines = self.lines()
        first = next(lines, "")
        mark = first[: first.startswith("\ufeff")]
        yield Record([], lambda _: mark)
        lines = chain(filter(None, [first[len(mark) :]]), lines)
        if self.format == "csv":
            records = _csv(self, lines)
        elif self.format == "json":
            value, self.number = "".join(lines), 1
            records = iter([_json(self, value)])
        elif self.format == "jsonl":
            records = (_json(self, line) for line in lines)
        else:
            records = map(_text, lines if self.by_line else self._parts(lines))
        for record in records:
            yield record
            if not self.left:
                yield None

    def _parts(self, lines: Iterator[str]) -> Iterator[str]:
        """Paragraphs of about CHARACTERS; lines if a paragraph is longer."""
        part, size = [*islice(lines, 2)], 0
        for format_, pattern in STRUCTURES.items():
            if not self.format and pattern.match("".join(part)):
                raise self.error(f"looks like {format_}; choose a format with --format")
        for line in lines:
            part.append(line)
            size += len(line)
            if size > (CHARACTERS if line.strip() else CHARACTERS // 2):
                yield "".join(part)
                part, size = [], 0
        yield "".join(part)


def format_of(path: Path, default: Format | None = None) -> Format | None:
    """The format of a file by its suffix. Raises WxbError for formats that cannot be read."""
    suffix = path.suffix.lower()
    format_ = SUFFIXES.get(suffix, default)
    if not format_ and OTHERS.fullmatch(suffix):
        raise WxbError(f"{path}: {suffix} is no format of masking; choose one with --format")
    return format_


def _text(content: str) -> Record:
    """A text without the end of its last line."""
    text = content.rstrip("\r\n")
    return Record([text], lambda new: new[0] + content[len(text) :])


def _leaves(box: Any, path: str = "") -> Iterator[tuple[str, Any, Any, Any]]:
    """Path, list or object, key and value of the innermost values of a JSON value in a list.

    A path has keys, as in `meta.text`; positions in lists do not count.
    """
    for key, value in box.items() if isinstance(box, dict) else enumerate(box):
        own = f"{path}.{key}".removeprefix(".") if isinstance(box, dict) else path
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, own)
        else:
            yield own, box, key, value


def _selected(source: Source, leaves: Iterable[Any], write: Callable[[], str]) -> Record:
    """The strings of some leaves that the names of a source select."""
    leaves = (leaf for leaf in leaves if not source.names or leaf[0] in source.names)
    texts = [leaf for leaf in leaves if isinstance(leaf[-1], str)]

    def render(new: Sequence[str]) -> str:
        for (_, box, key, _), text in zip(texts, new, strict=True):
            box[key] = text
        return write()

    return Record([text for *_, text in texts], render)


def _json(source: Source, content: str) -> Record:
    """The strings of a JSON value.

    An empty list or null may stand instead of a text, or of an object with texts.
    """
    if not content.strip():
        return Record([], lambda _: content)
    try:
        root = [json.loads(content, object_pairs_hook=_object)]
        leaves = [*_leaves(root)]
        json.dumps(root, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise source.error(f"no JSON ({reason}), a key twice or a long number") from None
    for name in source.names:
        own = [(path, value) for path, *_, value in leaves if f"{name}.".startswith(f"{path}.")]
        if not own or any(v not in (None, [], {}) and (p, type(v)) != (name, str) for p, v in own):
            similar = did_you_mean(name, {leaf[0] for leaf in leaves if isinstance(leaf[-1], str)})
            raise source.error(f"no text in the field {name!r}{similar}; name it with --field")
    indent, end = 2 if "\n" in content.strip() else None, content[len(content.rstrip()) :]
    return _selected(
        source, leaves, lambda: json.dumps(root[0], ensure_ascii=False, indent=indent) + end
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError
    return content


def _csv(source: Source, lines: Iterator[str]) -> Iterator[Record]:
    """The cells of rows that follow RFC 4180, by their names in the first row.

    The delimiter is the one of DELIMITERS that is most frequent in the first row.
    """
    csv.field_size_limit(2**31 - 1)
    first = next(lines, "")
    delimiter = max(DELIMITERS, key=first.count)
    end = "\r\n" if first.endswith("\r\n") else "\n"

    def write(row: Sequence[str]) -> str:
        line = StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator=end).writerow(row)
        return line.getvalue()

    header: list[str] = []
    try:
        for row in csv.reader(
            chain([first] * bool(first), lines), delimiter=delimiter, strict=True
        ):
            if header and row and len(row) != len(header):
                raise source.error(f"found {len(row)} cells; expected {len(header)}")
            for name in {*source.names} - {*(header or row)}:
                advice = f"{did_you_mean(name, row)}; name one with --column"
                raise source.error(f"no column {name!r}{advice}")
            cells = zip(header, repeat(row), range(len(row)), row)
            yield _selected(source, cells, partial(write, row))
            header = header or row
    except csv.Error as fault:
        raise source.error(f"no CSV ({fault})") from None


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


def rewrite(
    sources: Iterable[Source],
    find_edits: Callable[[list[str]], list[list[Edit]]],
    save: Callable[[], object] = lambda: None,
    check: Callable[[Source, str, list[str]], object] | None = None,
    brackets: str | None = None,
) -> None:
    """Write each input to its output, with the edits of its texts. Shows progress on a terminal.

    `save` is called before output is visible, `check` with each part of an output, in which HIDDEN
    stands for edits, and their values. `brackets`: as in `apply_edits`; by default those that the
    format allows. Raises WxbError for outputs that cannot be written.
    """

    def parts() -> Iterator[tuple[Path | None, bytes]]:
        records = (record and (s, record) for s in sources for record in s.records())
        bar = tqdm(records, unit="doc", disable=None, file=sys.stderr, leave=False)
        for batch in batches(bar, lambda item: sum(map(len, item[1].texts))):
            rows = iter(find_edits([text for _, record in batch for text in record.texts]))
            for source, (texts, render) in batch:
                pairs = [*zip(texts, islice(rows, len(texts)), strict=True)]
                own = brackets or BRACKETS[source.format == "markup"]
                if check:
                    hidden = ((t, (e._replace(new=HIDDEN) for e in row)) for t, row in pairs)
                    values = [text[e.start : e.end] for text, row in pairs for e in row]
                    check(source, render([apply_edits(*pair) for pair in hidden]), values)
                yield source.target, render([apply_edits(*pair, own) for pair in pairs]).encode()

    for target, group in groupby(parts(), key=lambda part: part[0]):
        contents = (content for _, content in group)
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
