"""Parse JSON lines and CSV rows so that all bytes outside of one text are kept."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain

from wxb import WxbError
from wxb.core.errors import did_you_mean
from wxb.masking.documents import Document

DELIMITERS = ",;\t|"

_WHITE = re.compile(r"[ \t\r\n]*")
# The spelling of one code point in a JSON string; it may be two escapes.
_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.",
    re.DOTALL,
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_KINDS = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}

_QUOTED = re.compile(r'(?:[^"]++|"")*+')
_PAIR = re.compile(r'""|.', re.DOTALL)


def json_lines(lines: Iterator[str], name: str, field: str) -> Iterator[Document]:
    """Yield the string in a field of each line's object; blank lines and null have none.

    New text is escaped to ASCII if the old text was. Raises WxbError, with `name` and the line, for
    a line that is no JSON object, and if the field is missing, repeated or of another type.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip(" \t\r\n"):
            yield Document("", before=line)
            continue
        where = f"{name}: line {number}"
        try:
            fields = _fields(line, where)
        except json.JSONDecodeError as error:
            raise WxbError(f"{where}, character {error.pos + 1}: no JSON ({error.msg})") from None
        matches = [(value, start, end) for key, value, start, end in fields if key == field]
        if len(matches) != 1:
            keys = [key for key, *_ in fields]
            count = len(matches)
            fault = f"field {field!r} occurs {count} times" if count else _missing(field, keys)
            raise WxbError(f"{where}: {fault}; name the text's field with --field")
        yield _string(line, *matches[0], f"{where}: field {field!r}")


def _fields(line: str, where: str) -> list[tuple[str, object, int, int]]:
    """Key, value, start and end of each field of the object in a line."""
    decoder = json.JSONDecoder()
    fields: list[tuple[str, object, int, int]] = []
    position = _skip(line, 0)
    if line[position : position + 1] != "{":
        raise WxbError(f"{where}: expected a JSON object; found something else")
    position = _skip(line, position + 1)
    while line[position : position + 1] != "}" or fields:
        if line[position : position + 1] != '"':
            raise json.JSONDecodeError("expected a key in double quotes", line, position)
        key, position = decoder.raw_decode(line, position)
        position = _expect(line, position, ":")
        value, end = decoder.raw_decode(line, position)
        fields.append((key, value, position, end))
        position = _skip(line, end)
        if line[position : position + 1] == "}":
            break
        position = _expect(line, position, ",")
    if _skip(line, position + 1) != len(line):
        raise json.JSONDecodeError("found more after the object", line, position + 1)
    return fields


def _string(line: str, value: object, start: int, end: int, where: str) -> Document:
    """The document of a JSON string at `start:end` of a line."""
    if value is None:
        return Document("", before=line)
    if not isinstance(value, str):
        kind = _KINDS.get(type(value), "a number")
        raise WxbError(f"{where}: expected a string or null, found {kind}")
    if _SURROGATE.search(value):
        raise WxbError(
            f"{where}: has half a surrogate pair (\\ud800 to \\udfff), which is no character;"
            " repair the file first"
        )
    raw = line[start + 1 : end - 1]
    is_ascii = raw.isascii() and "\\u" in raw
    return Document(
        value,
        before=line[: start + 1],
        after=line[end - 1 :],
        units=_UNIT.findall(raw) if "\\" in raw else None,
        escape=partial(_escape, to_ascii=is_ascii),
    )


def _escape(text: str, *, to_ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=to_ascii)[1:-1]


def _skip(line: str, position: int) -> int:
    return _match_end(_WHITE, line, position)


def _expect(line: str, position: int, mark: str) -> int:
    """The position after a mark and the spaces around it."""
    position = _skip(line, position)
    if line[position : position + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark!r}", line, position)
    return _skip(line, position + 1)


def csv_rows(lines: Iterator[str], name: str, column: str) -> Iterator[Document]:
    """Yield the cells of a column by its name in the first row; rows follow RFC 4180.

    The delimiter is the one of DELIMITERS that splits the first row into most cells, among them
    this name. Quoted cells stay quoted. Others are quoted if new text needs it; restored text only
    if the cell would be parsed differently. Raises WxbError, with `name` and the line, if the
    column is missing or occurs twice, or a row has too few cells.
    """
    first = next(lines, None)
    if first is None:
        return
    headers = {mark: _header(first, mark) for mark in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: (column in headers[mark], len(headers[mark])))
    rows = _rows(chain([first], lines), delimiter, name)
    _, header, cells = next(rows)
    names = [_unquote(header, *cell) for cell in cells]
    if names.count(column) != 1:
        fault = f"column {column!r} occurs twice" if column in names else _missing(column, names)
        raise WxbError(f"{name}: line 1: {fault}; name the text's column with --column")
    yield Document("", before=header)
    index = names.index(column)
    for number, row, cells in rows:
        if len(cells) > index:
            yield _cell(row, *cells[index], delimiter)
        elif not row.strip("\r\n"):
            yield Document("", before=row)
        else:
            raise WxbError(
                f"{name}: line {number}: found {len(cells)} cells; expected {len(names)}, with"
                f" {column!r} at {index + 1}"
            )


def _header(line: str, delimiter: str) -> list[str]:
    """The cells of a line; empty if it is not valid: `_rows` explains that."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _rows(
    lines: Iterator[str], delimiter: str, name: str
) -> Iterator[tuple[int, str, list[tuple[int, int, bool]]]]:
    """For each row: its first line number, its text, and (start, end, is_quoted) of its cells."""
    plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    read = 0
    for row in lines:
        number = read = read + 1
        cells, position = [], 0
        while True:
            is_quoted = row.startswith('"', position)
            start = end = position + is_quoted
            if is_quoted:
                while (end := _match_end(_QUOTED, row, end)) == len(row):
                    more = next(lines, None)
                    if more is None:
                        raise WxbError(f"{name}: line {number}: a quote is never closed")
                    row, read = row + more, read + 1
            else:
                end = _match_end(plain, row, end)
            cells.append((start, end, is_quoted))
            position = end + is_quoted
            if not row.startswith(delimiter, position):
                break
            position += 1
        if row[position:] not in ("", "\n", "\r\n"):
            fault = "text after a closing quote" if is_quoted else "a carriage return in a cell"
            raise WxbError(
                f"{name}: line {read}: found {fault}; expected cells separated by {delimiter!r},"
                ' quoted if they contain it, line ends or quotes ("")'
            )
        yield number, row, cells


def _cell(row: str, start: int, end: int, is_quoted: bool, delimiter: str) -> Document:
    raw, text = row[start:end], _unquote(row, start, end, is_quoted)
    before, after = row[:start], row[end:]
    if not is_quoted:

        def quote(cell: str, is_restored: bool) -> str:
            # Some readers misread quotes within unquoted cells, so there must be no new ones.
            # Restored ones were in the original.
            fits = is_restored or cell.count('"') <= raw.count('"')
            fits &= not cell.startswith('"') and not any(
                mark in cell for mark in f"{delimiter}\r\n"
            )
            return cell if fits else '"' + cell.replace('"', '""') + '"'

        return Document(text, before, after, quote=quote)
    units = _PAIR.findall(raw) if '""' in raw else None
    return Document(text, before, after, units, escape=lambda new: new.replace('"', '""'))


def _unquote(row: str, start: int, end: int, is_quoted: bool) -> str:
    return row[start:end].replace('""', '"') if is_quoted else row[start:end]


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None  # all patterns match the empty text
    return match.end()


def _missing(name: str, known: list[str]) -> str:
    """An error message that shows a similar name only: other names may be values."""
    return f"found {len(known)} names, none of them {name!r}{did_you_mean(name, known)}"
