"""The page that leads to all others: what each found, in numbers as people read them."""

from pathlib import Path

import pytest

from stages import report
from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.lessons import Lesson, Part
from wxb.lessons.page import assemble
from wxb.reporting.index import described, write_index

ANSWER = "It learns 3 < 4 of them."


def index(made):
    return write_index(made.params).read_text(encoding="utf-8")


def test_every_lesson_says_in_a_line_what_it_found(tree):
    made = tree(["ner-encoder"])
    page = assemble(made.params, "gates", Lesson({}, ANSWER, [], [Part("One", ["Told."])]))
    Path("reports/gates.html").write_text(page, encoding="utf-8")
    Path("reports/images.html").write_text("<html><head></head></html>", encoding="utf-8")
    assert described(Path("reports/gates.html")) == ANSWER
    told = index(made)
    assert (
        f'<a href="gates.html">{made.params.lessons["gates"].title}</a> It learns 3 &lt; 4' in told
    )
    assert f'<a href="images.html">{made.params.lessons["images"].title}</a></li>' in told
    assert "attention.html" not in told


def test_a_study_says_what_it_found_in_its_head(tree):
    made = tree(["ner-encoder", "ner-decoder"])
    report.main(made.params, "ner")
    claim = described(Path("reports/ner.html"))
    assert claim.startswith("ner-decoder is best, with F1")
    assert f"<p>{claim}</p>" in index(made)


def test_figures_of_architectures_are_formatted(tree):
    made = tree(["ner-encoder"])
    report.main(made.params, "ner")
    figures = {
        "parameters": 112374,
        "logits_difference": 3.3e-07,
        "loss_difference": 0.0,
        "generation_equal": 1,
        "generation_equal_cached": 0,
    }
    write_json(Path("reports/metrics/parity/gpt2.json"), figures)
    row = index(made).split(">gpt2</th>")[1].split("</tr>")[0]
    assert row.replace("</td>", "").split("<td>")[1:] == ["112,374", "3.3e-07", "0", "yes", "no"]


def test_without_any_page_there_is_no_index(tree):
    with pytest.raises(WxbError, match="run `dvc repro` first"):
        write_index(tree(["ner-encoder"]).params)
