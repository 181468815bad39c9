"""The page of a study of any task, with scores on any scale."""

from typing import ClassVar

import pytest
from markupsafe import Markup

from stages import report
from tests.reporting.conftest import BLEU, CER
from tests.reporting.test_report import Page
from wxb.reporting.charts.parts import Part
from wxb.reporting.page import assemble

TWO = {"ner-encoder": 0.5, "ner-decoder": 0.25}


class Task:
    """A task whose page has two parts."""

    RULE, VALIDATION_NOTE, USABLE_SCORE = "A letter counts once.", "", None
    PUBLISHED_SCORES: ClassVar = {}

    @staticmethod
    def failures(system):
        return "It mishears."

    @staticmethod
    def example(row):
        return "the input"

    @staticmethod
    def answer(row):
        return f"<{row}>"

    @staticmethod
    def parts(study):
        return [
            Part("last", "Last", "training", Markup('<section id="last">L</section>'), {}),
            Part("first", "First", "results", Markup('<section id="first">F</section>'), {}),
        ]


@pytest.fixture
def make_page(tree, compared):
    """Writes and parses the page of two experiments with a metric."""

    def write(metric, factor=1.0, task=Task, **changes):
        study = report.gather(tree([*TWO]).params, "ner")
        scores = {name: factor * value for name, value in TWO.items()}
        content = compared(scores, noise=0.01 * factor, metric=metric)
        content |= {"unit": "letters", **changes}
        curves = {name: {f"valid_{metric.key}": [(1, 0.5)], "valid_loss": [(1, 2)]} for name in TWO}
        curves["ner-encoder"]["valid_echo"] = [(1, 0.5)]
        return Page(assemble(study._replace(comparison=content, curves=curves), task))

    return write


def test_parts_of_the_task_follow_the_sections_they_name(make_page):
    page = make_page(CER)
    order = ["results", "first", "noise", "cost", "training", "last", "caveats", "making"]
    assert list(page.sections) == order
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links[0] == "#noise"
    assert links[1] == "#last"  # failures: the first part of the task
    assert links[3 : 3 + len(order)] == [f"#{section}" for section in order]


class Plain(Task):
    """A task whose page has no part of its own."""

    @staticmethod
    def parts(study):
        return []


def test_without_parts_failures_point_at_the_results(make_page):
    links = [a["href"] for tag, a in make_page(CER, task=Plain).elements if tag == "a"]
    assert links[:2] == ["#noise", "#results"]


def test_a_page_if_lower_is_better(make_page):
    page = make_page(CER)
    assert "ner-decoder (CER 0.250) is ahead of ner-encoder (0.500) beyond noise." in page.text
    assert "A letter counts once." in page.text
    assert "Lower is better." in page.sections["results"]
    assert "Hollow markers" not in page.text
    assert "the input" in page.text
    assert "CER of the column minus CER of the row" in page.sections["noise"]
    ahead = [a for _, a in page.elements if (a.get("class") or "").split()[:1] == ["ahead"]]
    assert len(ahead) == 1
    assert page.sections["noise"].index("−0.250") < page.sections["noise"].index("+0.250")
    assert page.figures["forest"]["layout"]["xaxis"]["title"]["text"] == "CER (lower is better)"
    assert {"cer-seconds", "cer-parameters"} <= {*page.figures}
    assert "F1" not in page.text


def test_a_page_of_scores_out_of_a_hundred(make_page):
    page = make_page(BLEU, factor=60)
    assert "ner-encoder (BLEU 30.0) is ahead of ner-decoder (15.0) beyond noise." in page.text
    assert "29.4–30.6" in page.cells("ner-encoder")
    assert "Lower is better" not in page.text
    assert "BLEU of the row minus BLEU of the column" in page.sections["noise"]
    assert "test: 20 records, 20 letters; 25.0%" in " ".join(page.sections["making"].split())
    assert "made-up BLEU" in page.text


def test_every_validation_metric_has_a_chart(make_page):
    page = make_page(CER)
    assert "Validation CER" in page.sections["training"]
    assert "Validation echo" in page.sections["training"]
    assert len(page.figures["valid_cer"]["data"]) == 2
    assert len(page.figures["valid_echo"]["data"]) == 1
    assert "valid_loss" not in page.figures


def test_published_scores_of_the_task_are_drawn(make_page):
    class Known(Task):
        PUBLISHED_SCORES: ClassVar = {"other": 0.125}

    page = make_page(CER, task=Known)
    assert page.figures["forest"]["data"][-1]["x"] == [0.125]
    assert "Hollow markers" in page.sections["results"]


def test_scores_over_seeds_have_a_note(make_page):
    text = " ".join(make_page(CER, seeds=[4, 5]).sections["results"].split())
    assert (
        "records and seeds 4 and 5. Scores are means over 2 training seeds. Below CER: the score"
        in text
    )
    assert "of each seed. Lower is better." in text
