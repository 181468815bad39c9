import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora import clean
from wxb.corpora.records import Record, Reject
from wxb.errors import WxbError
from wxb.spans import Span


def record(id_, text=None, spans=(), group=None, language="en"):
    text = f"text {id_}" if text is None else text
    return Record(str(id_), text, spans, language, text if group is None else group)


def split(records, test=0.2, valid=0.1, seed=1):
    return clean.split(records, test=test, valid=valid, seed=seed)


def ids(splits):
    return {name: sorted(r.id for r in members) for name, members in splits.items()}


def test_the_first_copy_of_a_text_is_kept():
    kept, rejects = clean.without_duplicates([record(1, "a"), record(2, "b"), record(3, "a")])
    assert [r.id for r in kept] == ["1", "2"]
    assert rejects == [Reject("3", "duplicate text", "same text as 1", "3")]


def test_a_labelled_copy_wins_over_an_unlabelled_one():
    copies = [record(1, "a", None), record(2, "a"), record(3, "a", None), record(4, "a")]
    kept, rejects = clean.without_duplicates(copies)
    assert [r.id for r in kept] == ["2"]
    assert [r.id for r in rejects] == ["1", "3", "4"]
    assert "same text as 2" in rejects[0].detail


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans())))
def test_every_record_is_kept_once_or_rejected(items):
    records = [
        record(i, text, () if labelled else None) for i, (text, labelled) in enumerate(items)
    ]
    kept, rejects = clean.without_duplicates(records)
    assert sorted(r.id for r in [*kept, *rejects]) == sorted(r.id for r in records)
    assert len({r.text for r in kept}) == len(kept)
    labelled_texts = {text for text, labelled in items if labelled}
    assert {r.text for r in kept if r.spans is not None} == labelled_texts


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=40, max_size=80),
    seed=st.integers(0, 2**32),
    shuffle=st.randoms(use_true_random=False),
)
def test_groups_stay_whole_shares_are_met_and_order_does_not_matter(sizes, seed, shuffle):
    records = [
        record(f"{group}-{i}", group=f"g{group}")
        for group, size in enumerate(sizes)
        for i in range(size)
    ]
    splits = split(records, seed=seed)
    assert sum(map(len, splits.values())) == len(records)
    groups = {name: {r.group for r in members} for name, members in splits.items()}
    assert sum(map(len, groups.values())) == len(sizes)
    for name, share in (("test", 0.2), ("valid", 0.1)):
        assert abs(len(splits[name]) - share * len(records)) <= max(sizes) / 2
    shuffled = list(records)
    shuffle.shuffle(shuffled)
    assert ids(split(shuffled, seed=seed)) == ids(splits)


def test_without_a_field_to_split_by_no_text_is_in_two_splits():
    texts = [f"text {random.Random(i).randrange(60)}" for i in range(200)]
    splits = split([record(i, text) for i, text in enumerate(texts)])
    assert sum(len({r.text for r in members}) for members in splits.values()) == len({*texts})


def test_the_seed_decides_the_split():
    records = [record(i) for i in range(200)]
    assert ids(split(records, seed=1)) == ids(split(records, seed=1))
    assert ids(split(records, seed=1)) != ids(split(records, seed=2))


def test_the_split_is_a_known_one():
    """The same in every process and version: a changed hash would spoil published results."""
    assert ids(split([record(i) for i in range(20)]))["test"] == ["1", "12", "4", "8"]


@pytest.mark.parametrize(
    ("records", "name"),
    [
        ([], "train"),
        ([record(i, group="one") for i in range(50)], "valid|test"),
        ([record(i) for i in range(2)], "valid|test"),
        ([record(i, spans=None) for i in range(50)], "train"),
    ],
)
def test_a_split_without_labelled_records_is_an_error(records, name):
    with pytest.raises(WxbError, match=rf"the ({name}) split has no labelled record: .*`split`"):
        split(records)


def test_the_profile_accounts_for_every_record():
    splits = {
        "train": [
            record(1, "Ann met Bob", (Span(0, 3, "NAME"), Span(8, 11, "NAME"))),
            record(2, "x" * 99, None, language=None),
        ],
        "valid": [record(3, "nobody")],
        "test": [record(4, "Bonn", (Span(0, 4, "CITY"),), language="de")],
    }
    rejects = [Reject("f:line 9", "blank text", "", None), Reject("7", "too long", "", "7")]
    profile = clean.profile(splits, rejects)
    assert profile["records"] == {"raw": 6, "rejected": 2, "train": 2, "valid": 1, "test": 1}
    assert profile["rejects"] == {"blank text": 1, "too long": 1}
    assert profile["types"] == ["NAME"]
    assert profile["splits"]["train"] == {
        "labelled": 1,
        "unlabelled": 1,
        "without_spans": 0,
        "groups": 2,
        "characters": {"median": 11, "p95": 99, "longest": 99},
        "languages": {"en": 1, "unknown": 1},
        "spans": {"NAME": 2},
    }
    assert profile["splits"]["valid"]["without_spans"] == 1


spans = st.none() | st.just(()) | st.just((Span(0, 1, "A"), Span(1, 2, "B")))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=2)
some_records = st.lists(
    st.builds(Record, id=texts, text=texts, spans=spans, language=st.none() | texts, group=texts)
)


@settings(deadline=None)
@given(some_records)
def test_parquet_keeps_records_exactly(tmp_path_factory, records):
    path = tmp_path_factory.getbasetemp() / "clean.parquet"
    clean.write(path, records)
    assert clean.read(path) == records
    assert clean.labelled(path) == [r for r in records if r.spans is not None]
    assert clean.texts(path) == [r.text for r in records]
