import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.formats import LONGEST_LITERAL, raw_records
from wxb.corpora.records import RecordError
from wxb.errors import WxbError


def cell(folder, content):
    """What a CSV cell of spans is read as."""
    out = io.StringIO()
    csv.writer(out).writerows([["input", "spans"], ["Ann", content]])
    (folder / "r.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
    (raw,) = raw_records(folder / "r.csv", "spans")
    return raw.content if isinstance(raw.content, RecordError) else raw.content["spans"]


SPANS = [{"start": 0, "end": 3, "type": "NAME", "value": 'it\'s "Ann"\n\u2028\\d 😀'}]


def test_spans_in_a_csv_cell_may_be_a_python_literal(tmp_path):
    assert cell(tmp_path, repr(SPANS)) == SPANS
    assert cell(tmp_path, "None") is None
    assert cell(tmp_path, "[{'value': 'C:\\dir'}]") == [{"value": "C:\\dir"}]


values = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))


@given(st.lists(st.dictionaries(st.sampled_from(["start", "end", "type", "value"]), values)))
def test_what_python_writes_is_read_back(tmp_path_factory, spans):
    assert cell(tmp_path_factory.getbasetemp(), repr(spans)) == spans


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').mkdir('owned')",
        "[print() for _ in '1']",
        "[" * 100_000,
        "-" * 100_000 + "1",
        "1+" * 90_000 + "1",
        "{[]: 1}",
        "9" * 10_000,
        "[{'start': 0}",
        "['" + "a" * LONGEST_LITERAL + "']",
        "nan",
    ],
    ids=lambda text: text[:10],
)
def test_a_hostile_cell_costs_one_record(tmp_path, monkeypatch, hostile):
    monkeypatch.chdir(tmp_path)
    found = cell(tmp_path, hostile)
    assert isinstance(found, RecordError)
    assert found.reason == "broken cell"
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_parquet_rows_are_records_with_their_numbers(tmp_path):
    rows = [{"input": "Ann 😀", "spans": SPANS}, {"input": "", "spans": []}, {"input": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet", row_group_size=2)
    raws = list(raw_records(tmp_path / "r.parquet"))
    assert [raw.place for raw in raws] == ["row 1", "row 2", "row 3"]
    assert [raw.content for raw in raws] == [*rows[:2], {"input": None, "spans": None}]


@pytest.mark.parametrize("content", [b"", b"not Parquet", b"PAR1" * 4])
def test_a_file_that_is_not_parquet_is_named(tmp_path, content):
    (tmp_path / "r.parquet").write_bytes(content)
    with pytest.raises(WxbError, match=r"r\.parquet: found .*; expected Parquet"):
        list(raw_records(tmp_path / "r.parquet"))


def test_a_damaged_parquet_file_is_named(tmp_path):
    pq.write_table(pa.table({"input": ["Ann" * 100] * 100}), tmp_path / "r.parquet")
    data = bytearray((tmp_path / "r.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "r.parquet").write_bytes(data)
    with pytest.raises(WxbError, match=r"r\.parquet: found .*; expected Parquet"):
        list(raw_records(tmp_path / "r.parquet"))
