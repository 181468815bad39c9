import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import RecordError
from wxb.tasks.ner.reading.repair import by_value


@pytest.mark.parametrize(
    ("text", "stretches", "values", "expected"),
    [
        ("Ann, Ann, Ann", [(5, 8)], ["Ann"], [(5, 8)]),
        ("Ann, Ann, Ann", [(6, 9)], ["Ann"], [(5, 8)]),
        ("Ann, Ann, Ann", [(8, 9)], ["Ann"], [(10, 13)]),
        ("Ann...Ann", [(3, 4)], ["Ann"], [(0, 3)]),  # as near: the earlier
        ("Ann, Ann", [(-4, -1)], ["Ann"], [(0, 3)]),
        ("Ann, Ann", [(99, 3)], ["Ann"], [(5, 8)]),
        ("Ann", [(0, 5)], ["Ann"], [(0, 3)]),
        ("aaa", [(1, 2), (3, 5)], ["a", "aa"], [(1, 2), None]),
        # The one that is right keeps its place, though the other stands first in the list.
        ("Ann, Ann", [(1, 4), (0, 3)], ["Ann", "Ann"], [(5, 8), (0, 3)]),
        # A shorter value does not stop a longer one that it stands in.
        ("Ann Lee, Ann", [(1, 4), (2, 9)], ["Ann", "Ann Lee"], [(9, 12), (0, 7)]),
        # Of equal ones the first stated stands first.
        ("Ann, Ann", [(3, 6), (1, 4)], ["Ann", "Ann"], [(5, 8), (0, 3)]),
    ],
)
def test_the_nearest_free_occurrence_is_taken(text, stretches, values, expected):
    if None in expected:
        with pytest.raises(RecordError, match="value not found"):
            by_value(text, stretches, values)
        return
    found, repaired = by_value(text, stretches, values)
    assert found == expected
    assert repaired == sum(old != new for old, new in zip(stretches, expected, strict=True))


@given(
    text=st.text("ab ", min_size=1, max_size=30),
    stated=st.lists(
        st.tuples(st.integers(-3, 33), st.integers(-3, 33), st.text("ab ", min_size=1, max_size=4)),
        max_size=6,
    ),
)
def test_what_is_found_selects_its_value_and_nothing_twice(text, stated):
    stretches = [(start, end) for start, end, _ in stated]
    values = [value for *_, value in stated]
    try:
        found, repaired = by_value(text, stretches, values)
    except RecordError:
        return
    assert [text[start:end] for start, end in found] == values
    moved = [new for old, new in zip(stretches, found, strict=True) if old != new]
    assert len(moved) == repaired
    for start, end in moved:
        others = list(found)
        others.remove((start, end))
        assert all(end <= a or b <= start for a, b in others)


@given(st.text("ab", min_size=3, max_size=20), st.integers(0, 19), st.integers(-5, 5))
def test_one_shifted_span_is_found_where_no_other_occurrence_is_nearer(text, start, shift):
    start %= len(text)
    value = text[start : start + 2]
    ((found, end),), _ = by_value(text, [(start + shift, start + shift + len(value))], [value])
    assert text[found:end] == value
    assert abs(found - start - shift) <= abs(shift)
