"""The compact letter display."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from wxb.reporting.charts.tiers import tiers

NAMES = "pqrstuv"


@st.composite
def relations(draw):
    """Names, and pairs of them that differ, in any direction and order."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    pairs = [pair for pair in combinations(names, 2) if draw(st.booleans())]
    swapped = [pair if draw(st.booleans()) else pair[::-1] for pair in pairs]
    return names, draw(st.permutations(swapped))


def sharing(letters):
    """The pairs of names that share a letter."""
    return {
        frozenset(pair)
        for pair in combinations(letters, 2)
        if {*letters[pair[0]]} & {*letters[pair[1]]}
    }


@given(relations())
def test_two_share_a_letter_if_and_only_if_no_difference_is_established(relation):
    names, established = relation
    letters = tiers(names, established)
    everything = {frozenset(pair) for pair in combinations(names, 2)}
    assert sharing(letters) == everything - {frozenset(pair) for pair in established}
    assert all(letters.values())


@given(relations())
def test_no_letter_is_redundant(relation):
    letters = tiers(*relation)
    for letter in {*"".join(letters.values())}:
        without = {name: own.replace(letter, "") for name, own in letters.items()}
        assert not all(without.values()) or sharing(without) != sharing(letters)


@given(relations(), st.randoms())
def test_letters_do_not_depend_on_the_order_of_the_tests(relation, random):
    names, established = relation
    shuffled = [*established]
    random.shuffle(shuffled)
    assert tiers(names, shuffled) == tiers(names, established)


def test_the_first_letter_is_that_of_the_leaders():
    assert tiers("xyz", [("z", "x"), ("z", "y")]) == {"x": "b", "y": "b", "z": "a"}
    assert tiers("xyz", [("x", "z")]) == {"x": "a", "y": "ab", "z": "b"}


def test_a_column_whose_pairs_are_in_others_has_no_letter():
    """Of a triangle with a triangle on each side, the inner one says nothing new."""
    alike = {"ab", "bc", "ac", "ap", "bp", "bq", "cq", "ar", "cr"}
    names = "abcpqr"
    established = [(x, y) for x, y in combinations(names, 2) if x + y not in alike]
    assert len({*"".join(tiers(names, established).values())}) == 3


def test_letters_go_on_after_z():
    names = [f"{index:02}" for index in range(28)]
    letters = tiers(names, [*combinations(names, 2)])
    assert [letters[name] for name in ("00", "25", "26", "27")] == ["a", "z", "a1", "b1"]
