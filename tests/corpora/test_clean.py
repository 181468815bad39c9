import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora import clean
from wxb.corpora.records import Record, Reject
from wxb.errors import WxbError
from wxb.spans import Span


def record(id_, text=None, spans=(), group=None, language="en", **more):
    text = f"text {id_}" if text is None else text
    return Record(str(id_), text, spans, language, text if group is None else group, **more)


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


def test_a_text_that_is_held_out_is_not_kept_even_labelled():
    kept, rejects = clean.without_duplicates(
        [record(1, "a"), record(2, "b"), record(3, "a")], [record(4, "a", None)]
    )
    assert [r.id for r in kept] == ["2"]
    assert [(r.id, r.detail) for r in rejects] == [("1", "same text as 4"), ("3", "same text as 4")]


def published(**splits):
    """Records whose texts are letters, of given splits; ids tell split and place."""
    return [
        record(f"{name}{number}", text, split=name)
        for name, texts in splits.items()
        for number, text in enumerate(texts)
    ]


def test_given_splits_are_kept_apart_and_the_test_split_whole():
    splits, rejects = clean.given(published(train="abcbd", valid="deea", test="aaf"))
    assert {name: "".join(r.text for r in members) for name, members in splits.items()} == {
        "train": "bc",
        "valid": "de",
        "test": "aaf",
    }
    told = [(reject.id, reject.reason, reject.detail) for reject in rejects]
    assert told == [
        ("valid2", "duplicate text", "same text as valid1"),
        ("valid3", "duplicate text", "same text as test1"),
        ("train0", "duplicate text", "same text as test1"),
        ("train3", "duplicate text", "same text as train1"),
        ("train4", "duplicate text", "same text as valid0"),
    ]


def test_a_limit_on_given_splits_is_for_training_records_that_pass():
    splits, rejects = clean.given(published(train="abcd", valid="ef", test="agg"), limit=2)
    assert {name: len(members) for name, members in splits.items()} == {
        "train": 2,
        "valid": 2,
        "test": 3,
    }
    assert [(r.id, r.reason) for r in rejects] == [
        ("train0", "duplicate text"),
        ("train3", "over max_records"),
    ]


@pytest.mark.parametrize(
    ("splits", "name"),
    [
        ({"train": "a", "test": "b"}, "valid"),
        ({"train": "a", "valid": "b", "test": "ab"}, "train"),
    ],
)
def test_a_given_split_without_labelled_records_is_an_error(splits, name):
    with pytest.raises(WxbError, match=rf"the {name} split has no labelled record: its files"):
        clean.given(published(**splits))


letters = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(train=letters, valid=letters, test=letters, limit=st.none() | st.integers(1, 4))
def test_every_record_of_given_splits_is_kept_or_rejected(train, valid, test, limit):
    records = published(train=["x", *train], valid=["y", *valid], test=["z", *test])
    splits, rejects = clean.given(records, limit)
    everything = [r for members in splits.values() for r in members]
    assert sorted(r.id for r in [*everything, *rejects]) == sorted(r.id for r in records)
    assert all(r.split == name for name, members in splits.items() for r in members)
    texts = {name: {r.text for r in members} for name, members in splits.items()}
    assert texts["valid"] == {"y", *valid} - {"z", *test}
    passing = {"x", *train} - {"y", *valid} - {"z", *test}
    assert texts["train"] <= passing
    assert len(splits["train"]) == min(len(passing), limit or len(passing))
    assert [r.text for r in splits["test"]] == ["z", *test]
    assert len(texts["valid"]) == len(splits["valid"])


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
            record(
                1,
                "Ann met Bob",
                (Span(0, 3, "NAME"), Span(8, 11, "NAME")),
                mended=("span found by value", "span found by value", "repeated id"),
            ),
            record(2, "x" * 99, None, language=None),
        ],
        "valid": [record(3, "nobody")],
        "test": [record(4, "Bonn", (Span(0, 4, "CITY"),), language="de")],
    }
    rejects = [Reject("f:line 9", "blank text", "", None), Reject("7", "too long", "", "7")]
    profile = clean.profile(splits, rejects)
    assert profile["records"] == {"raw": 6, "rejected": 2, "train": 2, "valid": 1, "test": 1}
    assert profile["rejects"] == {"blank text": 1, "too long": 1}
    assert profile["mended"] == {"repeated id": 1, "span found by value": 2}
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
