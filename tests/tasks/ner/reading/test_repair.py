import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import RecordError
from wxb.tasks.ner.reading.repair import repair_offsets, to_characters


@pytest.mark.parametrize(
    ("text", "offsets", "values", "expected"),
    [
        ("Ann, Ann, Ann", [(5, 8)], ["Ann"], [(5, 8)]),
        ("Ann, Ann, Ann", [(6, 9)], ["Ann"], [(5, 8)]),
        ("Ann, Ann, Ann", [(8, 9)], ["Ann"], [(10, 13)]),
        ("Ann...Ann", [(3, 4)], ["Ann"], [(0, 3)]),  # the earlier of two equally near
        ("Ann, Ann", [(-4, -1)], ["Ann"], [(0, 3)]),
        ("Ann, Ann", [(99, 3)], ["Ann"], [(5, 8)]),
        ("Ann", [(0, 5)], ["Ann"], [(0, 3)]),
        ("aaa", [(1, 2), (3, 5)], ["a", "aa"], [(1, 2), None]),
        # Correct offsets stay, although wrong ones come first in the list.
        ("Ann, Ann", [(1, 4), (0, 3)], ["Ann", "Ann"], [(5, 8), (0, 3)]),
        # Longer values choose before shorter ones that they contain.
        ("Ann Lee, Ann", [(1, 4), (2, 9)], ["Ann", "Ann Lee"], [(9, 12), (0, 7)]),
        # Of equal values, the one with the lower start chooses first.
        ("Ann, Ann", [(3, 6), (1, 4)], ["Ann", "Ann"], [(5, 8), (0, 3)]),
    ],
)
def test_the_nearest_free_occurrence_is_taken(text, offsets, values, expected):
    if None in expected:
        with pytest.raises(RecordError, match="value not found"):
            repair_offsets(text, offsets, values)
        return
    repaired_offsets, repairs = repair_offsets(text, offsets, values)
    assert repaired_offsets == expected
    assert repairs == sum(old != new for old, new in zip(offsets, expected, strict=True))


def test_half_a_surrogate_pair_is_one_unit():
    assert to_characters("\ud800a", [(1, 2)], "utf-16") == [(1, 2)]


@given(
    text=st.text("ab ", min_size=1, max_size=30),
    spans=st.lists(
        st.tuples(st.integers(-3, 33), st.integers(-3, 33), st.text("ab ", min_size=1, max_size=4)),
        max_size=6,
    ),
)
def test_repaired_offsets_select_their_values_without_overlaps(text, spans):
    offsets = [(start, end) for start, end, _ in spans]
    values = [value for *_, value in spans]
    try:
        repaired_offsets, repairs = repair_offsets(text, offsets, values)
    except RecordError:
        return
    assert [text[start:end] for start, end in repaired_offsets] == values
    moved = [new for old, new in zip(offsets, repaired_offsets, strict=True) if old != new]
    assert len(moved) == repairs
    for start, end in moved:
        others = list(repaired_offsets)
        others.remove((start, end))
        assert all(end <= a or b <= start for a, b in others)
