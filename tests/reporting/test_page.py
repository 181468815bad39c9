"""The stage `report`: the page of a study, its index, and what both are made from."""

import base64
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stages import report
from tests import demo
from tests.project_copy import ROOT
from tests.reporting.conftest import BLEU, CER, comparison
from tests.repository import write
from wxb.core.errors import WxbError
from wxb.core.params import read_yaml
from wxb.lessons import Lesson
from wxb.lessons import assemble as assemble_lesson
from wxb.reporting import costs, figures, pairs, parts
from wxb.reporting.page import (
    assemble,
    differences,
    differing_settings,
    published_scores,
    write_index,
)

SEVEN = ["ner-encoder", "ner-decoder", "ner-third", *(f"ner-{name}" for name in "abcd")]
THREE, TWO = SEVEN[:3], SEVEN[:2]
SECTIONS = ["results", "types", "mistakes", "cost", "training", "published"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """A parsed page: its elements, visible text, sections, tables and figures by caption."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text, self.raw = "", {"script": [], "style": []}
        self.sections: dict[str, str] = {}
        self.tables: list[list[list[str]]] = []
        self._within: str | None = None
        self._in_cell = False
        self.feed(source)
        labels = [a["aria-label"].split(";")[0] for _, a in self.elements if a.get("role") == "img"]
        charts = [json.loads(script) for script in self.raw["script"] if script[:1] == "{"]
        self.figures = dict(zip(labels, charts, strict=True))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self.sections[dict(attrs)["id"]] = ""
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self._in_cell = True
        if tag in self.raw:
            self._within = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag):
        if tag == self._within:
            self._within = None
        if tag in ("th", "td"):
            self._in_cell = False

    def handle_data(self, data):
        if self._within:
            self.raw[self._within][-1] += data
            return
        self.text += data
        if self.sections:
            self.sections[[*self.sections][-1]] += data
        if self._in_cell:
            self.tables[-1][-1][-1] += data.strip().lstrip("●◆■▲▼★✚►").strip()

    def table(self, header):
        """The rows of the first table whose header begins so, by name."""
        table = next(table for table in self.tables if table[0][: len(header)] == header)
        return {row[0]: row[1:] for row in table[1:]}


def parsed_page(tree, study="ner") -> Page:
    """Write the page of a tree and parse it."""
    report.main(tree.params, study)
    return Page(Path(f"reports/{study}.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", [1, 2, 7])
def test_sections_and_figures_are_all_there(tree, number):
    page = parsed_page(tree(SEVEN[:number]))
    assert list(page.sections) == SECTIONS
    losses = [f"Loss of each {name}" for name in ("experiment", "backbone")]
    assert [*page.figures] == ["F1", "Confusions", "validation F1", *losses]
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links[: len(SECTIONS)] == [f"#{section}" for section in SECTIONS]
    assert {*page.table(["experiment"])} == {*SEVEN[:number]}
    assert ("Holm's method for 1 pair, is" in page.sections["results"]) == (number == 2)
    assert ("+" in page.sections["results"]) == (number > 1)  # a difference
    assert ("tier" in page.tables[0][0]) == (number > 1)


def test_a_page_begins_with_the_answer_and_ranks_all_by_score(tree):
    reports = tree(THREE, further=["new"])
    page = parsed_page(reports)
    start = page.text[: page.text.index("Results")]
    assert "Check the data: 2 of 9 rejected." in start
    assert pairs.conclusions(reports.comparison)[0] in start
    for sentence in pairs.conclusions(reports.comparison["further"]["new"] | {"question": None}):
        assert sentence in page.sections["results"]
    titles = ["experiment", "tier", "F1 (95% interval)", "new: F1 (95% interval)"]
    assert page.tables[0][0] == [*titles, "precision", "recall", "training"]
    rows = page.table(titles)
    f1 = [float(row[1].split()[0]) for row in rows.values()]
    assert f1 == sorted(f1, reverse=True)
    for name, system in reports.comparison["systems"].items():
        other = reports.comparison["further"]["new"]["systems"][name]
        for cell, score in zip(rows[name][1:3], (system["f1"], other["f1"]), strict=True):
            assert cell == f"{score['value']:.3f} ({score['low']:.3f}–{score['high']:.3f})"
        scores = [f"{system[key]['value']:.3f}" for key in ("precision", "recall")]
        assert rows[name][3:] == [*scores, "1 min 40 s"]
        outcomes = page.table(["experiment", "correct", "wrong type", "wrong boundary"])
        assert outcomes[name][2] == str(system["errors"]["wrong_boundary"])


def test_all_scores_can_be_downloaded(tree):
    reports = tree(TWO)
    downloads = {
        a["download"]: base64.b64decode(a["href"].partition(",")[2])
        for tag, a in parsed_page(reports).elements
        if tag == "a" and "download" in a
    }
    assert downloads["ner.csv"] == Path("reports/studies/ner.csv").read_bytes()
    assert json.loads(downloads["ner.json"]) == reports.comparison


def test_the_best_of_each_row_are_marked_and_counted():
    systems = {
        name: {"by_type": {"a": {"f1": f1, "support": 2}, "b": {"f1": 0.0, "support": 1}}}
        for name, f1 in (("x", 0.5), ("y", 0.25))
    }
    text, table = parts.by_category("F1", systems, "by_type", "f1")
    assert [[c.note for c in row[2:]] for row in table.rows] == [[parts.BEST, ""], ["", ""]]
    assert text.endswith(": x 1.")
    systems["x"]["by_type"]["a"]["f1"] = systems["y"]["by_type"]["a"]["f1"] = 0.0
    assert parts.by_category("F1", systems, "by_type", "f1")[0].endswith(": none.")


def test_records_are_counted_by_split_and_errors_by_language(tree):
    study = report.gather(tree(TWO).params, "ner")
    study.comparison["records"] = {"train": 10000, "situations": 9000}
    assert "situations 9,000 (each scene is new)." in report.page.data_text(study)
    rows = [row._replace(language=row.id[:2]) for row in study.predictions[TWO[1]]]
    (section,) = report.page.languages(study._replace(predictions={TWO[1]: rows}))
    counts = [[*map(int, fold.blocks[0].rows[0][1:])] for fold in section.blocks[1:]]
    assert [*map(sum, zip(*counts, strict=True))] == [*study.systems[TWO[1]]["errors"].values()]


def test_every_pair_is_once_in_the_triangle():
    scores = dict(zip("xyz", (0.5, 0.25, 0.75), strict=True))
    table = differences(comparison(scores))
    assert table.header == ["", "y", "z"]
    assert [[*row] for row in table.rows] == [["x", "+0.250", "-0.250"], ["y", "", "-0.500"]]
    shades = [[cell.shade for cell in row[1:] if cell] for row in table.rows]
    assert shades[0][0] == -shades[0][1] == -shades[1][0] > 0
    pale = differences(comparison(scores, noise=1)).rows[0][1]
    assert pale.shade == 0
    assert "p 0.500, corrected 1.000" in pale.note
    lower = differences(comparison(scores, metric=CER))
    assert [*lower.rows[0]] == ["x", "-0.250", "+0.250"]


def test_page_loads_nothing(tree):
    page = parsed_page(tree(TWO))
    for tag, attrs in page.elements:
        assert tag not in {"link", "base", "iframe", "object", "embed", "img"}
        assert not {"src", "srcset", "data", "action", "poster"} & set(attrs)
        assert attrs.get("href", "#").startswith(("#", "../docs/", "data:text/plain;"))
        assert "url(" not in attrs.get("style", "")
    for css in page.raw["style"]:
        assert not re.search(r"@import|url\(", css)
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert sum(len(script) > 1_000_000 for script in page.raw["script"]) == 1  # plotly


def test_hostile_text_stays_text(tree):
    kind = f"NAME{HOSTILE}"
    records = [(f"{HOSTILE}-{n}", f"Hello {HOSTILE}", [(0, 5, kind)]) for n in range(40)]
    records.append(("en-2", "Ann", [(0, 3, "<b>X")]))
    friendly = parsed_page(tree(TWO))
    shutil.rmtree("reports")
    hostile = parsed_page(tree(TWO, records))
    for tag in ("script", "img", "b"):
        count = [sum(t == tag for t, _ in page.elements) for page in (friendly, hostile)]
        assert count[0] == count[1], tag
    for section in ("types", "mistakes"):
        assert kind in hostile.sections[section]


def test_costs_are_those_of_the_stages(tree):
    reports = tree(SEVEN)
    Path("reports/cost/evaluate/ner-third.json").unlink()
    path = Path("reports/cost/train/ner-decoder.json")
    another = {"device": "another machine", "finished": "2030-02-03T00:00:00+00:00"}
    write(path, json.loads(path.read_text()) | another | {"peak_gpu_memory_mib": 54_321})
    page = parsed_page(reports)
    rows = page.table(["experiment", "trained parameters"])
    times = ["1 h 00 min", "1 min 40 s", "5.0 s", "1 h 01 min", "1.2 GiB"]
    assert rows["ner-encoder"][1:7] == ["encoder", *times]
    assert rows["ner-third"][2:6] == [*times[:2], "–", "–"]
    assert rows["ner-decoder"][7] == "53.0 GiB"
    for text in ("some machine, then another machine", "2030-01-02 to 2030-02-03"):
        assert text in page.sections["cost"]
    two = {**reports.comparison, "seeds": [1, 2]}
    assert costs.training_seconds(two, {"train@ner-third": {"seconds": 9}}) == {"ner-third": 4.5}


def test_gold_that_training_lost_is_on_the_page(tree):
    reports = tree(TWO)
    counts = {"gold": 1200, "kept": 1180, "repaired": 0, "split": 5, "lost": 15}
    accounts = {"train": counts, "valid": {**counts, "lost": 1}}
    write("data/targets/ner-decoder/alignment.json", accounts)
    text = parsed_page(reports).text
    assert "changed: ner-decoder split 5, lost 15 of 1,200." in text


def test_settings_differ_if_they_have_two_values_among_those_that_have_them():
    params = demo.params()
    values = {
        key: row for key, *row in differing_settings(params, ["ner-encoder", "ner-decoder"]).rows
    }
    assert values["backbone.name"] == ["encoder", "decoder"]
    assert all(len({*row} - {"–"}) > 1 for row in values.values())


def test_curves_keep_the_colours_and_symbols_of_experiments_and_gaps(tree):
    reports = tree(SEVEN)
    path = Path("reports/training/ner/ner-decoder/valid_f1.csv")
    path.rename(path.with_name("valid_accuracy.csv"))
    shutil.rmtree("reports/training/ner/ner-third")
    charts = parsed_page(reports).figures
    assert charts["Loss of each backbone"]["data"][0]["y"] == [7.0, None]
    assert [t["name"] for t in charts["validation accuracy"]["data"]] == ["ner-decoder"]
    curves = {
        t["name"]: t for key in ("F1", "accuracy") for t in charts[f"validation {key}"]["data"]
    }
    assert [*curves] == [SEVEN[0], *SEVEN[3:], SEVEN[1]]
    losses = charts["Loss of each experiment"]["data"]
    for index, name in enumerate(SEVEN):
        if name != "ner-third":
            loss, valid_loss = (trace for trace in losses if trace["name"] == name)
            assert loss["line"]["color"] == valid_loss["line"]["color"] == figures.colour(index)
            assert valid_loss["line"]["dash"] == "dash"
            assert curves[name]["marker"]["symbol"] == figures.symbol(index)
            assert curves[name]["line"]["color"] == figures.colour(index)


@pytest.mark.parametrize(
    ("profile", "path", "count"),
    [("ner", "demos/pii", 4), ("ner", "own.csv", 0), ("weibo", "demos/pii", 0)],
)
def test_only_the_demo_that_reproduces_them_has_published_scores(tree, profile, path, count):
    reports = tree(TWO)
    corpus = reports.params.experiments[TWO[0]].corpus
    block = reports.params.corpora[corpus].model_copy(update={"path": path})
    corpora = {**reports.params.corpora, corpus: block}
    study = report.gather(reports.params.model_copy(update={"corpora": corpora}), "ner")
    study.comparison["study"] = profile
    sections = published_scores(study)
    assert sum(len(section.blocks[1].rows) for section in sections) == count


class RecordedParams:
    """Params that record which of their keys are read."""

    def __init__(self, params):
        self.params, self.read = params, set()

    def __getattr__(self, key):
        self.read.add(key)
        return getattr(self.params, key)

    def block(self, section, name):
        self.read.add(f"{section}.{name}")
        return self.params.block(section, name)

    def root_backbone(self, experiment):
        self.read |= {"experiments", "backbones"}
        return self.params.root_backbone(experiment)


def test_the_stage_depends_on_every_setting_that_its_page_shows(tree):
    params = RecordedParams(tree(THREE).params)
    report.main(params, "ner")
    stage = read_yaml(ROOT / "dvc.yaml")["stages"]["report"]["do"]
    assert {"experiments", "backbones", "studies.ner"} <= params.read
    assert params.read == {key.replace("${key}", "ner") for key in stage["params"]}


class Task(parts.Page):
    """A task with a section of its own."""

    RULE, VALIDATION_NOTE = "A letter counts once.", ""

    def sections(self, study):
        return [parts.Section("own", "Own", ["<i>"])]


@pytest.mark.parametrize(
    ("metric", "factor", "text"), [(CER, 1, "0.500 (0.490–0.510)"), (BLEU, 60, "30.0 (29.4–30.6)")]
)
def test_a_page_of_any_task_and_scale(tree, metric, factor, text):
    study = report.gather(tree(TWO).params, "ner")._replace(predictions={})
    scores = {name: factor * value for name, value in zip(TWO, (0.5, 0.25), strict=True)}
    content = comparison(scores, noise=0.01 * factor, metric=metric) | {"unit": "letters"}
    curves = {name: {f"valid_{metric.key}": [(1, 0.5)], "valid_loss": [(1, 2)]} for name in TWO}
    study = study._replace(comparison=content, curves=curves, predictions=dict.fromkeys(TWO, ()))
    page = Page(assemble(study, Task()))
    assert list(page.sections) == ["results", "own", "cost", "training", "published"]
    assert "<i>" in page.sections["own"]
    assert all(sentence in page.text for sentence in pairs.conclusions(content))
    assert page.table(["experiment", "tier"])["ner-encoder"][1] == text
    assert f"validation {metric.title}" in page.figures
    assert ("Lower is better" in page.text) is metric.lower_is_better
    assert "20 letters" in page.sections["results"]
    assert "A letter counts once." in page.text


def test_the_index_links_every_page_with_its_answer(tree):
    reports = tree(TWO)
    with pytest.raises(WxbError, match="run `dvc repro` first"):
        write_index(reports.params)
    report.main(reports.params, "ner")
    answer = "It learns 3 < 4 of them."
    lesson = assemble_lesson(
        reports.params, "gates", Lesson({}, answer, [], [parts.Section("one", "One", ["X"])])
    )
    Path("reports/gates.html").write_text(lesson, encoding="utf-8")
    Path("reports/images.html").write_text("<html><head></head></html>", encoding="utf-8")
    page = Page(write_index(reports.params).read_text(encoding="utf-8"))
    links = [a["href"] for tag, a in page.elements if tag == "a" and a["href"][0] != "#"]
    assert links == ["ner.html", "gates.html", "images.html"]
    titles = {name: reports.params.lessons[name].title for name in ("gates", "images")}
    assert page.tables == [
        [["question", "answer"], ["Which is better?", *pairs.conclusions(reports.comparison)[:1]]],
        [["question", "answer"], [titles["gates"], answer], [titles["images"], ""]],
    ]
