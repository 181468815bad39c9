"""Documents in JSON lines, CSV rows and text files; all other bytes are kept."""

import csv
import io
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.masking.edits import Edit, apply_edits
from wxb.masking.placeholders import Placeholders
from wxb.masking.sources import Layout, read_documents
from wxb.tasks.ner.record.spans import Span

FORMATS = ("text", "lines", "jsonl", "csv")
scalars = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(scalars, inner, max_size=2),
    max_leaves=4,
)
cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6) | (
    st.sampled_from(['"', '""', ",", ";", "a\nb", " x ", 'a"b', "\ufeff"])
)


def layout(format_, **names):
    if format_ == "lines":
        return Layout("text", lines=True, **names)
    return Layout(format_, **names)


def documents(content, format_, **names):
    return list(read_documents(io.BytesIO(content), None, "a file", layout(format_, **names)))


def changed(content, format_, change=lambda text: [], **names):
    """The texts of a file, and the edited file."""
    parts = documents(content, format_, **names)
    new = b"".join(part.to_bytes(change(part.text) if part.text else []) for part in parts)
    return [part.text for part in parts if part.text], new


def replace_first(new):
    return lambda text: [Edit(0, 1, new)]


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(["text", "lines"]), st.booleans())
def test_text_comes_back_byte_for_byte(text, format_, mark):
    content = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    texts, same = changed(content, format_)
    assert same == content
    assert "".join(texts).encode() in content if format_ == "text" else "\n" not in "".join(texts)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_are_kept(format_, end, last, mark):
    rows = {
        "text": [b"one\0 \xc3\xa9", b"", b"two"],
        "lines": [b"one\0 \xc3\xa9", b"", b"two"],
        "jsonl": [b' { "id":1.50, "text" : "\\u00e9\\/\\n" } ', b"", b'{"text":null}'],
        "csv": [b'a "b",text', b'"x""y",', b"", b'" ",a "b" c'],
    }[format_]
    content = mark + end.join(rows) + (end if last else b"")
    assert changed(content, format_)[1] == content


@pytest.mark.parametrize("format_", FORMATS)
def test_an_empty_file_stays_empty(format_):
    assert changed(b"", format_) == ([], b"")
    assert changed(b"\xef\xbb\xbf", format_) == ([], b"\xef\xbb\xbf")


@pytest.mark.parametrize("format_", FORMATS)
def test_bytes_that_are_not_utf_8_are_an_error_without_quoting(format_):
    content = {"jsonl": b'{"text": "a"}\n{"text": "Ann \xff"}', "csv": b"text\nAnn \xff"}
    with pytest.raises(WxbError, match="a file: line 2: byte 0xff is not UTF-8") as error:
        documents(content.get(format_, b"a\nAnn \xff"), format_)
    assert "Ann" not in str(error.value)


rows = st.lists(
    st.tuples(scalars, st.dictionaries(scalars, values, max_size=3), st.booleans()), max_size=4
)


@given(rows, scalars, st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]))
def test_json_keeps_all_but_the_text(rows, new, separators):
    lines, expected = [], []
    for text, rest, escapes in rows:
        record = {**rest, "text": text}
        lines.append(json.dumps(record, ensure_ascii=escapes, separators=separators))
        expected.append({**record, "text": new + text[1:] if text else ""})
    content = "".join(f"{line}\n" for line in lines).encode()
    texts, same = changed(content, "jsonl")
    assert same == content
    assert texts == [text for text, *_ in rows if text]
    _, edited = changed(content, "jsonl", replace_first(new))
    read_again = [json.loads(line) for line in edited.decode().split("\n") if line]
    assert [list(record.items()) for record in read_again] == [
        list(record.items()) for record in expected
    ]


def test_json_escapes_are_kept():
    content = b'{"a": 1e2, "text": "Ann \\u00E9\\/\\uD83D\\uDE00\\t\xc3\xa9 Bob", "b": "\\u0041"}'
    texts, new = changed(content, "jsonl", lambda text: [Edit(0, 3, 'é"'), Edit(10, 13, "")])
    assert texts == ["Ann é/😀\té Bob"]
    assert new == content.replace(b"Ann", 'é\\"'.encode()).replace(b"Bob", b"")
    ascii_only = b'{"text": "Ann \\u00e9"}'
    assert changed(ascii_only, "jsonl", replace_first("é"))[1] == b'{"text": "\\u00e9nn \\u00e9"}'


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"txt": "Ann"}', "found 1 names, none of them 'text'; did you mean 'txt'"),
        ('{"text": "Ann", "text": "Ann"}', "occurs 2 times"),
        ('{"text": ["Ann"]}', "expected a string or null, found a list"),
        ('{"text": 7}', "found a number"),
        ('{"text": "Ann \\ud800"}', "half a surrogate pair"),
        ('{"text": "Ann"', "no JSON"),
        ('{"text": "Ann",}', "no JSON"),
        ('{"text": "Ann"} {}', "no JSON"),
        ('{"text": "Ann" "b": 1}', "no JSON"),
        ('{text: "Ann"}', "no JSON"),
        ('["Ann"]', "expected a JSON object"),
    ],
)
def test_json_errors_have_the_line_and_no_value(line, fault):
    with pytest.raises(WxbError, match="a file: line 2") as error:
        documents(f'{{"text": "a"}}\n{line}\n'.encode(), "jsonl")
    assert fault in str(error.value)
    assert "Ann" not in str(error.value)


@given(
    st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4),
    st.sampled_from(",;\t|"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    cells,
)
def test_csv_keeps_all_but_the_column(rows, delimiter, quoting, end, new):
    table = [["id", "the text", "note"], *map(list, rows)]
    options = {"delimiter": delimiter, "quoting": quoting, "lineterminator": end}

    def written(table):
        file = io.StringIO(newline="")
        csv.writer(file, **options).writerows(table)
        return file.getvalue().encode()

    content = written(table)
    texts, same = changed(content, "csv", column="the text")
    assert same == content
    assert texts == [text for _, text, _ in rows if text]
    _, edited = changed(content, "csv", replace_first(new), column="the text")
    again = list(csv.reader(io.StringIO(edited.decode(), newline=""), delimiter=delimiter))
    assert again == [
        table[0],
        *([a, new + text[1:] if text else "", b] for a, text, b in rows),
    ]


def test_csv_quotes_a_cell_if_new_text_needs_it():
    for new, cell in {"x": "xnn", "a,b": '"a,bnn"', '"': '"""nn"', "\n": '"\nnn"'}.items():
        assert changed(b"text,b\r\nAnn,c\r\n", "csv", replace_first(new))[1] == (
            f"text,b\r\n{cell},c\r\n".encode()
        )
    # A quote within an unquoted cell is a character; at its start it would open a quoted cell.
    assert changed(b'text,b\nA"nn,c\n', "csv", replace_first(""))[1] == b'text,b\n"""nn",c\n'


def format_cell(text, quoted, delimiter):
    """A cell of a CSV file, with quotes if `quoted` or if they are needed."""
    if quoted or text.startswith('"') or any(mark in text for mark in f"{delimiter}\r\n"):
        return '"' + text.replace('"', '""') + '"'
    return text


quotable = st.text(st.sampled_from('aé"",\t\r\n <'), max_size=6) | st.sampled_from(["<A_1>", 'a"b'])
kinds = st.sampled_from(["A", "B,;|\t", 'C"', "<D>\n"])


@st.composite
def tables(draw):
    """The bytes of a CSV file, and spans in each of its texts."""
    delimiter = draw(st.sampled_from(",\t"))
    rows, spans = [f"text{delimiter}note"], {}
    for text, quoted in draw(st.lists(st.tuples(quotable, st.booleans()), max_size=5)):
        rows.append(format_cell(text, quoted, delimiter) + delimiter)
        edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)))
        spans[text] = [Span(*edge, draw(kinds)) for edge in pairwise(edges)]
    return draw(st.sampled_from(["\n", "\r\n"])).join(rows).encode(), spans


@given(tables())
def test_a_masked_csv_file_is_restored_byte_for_byte(table):
    content, spans_by_text = table
    mapping = Placeholders()
    for text, spans in spans_by_text.items():
        mapping.escape(text, [Edit(span.start, span.end, "") for span in spans])

    def numbered(text):
        return [
            Edit(start, end, mapping.placeholder(kind, text[start:end]))
            for start, end, kind in spans_by_text[text]
        ]

    _, masked = changed(content, "csv", numbered)
    restored = [
        part.to_bytes(mapping.restore(part.text), is_restored=True)
        for part in documents(masked, "csv")
    ]
    assert b"".join(restored) == content
    # A placeholder needs no quotes: a cell has some after masking only if it had them before.
    assert [part.before[-1:] == '"' for part in documents(masked, "csv") if part.text] == [
        part.before[-1:] == '"' for part in documents(content, "csv") if part.text
    ]


def test_a_cell_without_quotes_is_restored_without_quotes():
    masked, restore = documents(b"text\n<A_1>x\n", "csv"), Placeholders({"<A_1>": '5"'}).restore
    restored = [part.to_bytes(restore(part.text), is_restored=True) for part in masked]
    assert b"".join(restored) == b'text\n5"x\n'


@pytest.mark.parametrize("value", ["a,b", '"a', "a\n"])
def test_restored_cells_are_quoted_if_they_need_it(value):
    restore = Placeholders({"<A_1>": value}).restore
    parts = documents(b"text,b\n<A_1>,c\n", "csv")
    restored = b"".join(part.to_bytes(restore(part.text), is_restored=True) for part in parts)
    assert next(csv.DictReader(io.StringIO(restored.decode(), newline="")))["text"] == value


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"txt,b\nAnn,c\n", "line 1: found 2 names, none of them 'text'; did you mean 'txt'"),
        (b"text,text\nAnn,c\n", "line 1: column 'text' occurs twice"),
        (b"b,text\n1,x\nAnn\n", "line 3: found 1 cells; expected 2"),
        (b'b,text\n1,"Ann\nx', "line 2: a quote is never closed"),
        (b'b,text\n1,"Ann"x\n', "line 2: found text after a closing quote"),
        (b"b,text\n1,Ann\rx\n", "line 2: found a carriage return in a cell"),
        (b'b,text\r"x\n', "line 1: found a carriage return in a cell"),
        (b"Ann,Bob\nAnn,c\n", "line 1: found 2 names, none of them 'text'"),
    ],
)
def test_csv_errors_have_the_line_and_no_value(content, fault):
    with pytest.raises(WxbError, match="a file: ") as error:
        documents(content, "csv")
    assert fault in str(error.value)
    assert "Ann" not in str(error.value)


def test_suffixes_choose_the_format(tmp_path):
    assert [
        Layout().format_of(tmp_path / f"a{suffix}") for suffix in (".JSONL", ".tsv", ".md", "")
    ] == [
        "jsonl",
        "csv",
        "text",
        "text",
    ]
    assert Layout("csv").format_of(tmp_path / "a.jsonl") == "csv"
    assert Layout().format_of(None) == "text"


@given(st.lists(st.sampled_from(["ab", "é", "\\"]), min_size=1), st.data())
def test_edits_apply_to_units_as_to_characters(units, data):
    start = data.draw(st.integers(0, len(units)))
    end = data.draw(st.integers(start, len(units)))
    assert apply_edits(units, [Edit(start, end, "x")], str.upper) == "".join(
        [*units[:start], "X", *units[end:]]
    )
