import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.new.formats import as_table
from tests.corpora.records import corpus
from wxb.core.errors import WxbError
from wxb.corpora import reading
from wxb.corpora.records import Record, Reject
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Span

FAMILY = "👩‍👩‍👧‍👦"  # one glyph, seven code points


def raw(text="Ann lives in Bonn.", spans=((0, 3, "NAME"),), **changes):
    spans = [{"start": start, "end": end, "type": type_} for start, end, type_ in spans]
    return {"input": text, "spans": spans, "language": "en", "id": "1", **changes}


def read(folder, content, name="records.jsonl", **changes):
    raw_folder = folder / f"raw {name}"
    raw_folder.mkdir(exist_ok=True)
    (raw_folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(reading.read_folder(raw_folder, corpus(**changes), Reading()))


def read_one(folder, content, **changes):
    (item,) = read(folder, json.dumps(content), **changes)
    return item


def test_a_record_is_read_with_sorted_spans(tmp_path):
    content = raw(spans=[(13, 17, "CITY"), (0, 3, "NAME")])
    assert read_one(tmp_path, content) == Record(
        id="1",
        input="Ann lives in Bonn.",
        gold=(Span(0, 3, "NAME"), Span(13, 17, "CITY")),
        language="en",
        group="Ann lives in Bonn.",
    )


@pytest.mark.parametrize(
    ("content", "reason", "detail"),
    [
        ([1], "not a record", "list"),
        ({"spans": [], "": None}, "missing field", "'input'"),
        ({"input": "Ann"}, "missing field", "'spans'"),
        (raw(spans=[]) | {"spans": [{"start": 0, "end": 3}]}, "missing field", "'type'"),
        (raw(spans=[]) | {"spans": [{"end": 3, "type": "NAME"}]}, "missing field", "'start'"),
        (raw(text=5), "wrong type", "int"),
        (raw() | {"spans": "[]"}, "wrong type", "'[]'"),
        (raw() | {"spans": [["0", 3, "NAME"]]}, "wrong type", "list"),
        (raw(spans=[(0, 3.5, "NAME")]), "wrong type", "3.5"),
        (raw(spans=[(False, 3, "NAME")]), "wrong type", "False"),
        (raw(spans=[(0, 3, None)]), "wrong type", "None"),
        *((raw(spans=[(0, 3, type_)]), "wrong type", repr(type_)) for type_ in ("", " ", "A\nB")),
        (raw(text=" \n\t"), "blank text", "'input'"),
        (raw(text="Ann\0"), "NUL character", "Ann"),
        (raw(text="Ann \ud83d"), "lone surrogate", "ud83d"),
        (raw(id="\udc00"), "lone surrogate", "udc00"),
        (raw(language="\ud800"), "lone surrogate", "ud800"),
        (raw(spans=[(0, 3, "\ud800")]), "lone surrogate", "ud800"),
        (raw(spans=[(0, 19, "NAME")]), "offsets out of range", "0-19 (characters) of 18"),
        (raw(spans=[(-1, 3, "NAME")]), "offsets out of range", "-1-3"),
        (raw(spans=[(3, 0, "NAME")]), "reversed offsets", "start 3, end 0"),
        (raw(spans=[(3, 3, "NAME")]), "reversed offsets", "start 3, end 3"),
        (raw(spans=[(3, 4, "NAME")]), "blank span", "3-4"),
        (raw(spans=[(0, 9, "A"), (4, 12, "B")]), "overlapping spans", "(0, 9, 'A')"),
        (raw(spans=[(0, 3, "A"), (0, 3, "B")]), "nested spans", "(0, 3, 'B')"),
        (raw(spans=[(0, 12, "A"), (0, 3, "B")]), "nested spans", "(0, 3, 'B')"),
    ],
)
def test_an_unusable_record_is_rejected_with_its_reason(tmp_path, content, reason, detail):
    item = read_one(tmp_path, content)
    assert isinstance(item, Reject)
    assert (item.origin, item.reason) == ("records.jsonl:line 1", reason)
    assert detail in item.detail
    assert item.id == (content.get("id") if isinstance(content, dict) else None)


@pytest.mark.parametrize(("value", "kept"), [("Ann", True), ("Anna", False), (None, False)])
def test_a_span_must_hold_its_value(tmp_path, value, kept):
    span = {"start": 0, "end": 3, "type": "NAME", "value": value}
    item = read_one(tmp_path, raw() | {"spans": [span]}, fields={"value": "value"})
    assert isinstance(item, Record) == kept
    assert kept or item.reason == "value differs"


def test_without_ids_the_path_and_line_are_the_id(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.json").write_text(json.dumps([raw(), raw()]))
    ids = [r.id for r in reading.read_folder(tmp_path, corpus(fields={"id": None}), Reading())]
    assert ids == [f"{folder}/data.json:record {i}" for folder in "ab" for i in (1, 2)]


SHARES = {"test": 0.2, "valid": 0.1}
SPLIT_FILES = {"files": {name: [f"{name}*"] for name in ("train", "valid", "test")}}


def test_ids_of_published_splits_may_start_again_in_each_file(tmp_path):
    for name in ("train", "valid", "test"):
        lines = [json.dumps(raw(f"Ann of {name}", id="1")), json.dumps(raw(id="2"))]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    items = list(reading.read_folder(tmp_path, corpus(split=SPLIT_FILES), Reading()))
    assert [(item.split, item.id) for item in items] == [
        ("test", "1"),
        ("test", "2"),
        ("valid", "valid.jsonl:line 1"),
        ("valid", "valid.jsonl:line 2"),
        ("train", "train.jsonl:line 1"),
        ("train", "train.jsonl:line 2"),
    ]
    assert [item.repaired for item in items] == [()] * 2 + [("repeated id",)] * 4


def test_test_sets_of_files_are_read_first_and_ids_may_start_again(tmp_path):
    for name in ("a", "tweets", "posts"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(raw(f"Ann of {name}", id="1")))
    split = {**SHARES, "further": {n: {"files": [f"{n}*"]} for n in ("tweets", "posts")}}
    items = list(reading.read_folder(tmp_path, corpus(split=split), Reading()))
    assert [(item.split, item.id) for item in items] == [
        ("tweets", "1"),
        ("posts", "posts.jsonl:line 1"),
        (None, "a.jsonl:line 1"),
    ]


def test_an_id_that_looks_like_a_path_and_line_cannot_repeat(tmp_path):
    """The default id of the second record is already the id of the first."""
    lines = [json.dumps(raw(id="test.jsonl:line 2"))] * 2
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines if name == "test" else lines[:1]))
    items = list(reading.read_folder(tmp_path, corpus(split=SPLIT_FILES), Reading()))
    assert isinstance(items[1], Reject)
    assert items[1].reason == "duplicate id"
    ids = [item.id for item in items if isinstance(item, Record)]
    assert ids == ["test.jsonl:line 2", "valid.jsonl:line 1", "train.jsonl:line 1"]


def test_offsets_inside_of_characters_are_reported_as_in_the_file(tmp_path):
    reject = read_one(tmp_path, raw(text="👍👍 Ann", spans=[(1, 3, "NAME")]), offsets="utf-16")
    assert (reject.reason, reject.detail[:12]) == ("offsets out of range", "1-3 (utf-16)")


class Labels(reading.Reading):
    def gold_and_repairs(self, raw, text, corpus):
        return raw["label"], ()


def test_only_the_labels_of_the_named_annotator_count_by_default(tmp_path):
    rows = [{"input": name, "label": "x", "annotator": name} for name in ("Ann", "Bob")]
    (tmp_path / "labels.json").write_text(json.dumps(rows))
    record, reject = reading.read_folder(tmp_path, corpus(annotator="Ann"), Labels())
    assert (record.input, reject.reason) == ("Ann", "other annotator")


def value_span(start, end, value, type_="NAME"):
    return {"start": start, "end": end, "type": type_, "value": value}


def test_a_span_is_found_by_its_value_on_request(tmp_path):
    content = raw("Ann met Bob.") | {"spans": [value_span(7, 10, "Bob"), value_span(0, 3, "Ann")]}
    fields = {"value": "value"}
    item = read_one(tmp_path, content, fields=fields, repair="by-value")
    assert item.gold == (Span(0, 3, "NAME"), Span(8, 11, "NAME"))
    assert item.repaired == ("span found by value",)


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        (value_span(0, 4, "Anna"), "value not found"),
        (value_span(0, 3, None), "value not found"),
        (value_span(0, 3, ""), "value not found"),
        (value_span("a", 3, "Ann"), "wrong type"),
        ({"start": 0, "value": "Ann", "type": "NAME"}, "missing field"),
        ({"start": 1, "end": 3, "value": "Ann"}, "missing field"),
    ],
)
def test_a_record_is_rejected_if_a_value_is_not_in_its_text(tmp_path, span, reason):
    content = raw("Ann met Bob.") | {"spans": [span]}
    item = read_one(tmp_path, content, fields={"value": "value"}, repair="by-value")
    assert item.reason == reason


def test_labels_rename_and_ignore_types(tmp_path):
    content = raw(spans=[(0, 3, "PERSON "), (3, 4, "SPACE"), (13, 17, "GPE")])
    item = read_one(tmp_path, content, labels={"PERSON": "NAME", "SPACE": None})
    assert item.gold == (Span(0, 3, "NAME"), Span(13, 17, "GPE"))


def test_the_group_is_the_field_to_split_by(tmp_path):
    split = {"by": "template", **SHARES}
    assert read_one(tmp_path, raw(template=7), split=split).group == "7"
    assert read_one(tmp_path, raw(), split=split).reason == "missing field"
    blank = [read_one(tmp_path, raw(template=each), split=split).reason for each in (None, "")]
    assert blank == ["blank group"] * 2


def test_values_are_those_of_the_fields_of_further_test_sets(tmp_path):
    further = {"scenes": {"by": "scene", "share": 0.1}, "voices": {"by": "author", "share": 0.1}}
    split = {**SHARES, "further": further}
    assert read_one(tmp_path, raw(author="Eve", scene=7), split=split).values == ("7", "Eve")
    assert "expected 'author'" in read_one(tmp_path, raw(scene=7), split=split).detail
    item = read_one(tmp_path, raw(scene="\ud800", author=""), split=split)
    assert item.reason == "lone surrogate"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.json", b'[{"input": "caf\xe9"}]', "found byte 0xe9 at offset 15; expected UTF-8"),
        ("r.json", b"", "found an empty file; expected records"),
        ("r.jsonl", b"\xef\xbb\xbf\n \n", "found an empty file; expected records"),
        ("r.csv", b"\n", "found an empty file; expected records"),
        ("r.json", b'[{"input": "Ann"},', r"broken JSON: .*line 1 column 19.*list of records"),
        ("r.json", b"1\n2", "broken JSON: .*line 2.*for one record per line, use .jsonl"),
        ("r.json", b"[" * 100_000, "broken JSON"),
        ("r.json", b"[" + b"1" * 5000 + b"]", "broken JSON"),
        ("r.json", b"\n<!DOCTYPE html>\n<html>", "found an HTML page; fetch"),
        ("r.csv", b"\xef\xbb\xbf<HTML lang=en>", "found an HTML page; fetch"),
        ("r.json", b"{}", "found a JSON dict; expected a list of records"),
        ("r.csv", b'input,spans\nAnn,"[]', "line 2 is not CSV"),
        ("r.csv", b'input,spans\n"Ann"a,[]', "line 2 is not CSV"),
    ],
)
def test_an_unreadable_file_is_an_error_that_names_it(tmp_path, name, content, message):
    with pytest.raises(WxbError, match=f"{name}: {message}"):
        read(tmp_path, content, name)


def test_a_broken_line_rejects_one_record(tmp_path):
    lines = [json.dumps(raw(id=str(i))) for i in range(3)]
    lines[1] = lines[1][:-5]
    first, broken, last = read(tmp_path, "\r\n".join(lines))
    assert (first.id, last.id) == ("0", "2")
    assert (broken.origin, broken.reason) == ("records.jsonl:line 2", "broken JSON")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["1", "Ann", "[{]"], "broken cell"),
        (["1", "Ann", "none"], "broken cell"),
        (["1", "Ann", '{"start": 0}'], "wrong type"),
        (["1", "An\0n", "[]"], "NUL character"),
        (["id", "input", "spans"], "repeated header"),
    ],
)
def test_a_bad_csv_row_rejects_one_record(tmp_path, row, reason):
    rows = [["id", "input", "spans"], row, ["2", "Bob", "[]"]]
    bad, good = read(tmp_path, as_table(rows), "records.csv")
    assert (bad.reason, good.id) == (reason, "2")


@st.composite
def labelled_texts(draw):
    """A text with disjoint mentions that have no white space at their edges."""
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    text = draw(st.text(characters | st.sampled_from(f"{FAMILY}\u0301 \n"), min_size=1))
    cuts = draw(st.lists(st.integers(0, len(text)), unique=True).map(sorted))
    spans = [Span(a, b, "T") for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    return text, tuple(s for s in spans if (m := text[s.start : s.end]) == m.strip())


@settings(deadline=None)
@given(st.lists(labelled_texts().filter(lambda item: item[0].strip()), min_size=1))
def test_texts_and_offsets_are_kept_exactly_in_every_format(tmp_path_factory, items):
    contents = [raw(text, spans, id=str(i)) for i, (text, spans) in enumerate(items)]
    pq.write_table(pa.Table.from_pylist(contents), parquet := io.BytesIO())
    files = {
        "r.json": json.dumps(contents, ensure_ascii=False),
        "r.jsonl": "\n".join(json.dumps(content, ensure_ascii=False) for content in contents),
        "r.csv": as_table(
            [["id", "input", "spans"]]
            + [[c["id"], c["input"], json.dumps(c["spans"])] for c in contents]
        ),
        "r.parquet": parquet.getvalue(),
    }
    for name, content in files.items():
        records = read(tmp_path_factory.getbasetemp(), content, name)
        assert [(item.input, item.gold) for item in records] == items


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("Room 12  is FREE\n", "room 0 is free"),
        ("Room 12 is taken", "room 0 is taken"),
        *((text, "") for text in ("", "3:1", "— 2026 —")),
    ],
)
def test_a_wording_ignores_digits_case_and_space_and_needs_a_letter(text, wording):
    assert reading.Reading.wording(None, Record("1", text, None, None, "")) == wording
