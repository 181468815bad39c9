"""Which pairs of texts are kept, become one record, and stay in one split."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from wxb.corpora import reading
from wxb.corpora.division import divide
from wxb.corpora.records import Record, Reject
from wxb.tasks.translation import reading as task
from wxb.tasks.translation.params import Corpus

FIELDS = {"input": "zh", "target": "en", "language": None, "id": None}
SPLIT = {"test": 0.2, "valid": 0.2}


def corpus(**changes):
    block = {"task": "translation", "path": "x", "fields": FIELDS, "split": SPLIT, **changes}
    return Corpus.model_validate(block)


def read(folder, rows, **changes):
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [*reading.read_folder(folder, corpus(**changes), task.Reading())]


def pair(zh, en, **more):
    return {"zh": zh, "en": en, **more}


def test_pairs_of_one_source_are_one_record_with_several_references(tmp_path):
    texts = [("嗨。", "Hi."), ("跑。", "Run!"), (" 嗨。", "Hello. "), ("嗨。", "Hi.")]
    first, second = read(tmp_path, [pair(*each) for each in texts])
    assert (first.input, first.gold) == ("嗨。", ("Hi.", "Hello."))
    assert first.repaired == ("another reference of its source", "repeated pair")
    assert (second.input, second.gold, second.repaired) == ("跑。", ("Run!",), ())
    assert first.group != second.group
    assert task.Reading().statistics([first, second]) == {
        "references": 3,
        "sources_by_references": {"1": 1, "2": 1},
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (pair("", "Hi."), "blank text"),
        (pair("嗨。", " "), "blank text"),
        (pair("Hi.", "Hi."), "same text"),
        (pair("嗨", "x" * 11), "length ratio"),
        (pair("hello", "Hi."), "wrong script"),
        (pair("嗨。", "嗨嗨。"), "wrong script"),
        (pair("嗨", "H\0"), "NUL character"),
        ({"zh": "嗨。"}, "missing field"),
        (pair("嗨。", "\ud800"), "lone surrogate"),
    ],
)
def test_unusable_pairs_are_rejected(tmp_path, row, reason):
    pairs = {"scripts": ["Han", "Latin"], "length_ratio": 10}
    record, reject = sorted(
        read(tmp_path, [pair("跑。", "Run!"), row], pairs=pairs),
        key=lambda i: isinstance(i, Reject),
    )
    assert isinstance(record, Record)
    assert reject.reason == reason
    assert "line 2" in reject.origin


def test_numbers_have_no_script(tmp_path):
    (record,) = read(tmp_path, [pair("10:30", "10.30")], pairs={"scripts": ["Han", "Latin"]})
    assert record.gold == ("10.30",)


def test_tab_separated_lines_are_read_by_their_columns(tmp_path):
    lines = ["Hi.\t嗨。\tCC-BY", "", "Run!\t跑。", "Hello.\t嗨。\tmore\tcells"]
    (tmp_path / "cmn.txt").write_text("\r\n".join(lines))
    columns = ["en", "zh", "attribution"]
    *rejects, record = reading.read_folder(tmp_path, corpus(columns=columns), task.Reading())
    assert (record.input, record.gold) == ("嗨。", ("Hi.",))
    assert [r.detail for r in rejects] == [f"found {n} cells, expected 3" for n in (2, 4)]


letters = st.sampled_from("abcdefg")


@given(st.lists(st.tuples(letters, letters.map(str.upper)), min_size=12, max_size=30))
@settings(deadline=None, max_examples=30)
def test_no_source_and_no_target_is_in_two_splits(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("raw")
    rows = [pair(zh * 3, en * 3) for zh, en in drawn]
    rows += [pair(f"only {n}x", f"one {n}") for n in range("abcdefghijkl".index("l"))]
    rows += [pair(f"lone {c}", f"single {c}") for c in "hijklmnop"]
    records = read(folder, rows)
    block = corpus()
    splits, rejects = divide(records, block.split, max_records=None, seed=1)
    pairs = sum(len(r.gold) + len(r.repaired) for members in splits.values() for r in members)
    assert len(rejects) == 0
    assert pairs >= len({*map(str, rows)})
    for side in (lambda r: [r.input], lambda r: r.gold):
        counts = Counter(text for m in splits.values() for text in {t for r in m for t in side(r)})
        assert set(counts.values()) <= {1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": {"scripts": ["Han", "Latn1"]}}, "Unicode has no script 'Latn1'"),
        ({"columns": ["en", "attribution"]}, "expected the fields of the pair among them: zh"),
    ],
)
def test_an_invalid_block_is_an_error(changes, message):
    with pytest.raises(ValidationError, match=message):
        corpus(**changes)
