"""JSON lines and CSV rows, taken apart so that all but one text of each keeps its bytes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain

from wxb import WxbError
from wxb.core.errors import nearest
from wxb.masking.documents import Document

DELIMITERS = ",;\t|"

_WHITE = re.compile(r"[ \t\r\n]*")
# One code point as a JSON string spells it; two escapes may make one.
_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.",
    re.DOTALL,
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_KINDS = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}

_QUOTED = re.compile(r'(?:[^"]++|"")*+')
_PAIR = re.compile(r'""|.', re.DOTALL)


def json_lines(lines: Iterator[str], name: str, field: str) -> Iterator[Document]:
    """The string in a field of each line's object; a null or blank line holds none.

    What is new in it is spelled with escapes for all but ASCII where the old text has such escapes.
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
        found = [(value, start, end) for key, value, start, end in fields if key == field]
        if len(found) != 1:
            keys = [key for key, *_ in fields]
            said = f"field {field!r} stands {len(found)} times" if found else _missing(field, keys)
            raise WxbError(f"{where}: {said}; name the text's field with --field")
        yield _string(line, *found[0], f"{where}: field {field!r}")


def _fields(line: str, where: str) -> list[tuple[str, object, int, int]]:
    """Key, value and the value's place, for each field of the object in a line."""
    decoder = json.JSONDecoder()
    fields: list[tuple[str, object, int, int]] = []
    at = _skip(line, 0)
    if line[at : at + 1] != "{":
        raise WxbError(f"{where}: expected a JSON object with a text in it, found something else")
    at = _skip(line, at + 1)
    while line[at : at + 1] != "}" or fields:
        if line[at : at + 1] != '"':
            raise json.JSONDecodeError("expected a key in double quotes", line, at)
        key, at = decoder.raw_decode(line, at)
        at = _expect(line, at, ":")
        value, end = decoder.raw_decode(line, at)
        fields.append((key, value, at, end))
        at = _skip(line, end)
        if line[at : at + 1] == "}":
            break
        at = _expect(line, at, ",")
    if _skip(line, at + 1) != len(line):
        raise json.JSONDecodeError("found more after the object", line, at + 1)
    return fields


def _string(line: str, value: object, start: int, end: int, where: str) -> Document:
    if value is None:
        return Document("", before=line)
    if not isinstance(value, str):
        kind = _KINDS.get(type(value), "a number")
        raise WxbError(f"{where}: expected a string or null, found {kind}")
    if _SURROGATE.search(value):
        raise WxbError(
            f"{where}: holds half a surrogate pair (\\ud800 to \\udfff), which is no character;"
            " mend the file first"
        )
    raw = line[start + 1 : end - 1]
    escapes = raw.isascii() and "\\u" in raw
    return Document(
        value,
        before=line[: start + 1],
        after=line[end - 1 :],
        units=_UNIT.findall(raw) if "\\" in raw else None,
        spell=partial(_dumped, ascii_=escapes),
    )


def _dumped(text: str, *, ascii_: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_)[1:-1]


def _skip(line: str, at: int) -> int:
    return _end(_WHITE, line, at)


def _expect(line: str, at: int, mark: str) -> int:
    """The place of what follows a mark."""
    at = _skip(line, at)
    if line[at : at + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark!r}", line, at)
    return _skip(line, at + 1)


def csv_rows(lines: Iterator[str], name: str, column: str) -> Iterator[Document]:
    """The cells of the column that the first row names so; rows are those of RFC 4180.

    The delimiter is the one of DELIMITERS that divides the first row into most cells with this name
    among them. A cell keeps its quotes; one without gets some where new text needs them, and text
    that is restored needs them only where the cell would be read as another.
    """
    first = next(lines, None)
    if first is None:
        return
    divided = {mark: next(csv.reader([first], delimiter=mark), []) for mark in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: (column in divided[mark], len(divided[mark])))
    rows = _rows(chain([first], lines), delimiter, name)
    _, header, cells = next(rows)
    names = [_unquoted(header, *cell) for cell in cells]
    if names.count(column) != 1:
        said = f"column {column!r} stands twice" if column in names else _missing(column, names)
        raise WxbError(f"{name}: line 1: {said}; name the text's column with --column")
    yield Document("", before=header)
    place = names.index(column)
    for number, row, cells in rows:
        if len(cells) > place:
            yield _cell(row, *cells[place], delimiter)
        elif not row.strip("\r\n"):
            yield Document("", before=row)
        else:
            raise WxbError(
                f"{name}: line {number}: found {len(cells)} cells; expected {len(names)}, with"
                f" {column!r} at {place + 1}"
            )


def _rows(
    lines: Iterator[str], delimiter: str, name: str
) -> Iterator[tuple[int, str, list[tuple[int, int, bool]]]]:
    """The line that a row begins in, the row, and its cells' places, with whether in quotes."""
    plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    read = 0
    for row in lines:
        number = read = read + 1
        cells, at = [], 0
        while True:
            quoted = row.startswith('"', at)
            start = end = at + quoted
            if quoted:
                while (end := _end(_QUOTED, row, end)) == len(row):
                    more = next(lines, None)
                    if more is None:
                        raise WxbError(f"{name}: line {number}: a quote opens and never closes")
                    row, read = row + more, read + 1
            else:
                end = _end(plain, row, end)
            cells.append((start, end, quoted))
            at = end + quoted
            if not row.startswith(delimiter, at):
                break
            at += 1
        if row[at:] not in ("", "\n", "\r\n"):
            found = "text after a closing quote" if quoted else "a carriage return in a cell"
            raise WxbError(
                f"{name}: line {read}: found {found}; expected cells divided by {delimiter!r}, with"
                ' quotes around those that hold it, line ends or quotes ("")'
            )
        yield number, row, cells


def _cell(row: str, start: int, end: int, quoted: bool, delimiter: str) -> Document:
    raw, text = row[start:end], _unquoted(row, start, end, quoted)
    before, after = row[:start], row[end:]
    if not quoted:

        def seal(cell: str, restored: bool) -> str:
            # A quote within a cell is a character to us, but not to every reader: new ones would do
            # harm. One that is restored stood there without quotes before.
            fits = restored or cell.count('"') <= raw.count('"')
            fits &= not cell.startswith('"') and not any(
                mark in cell for mark in f"{delimiter}\r\n"
            )
            return cell if fits else '"' + cell.replace('"', '""') + '"'

        return Document(text, before, after, seal=seal)
    units = _PAIR.findall(raw) if '""' in raw else None
    return Document(text, before, after, units, spell=lambda new: new.replace('"', '""'))


def _unquoted(row: str, start: int, end: int, quoted: bool) -> str:
    return row[start:end].replace('""', '"') if quoted else row[start:end]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None  # the patterns match the empty text, too
    return match.end()


def _missing(name: str, known: list[str]) -> str:
    """Tells no names but one that is like what was asked for: the rest may be values."""
    return f"found {len(known)} names, none of them {name!r}{nearest(name, known)}"
