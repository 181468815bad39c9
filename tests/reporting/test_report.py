"""The stage and its page, from the reports of the stages before to one HTML file."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stages import report

THREE = ["ner-encoder", "ner-decoder", "ner-third"]
SECTIONS = ["results", "types", "mistakes", "training", "cost", "published", "making"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """What a browser would make of a page: its elements, its visible text, its scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text, self.raw = "", {"script": [], "style": []}
        self._within: str | None = None
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self._within = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag):
        if tag == self._within:
            self._within = None

    def handle_data(self, data):
        if self._within:
            self.raw[self._within][-1] += data
        else:
            self.text += data

    @property
    def figures(self) -> dict:
        return json.loads(self.raw["script"][0])

    def cells(self, row_of: str) -> str:
        """The text from an experiment's reproducing command to the end of its table row."""
        return self.text.split(f"dvc repro evaluate@{row_of}")[1].split("dvc repro")[0]


def written(tree) -> Page:
    report.main(tree.params, "ner")
    return Page(Path("reports/ner.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_sections_figures_and_commands_are_all_there(tree, number):
    page = written(tree(THREE[:number]))
    sections = [attrs["id"] for tag, attrs in page.elements if tag == "section"]
    assert sections == SECTIONS
    places = {a["id"] for tag, a in page.elements if "figure" in (a.get("class") or "").split()}
    assert places == set(page.figures)
    assert len(places) == 7
    for name in THREE[:number]:
        assert f"dvc repro evaluate@{name}" in page.text
    assert (
        page.text.count(" F1 (95% interval of the difference") + page.text.count("F1, within noise")
        == {1: 0, 2: 2, 3: 4}[number]
    )  # the answer, and one sentence a pair


def test_numbers_in_the_table_are_those_of_the_study(tree):
    made = tree(THREE)
    page = written(made)
    for name, system in made.comparison["systems"].items():
        cells = page.cells(name)
        for metric in ("f1", "precision", "recall"):
            score = system[metric]
            assert f"{score['value']:.3f}" in cells
            assert f"{score['low']:.3f}–{score['high']:.3f}" in cells
        assert f"{system['correct']} correct" in cells
        assert "2.35 M" in cells
        assert "1.23 M trained" in cells
        assert "1 h 01 min" in cells  # 3600 + 100 + 5 s
        assert "some machine" in cells
        bars = {bar["name"]: bar["x"] for bar in page.figures["errors"]["data"]}
        assert (
            bars["wrong boundary"][made.members.index(name)] == (system["errors"]["wrong_boundary"])
        )


def test_answer_is_about_the_two_best(tree):
    page = written(tree(THREE))
    answer = page.text.split("Which is better?")[-1].split("test records")[0]
    assert "ner-third" in answer
    assert "ner-decoder" in answer
    assert "ner-encoder" not in answer


def test_page_loads_nothing(tree):
    page = written(tree(THREE[:2]))
    for tag, attrs in page.elements:
        assert tag not in {"link", "base", "iframe", "object", "embed", "img"}
        assert not {"src", "srcset", "data", "action", "poster"} & set(attrs)
        assert attrs.get("href", "#").startswith("#")
        assert "url(" not in attrs.get("style", "")
    for css in page.raw["style"]:
        assert not re.search(r"@import|url\(", css)
    policies = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none';")
    assert "http" not in policies[0]


def test_plotly_is_there_once(tree):
    page = written(tree(THREE))
    assert sum(len(script) > 1_000_000 for script in page.raw["script"]) == 1


def test_hostile_text_stays_text(tree):
    text = f"Hello {HOSTILE}"
    kind = f"NAME{HOSTILE}"
    records = [(HOSTILE, text, [(0, 5, kind)]), ("en-2", "Ann", [(0, 3, "<b>X")])]
    friendly, hostile = written(tree(THREE[:2])), None
    shutil.rmtree("reports")
    hostile = written(tree(THREE[:2], records))
    for tag in ("script", "img", "b"):
        count = [sum(t == tag for t, _ in page.elements) for page in (friendly, hostile)]
        assert count[0] == count[1], tag
    assert HOSTILE in hostile.text
    assert kind in hostile.text
    labels = hostile.figures["by-type"]["data"][0]["y"]
    assert any("&lt;script&gt;alert(1)" in label for label in labels)
    assert not any("<" in label for label in labels)


def test_costs_that_nobody_measured(tree):
    made = tree(THREE[:2])
    shutil.rmtree("reports/cost")
    page = written(made)
    assert "not measured here" in page.cells("ner-encoder")
    assert "seconds" not in page.figures
    assert "some machine" not in page.text


def test_wall_time_is_not_told_in_part(tree):
    made = tree(THREE[:2])
    Path("reports/cost/pretrain/decoder.json").unlink()
    page = written(made)
    assert "1 h 01 min" in page.cells("ner-encoder")
    assert "not measured here" in page.cells("ner-decoder").split("What the paired")[0]
    # What was measured of it is still in the table of costs.
    assert page.text.count("1 min 40 s") == 2


def test_curves_that_nobody_drew(tree):
    made = tree(THREE[:2])
    shutil.rmtree("reports/training")
    page = written(made)
    assert not {"loss", "valid-f1", "pretraining-loss"} & set(page.figures)
    assert "Pretraining loss of each backbone: not measured here." in page.text


def test_a_loss_that_is_not_a_number_is_a_gap(tree):
    page = written(tree(THREE[:1]))
    assert page.figures["pretraining-loss"]["data"][0]["y"] == [7.0, None]


def test_same_reports_make_the_same_page(tree):
    made = tree(THREE)
    report.main(made.params, "ner")
    first = Path("reports/ner.html").read_bytes()
    report.main(made.params, "ner")
    assert Path("reports/ner.html").read_bytes() == first


def test_settings_are_split_by_whether_they_differ(tree):
    page = written(tree(THREE[:2]))
    differing, common = page.text.split("Settings that differ")[1].split("Settings in common")
    assert "backbone.tokenizer.kind" in differing
    assert "training.epochs" in common
    assert "training.epochs" not in differing


def test_published_scores_stand_apart_from_ours(tree):
    page = written(tree(THREE[:2]))
    told = page.text.split("Published figures\n")[-1]
    for system in ("encoder-bio", "decoder-bio", "generative", "generative-neftune"):
        assert system in told
    assert "no number in one" in told
    assert "github.com/AUSTIN2526/learning-wx-b-in-30-days" in told
