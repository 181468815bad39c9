"""Files of texts: the inputs of a command, the texts in them, and the outputs.

Only texts are changed; the rest of a file is copied. All but JSON is read in blocks of lines.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from tqdm import tqdm

from wxb import WxbError
from wxb.core.errors import choices, did_you_mean
from wxb.core.files import publish
from wxb.masking.placeholders import BRACKETS, Edit, apply_edits

Format = Literal["text", "markup", "jsonl", "json", "csv"]  # markup: a text with tags
SUFFIXES: dict[str, Format] = {
    **{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"},
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".txt", ".text", ".log"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xml", ".svg", ".md", ".markdown"), "markup"),
}
DELIMITERS = ",;\t|"
_NAME = r'"?[^\W\d][\w .#/()-]*"?'
STRUCTURES = {  # of the first two lines
    "JSON": re.compile(r'\s*(?:\{\s*"|\[\s*["{])'),
    "CSV": re.compile(rf"{_NAME}([,;\t|]){_NAME}(?:\1{_NAME})*\r?\n[^\n]*\1"),
    "HTML or XML": re.compile(r"\s*<(?:[?!]|html\b)", re.IGNORECASE),
}
# Of JSON: a string (and the colon after a key), an empty list or object, a bracket, another value.
TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|\[\s*\]|\{\s*\}|[][{}]|[^][{}:,\s]+')
LINE = re.compile(r"[^\r\n](?:[^\n]*[^\r\n])?")  # without its end
BLOCK = 1 << 17  # bytes


class Block(NamedTuple):
    """A part of a file, the number of its first line, and its texts: start, end and text."""

    content: str
    line: int
    texts: Sequence[tuple[int, int, str]] = ()


@dataclass
class Source:
    """An input, how its texts are found, and its output file."""

    content: Any  # a path or binary stream
    name: str  # in errors
    format: Format | None = None  # None: text, or an error if it looks like another format
    target: Path | None = None  # None: standard output
    names: Sequence[str] = ()  # of columns or fields with texts; none: all strings of JSON
    by_line: bool = False  # each line of a text is a document; else each block
    delimiter: str = ""  # of CSV, from its first row

    def error(self, block: Block, position: int, fault: str) -> WxbError:
        """An error with the line of a position in a block, never its content."""
        line = block.line + block.content.count("\n", 0, position)
        return WxbError(f"{self.name}: line {line}: {fault}")

    def blocks(self) -> Iterator[Block]:
        """Yield a block with the byte order mark or nothing, then blocks with their texts.

        Raises WxbError if the input is unreadable, not UTF-8 or not in its format and, without a
        `format` and `by_line`, if it looks like JSON, CSV, HTML or XML.
        """
        blocks = self._decoded_blocks()
        first = next(blocks, Block("", 1))
        mark = first.content[: first.content.startswith("\ufeff")]
        first = Block(first.content[len(mark) :], 1)
        yield Block(mark, 1)
        for structure, pattern in STRUCTURES.items():
            if not self.format and not self.by_line and pattern.match(first.content):
                raise self.error(first, 0, f"looks like {structure}; choose a format with --format")
        blocks = chain([first], blocks)
        if self.format == "csv":
            yield from _csv_blocks(self, blocks)
        for block in blocks:
            if self.format in ("json", "jsonl"):
                texts = [*_json_texts(self, block)]
            elif self.by_line:
                texts = [(*line.span(), line[0]) for line in LINE.finditer(block.content)]
            else:
                text = block.content.rstrip("\r\n")
                texts = [(0, len(text), text)] if text else []
            yield block._replace(texts=texts)

    def _decoded_blocks(self) -> Iterator[Block]:  # of whole lines; JSON as one block
        content, line = self.content, 1
        try:
            with content.open("rb") if isinstance(content, Path) else content as file:
                is_live = self.by_line or self.format in ("jsonl", "csv")
                parts = [file.read()] if self.format == "json" else _line_blocks(file, is_live)
                for part in parts:
                    yield Block(part.decode(), line)
                    line += part.count(b"\n")
        except UnicodeDecodeError as error:
            line += error.object.count(b"\n", 0, error.start)
            byte = f"0x{error.object[error.start]:02x}"
            fault = f"byte {byte} is not UTF-8; convert it, e.g. with iconv"
            raise self.error(Block("", line), 0, fault) from None
        except OSError as error:
            raise WxbError(f"{self.name}: cannot be read ({error.strerror})") from None

    def edited(self, block: Block, rows: Iterable[list[Edit]], brackets: str | None = None) -> str:
        """The content with edits, quoted for its format; default brackets are <>, [] in markup."""
        brackets, edits = brackets or BRACKETS[self.format == "markup"], []
        for (start, end, text), row in zip(block.texts, rows, strict=True):
            if row:
                new = apply_edits(text, row, brackets)
                edits.append(Edit(start, end, self._written(new, block.content[start])))
        return apply_edits(block.content, edits)

    def _written(self, text: str, quote: str) -> str:  # quote: first character of the old cell
        if self.format in ("json", "jsonl"):
            return json.dumps(text, ensure_ascii=False)
        if self.format == "csv" and (quote == '"' or {*text} & {*'"\r\n', self.delimiter}):
            return '"' + text.replace('"', '""') + '"'
        return text


def format_of(path: Path, default: Format | None = None) -> Format | None:
    """The format of a suffix, else `default`; WxbError for an unknown suffix without a default."""
    suffix = path.suffix.lower()
    if suffix and suffix not in SUFFIXES and not default:
        raise WxbError(f"{path}: unknown suffix; choose --format, or convert it to text or CSV")
    return SUFFIXES.get(suffix, default)


def _line_blocks(file: Any, is_live: bool) -> Iterator[bytes]:
    """Yield whole lines, or b"": those readable now if `is_live`, else about BLOCK bytes."""
    rest = b""
    while part := file.read1(BLOCK) if is_live else file.read(BLOCK):
        rest += part
        end = rest.rfind(b"\n") + 1
        if not is_live:
            end = len(rest) if len(part) < BLOCK else end
        yield rest[:end]
        rest = rest[end:]
    yield rest


def _leaves(tokens: Iterable[re.Match[str]]) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield (path, token) of each scalar and empty [] or {}; paths have no list indices."""
    path, parents = "", [""]
    for token in tokens:
        if token[2]:
            path = f"{parents[-1]}.{json.loads(token[1])}".removeprefix(".")
        elif token[0] in ("[", "{"):
            parents.append(path)
        elif token[0] in ("]", "}"):
            path = parents.pop()
        else:
            yield path, token


def _json_texts(source: Source, block: Block) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and text of JSON's string values, or of strings and numbers of named fields.

    Raises WxbError for invalid JSON and for a value without a named field. An empty list or null
    may stand instead of a text, or of an object with texts.
    """
    whole = re.compile(r"(?s).*") if source.format == "json" else LINE
    for value in whole.finditer(block.content):
        if not value[0].strip():
            continue
        try:
            json.loads(value[0], parse_int=str, parse_float=str)
            leaves = [*_leaves(TOKEN.finditer(block.content, *value.span()))]
            for path, token in leaves:
                if path in source.names if source.names else token[1]:
                    text = json.loads(token[0], parse_int=str, parse_float=str)
                    if isinstance(text, str):
                        text.encode()  # fails for half a surrogate pair
                        yield *token.span(), text
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deeply, or half a surrogate pair")
            advice = "; JSON Lines end in .jsonl" * (source.format == "json")
            raise source.error(block, value.start(), f"no JSON ({reason}){advice}") from None
        known = {path for path, token in leaves if token[0][0] not in "n[{"}
        empty = {f"{path}." for path, token in leaves if token[0][0] in "n[{"}
        empty -= {path for path in empty if any(name.startswith(path) for name in known)}
        for name in {*source.names} - known:
            if not any(f"{name}.".startswith(path) for path in empty):
                advice = f"{did_you_mean(name, known)}; name it with --field"
                raise source.error(block, value.start(), f"no text in the field {name!r}{advice}")


def _delimiter(header: str, names: Sequence[str]) -> str:
    """The delimiter of most columns with these names in a CSV header, else the most frequent."""
    columns = {delimiter: header.split(delimiter) for delimiter in DELIMITERS}
    named = {d: sum(column.strip('"') in names for column in columns[d]) for d in DELIMITERS}
    return max(DELIMITERS, key=lambda delimiter: (named[delimiter], len(columns[delimiter])))


def _csv_blocks(source: Source, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield whole rows (RFC 4180) with named columns as texts, else WxbError; set `delimiter`."""
    header: list[str] = []
    rest = Block("", 1)  # a row without its end
    for block in blocks:
        rest = Block(rest.content + block.content, rest.line)
        if not header:
            delimiter = _delimiter(rest.content.partition("\n")[0].rstrip("\r"), source.names)
            source.delimiter = delimiter
            separator = rf"({re.escape(delimiter)}|\r?\n|\Z)"
            cell = re.compile(rf'("[^"]*(?:""[^"]*)*"|(?!")[^{delimiter}\r\n]*){separator}')
        row: list[re.Match[str]] = []
        texts, end, position = [], 0, 0
        while row or position < len(rest.content):
            if not (match := cell.match(rest.content, position)):
                break
            row.append(match)
            position = match.end()
            if match[2] != delimiter:
                values = [m[1][1:-1].replace('""', '"') if m[1][:1] == '"' else m[1] for m in row]
                for name in {*source.names} - {*(header or values)}:
                    advice = f"{choices(name, values)}; name one with --column"
                    raise source.error(rest, end, f"no column {name!r}{advice}")
                if header and values != [""] and len(values) != len(header):
                    fault = f"found {len(values)} cells; expected {len(header)}"
                    raise source.error(rest, end, fault)
                cells = zip(header, row, values, strict=False)
                texts += [(*m.span(1), text) for name, m, text in cells if name in source.names]
                header, row, end = header or values, [], position
        yield Block(rest.content[:end], rest.line, texts)
        rest = Block(rest.content[end:], rest.line + rest.content.count("\n", 0, end))
    if rest.content:
        raise source.error(rest, 0, "no CSV (RFC 4180): correct its quotation or line ends")


def rewrite(
    sources: Iterable[Source],
    find_edits: Callable[[Iterable[str]], Iterator[list[Edit]]],
    save: Callable[[], object] = lambda: None,
    check: Callable[[Source, Block, list[list[Edit]]], object] = lambda *_: None,
    brackets: str | None = None,
) -> None:
    """Write each input to its output, with the edits of its texts. Shows progress on a terminal.

    For each block, `find_edits` gets its texts, `check` also their edits; then `save` is called,
    and the block is written. Files are replaced once complete. Raises WxbError if writing fails.
    """
    for source in sources:
        with _opened(source.target) as file:
            for block in tqdm(source.blocks(), unit="block", disable=None, leave=False):
                rows = [*find_edits(text for _, _, text in block.texts)]
                check(source, block, rows)
                save()
                file.write(source.edited(block, rows, brackets).encode())
                file.flush()


@contextmanager
def _opened(target: Path | None) -> Iterator[IO[bytes]]:
    """Yield standard output, or a draft that replaces a file; an OSError becomes WxbError."""
    try:
        if target is None:
            yield sys.stdout.buffer
        elif target.is_dir():
            raise WxbError(f"{target}: found a folder; expected a file to write or replace")
        else:
            with publish(target) as (draft,), draft.open("wb") as file:
                yield file
    except BrokenPipeError:
        raise  # the reader has exited; typer then exits without a message
    except OSError as error:
        if target is None:  # Python would try to write buffered bytes again when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = target or "standard output"
        raise WxbError(f"{where}: cannot be written ({error.strerror})") from None
