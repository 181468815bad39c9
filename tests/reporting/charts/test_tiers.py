"""The compact letter display."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from wxb.reporting.charts.pairs import letters

NAMES = "pqrstuv"


@st.composite
def relations(draw):
    """Names, and pairs of them that differ, in any direction and order."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    pairs = [pair for pair in combinations(names, 2) if draw(st.booleans())]
    swapped = [pair if draw(st.booleans()) else pair[::-1] for pair in pairs]
    return names, draw(st.permutations(swapped))


def sharing(found):
    """The pairs of names that share a letter."""
    return {
        frozenset(pair) for pair in combinations(found, 2) if {*found[pair[0]]} & {*found[pair[1]]}
    }


@given(relations())
def test_two_share_a_letter_if_and_only_if_no_difference_is_established(relation):
    names, established = relation
    found = letters(names, established)
    everything = {frozenset(pair) for pair in combinations(names, 2)}
    assert sharing(found) == everything - {frozenset(pair) for pair in established}
    assert all(found.values())


@given(relations())
def test_no_letter_is_redundant(relation):
    found = letters(*relation)
    for letter in {*"".join(found.values())}:
        without = {name: own.replace(letter, "") for name, own in found.items()}
        assert not all(without.values()) or sharing(without) != sharing(found)


@given(relations(), st.randoms())
def test_letters_do_not_depend_on_the_order_of_the_tests(relation, random):
    names, established = relation
    shuffled = [*established]
    random.shuffle(shuffled)
    assert letters(names, shuffled) == letters(names, established)


def test_the_first_letter_is_that_of_the_leaders():
    assert letters("xyz", [("z", "x"), ("z", "y")]) == {"x": "b", "y": "b", "z": "a"}
    assert letters("xyz", [("x", "z")]) == {"x": "a", "y": "ab", "z": "b"}


def test_a_column_whose_pairs_are_in_others_has_no_letter():
    """Of a triangle with a triangle on each side, the inner one says nothing new."""
    alike = {"ab", "bc", "ac", "ap", "bp", "bq", "cq", "ar", "cr"}
    names = "abcpqr"
    established = [(x, y) for x, y in combinations(names, 2) if x + y not in alike]
    assert len({*"".join(letters(names, established).values())}) == 3


def test_letters_go_on_after_z():
    names = [f"{index:02}" for index in range(28)]
    found = letters(names, [*combinations(names, 2)])
    assert [found[name] for name in ("00", "25", "26", "27")] == ["a", "z", "a1", "b1"]
