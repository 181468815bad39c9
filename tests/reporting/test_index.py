"""The index page: the conclusion of each study and lesson."""

from pathlib import Path

import pytest

from stages import report
from wxb.core.errors import WxbError
from wxb.lessons import Lesson, Part, assemble
from wxb.reporting.index import read_description, write_index

ANSWER = "It learns 3 < 4 of them."


def index(reports):
    return write_index(reports.params).read_text(encoding="utf-8")


def test_every_lesson_has_its_answer(tree):
    reports = tree(["ner-encoder"])
    lesson = assemble(reports.params, "gates", Lesson({}, ANSWER, [], [Part("One", ["Told."])]))
    Path("reports/gates.html").write_text(lesson, encoding="utf-8")
    Path("reports/images.html").write_text("<html><head></head></html>", encoding="utf-8")
    assert read_description(Path("reports/gates.html")) == ANSWER
    page = index(reports)
    assert (
        f'<a href="gates.html">{reports.params.lessons["gates"].title}</a> It learns 3 &lt; 4'
        in page
    )
    assert f'<a href="images.html">{reports.params.lessons["images"].title}</a></li>' in page
    assert "attention.html" not in page


def test_the_claim_of_a_study_is_its_description(tree):
    reports = tree(["ner-encoder", "ner-decoder"])
    report.main(reports.params, "ner")
    claim = read_description(Path("reports/ner.html"))
    assert claim.startswith("ner-encoder and ner-decoder (F1 0.")
    assert f"<p>{claim}</p>" in index(reports)


def test_without_any_page_there_is_no_index(tree):
    with pytest.raises(WxbError, match="run `dvc repro` first"):
        write_index(tree(["ner-encoder"]).params)
