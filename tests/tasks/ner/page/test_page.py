"""The sections of NER pages."""

import pytest

from tests.reporting.charts.colours import contrast
from tests.reporting.conftest import comparison
from wxb.reporting.lead import lead
from wxb.tasks.ner import page
from wxb.tasks.ner.page import published, type_rows

TWO = {"ann": 0.5, "bob": 0.75}


def row(f1, support):
    return {"f1": f1, "support": support, "precision": f1, "recall": f1, "predicted": 1}


@pytest.fixture
def rows():
    content = comparison({"x": 0.5, "y": 0.25})
    for name, f1 in (("x", 0.5), ("y", 0.25)):
        content["systems"][name]["by_type"] = {
            "CITY": row(f1, 7),
            "OURS": row(f1, 3000),
            "NEVER": row(0.0, 0),  # predicted, but never gold
        }
    return {type_row.kind: type_row for type_row in type_rows(content)}


def test_types_are_sorted_by_our_support_and_then_the_published_one(rows):
    theirs = published.by_type()["encoder-bio"]
    assert [*rows][:2] == ["OURS", "CITY"]
    assert "NEVER" not in rows
    assert {*rows} == {"OURS", *theirs}
    rest = [theirs[kind].support for kind in [*rows][2:5]]
    assert rest == sorted((r.support for k, r in theirs.items() if k != "CITY"), reverse=True)[:3]


def test_scores_of_missing_types_are_none(rows):
    assert rows["OURS"].published == [None] * len(published.SYSTEMS)
    assert rows["OURS"].published_support == ""
    assert rows["GIVENNAME"].ours == [None, None]
    assert rows["GIVENNAME"].support is None
    assert rows["CITY"].ours == [0.5, 0.25]
    assert None not in rows["CITY"].published


def test_published_supports_are_a_range_if_systems_differ(rows):
    assert rows["CITY"].published_support == "264"
    assert rows["SEX"].published_support.startswith("24–")


def test_failures_of_the_best_system_and_of_types_with_enough_spans():
    content = comparison(TWO)
    supports = {"RARE": (0.0, 29), "HARD": (0.2, 30), "HARDER": (0.1, 3000), "EASY": (0.9, 500)}
    best = content["systems"]["bob"]
    best["by_type"] = {k: {"f1": f1, "support": n} for k, (f1, n) in supports.items()}
    best["errors"] |= {"correct": 1000, "missed": 30, "wrong_both": 3}
    assert lead(content, {}, page.Page()).failures == (
        "bob: Of the types with at least 30 gold spans, F1 is lowest for HARDER (F1 0.100 on 3,000"
        " gold spans) and HARD (F1 0.200 on 30 gold spans). The most frequent error is a missed"
        " span: 30 of 33."
    )


@pytest.mark.parametrize("colour", page.OUTCOMES.values())
@pytest.mark.parametrize("background", ["#ffffff", "#15171b"])
def test_colours_of_outcomes_are_legible_in_both_schemes(colour, background):
    assert contrast(colour, background) >= 3
