"""Texts in files of each format, and files that cannot be read."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.masking.rules import MASK
from tests.repository import write_files
from wxb.core.errors import WxbError
from wxb.masking.files import Source
from wxb.masking.placeholders import Edit

FORMATS = ("text", "lines", "jsonl", "json", "csv")
scalars = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(scalars, inner, max_size=2),
    max_leaves=4,
)
cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6) | (
    st.sampled_from(['"', '""', ",", ";", "a\nb", " x ", 'a"b', "\ufeff"])
)


def changed(content, format_, change=str, **options):
    """The texts of a file, and the file with changed texts."""
    by_line = format_ == "lines"
    format_, names = "text" if by_line else format_, ["text"] if format_ in ("csv", "jsonl") else []
    source = Source(io.BytesIO(content), "a file", format_, None, **{"names": names, **options})
    source.by_line = by_line
    blocks = [*source.blocks()]
    new = "".join(
        source.edited(
            block, [[Edit(0, len(t), change(t))] * (change(t) != t) for _, _, t in block.texts]
        )
        for block in blocks
    )
    return [text for block in blocks for _, _, text in block.texts if text], new.encode()


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(["text", "lines"]), st.booleans())
def test_text_comes_back_byte_for_byte(text, format_, mark):
    content = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    texts, same = changed(content, format_)
    assert same == content
    assert len(texts) <= 1 or format_ == "lines"
    assert format_ == "text" or not any("\n" in text for text in texts)


@pytest.mark.parametrize(
    ("format_", "content", "edited"),
    [
        (
            "json",
            '{"a" :1e400, "b":[ -0.10, "\\u00e9"],\n"c":"x"}',
            '{"a" :1e400, "b":[ -0.10, "\\u00e9"],\n"c":"y"}',
        ),
        ("jsonl", '\ufeff{"a": "x"}\r\n\n{"a": null}\n', '\ufeff{"a": "y"}\r\n\n{"a": null}\n'),
        ("json", f'[{"9" * 10_000}, "x"]', f'[{"9" * 10_000}, "y"]'),
        ("json", '{"a": "x", "a": "x"}', '{"a": "y", "a": "y"}'),
        ("csv", 'id,"text"\r\n"1","x"\n"a""b",x\r\n"",z', 'id,"text"\r\n"1","y"\n"a""b",y\r\n"",z'),
        ("csv", '\ufefftext,"i""d\n"\nx,a"b', '\ufefftext,"i""d\n"\ny,a"b'),
        ("csv", "id\ttext\n1\tx, x", "id\ttext\n1\ty; y"),
    ],
)
def test_the_rest_of_json_and_csv_stays_as_it_is_written(format_, content, edited):
    change = {"x": "y", "x, x": "y; y"}
    names = ["text"] * (format_ == "csv")
    new = changed(content.encode(), format_, lambda t: change.get(t, t), names=names)[1]
    assert new == edited.encode()


@pytest.mark.parametrize("format_", FORMATS)
def test_bytes_that_are_not_utf_8_are_an_error_with_their_line(format_):
    content = {"jsonl": b'{"text": "a"}\n{"text": "Ann \xff"}', "csv": b"text\nAnn \xff"}
    with pytest.raises(WxbError, match="a file: line 2: byte 0xff is not UTF-8") as error:
        changed(content.get(format_, b"a\nAnn \xff"), format_)
    assert "Ann" not in str(error.value)


@given(values, st.booleans(), st.sampled_from(["json", "jsonl"]))
def test_all_strings_of_json_are_texts_but_not_its_keys(value, escapes, format_):
    content = json.dumps(value, ensure_ascii=escapes).encode()
    _, edited = changed(content, format_, lambda text: f"new {text}", names=[])

    def renewed(value):
        if isinstance(value, dict):
            return {key: renewed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [*map(renewed, value)]
        return f"new {value}" if isinstance(value, str) else value

    assert json.loads(edited) == renewed(value)


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        (["messages.content"], ["Ann", "Bob"]),
        (["meta.text", "tags"], ["a", "b", "Eve"]),
        (["id", "none.deep", "empty.deep", "yes"], []),
        (["messages.n", "scores"], ["1", "-0.50", "1e400"]),
    ],
)
def test_fields_are_paths_of_keys(fields, texts):
    row = {"tags": ["a", "b"], "messages": [{"content": "Ann"}, {"content": "Bob", "n": 1}]}
    row |= {"meta": {"text": "Eve"}, "id": None, "none": None, "empty": [], "yes": True}
    line = json.dumps(row)[:-1] + ', "scores": [-0.50, 1e400]}'
    for format_ in ("json", "jsonl"):
        assert changed(line.encode(), format_, names=fields)[0] == texts


def test_a_named_number_is_masked_and_a_field_may_begin_with_brackets(run):
    write_files({"a.json": '[{"text": 57, "note": 58}]'})
    outputs = {run(*MASK, "a.json", "--field", f)[1] for f in ("[].text", ".text", "text")}
    assert outputs == {'[{"text": "<AGE>", "note": 58}]'}


def test_a_line_is_never_cut_as_a_value_may_stand_there():
    lines = ["x " * 200_000, *("y\n" * 200_000).split()]
    source = Source(io.BytesIO("\n".join(lines).encode()), "a file")
    blocks = ["".join(text for _, _, text in block.texts) for block in source.blocks()]
    assert [line for block in filter(None, blocks) for line in block.split("\n")] == lines
    assert max(map(len, blocks[5:])) < 140_000


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"txt": "Ann"}', "did you mean 'txt'"),
        ('{"text": {"a": "Ann"}}', "no text in the field 'text'"),
        ('[{"text": {"a": "Ann"}}, {"text": null}]', "no text in the field 'text'"),
        ('{"text": "Ann \\ud800"}', "no JSON"),
        ('{"text": "Ann"} {}', "no JSON"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_json_errors_have_the_line_and_no_value(line, fault):
    with pytest.raises(WxbError, match="a file: line 2") as error:
        changed(f'{{"text": "a"}}\n{line}\n'.encode(), "jsonl")
    assert fault in str(error.value)
    assert "Ann" not in str(error.value)


@given(
    st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4),
    st.sampled_from(",;\t|"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_keeps_all_but_the_columns(rows, delimiter, quoting, end):
    table = [["id", "the text", "note"], *map(list, rows)]
    options = {"delimiter": delimiter, "quoting": quoting, "lineterminator": end}
    file = io.StringIO(newline="")
    csv.writer(file, **options).writerows(table)
    columns = ["note", "the text"]
    texts, edited = changed(
        file.getvalue().encode(), "csv", lambda text: f"new {text}", names=columns
    )
    assert texts == [text for _, *both in rows for text in both if text]
    again = list(csv.reader(io.StringIO(edited.decode(), newline=""), delimiter=delimiter))
    assert again == [table[0], *([id_, f"new {a}", f"new {b}"] for id_, a, b in rows)]


@pytest.mark.parametrize("header", ["text;Name, first", '"text";"a, b, c"', "text\ta (b, c)"])
def test_the_delimiter_of_csv_is_the_one_around_the_columns(header):
    delimiter = header.replace('"', "")[4]
    assert changed(f"{header}\nAnn{delimiter}x\n".encode(), "csv")[0] == ["Ann"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"txt,b\nAnn,c\n", "line 1: no column 'text'; did you mean 'txt'"),
        (b"b,text\n1,x\nAnn\n", "line 3: found 1 cells; expected 2"),
        (b"b,text\n1,x,Ann\n", "line 2: found 3 cells; expected 2"),
        (b'b,text\n1,"Ann\nx', "no CSV"),
        (b'b,text\n1,"Ann"x\n', "line 2: no CSV"),
        (b"b,text\n1,Ann\rx\n", "no CSV"),
        (b"\ntext\nAnn", "line 1: no column 'text'"),
    ],
)
def test_csv_errors_have_the_line_and_no_value(content, fault):
    with pytest.raises(WxbError, match="a file: ") as error:
        changed(content, "csv")
    assert fault in str(error.value)
    assert "Ann" not in str(error.value)


def test_an_unreadable_file_stops_and_nothing_of_it_is_written(tmp_path, run):
    write_files({"in/a.txt": "Ann", "in/x.jsonl": '{"text": "Kim"}\n{"text": Kim}'})
    code, text, errors = run(*MASK, "in", "--output", "out")
    assert (code, text) == (1, "")
    assert "in/x.jsonl: line 2" in errors
    assert "Kim" not in errors
    assert not (tmp_path / "out/x.jsonl").exists()
