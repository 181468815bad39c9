from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.tasks.ner.record import LABELLING, Span

spans = st.none() | st.just(()) | st.just((Span(0, 1, "A"), Span(1, 2, "B")))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=2)
some_records = st.lists(
    st.builds(Record, id=texts, input=texts, gold=spans, language=st.none() | texts, group=texts)
)


@settings(deadline=None)
@given(some_records)
def test_parquet_keeps_records_exactly(tmp_path_factory, records):
    path = tmp_path_factory.getbasetemp() / "clean.parquet"
    clean.write(path, records, LABELLING)
    assert [*clean.read(path, LABELLING)] == records
    assert [*clean.read_labelled(path, LABELLING)] == [r for r in records if r.gold is not None]
    assert clean.texts(path, "input") == [r.input for r in records]


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(texts), min_size=1), st.booleans())
def test_gold_texts_are_read_if_records_have_one_or_several(tmp_path_factory, golds, several):
    path = tmp_path_factory.getbasetemp() / "gold.parquet"
    if not several:
        golds = [gold[0] if gold else None for gold in golds]
    kind = pa.list_(pa.string()) if several else pa.string()
    pq.write_table(pa.table({"gold": pa.array(golds, kind)}), path)
    texts_of_gold = [gold for gold in golds if gold is not None]
    assert clean.texts(path, "gold") == ([*chain(*texts_of_gold)] if several else texts_of_gold)


def test_the_text_of_gold_with_fields_is_its_field_text(tmp_path):
    path = tmp_path / "gold.parquet"
    golds = [{"text": "a", "seconds": 1.0}, None, {"text": "b", "seconds": 2.0}]
    pq.write_table(pa.table({"gold": golds}), path)
    assert clean.texts(path, "gold") == ["a", "b"]


def test_gold_that_is_not_text_is_an_error(tmp_path):
    path = tmp_path / "gold.parquet"
    clean.write(path, [Record("1", "a", (Span(0, 1, "A"),), None, "1")], LABELLING)
    with pytest.raises(WxbError, match=r"found gold of type .*expected text"):
        clean.texts(path, "gold")


def test_the_bytes_of_a_file_do_not_depend_on_the_chunks(tmp_path, monkeypatch):
    records = [Record(str(n), f"text {n} " * 9, (), "en", f"group {n}") for n in range(3000)]
    for name, chunk in (("one", 4096), ("more", 1024)):
        monkeypatch.setattr(clean, "CHUNK", chunk)
        clean.write(tmp_path / name, records, LABELLING)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "more").read_bytes()
