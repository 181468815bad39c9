"""The sections of NER pages."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import study_of
from wxb.reporting.page import PUBLISHED
from wxb.tasks.ner import page
from wxb.tasks.ner.metrics import Outcome, PredictionRow, Scorer
from wxb.tasks.ner.record import Span

TYPES = Path(__file__).with_name("published_types.csv")
TEXT = "Ann Lee, 12 High Street, card 4000 1234 5678 9010"
ADDRESS = Span(9, 23, "ADDRESS")


@st.composite
def texts_and_spans(draw):
    text = draw(st.text(min_size=1, max_size=page.MAX_GAP))
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
    parts = page.pieces(text, spans)
    assert "".join(part for part, _, _ in parts) == text
    end = 0
    for part, colour, labels in parts:
        end += len(part)
        assert labels == ", ".join(span.type for span, _ in spans if span.end == end)
        assert bool(colour) >= bool(labels)


def test_only_text_without_a_span_is_shortened():
    text = "a" * 500 + "c" * 500 + "b" * 1000
    before, marked = page.pieces(text, [(Span(1000, 2000, "X"), Outcome.MISSED)])
    assert before[0] == "a" * page.GAP_EDGE + " … " + "c" * page.GAP_EDGE
    assert page.pieces("a" * page.MAX_GAP, [])[0][0] == "a" * page.MAX_GAP
    assert marked == ("b" * 1000, page.OUTCOMES[Outcome.MISSED], "X · missed")


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
    marks = "".join(text for example in page.examples(rows, count=5) for _, text in example.lines)
    assert all(page.OUTCOMES[error] in marks for error in page.ERRORS)


def test_an_address_that_swallows_a_name():
    rows = [
        row(0, [Span(0, 7, "NAME")], [Span(0, 23, "ADDRESS")], TEXT),
        row(1, [ADDRESS], [ADDRESS], TEXT),
    ]
    ((*key, mentions),) = page.confusions(rows).rows
    assert key == ["NAME", "ADDRESS", "wrong both", "1"]
    assert mentions == f"“Ann Lee” → “Ann Lee, 12 High Street” in “{TEXT[:47]}”"


def test_a_number_in_parts_is_one_wrong_boundary_and_the_rest_spurious():
    parts = [Span(start, start + 4, "CARD") for start in (30, 35, 40, 45)]
    spurious, boundary = page.confusions([row(0, [Span(30, 49, "CARD")], parts, TEXT)]).rows
    assert spurious[:4] == ["–", "CARD", "spurious", "3"]
    mentions = [line.split("”")[0] for line in spurious[4].splitlines()]
    assert mentions == [f"– → “{number}" for number in ("1234", "5678", "9010")]
    assert boundary[:4] == ["CARD", "CARD", "wrong boundary", "1"]


def test_the_most_frequent_come_first_with_different_examples():
    rows = [
        row(0, [Span(0, 3, f"T{n}")], [], f"{name} {n}")
        for n in range(page.CONFUSIONS + 2)
        for name in ["Ann", "Ann", "Bob", "Eve", "Joe"][: n + 1]
    ]
    most = page.confusions(rows).rows
    assert len(most) == page.CONFUSIONS
    counts = [int(count) for *_, count, _ in most]
    assert counts == sorted(counts, reverse=True)
    assert [line[1:4] for line in most[0][4].splitlines()] == ["Ann", "Bob", "Eve"][: page.MENTIONS]
    assert most[0][0] == "T10"  # of equals the first by name


def test_published_f1_is_the_micro_average_of_the_published_types():
    types = defaultdict(list)
    for line in csv.DictReader(TYPES.read_text(encoding="utf-8").splitlines()):
        types[line["system"]].append([float(line[k]) for k in ("precision", "recall", "support")])
    published = csv.DictReader((PUBLISHED / "ner.csv").read_text(encoding="utf-8").splitlines())
    f1 = {row["published system"]: float(row["F1"]) for row in published}
    assert f1.keys() == types.keys()
    for name, rows in types.items():
        gold = sum(support for *_, support in rows)
        correct = sum(recall * support for _, recall, support in rows)
        predicted = sum(recall * n / precision for precision, recall, n in rows if precision)
        assert 2 * correct / (gold + predicted) == pytest.approx(f1[name], abs=1e-3)


def test_types_are_confused_in_shares_of_the_gold_type():
    gold = [Span(0, 1, "A"), Span(2, 3, "A"), Span(4, 5, "B")]
    (made,) = page.type_matrix([row(0, gold, [Span(0, 1, "A"), Span(2, 3, "B"), Span(6, 7, "B")])])
    (chart,) = made.charts.values()
    assert chart.layout.yaxis.ticktext == ("A", "B", "–")
    assert [[*row] for row in chart.data[0].z] == [[0.5, 0.5, 0], [0, 0, 1], [0, 1, 0]]


def test_test_records_may_have_no_spans():
    study = study_of(Scorer(), {"x": [row(0, [], [])]})
    assert [section.title for section in page.Page().sections(study)] == ["F1 by type", "Errors"]


def test_a_higher_threshold_trades_recall_for_precision():
    gold, wrong = [Span(0, 1, "A"), Span(2, 3, "A")], Span(4, 5, "A")
    scored = row(0, gold, [*gold, wrong])._replace(scores=(0.9, 0.4, 0.5))
    study = study_of(Scorer(), {"x": [scored], "y": [row(0, gold, gold)]})
    ((line,),) = [[*chart.data] for chart in page.precision_recall_curves(study)[0].charts.values()]
    assert [*zip(line.x, line.y, strict=True)] == [(1, 2 / 3), (0.5, 0.5), (0.5, 1)]
    assert line.text == ("threshold 0.40", "threshold 0.50", "threshold 0.90")
