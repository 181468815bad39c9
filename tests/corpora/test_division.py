from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.corpora.records import record, to_letters
from wxb.core.errors import WxbError
from wxb.core.params.corpora import Split
from wxb.corpora import division
from wxb.corpora.division import drop_duplicates, regroup_test_sets
from wxb.corpora.records import Reject
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Span

FILES = {"train": ["a"], "valid": ["b"], "test": ["c"]}


def divide(records, limit=None, seed=1, **changes):
    block = Split.model_validate({"test": 0.2, "valid": 0.1, **changes})
    splits, rejects = division.divide(records, block, max_records=limit, seed=seed)
    division.require_labelled(splits, rejects, block)
    return splits, rejects


def split(records, **settings):
    """The splits of records without rejects."""
    splits, rejects = divide(records, **settings)
    assert rejects == []
    return splits


def divide_published(records, limit=None, **further):
    changes = {"test": None, "valid": None, "files": FILES}
    sets = {name: {"files": ["d"]} for name in further}
    return divide([*records, *published(**further)], limit, **changes, further=sets)


def ids(splits):
    return {name: sorted(r.id for r in members) for name, members in splits.items()}


def test_the_first_copy_of_a_text_is_kept():
    kept, rejects = drop_duplicates([record(1, "a"), record(2, "b"), record(3, "a")])
    assert [r.id for r in kept] == ["1", "2"]
    assert rejects == [Reject("3", "duplicate text", "same text as 1", "3")]


def test_a_limit_draws_from_all_records_by_the_seed():
    records = [record(i, to_letters(i)) for i in range(200)]  # as if sorted by class
    drawn = [ids(divide(records, limit=40, seed=seed)[0]) for seed in (1, 1, 2)]
    kept = [sorted(int(i) for part in splits.values() for i in part) for splits in drawn]
    assert drawn[0] == drawn[1]
    assert kept[0] != kept[2]
    # All of one half is less likely than 1e-12.
    assert all(len(n) == 40 and n[0] < 100 <= n[-1] for n in kept)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans())))
def test_every_record_is_kept_once_or_rejected(items):
    records = [
        record(i, text, () if labelled else None) for i, (text, labelled) in enumerate(items)
    ]
    kept, rejects = drop_duplicates(records)
    assert sorted(r.id for r in [*kept, *rejects]) == sorted(r.id for r in records)
    assert len({r.input for r in kept}) == len(kept)
    labelled_texts = {text for text, labelled in items if labelled}
    assert {r.input for r in kept if r.gold is not None} == labelled_texts


def test_a_wording_that_is_held_out_is_not_kept():
    held_out = [
        record("first", "Ann is 7 .", (Span(0, 3, "NAME"),)),
        record("later", "Eva is 8 .", (Span(0, 3, "NAME"),)),
    ]
    same = record("same", "Joe  IS 42 .", (Span(0, 3, "NAME"),))
    others = [
        record("other type", "Bonn is 7 .", (Span(0, 4, "CITY"),)),
        record("unlabelled", "Kim is 7 .", None),
        record("twice", "Ann and Bob", (Span(0, 3, "NAME"), Span(8, 11, "NAME"))),
        record("thrice", "Eve and Joe", (Span(0, 3, "NAME"), Span(8, 11, "NAME"))),
    ]
    reject = Reject("same", "near duplicate", "same wording as first", "same")
    assert drop_duplicates([same, *others], held_out) == (others, [reject])


def published(**splits):
    """Records of published splits; each text is a letter, each id a split and an index."""
    return [
        record(f"{name}{index}", text, split=name)
        for name, texts in splits.items()
        for index, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("splits", "name"),
    [
        ({"train": "a", "test": "b"}, "valid"),
        ({"train": "a", "valid": "b", "test": "b"}, "valid"),
        ({"train": "a", "valid": "b", "test": "ab"}, "train"),
        ({"train": "A", "valid": "b", "test": "a"}, "train"),
    ],
)
def test_a_published_split_without_labelled_records_is_an_error(splits, name):
    cause = r"rejected \d rec.* as test" if "valid" in splits else "its files"
    with pytest.raises(WxbError, match=rf"the {name} split has no labelled record: {cause}"):
        divide_published(published(**splits))


def test_held_out_sets_of_files_have_a_maximum():
    records = published(train="abcd", valid="efg", test="hijd")
    limits = {"valid": 1, "test": 3}
    splits, rejects = divide(records, test=None, valid=None, files=FILES, max_records=limits)
    train, valid, test = ["train0", "train1", "train2"], ["valid0"], ["test0", "test1", "test2"]
    assert ids(splits) == {"train": train, "valid": valid, "test": test}
    reasons = {reject.id: reject.reason for reject in rejects}
    assert reasons.pop("train3") == "duplicate text"  # as a test record that was left out
    assert reasons == dict.fromkeys(["valid1", "valid2", "test3"], "over max_records")
    records = [*(record(x, x) for x in "abcdefghij"), *published(tweets="kl")]
    further = {"tweets": {"files": ["*"]}}
    splits, _ = divide(records, test=0.2, valid=0.1, further=further, max_records={"tweets": 1})
    assert ids(splits)["tweets"] == ["tweets0"]


letters = st.lists(st.sampled_from("abcdABCD"), max_size=12)


@given(train=letters, valid=letters, test=letters, tweets=letters, limit=st.none() | st.just(2))
def test_every_record_of_published_splits_is_kept_or_rejected(train, valid, test, tweets, limit):
    records = published(train=["x", *train], valid=["y", *valid], test=["z", *test])
    splits, rejects = divide_published(records, limit, tweets=["w", *tweets])
    all_records = [r for members in splits.values() for r in members]
    records += published(tweets=["w", *tweets])
    assert sorted(r.id for r in [*all_records, *rejects]) == sorted(r.id for r in records)
    assert all(r.split == name for name, members in splits.items() for r in members)
    texts = {name: [r.input for r in members] for name, members in splits.items()}
    assert (texts["test"], texts["tweets"]) == (["z", *test], ["w", *tweets])
    held_out_texts = {text.lower() for text in [*texts["test"], *texts["tweets"]]}
    expected = [text for text in dict.fromkeys(["y", *valid]) if text.lower() not in held_out_texts]
    assert texts["valid"] == expected
    held_out = held_out_texts | {text.lower() for text in expected}
    passing = [text for text in dict.fromkeys(["x", *train]) if text.lower() not in held_out]
    assert texts["train"] == passing[:limit]


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), min_size=40, max_size=80), st.integers(0, 2**32))
def test_shares_are_met_within_half_a_group(sizes, seed):
    records = [
        record(f"{group}-{i}", group=f"g{group}")
        for group, size in enumerate(sizes)
        for i in range(size)
    ]
    splits = split(records, seed=seed)
    for name, share in (("test", 0.2), ("valid", 0.1)):
        assert abs(len(splits[name]) - share * len(records)) <= max(sizes) / 2


@st.composite
def mixed(draw):
    """Records that share groups, wordings and scenes with some others, or with none."""
    records = [record(f"alone {i}", values=(f"alone {i}",)) for i in range(60)]
    for i in range(draw(st.integers(0, 40))):
        group, wording, scene = (draw(st.integers(0, 8)) for _ in range(3))
        text = f"{to_letters(i)} is {to_letters(wording)}"
        spans = draw(st.sampled_from([None, (Span(0, len(to_letters(i)), "NAME"),)]))
        values = (f"scene {scene}",)
        records.append(record(i, text, spans, group=f"group {group}", values=values))
    return records


@settings(deadline=None, max_examples=50)
@given(mixed(), st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_no_wording_group_or_held_out_value_straddles_splits(records, seed, shuffle):
    further = {"situations": {"by": "scene", "share": 0.2}}
    try:
        splits = split(records, seed=seed, further=further)
    except WxbError:  # one unit without labels filled a split
        assume(False)
    found = sorted(r.id for members in splits.values() for r in members)
    assert found == sorted(r.id for r in records)
    for left, right in combinations(splits, 2):
        assert not {r.group for r in splits[left]} & {r.group for r in splits[right]}
        shared = {*map(Reading().wording, splits[left])} & {*map(Reading().wording, splits[right])}
        assert shared <= {""}
    scenes = {r.values for r in splits["situations"]}
    assert not scenes & {r.values for name in ("train", "valid", "test") for r in splits[name]}
    shuffled = list(records)
    shuffle.shuffle(shuffled)
    assert ids(split(shuffled, seed=seed, further=further)) == ids(splits)


def test_whole_values_are_held_out_first_up_to_their_share():
    records = [record(i, values=(f"scene {i % 25}",), group=f"group {i % 50}") for i in range(500)]
    further = {"situations": {"by": "scene", "share": 0.12}}
    splits = split(records, further=further)
    assert {name: len(members) for name, members in splits.items()} == {
        "train": 290,
        "valid": 50,
        "test": 100,
        "situations": 60,
    }
    assert len({r.values for r in splits["situations"]}) == 3
    again = split(records, further=further, test=0.5)
    assert again["situations"] == splits["situations"]


def test_the_split_is_a_known_one():
    """The same in every process and version: a changed hash would change published results."""
    records = [record(i, group=f"text {i}") for i in range(20)]
    assert ids(split(records))["test"] == ["1", "12", "4", "8"]


@pytest.mark.parametrize(
    ("records", "name"),
    [
        ([], "train"),
        ([record(i, group="one") for i in range(50)], "valid|test"),
        ([record(i, f"Number {i}") for i in range(50)], "valid|test"),
        ([record(i) for i in range(2)], "valid|test"),
        ([record(i, gold=None) for i in range(50)], "train"),
    ],
)
def test_a_split_without_labelled_records_is_an_error(records, name):
    with pytest.raises(WxbError, match=rf"the ({name}) split has no labelled record: .*`split`"):
        split(records)


def test_an_empty_split_names_the_size_of_the_smallest_part():
    records = [record(i, group=f"speaker {i % 4}") for i in range(60)]
    with pytest.raises(
        WxbError, match=r"if half of it fits, and the smallest has 15, a share of 0\.25; add"
    ):
        split(records)


def grouped(records, key=None, **further):
    """The groups of each test set, and the field of each, if the records are those of all sets."""
    settings = {"test": 0.2, "valid": 0.1, "by": "template", "further": further}
    splits = dict.fromkeys(("test", *further), records)
    groups, fields = regroup_test_sets(splits, Split.model_validate(settings), key)
    return {name: [r.group for r in members] for name, members in groups.items()}, fields


SOURCES = {"other-source": {"by": "source", "share": 0.2}}


def test_a_test_set_resamples_the_values_that_it_holds_out():
    records = [record(i, group=f"story {i // 2}", values=(f"paper {i // 4}",)) for i in range(12)]
    groups, fields = grouped(records, **SOURCES)
    assert groups["other-source"] == [f"paper {i // 4}" for i in range(12)]
    assert groups["test"] == [f"story {i // 2}" for i in range(12)]
    assert fields == {"test": "template", "other-source": "source"}


def test_values_that_share_a_group_or_a_wording_are_one_unit():
    records = [
        record(1, group="story 1", values=("a",)),
        record(2, group="story 1", values=("b",)),
        record(3, "Ann met x", (Span(0, 3, "NAME"),), group="story 2", values=("b",)),
        record(4, "Bob met x", (Span(0, 3, "NAME"),), group="story 3", values=("c",)),
        record(5, group="story 4", values=("d",)),
    ]
    assert grouped(records, **SOURCES)[0]["other-source"] == [*"aaaa", "d"]


def test_a_single_value_is_not_resampled_but_its_groups():
    records = [record(i, group=f"story {i // 2}", values=("only",)) for i in range(6)]
    groups, fields = grouped(records, **SOURCES)
    assert groups["other-source"] == [f"story {i // 2}" for i in range(6)]
    assert fields["other-source"] == "template"


def test_a_task_groups_test_records_by_a_key_of_gold():
    records = [
        record(1, gold={"speaker": "ann"}, group="s", values=("x",), task="speech"),
        record(2, gold={"speaker": "bob"}, group="s", values=("y",), task="speech"),
        record(3, gold={"speaker": None}, group="t", values=("y",), task="speech"),
        record(4, gold=None, group="u", values=("z",), task="speech"),
    ]
    groups, fields = grouped(records, "speaker", **SOURCES)
    assert groups["test"] == ["ann", "bob", "t", "u"]
    assert fields == {"test": "speaker", "other-source": "source"}
