"""The page of a study of whatever task, whose scores are on any scale."""

from typing import ClassVar

import pytest
from markupsafe import Markup

from stages import report
from tests.reporting.conftest import BLEU, CER
from tests.reporting.test_report import Page
from wxb.reporting import page
from wxb.reporting.charts.parts import Part

TWO = {"ner-encoder": 0.5, "ner-decoder": 0.25}


class Task:
    """A task whose page has two parts."""

    RULE, WATCHED, USABLE = "A letter counts once.", "", None
    PUBLISHED: ClassVar = {}

    @staticmethod
    def failures(system):
        return "It mishears."

    @staticmethod
    def parts(study):
        return [
            Part("last", "Last", "training", Markup('<section id="last">L</section>'), {}),
            Part("first", "First", "results", Markup('<section id="first">F</section>'), {}),
        ]


@pytest.fixture
def written(tree, compared):
    """Makes the page of two experiments by the given score."""

    def write(metric, factor=1.0, task=Task, **told):
        study = report.gather(tree([*TWO]).params, "ner")
        scores = {name: factor * value for name, value in TWO.items()}
        content = compared(scores, noise=0.01 * factor, metric=metric)
        content |= {"unit": "letters", **told}
        curves = {name: {f"valid_{metric.key}": [(1, 0.5)], "valid_loss": [(1, 2)]} for name in TWO}
        curves["ner-encoder"]["valid_echo"] = [(1, 0.5)]
        return Page(page.assemble(study._replace(comparison=content, curves=curves), task))

    return write


def test_parts_of_the_task_follow_the_sections_they_name(written):
    told = written(CER)
    order = ["results", "first", "noise", "cost", "training", "last", "making"]
    assert list(told.sections) == order
    links = [a["href"] for tag, a in told.elements if tag == "a"]
    assert links[0] == "#noise"
    assert links[1] == "#last"  # failures: the first part of the task
    assert links[3 : 3 + len(order)] == [f"#{section}" for section in order]


class Plain(Task):
    """A task whose page has no part of its own."""

    @staticmethod
    def parts(study):
        return []


def test_without_parts_failures_point_at_the_results(written):
    links = [a["href"] for tag, a in written(CER, task=Plain).elements if tag == "a"]
    assert links[:2] == ["#noise", "#results"]


def test_a_page_where_less_is_better(written):
    told = written(CER)
    assert "ner-decoder is best, with CER 0.250." in told.text
    assert "A letter counts once." in told.sections["results"]
    assert "Lower is better." in told.sections["results"]
    assert "Hollow marks" not in told.text
    assert "CER of the column minus CER of the row" in told.sections["noise"]
    ahead = [a["class"] for tag, a in told.elements if a.get("class") == "ahead"]
    assert len(ahead) == 1
    assert told.sections["noise"].index("+0.250") < told.sections["noise"].index("−0.250")
    assert told.figures["forest"]["layout"]["xaxis"]["title"]["text"] == "CER (lower is better)"
    assert {"cer-seconds", "cer-parameters"} <= {*told.figures}
    assert "F1" not in told.text


def test_a_page_of_scores_out_of_a_hundred(written):
    told = written(BLEU, factor=60)
    assert "ner-encoder is best, with BLEU 30.0." in told.text
    assert "29.4–30.6" in told.cells("ner-encoder")
    assert "Lower is better" not in told.text
    assert "BLEU of the row minus BLEU of the column" in told.sections["noise"]
    assert "9 test records with 9 gold letters;" in " ".join(told.sections["making"].split())
    assert "made-up BLEU" in told.text


def test_any_score_on_validation_records_has_a_chart(written):
    told = written(CER)
    assert "Validation CER" in told.sections["training"]
    assert "Validation echo" in told.sections["training"]
    assert len(told.figures["valid_cer"]["data"]) == 2
    assert len(told.figures["valid_echo"]["data"]) == 1
    assert "valid_loss" not in told.figures


def test_published_scores_are_drawn_where_the_task_has_some(written):
    class Known(Task):
        PUBLISHED: ClassVar = {"other": 0.125}

    told = written(CER, task=Known)
    assert told.figures["forest"]["data"][-1]["x"] == [0.125]
    assert "Hollow marks" in told.sections["results"]


def test_scores_over_seeds_are_told_in_a_sentence_of_its_own(written):
    told = " ".join(written(CER, seeds=[4, 5]).sections["results"].split())
    assert "of seeds 4 and 5. Scores are means over 2 seeds of training; under CER stands" in told
    assert "what each gave. Lower is better." in told
