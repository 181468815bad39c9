"""The sections of NER pages."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import contrast
from wxb.reporting.page import PUBLISHED
from wxb.tasks.ner.metrics import Outcome, PredictionRow
from wxb.tasks.ner.page import (
    CONFUSIONS,
    ERRORS,
    GAP_EDGE,
    MAX_GAP,
    MENTIONS,
    OUTCOMES,
    confusions,
    examples,
    pieces,
)
from wxb.tasks.ner.record import Span

TEXT = "Ann Lee, 12 High Street, card 4000 1234 5678 9010"
ADDRESS = Span(9, 23, "ADDRESS")


@st.composite
def texts_and_spans(draw):
    text = draw(st.text(min_size=1, max_size=MAX_GAP))
    edges = st.integers(0, len(text) - 1)
    spans = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(edges)
        end = draw(st.integers(start + 1, len(text)))
        spans.append((Span(start, end, draw(st.sampled_from("AB"))), Outcome.CORRECT))
    return text, spans


@given(texts_and_spans())
def test_pieces_lose_no_character_and_label_every_span_once(drawn):
    text, spans = drawn
    parts = pieces(text, spans)
    assert "".join(part for part, _, _ in parts) == text
    end = 0
    for part, colour, labels in parts:
        end += len(part)
        assert labels == ", ".join(span.type for span, _ in spans if span.end == end)
        assert bool(colour) >= bool(labels)


def test_only_text_without_a_span_is_shortened():
    text = "a" * 500 + "c" * 500 + "b" * 1000
    before, marked = pieces(text, [(Span(1000, 2000, "X"), Outcome.MISSED)])
    assert before[0] == "a" * GAP_EDGE + " … " + "c" * GAP_EDGE
    assert pieces("a" * MAX_GAP, [])[0][0] == "a" * MAX_GAP
    assert marked == ("b" * 1000, OUTCOMES[Outcome.MISSED], "X · missed")


def row(index, gold, predicted, text="0123456789"):
    return PredictionRow(str(index), text, tuple(gold), tuple(predicted), (0.9,) * len(predicted))


def test_examples_show_every_kind_of_error_once_first():
    gold = [Span(0, 4, "X")]
    predictions = {
        "missed": [],
        "wrong_type": [Span(0, 4, "Y")],
        "wrong_boundary": [Span(0, 3, "X")],
        "wrong_both": [Span(0, 3, "Y")],
        "spurious": [*gold, Span(5, 6, "X")],
    }
    rows = [row(99, gold, gold), *(row(i, gold, []) for i in range(50))]
    rows += [row(50 + i, gold, predicted) for i, predicted in enumerate(predictions.values())]
    marks = "".join(text for example in examples(rows, count=5) for _, text in example.lines)
    assert all(OUTCOMES[error] in marks for error in ERRORS)


def test_an_address_that_swallows_a_name():
    rows = [
        row(0, [Span(0, 7, "NAME")], [Span(0, 23, "ADDRESS")], TEXT),
        row(1, [ADDRESS], [ADDRESS], TEXT),
    ]
    ((*key, mentions),) = confusions(rows).rows
    assert key == ["NAME", "ADDRESS", "wrong both", "1"]
    assert mentions == f"“Ann Lee” → “Ann Lee, 12 High Street” in “{TEXT[:47]}”"


def test_a_number_in_parts_is_one_wrong_boundary_and_the_rest_spurious():
    parts = [Span(start, start + 4, "CARD") for start in (30, 35, 40, 45)]
    spurious, boundary = confusions([row(0, [Span(30, 49, "CARD")], parts, TEXT)]).rows
    assert spurious[:4] == ["–", "CARD", "spurious", "3"]
    assert [line.split("”")[0] for line in spurious[4].splitlines()] == [
        *("– → “1234", "– → “5678", "– → “9010")
    ]
    assert boundary[:4] == ["CARD", "CARD", "wrong boundary", "1"]


def test_the_most_frequent_come_first_with_different_examples():
    rows = [
        row(0, [Span(0, 3, f"T{n}")], [], f"{name} {n}")
        for n in range(CONFUSIONS + 2)
        for name in ["Ann", "Ann", "Bob", "Eve", "Joe"][: n + 1]
    ]
    most = confusions(rows).rows
    assert len(most) == CONFUSIONS
    counts = [int(count) for *_, count, _ in most]
    assert counts == sorted(counts, reverse=True)
    assert [line[1:4] for line in most[0][4].splitlines()] == ["Ann", "Bob", "Eve"][:MENTIONS]
    assert most[0][0] == "T10"  # of equals the first by name


def test_published_f1_is_the_micro_average_of_the_published_types():
    with Path(__file__).with_name("published_types.csv").open(encoding="utf-8") as file:
        types = defaultdict(list)
        for line in csv.DictReader(file):
            types[line["system"]].append(
                [float(line[k]) for k in ("precision", "recall", "support")]
            )
    with (PUBLISHED / "ner.csv").open(encoding="utf-8") as file:
        _, *lines = csv.reader(file)
    published = {name: float(f1) for name, f1, *_ in lines}
    assert published.keys() == types.keys()
    for name, rows in types.items():
        assert len(rows) == 20
        gold = sum(support for *_, support in rows)
        correct = sum(recall * support for _, recall, support in rows)
        predicted = sum(recall * n / precision for precision, recall, n in rows if precision)
        # The scores have three decimals, precision and recall four.
        assert 2 * correct / (gold + predicted) == pytest.approx(published[name], abs=1e-3)


@pytest.mark.parametrize("colour", OUTCOMES.values())
@pytest.mark.parametrize("background", ["#ffffff", "#15171b"])
def test_colours_of_outcomes_are_legible_in_both_schemes(colour, background):
    assert contrast(colour, background) >= 3
