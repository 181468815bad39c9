import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.new.formats import as_table
from wxb.core.errors import WxbError
from wxb.corpora.adapters import parse_json_cell
from wxb.corpora.formats import raw_records
from wxb.corpora.records import RecordError


def cell(folder, content):
    """The value that a CSV cell of spans is read as."""
    (folder / "r.csv").write_bytes(as_table([["input", "spans"], ["Ann", content]]))
    (raw,) = raw_records(folder / "r.csv", "spans")
    return raw.content if isinstance(raw.content, RecordError) else raw.content["spans"]


SPANS = [{"start": 0, "end": 3, "type": "NAME", "value": 'it\'s "Ann"\n\u2028\\d 😀'}]


def test_spans_in_a_csv_cell_may_be_a_python_literal(tmp_path):
    assert cell(tmp_path, repr(SPANS)) == SPANS
    assert cell(tmp_path, "None") is None
    assert cell(tmp_path, "[{'value': 'C:\\dir'}]") == [{"value": "C:\\dir"}]


def test_json_of_objects_in_a_cell_may_be_indented():
    assert parse_json_cell('\n[\n  {"a": 1}]') == [{"a": 1}]
    assert parse_json_cell("[{x}] ") == "[{x}] "


def tagged(*names):
    """A task of Label Studio with spans of some texts, each with a choice of its own."""
    ends = {"start": 0, "end": 3}
    result = [{"to_name": name, "value": {**ends, "labels": ["NAME"]}} for name in names]
    result += [{"value": {**ends, "choices": [f"{n}"]}} for n, _ in enumerate(names)]
    return {"data": {"text": "Ann"}, "annotations": [{"result": result}]}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"id": "s", "meta": {"id": "d", "x": 1}}, {"id": "s", "meta": {"id": "d", "x": 1}}),
        ({"id": 1, "translation": {"en": "a", "id": "b"}}, {"en": "a", "id": "b"}),
        ({"cats": {"A": 0.0, "B": 0.0}}, {"cats": {"A": 0.0, "B": 0.0}, "label": None}),
        ({"cats": {"A": 1.0, "B": 1.0}}, "several classes"),
        ({"text": "Both.", "label": ["good", "bad"]}, "several classes"),
        ({"text": "Ann", "spans": SPANS, "_is_binary": True}, "answer to one span"),
        (tagged("body", "title"), "several texts"),
        (tagged("body", "body"), {"label": None}),
    ],
)
def test_objects_in_records(tmp_path, record, expected):
    (tmp_path / "features.json").write_text('{"features": ["age"]}')  # of something else
    (tmp_path / "r.jsonl").write_text(json.dumps(record))
    (raw,) = raw_records(tmp_path / "r.jsonl", None)
    is_error = isinstance(raw.content, RecordError)
    assert raw.content.reason == expected if is_error else raw.content | expected == raw.content


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').mkdir('owned')",
        "[" * 100_000,
        "-" * 100_000 + "1",
        "1+" * 90_000 + "1",
        "{[]: 1}",
        "[{'start': 0}",
        "nan",
    ],
    ids=lambda text: text[:10],
)
def test_a_hostile_cell_costs_one_record(cwd, hostile):
    content = cell(cwd, hostile)
    assert isinstance(content, RecordError)
    assert (content.reason, "0x" in content.detail) == ("broken cell", False)
    assert [path.name for path in cwd.iterdir()] == ["r.csv"]


def test_parquet_rows_are_records_with_their_numbers(tmp_path):
    rows = [{"input": "Ann 😀", "spans": SPANS}, {"input": "", "spans": []}, {"input": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet", row_group_size=2)
    raws = list(raw_records(tmp_path / "r.parquet"))
    assert [raw.place for raw in raws] == ["row 1", "row 2", "row 3"]
    assert [raw.content for raw in raws] == [*rows[:2], {"input": None, "spans": None}]


@pytest.mark.parametrize("content", [b"", b"not Parquet", b"PAR1" * 4])
def test_a_file_that_is_not_parquet_is_named(tmp_path, content):
    with pytest.raises(WxbError, match=r"r\.parquet cannot be read: "):
        read(tmp_path / "r.parquet", content)


HEADER = ("review", "sentiment")
REVIEWS = [
    ("这部电影很好看，我非常喜欢。\r\n第二行", "正面"),
    ("太无聊了，浪费时间；不推荐", "负面"),
]
TRADITIONAL = [("這部電影很好看，我非常喜歡。", "正面"), ("太無聊了，浪費時間", "負面")]
FRENCH = [("Un très bon film, plein d'émotion", "positif"), ("Très déçu: trop long", "négatif")]


def read(path, content):
    path.write_bytes(content)
    return [raw.content for raw in raw_records(path)]


@given(
    st.sampled_from(",;\t|"),
    st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0"))] * 2)),
)
def test_any_cell_comes_back(tmp_path_factory, delimiter, rows):
    def without_ends(cell):  # cells with delimiters, which may be rows that a mark encloses
        return re.sub(r"[\r\n]", "", cell) if delimiter in cell else cell

    rows = [tuple(map(without_ends, row)) for row in rows]
    path = tmp_path_factory.getbasetemp() / "any.csv"
    assert [tuple(row.values()) for row in read(path, as_table([HEADER, *rows], delimiter))] == rows


@pytest.mark.parametrize(
    ("encoding", "rows"), [("gb18030", REVIEWS), ("big5", TRADITIONAL), ("cp1252", FRENCH)]
)
def test_a_legacy_encoding_is_detected_and_reported(tmp_path, encoding, rows, capsys):
    path = tmp_path / "old.csv"
    path.write_bytes(as_table([HEADER, *rows], encoding=encoding))
    raws = [*raw_records(path)]
    assert [tuple(raw.content.values()) for raw in raws] == rows
    assert {raw.repaired for raw in raws} == {(f"read as {encoding}",)}
    assert capsys.readouterr() == ("", "")


def test_a_cell_may_be_long_and_rows_may_lack_or_add_cells(tmp_path):
    content = f"review,sentiment\n{'a' * 100_000},good\nonly one\na,b,c\n,\n"
    long, short, wide, empty = read(tmp_path / "r.csv", content.encode())
    assert len(long["review"]) == 100_000
    assert [short.reason, wide.reason] == ["broken CSV"] * 2
    assert empty == {"review": "", "sentiment": ""}


def test_a_cell_of_a_single_column_may_have_many_lines(tmp_path):
    file, text = tmp_path / "letters.csv", "Dear Ann\nThank you\nSee you\nin May\nBob"
    file.write_text(f'text\n"{text}"\nshort\n')
    assert [raw.content for raw in raw_records(file)] == [{"text": text}, {"text": "short"}]


def test_a_repeated_column_is_an_error(tmp_path):
    with pytest.raises(WxbError, match=r"a\.csv: two columns are called 'a'"):
        read(tmp_path / "a.csv", b"a,b,a,,\n1,2,3,,\n")
