import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.reporting import published
from wxb.reporting.grids import matrix, types
from wxb.reporting.rendering import shade


def row(f1, support):
    return {"f1": f1, "support": support, "precision": f1, "recall": f1, "predicted": 1}


@pytest.fixture
def rows(compared):
    content = compared({"x": 0.5, "y": 0.25})
    for name, f1 in (("x", 0.5), ("y", 0.25)):
        content["systems"][name]["by_type"] = {
            "CITY": row(f1, 7),
            "OURS": row(f1, 3000),
            "NEVER": row(0.0, 0),  # found by someone, and never right
        }
    return {found.kind: found for found in types(content)}


def test_types_are_sorted_by_our_support_and_then_by_theirs(rows):
    theirs = published.by_type()["encoder-bio"]
    assert [*rows][:2] == ["OURS", "CITY"]
    assert "NEVER" not in rows
    assert {*rows} == {"OURS", *theirs}
    rest = [theirs[kind].support for kind in [*rows][2:5]]
    assert rest == sorted((r.support for k, r in theirs.items() if k != "CITY"), reverse=True)[:3]


def test_what_a_side_lacks_is_left_blank(rows):
    assert rows["OURS"].published == [None] * len(published.SYSTEMS)
    assert rows["OURS"].published_support == ""
    assert rows["GIVENNAME"].ours == [None, None]
    assert rows["GIVENNAME"].support is None
    assert rows["CITY"].ours == [0.5, 0.25]
    assert None not in rows["CITY"].published


def test_published_supports_are_a_range_where_their_systems_differ(rows):
    assert rows["CITY"].published_support == "264"
    assert rows["SEX"].published_support.startswith("24–")


def test_matrix_mirrors_itself(compared):
    names = ["x", "y", "z"]
    square = matrix(compared(dict(zip(names, (0.5, 0.25, 0.75), strict=True))))
    assert list(square) == names
    for i, a in enumerate(names):
        assert square[a][i] is None
        for j, b in enumerate(names):
            if i != j:
                assert square[a][j].value == -square[b][i].value
    assert square["x"][1].value == 0.25
    assert square["x"][2].value == -0.25


@given(st.floats(0, 1), st.floats(0, 1))
def test_shade_grows_with_f1(a, b):
    low, high = sorted((a, b))
    assert 0 <= shade(low) <= shade(high) <= 100


def test_shade_tells_good_systems_apart():
    assert shade(0.9) - shade(0.8) > 2 * (shade(0.4) - shade(0.3))
