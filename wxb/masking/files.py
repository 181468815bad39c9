"""Files of texts: the inputs of a command, the texts in them, and the outputs.

The rest of a file is copied; rows of CSV with new texts are written again, so quotes may change.
All but JSON is read in parts.
"""

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, tee
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
    r"\.(jsonlines|geojson|ipynb|ya?ml|toml|psv|sql|parquet|arrow|xlsx?|ods|docx|odt|pdf|rtf|spacy"
    r"|gz|bz2|xz|zst|zip)"
)
DELIMITERS = ",;\t|"
_NAME = r'"?[^\W\d][\w .#/()-]*"?'
STRUCTURES = {  # of the first two lines
    "JSON": re.compile(r'\s*(?:\{\s*"|\[\s*["{])'),
    "CSV": re.compile(rf"{_NAME}([,;\t|]){_NAME}(?:\1{_NAME})*\r?\n[^\n]*\1"),
    "HTML or XML": re.compile(r"\s*<(?:[?!]|html\b)", re.IGNORECASE),
}
# Of JSON: a string (and the colon after a key), an empty list or object, a bracket, another value.
TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|\[\s*\]|\{\s*\}|[][{}]|[^][{}:,\s]+')
BLOCK = 1 << 20  # bytes
CHARACTERS = 100_000  # of a part of a text file


class Record(NamedTuple):
    """A part of a file: its texts, their places in it, and how new ones are written there."""

    content: str
    texts: Sequence[str] = ()
    spans: Sequence[tuple[int, int]] = ()
    quote: Callable[[str, str], str] = lambda text, before: text

    def edited(self, rows: Iterable[Iterable[Edit]], brackets: str = BRACKETS[0]) -> str:
        """The content with the edits of each text applied."""
        places = (
            Edit(*span, self.quote(apply_edits(text, row, brackets), self.content[slice(*span)]))
            for span, text, row in zip(self.spans, self.texts, rows, strict=True)
            if row
        )
        return apply_edits(self.content, places)


@dataclass
class Source:
    """An input, how its texts are found, and its output file.

    `number`: of the last line. `left`: lines that were read after it; 0 if the input pauses.
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
            byte = f"0x{error.object[error.start]:02x}"
            raise self.error(f"byte {byte} is not UTF-8; convert it, e.g. with iconv") from None
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})") from None

    def records(self) -> Iterator[Record | None]:
        """The records of the input; None if it pauses. Raises WxbError for a wrong format."""
        lines = self.lines()
        first = next(lines, "")
        mark = first[: first.startswith("\ufeff")]
        yield Record(mark)
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
    if not default and OTHERS.fullmatch(suffix):
        raise WxbError(f"{path}: unpack or export it as CSV, JSON or text, or choose --format")
    return SUFFIXES.get(suffix, default)


def _text(content: str) -> Record:
    """A text without the end of its last line."""
    text = content.rstrip("\r\n")
    return Record(content, [text], [(0, len(text))])


def _leaves(content: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Path and token of the innermost values of JSON.

    A path has keys, as in `meta.text`; positions in lists do not count.
    """
    path, parents = "", [""]
    for token in TOKEN.finditer(content):
        if token[2]:
            path = f"{parents[-1]}.{json.loads(token[1])}".removeprefix(".")
        elif token[0] in ("[", "{"):
            parents.append(path)
        elif token[0] in ("]", "}"):
            path = parents.pop()
        else:
            yield path, token


def _json(source: Source, content: str) -> Record:
    """The strings of a JSON value, or of the fields that a source names.

    An empty list or null may stand instead of a text, or of an object with texts.
    """
    if not content.strip():
        return Record(content)
    try:
        json.loads(content, parse_int=str, parse_float=str)
        leaves = [*_leaves(content)]
        strings = [(path, token) for path, token in leaves if token[1]]
        tokens = [token for path, token in strings if not source.names or path in source.names]
        texts = [json.loads(token[1]) for token in tokens]
        "".join(texts).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deeply, or half a surrogate pair")
        raise source.error(f"no JSON ({reason})") from None
    for name in source.names:
        own = [(path, token) for path, token in leaves if f"{name}.".startswith(f"{path}.")]
        others = [leaf for leaf in own if leaf[1][0] != "null" and leaf[1][0][0] not in "[{"]
        if not own or any(path != name or not token[1] for path, token in others):
            advice = did_you_mean(name, {path for path, _ in strings})
            raise source.error(f"no text in the field {name!r}{advice}; name it with --field")
    spans = [token.span(1) for token in tokens]
    return Record(content, texts, spans, lambda text, _: json.dumps(text, ensure_ascii=False))


def _csv(source: Source, lines: Iterator[str]) -> Iterator[Record]:
    """The cells of rows that follow RFC 4180, by their names in the first row.

    The delimiter is the one of DELIMITERS that is most frequent in the first row.
    """
    csv.field_size_limit(2**31 - 1)
    first = next(lines, "")
    delimiter = max(DELIMITERS, key=first.count)
    cell = re.compile(rf'(?:^|[{delimiter}])("[^"]*(?:""[^"]*)*"|[^{delimiter}\r\n]*)')
    part: list[str] = []  # the lines of a row
    header: list[str] = []

    def read() -> Iterator[str]:
        for line in chain(filter(None, [first]), lines):
            part.append(line)
            yield line

    try:
        for row in csv.reader(read(), delimiter=delimiter, strict=True):
            if header and row and len(row) != len(header):
                raise source.error(f"found {len(row)} cells; expected {len(header)}")
            for name in {*source.names} - {*(header or row)}:
                advice = f"{did_you_mean(name, row)}; name one with --column"
                raise source.error(f"no column {name!r}{advice}")
            content = "".join(part)
            cells = zip(header, row, cell.finditer(content), strict=False)
            own = [(text, match.span(1)) for name, text, match in cells if name in source.names]
            yield Record(content, [text for text, _ in own], [span for _, span in own], _cell)
            part.clear()
            header = header or row
    except csv.Error as fault:
        raise source.error(f"no CSV ({fault})") from None


def _cell(text: str, before: str) -> str:
    """A cell of CSV, with quotes if it needs or had them."""
    needs_quotes = before[:1] == '"' or {*text} & {*'"\r\n', *DELIMITERS}
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def rewrite(
    sources: Iterable[Source],
    find_edits: Callable[[Iterable[str | None]], Iterator[list[Edit]]],
    save: Callable[[], object] = lambda: None,
    check: Callable[[Source, Record, list[list[Edit]]], object] = lambda *_: None,
    brackets: str | None = None,
) -> None:
    """Write each input to its output, with the edits of its texts. Shows progress on a terminal.

    `find_edits` gets texts, and None if an input pauses. `save` is called before output is visible,
    `check` with each record and its edits. `brackets`: as in `apply_edits`; by default those that
    the format allows. Raises WxbError for outputs that cannot be written.
    """

    def parts() -> Iterator[tuple[Path | None, bytes]]:
        records, ahead = tee((s, record) for s in sources for record in s.records())
        rows = find_edits(text for _, r in ahead for text in (r.texts if r else [None]))
        for source, record in tqdm(records, unit="doc", disable=None, leave=False):
            if record:
                own = [*islice(rows, len(record.texts))]
                check(source, record, own)
                new = record.edited(own, brackets or BRACKETS[source.format == "markup"])
                yield source.target, new.encode()

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
