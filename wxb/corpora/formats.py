"""Read unchecked records from JSON, JSONL, CSV, Parquet and Arrow files."""

import ast
import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product, tee
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.corpora.adapters import adapt
from wxb.corpora.layout import DELIMITERS, FEATURES, LEGACY, TABLES, decode, decode_legacy
from wxb.corpora.records import RecordError

BATCH = 1000  # rows of Parquet: a repeated value is stored once, and unpacked for each row
TURN = {"role", "from"}  # keys of messages
CLASS_NUMBER = re.compile(r"-1|\d{1,9}")
LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)  # a literal of Python
LITERALS = re.compile(rf"\[(?:{LITERAL.pattern})(?:[,\s]+(?:{LITERAL.pattern}))*\]", re.DOTALL)
# The first line of tables for Excel.
SEPARATOR = re.compile(r'"?sep=(.)"?(?=[\r\n])', re.IGNORECASE)

Names = Mapping[str, Sequence[str]]  # of classes that are stored as numbers, by field
Row = tuple[int, list[str], list[str]]  # of a table: the number of its last line, cells and lines


class Raw(NamedTuple):
    """An unchecked record: its place in the file, and its content or a RecordError.

    `repaired` names repairs of the file, such as its encoding. `document` is the number of its
    document if the file marks documents.
    """

    place: str
    content: Any
    repaired: tuple[str, ...] = ()
    document: int | None = None


def raw_records(
    file: Path,
    json_column: str | None = None,
    columns: Sequence[str] | None = None,
    annotator: str | None = None,
) -> Iterator[Raw]:
    """Yield the records of a file, or RecordErrors; its suffix names the format, else JSON.

    Cells of CSV are text, except in `json_column`, which has JSON or Python literals. The delimiter
    and encoding of CSV are detected; `repaired` names a legacy encoding. With `columns`, the names
    of its columns, any file is a table without a header. Records of annotation tools are converted
    by `adapt`, with the labels of `annotator` if given. Numbers of classes become their names.
    Raises WxbError if the file is empty, not in its format, or in an unsupported encoding: JSON
    must be UTF-8, CSV may also be in one of `layout.LEGACY`.
    """
    suffix = file.suffix.lower()
    if columns or suffix in TABLES:
        raws = _table(file, json_column, columns)
    elif suffix in (".jsonl", ".ndjson"):
        raws = _jsonl(file)
    elif suffix == ".parquet":
        raws = _batch_rows(file, lambda: pq.ParquetFile(file).iter_batches(BATCH))
    elif suffix == ".arrow":
        raws = _batch_rows(file, lambda: _open_arrow(file))
    else:
        raws = _json(file)
    names = _find_class_names(file)
    for raw in raws:
        content = raw.content
        try:
            if names and isinstance(content, Mapping):
                named = {k: _with_names(v, names[k]) for k, v in content.items() if names.get(k)}
                content = {**content, **named}
            yield raw._replace(content=adapt(content, annotator))
        except RecordError as error:
            yield raw._replace(content=error)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            detail = f"not as its annotation tool writes it: {type(error).__name__} {error}"
            yield raw._replace(content=RecordError("wrong type", detail[:200]))


def _json(file: Path) -> Iterator[Raw]:
    """Yield the records of a list, an object (see `_records`), or lines that begin with an object.

    Raises WxbError for other or broken JSON.
    """
    text = decode(file)
    records = _json_or_error(text)
    if isinstance(records, RecordError):
        # `Dataset.to_json` writes one record per line, whatever the suffix.
        if isinstance(_json_or_error(text.partition("\n")[0]), Mapping):
            yield from _jsonl(file)
            return
        raise WxbError(
            f"{file}: {records.reason}: {records.detail};"
            " expected a list of records (for one record per line, use .jsonl)"
        )
    records = _records(records) if isinstance(records, Mapping) and records else records
    if not isinstance(records, list):
        raise WxbError(f"{file}: found a JSON {type(records).__name__}; expected a list of records")
    yield from (Raw(f"record {index}", content) for index, content in enumerate(records, start=1))


def _records(content: Mapping[str, Any]) -> Sequence[Any]:
    """The records of a JSON object: a list in it, its columns, its objects, or itself.

    The list is the only one with pairs of spaCy, or the only value and has no messages. Two or more
    objects are columns if their keys are equal numbers; else each is a record, its key the `id`.
    """
    first, *others = values = [*content.values()]
    pairs = [value for value in values if isinstance(value, list) and any(map(_is_pair, value))]
    if len(pairs) == 1:  # beside the names of classes
        return pairs[0]
    if others and all(isinstance(value, Mapping) for value in values):
        if first and all(map(str.isdecimal, first)) and len({*map(tuple, values)}) == 1:
            return [{name: column[row] for name, column in content.items()} for row in first]
        return [{"id": id_, **record} for id_, record in content.items()]
    rows = first if isinstance(first, list) and not others else []
    is_list = rows and all(isinstance(row, Mapping) and not TURN & {*row} for row in rows)
    return rows if is_list else [content]


def _is_pair(value: Any) -> bool:  # a text and an object, as spaCy has them
    return isinstance(value, list) and [*map(type, value)] == [str, dict]


def _jsonl(file: Path) -> Iterator[Raw]:
    """For each line that is not blank, its place (`line 1`) with a record or RecordError."""
    lines = io.StringIO(decode(file), newline="\n")  # one by one, to save memory
    for index, line in enumerate(lines, start=1):
        if line.strip():
            yield Raw(f"line {index}", _json_or_error(line))


def _table(file: Path, json_column: str | None, columns: Sequence[str] | None) -> Iterator[Raw]:
    """Yield the rows of a table, with a RecordError for a broken row or a repeated header.

    A table has a header unless `columns` are given. In tables with tabs or bars, quotation marks
    are text if `columns` are given or if not all enclose cells. Raises WxbError for two columns of
    a name, or for a header despite `columns`.
    """
    text, legacy = decode_legacy(file, LEGACY if file.suffix.lower() in TABLES else ())
    repaired = (f"read as {legacy}",) if legacy else ()
    csv.field_size_limit(2**31 - 1)
    separator = SEPARATOR.match(text)
    if separator:
        text = text[separator.end() :]
    has_tabs = columns and file.suffix.lower() != ".csv" and "\t" in text.partition("\n")[0]
    delimiter = separator[1] if separator else "\t" if has_tabs else _detect_delimiter(text)
    is_quoted = delimiter not in "\t|" or (not columns and _is_quoted(text, delimiter))
    rows = _rows_with_lines(file, text, delimiter, is_quoted)
    names = columns or _header(file, rows)
    first_cells, last_cells = set[str](), set[str]()
    for number, cells, lines in rows:
        if columns and not first_cells and [*names] == cells:
            cure = "leave --columns out, and name it .tsv or .csv"
            raise WxbError(f"{file}: its first line is a header; {cure}")
        content: Any = with_parsed_cell(dict(zip(names, cells, strict=False)), json_column)
        if len(cells) != len(names):
            detail = f"found {len(cells)} cells, expected {len(names)}"
            if not any(cells[len(names) :]) and len(cells) > len(names):
                detail += "; rows end with a delimiter, so add one to the header"
            content = RecordError("broken CSV", detail)
        elif names == cells:
            content = RecordError("repeated header", "as in files that were joined")
        elif inner := _rows_in_cells(lines, delimiter, len(names)):
            has_known_first = {row[0] for row in inner[1:]} <= first_cells
            has_known_last = {row[-1] for row in inner[:-1]} <= last_cells
            if len(inner) > 4 or has_known_first or has_known_last:
                begin = number - len(lines) + 1
                detail = f"its quotation mark in line {begin} swallows {len(lines) - 1} whole rows"
                content = RecordError("broken CSV", detail)
        elif len(first_cells) < 10_000:
            first_cells.add(cells[0])
            last_cells |= {cells[-1]} - {""}
        yield Raw(f"line {number}", content, repaired)


def _header(file: Path, rows: Iterator[Row]) -> list[str]:
    """The cells of the first row. Raises WxbError if two are equal, unless they are empty."""
    _, names, _ = next(rows, (0, [], []))
    repeated = [name for name, count in Counter(names).items() if name and count > 1]
    if repeated:
        raise WxbError(
            f"{file}: two columns are called {repeated[0]!r}; rename or remove one, or name"
            " the columns with --columns if the file has no header"
        )
    return names


def _rows_in_cells(lines: Sequence[str], delimiter: str, width: int) -> list[list[str]]:
    """The cells of each line of a row; empty for one line, or if any line has not `width` cells."""
    if len(lines) == 1 or not all(line.count(delimiter) == width - 1 > 0 for line in lines):
        return []
    return [line.strip("\r\n").split(delimiter) for line in lines]


def _rows_with_lines(file: Path, text: str, delimiter: str, is_quoted: bool) -> Iterator[Row]:
    """The number of the last line, the cells and the lines of each row that is not empty.

    Unless `is_quoted`, each line is a row. Raises WxbError with the first line of a broken row.
    """
    if not is_quoted:
        for number, line in enumerate(io.StringIO(text, newline="\n"), start=1):
            if line.strip():
                yield number, line.rstrip("\r\n").split(delimiter), [line]
        return
    lines, copies = tee(io.StringIO(text, newline=""))
    rows, begin = csv.reader(lines, strict=True, delimiter=delimiter), 1
    try:
        for cells in rows:
            row_lines = [*islice(copies, rows.line_num - begin + 1)]
            begin = rows.line_num + 1
            if cells:
                yield rows.line_num, cells, row_lines
    except csv.Error as error:
        raise WxbError(f"{file}: line {begin} is not CSV: {error}; correct its quotation") from None


def _detect_delimiter(text: str) -> str:
    """The tab or bar equally often in all lines, else the delimiter with most cells in row one."""
    first = re.split(r"[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0]
    for mark in "\t|":
        lines = io.StringIO(text, newline="")
        if mark in first and len({x.count(mark) for x in lines if x.strip()}) == 1:
            return mark
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def _is_quoted(text: str, delimiter: str) -> bool:
    """Whether each mark that opens a cell has one that closes it; other cells may have marks.

    False if a cell has a line end and a delimiter: its mark opens a text and encloses other rows.
    """
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        return not any(delimiter in cell and "\n" in cell for row in rows for cell in row)
    except csv.Error:
        return False


def _batch_rows(file: Path, read_batches: Callable[[], Iterable[pa.RecordBatch]]) -> Iterator[Raw]:
    """Yield the rows of a file that is read in batches. Raises WxbError if it is damaged."""
    try:
        rows = (row for batch in read_batches() for row in batch.to_pylist())
        for index, content in enumerate(rows, start=1):
            yield Raw(f"row {index}", content)
    except (OSError, ValueError, pa.ArrowException) as error:
        message = " ".join(str(error).split())
        raise WxbError(f"{file} cannot be read: {message}; fetch the file again") from None


def _json_or_error(text: str) -> Any:
    """Parse JSON (NaN: None; of equal keys, the last counts), or return a RecordError."""
    try:  # pandas writes a missing value as NaN
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:  # also for long numbers and deep nesting
        return RecordError("broken JSON", str(error))


def with_parsed_cell(row: dict[str, Any], column: str | None) -> Any:
    """The row with its cell parsed (empty: None), or a RecordError.

    It is JSON, a literal of Python, or a list of texts without commas, as numpy writes it.
    """
    if column not in row:
        return row
    cell = row[column] or "null"
    value = _json_or_error(cell)
    if isinstance(value, RecordError):
        literal = f"[{', '.join(LITERAL.findall(cell))}]" if LITERALS.fullmatch(cell) else cell
        try:  # a Python literal, as pandas writes lists; runs no code
            with warnings.catch_warnings(action="ignore"):  # of invalid escapes in strings
                value = ast.literal_eval(literal)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            detail = f"neither JSON ({value.detail}) nor a Python literal"
            return RecordError("broken cell", detail)
    return {**row, column: value}


def _find_class_names(file: Path) -> Names:
    """Class names by field, of a file or FEATURES in its folder or parent; WxbError if not JSON."""
    schema = None
    with suppress(OSError, ValueError, pa.ArrowException):  # the reader raises the error
        match file.suffix.lower():
            case ".parquet":
                schema = pq.read_schema(file)
            case ".arrow":
                schema = _open_arrow(file).schema
    metadata = (schema.metadata or {}).get(b"huggingface") if schema else None
    if metadata:
        return _names_by_field(json.loads(metadata))
    for folder, name in product((file.parent, file.parent.parent), FEATURES):
        if (path := folder / name).is_file():
            try:
                return _names_by_field(read_json(path))
            except ValueError as error:
                raise WxbError(f"{path}: expected JSON with `features`; {error}") from None
    return {}


def _open_arrow(file: Path) -> pa.RecordBatchReader:
    """A reader of the batches of an Arrow file, in the format of streams or of files."""
    try:
        return pa.ipc.open_stream(pa.memory_map(str(file)))
    except pa.ArrowInvalid:
        return pa.ipc.open_file(pa.memory_map(str(file))).read_all().to_reader()


def _with_names(value: Any, names: Sequence[str]) -> Any:
    """Replace class numbers, also in text or lists, by names, -1 by None; keep names and others."""
    if isinstance(value, list):
        return [_with_names(item, names) for item in value]
    if value in names or not CLASS_NUMBER.fullmatch(str(value)) or int(value) >= len(names):
        return value
    return None if int(value) == -1 else names[int(value)]


def _names_by_field(content: Any) -> Names:
    """Class names by field, empty for some, in the features of a data set or its first subset."""
    while isinstance(content, Mapping) and content:
        features = content.get("features")
        features = features if features and isinstance(features, Mapping) else content
        by_field = {field: _class_names(feature) for field, feature in features.items()}
        if any(by_field.values()):
            return by_field
        content = content.get("info", next(iter(content.values())))
    return {}


def _class_names(feature: Any) -> Sequence[str]:
    """The names of classes in a feature's JSON, at any depth; empty if it has none."""
    if isinstance(feature, list) and len(feature) == 1:  # a list, as older versions write it
        (feature,) = feature
    while isinstance(feature, Mapping):
        feature = feature["names"] if "names" in feature else feature.get("feature")
    is_names = isinstance(feature, list) and all(isinstance(name, str) for name in feature)
    return feature if is_names else ()
