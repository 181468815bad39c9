"""The stage `report` and its page."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stages import report
from tests.reporting.conftest import F1
from wxb.core.params import check, load, read_yaml
from wxb.reporting.charts import figures
from wxb.reporting.charts.formatting import p_value, signed

HOME = Path(__file__).resolve().parents[2]
SEVEN = ["ner-encoder", "ner-decoder", "ner-third", *(f"ner-{name}" for name in "abcd")]
THREE = SEVEN[:3]
SECTIONS = [
    *("results", "noise", "types", "mistakes", "cost", "training", "published", "caveats"),
    "making",
]
FIGURES = ["forest", "errors", "f1-seconds", "f1-parameters", "seconds", "valid_f1"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """A parsed page: its elements, visible text, sections and scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text, self.raw = "", {"script": [], "style": []}
        self.sections: dict[str, str] = {}
        self._within: str | None = None
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self.sections[dict(attrs)["id"]] = ""
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
            if self.sections:
                self.sections[[*self.sections][-1]] += data

    @property
    def figures(self) -> dict:
        return json.loads(self.raw["script"][0])

    def cells(self, row_of: str) -> str:
        """The text of an experiment's row in the table of results."""
        return next(row for row in self.rows if row.startswith(f"{row_of}\n"))

    @property
    def rows(self) -> list[str]:
        """The text of each row of the tables of results, which begin with a symbol and a name."""
        return re.split("[●◆■▲▼★]", self.sections["results"])[1:]


def parsed_page(tree) -> Page:
    """Write the page of a tree and parse it."""
    report.main(tree.params, "ner")
    return Page(Path("reports/ner.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", [1, 2, 7])
def test_sections_figures_and_commands_are_all_there(tree, number):
    page = parsed_page(tree(SEVEN[:number]))
    assert list(page.sections) == SECTIONS
    places = [a["id"] for tag, a in page.elements if "figure" in (a.get("class") or "").split()]
    losses = [f"loss-{name}" for name in SEVEN[:number]]
    assert places == [*FIGURES, *losses, "pretraining-loss"]
    assert {*places} == {*page.figures}
    for name in SEVEN[:number]:
        assert f"dvc repro evaluate@{name}" in page.text
    links = {a["href"] for tag, a in page.elements if tag == "a"}
    assert links == {f"#{section}" for section in SECTIONS}


def test_lead_comes_first(tree):
    page = parsed_page(tree(THREE))
    text = page.text.split("Which is better?")[-1].split("test: 4 records")[0]
    assert text.strip().startswith(
        "ner-encoder, ner-decoder and ner-third (F1 0.000 to 0.923): no difference found."
    )
    assert "too low to compare 3 pairs" in text
    assert "no other beats is ner-encoder: it trains 1.23 M parameters in 1 min 40 s." in text
    assert "ner-encoder: The most frequent error is" in text


def test_every_pair_is_in_the_matrix_twice(tree):
    reports = tree(SEVEN)
    page = parsed_page(reports)
    text = page.sections["noise"]
    cells = [a for tag, a in page.elements if tag == "td" and "pale" in (a.get("class") or "")]
    assert len(cells) == 42  # 4 groups are too few to tell 21 pairs apart
    assert "too low" in text
    for pair in reports.comparison["pairs"]:
        value, low = pair["difference"]["value"], pair["difference"]["low"]
        for number in (value, 0 - value, low):
            assert signed(number, F1).replace("-", "−") in text
        p = p_value(pair["difference"]["p_value"])
        assert f"p {p} → " in text
    assert "+0.000" not in text
    assert "−0.000" not in text


def test_two_experiments_need_no_correction(tree):
    page = parsed_page(tree(THREE[:2]))
    text = page.sections["noise"]
    assert "Holm" not in text
    assert "→" not in text


def test_one_experiment_has_no_matrix(tree):
    text = parsed_page(tree(["ner-encoder"])).sections["noise"]
    assert "there are no differences to test" in text
    assert "+" not in text


def test_numbers_in_the_table_are_those_of_the_study(tree):
    reports = tree(THREE)
    page = parsed_page(reports)
    for name, system in reports.comparison["systems"].items():
        cells = page.cells(name)
        for metric in ("f1", "precision", "recall"):
            score = system[metric]
            assert f"{score['value']:.3f}" in cells
            assert f"{score['low']:.3f}–{score['high']:.3f}" in cells
        assert f"{system['predicted']} predicted" in cells
        assert f"{reports.comparison['support']} gold" in cells
        assert "12,000 examples" in cells
        assert "120 a second" in cells
        assert "2.35 M" in cells
        assert "1.23 M trained" in cells
        assert "1 h 01 min" in cells  # 3600 + 100 + 5 s
        assert "some machine" not in cells
        bars = {bar["name"]: bar["x"] for bar in page.figures["errors"]["data"]}
        assert bars["wrong boundary"][THREE.index(name)] == system["errors"]["wrong_boundary"]


def test_page_loads_nothing(tree):
    page = parsed_page(tree(THREE[:2]))
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
    page = parsed_page(tree(THREE))
    assert sum(len(script) > 1_000_000 for script in page.raw["script"]) == 1


def test_hostile_text_stays_text(tree):
    text = f"Hello {HOSTILE}"
    kind = f"NAME{HOSTILE}"
    # As many as the lead needs to name the type.
    records = [(f"{HOSTILE}-{number}", text, [(0, 5, kind)]) for number in range(40)]
    records.append(("en-2", "Ann", [(0, 3, "<b>X")]))
    friendly = parsed_page(tree(THREE[:2]))
    shutil.rmtree("reports")
    hostile = parsed_page(tree(THREE[:2], records))
    for tag in ("script", "img", "b"):
        count = [sum(t == tag for t, _ in page.elements) for page in (friendly, hostile)]
        assert count[0] == count[1], tag
    assert HOSTILE in hostile.text
    assert kind in hostile.text
    for section in ("types", "mistakes"):
        assert kind in hostile.sections[section]


def test_systems_are_in_the_order_of_params_with_their_tiers(tree):
    page = parsed_page(tree(SEVEN))
    results = page.sections["results"]
    assert [row.splitlines()[0] for row in page.rows[:7]] == SEVEN
    assert "Experiments that share a tier do not differ beyond noise." in results
    assert "One seed: the interval covers test records, not retraining." in results
    shutil.rmtree("reports")
    assert "tier" not in parsed_page(tree(SEVEN[:1])).sections["results"]


def test_the_nearness_of_each_test_set_to_training_is_shown(tree):
    text = parsed_page(tree(THREE[:2], further=["new"])).text
    for records in ("test: 4 records, 7 spans", "new: 3 records, 6 spans"):
        assert f"{records}; 25.0% within one word of training, 50.0% within two." in text


def test_structured_initialization_is_a_caveat(tree):
    reports = tree(THREE[:2])
    assert (
        "of encoder and decoder starts from structured" in parsed_page(reports).sections["caveats"]
    )
    content = reports.params.model_dump()
    content["backbones"]["encoder"] |= {
        "architecture": None,
        "tokenizer": None,
        "checkpoint": "some/model",
    }
    reports.params = check(content)
    assert "of decoder starts from structured" in parsed_page(reports).sections["caveats"]


def test_missing_curves(tree):
    reports = tree(THREE[:2])
    shutil.rmtree("reports/training")
    page = parsed_page(reports)
    assert not {"loss-ner-encoder", "valid_f1", "pretraining-loss"} & set(page.figures)
    assert "Pretraining loss of each backbone: not recorded here." in page.text


def test_losses_of_checkpoints_are_no_points(tree):
    reports = tree(THREE[:1])
    path = Path("reports/training/ner/ner-encoder/loss.csv")
    path.write_text("step,loss\n10,2.0\n13,9.0\n20,1.0\n")
    page = parsed_page(reports)
    assert page.figures["loss-ner-encoder"]["data"][0]["x"] == [10, 20]
    assert page.figures["loss-ner-encoder"]["data"][0]["y"][1] == pytest.approx(3.4)


def test_both_losses_and_sizes_of_backbones_are_explained(tree):
    text = parsed_page(tree(THREE[:1])).text
    assert "The curve is the loss of the whole objective" in text
    assert "Trainable parameters include the output layers of the objective" in text


def test_a_loss_that_is_not_a_number_is_a_gap(tree):
    page = parsed_page(tree(THREE[:1]))
    assert page.figures["pretraining-loss"]["data"][0]["y"] == [7.0, None]


def test_same_reports_make_the_same_page(tree):
    reports = tree(THREE)
    report.main(reports.params, "ner")
    first = Path("reports/ner.html").read_bytes()
    report.main(reports.params, "ner")
    assert Path("reports/ner.html").read_bytes() == first


def test_settings_that_differ_come_first(tree):
    page = parsed_page(tree(THREE[:2]))
    differing, common = page.sections["making"].split("Settings in common", 1)
    assert "backbone.tokenizer.kind" in differing
    assert "training.epochs" in common
    assert "training.epochs" not in differing


def test_an_experiment_has_the_same_colour_in_every_figure(tree):
    drawings = parsed_page(tree(SEVEN)).figures
    for index, name in enumerate(SEVEN):
        loss, valid_loss = drawings[f"loss-{name}"]["data"]
        valid_f1 = drawings["valid_f1"]["data"][index]
        assert loss["line"]["color"] == valid_loss["line"]["color"] == valid_f1["line"]["color"]
        assert valid_loss["line"]["dash"] == "dash"
        assert valid_f1["marker"]["symbol"] == drawings["forest"]["data"][index]["marker"]["symbol"]
    assert "valid_accuracy" not in drawings
    looks = {(t["line"]["color"], t["marker"]["symbol"]) for t in drawings["valid_f1"]["data"]}
    assert len(looks) == 7


def test_validation_accuracy_has_its_own_figure(tree):
    reports = tree(THREE)
    for name in THREE[1:]:
        path = Path("reports/training/ner", name, "valid_f1.csv")
        path.rename(path.with_name("valid_accuracy.csv"))
    page = parsed_page(reports)
    drawings = {
        key: [trace["name"] for trace in page.figures[key]["data"]]
        for key in ("valid_f1", "valid_accuracy")
    }
    assert drawings["valid_f1"] == THREE[:1]
    assert drawings["valid_accuracy"] == THREE[1:]
    symbols = [trace["marker"]["symbol"] for trace in page.figures["valid_accuracy"]["data"]]
    assert symbols == [figures.symbol(1), figures.symbol(2)]


def test_scores_by_type_are_next_to_published_ones(tree):
    reports = tree(THREE[:2])
    page = parsed_page(reports)
    text = page.sections["types"]
    head = text.split("generative-neftune\n")[0].split("ours\n")[1]
    assert head.index("published") < head.index("ner-encoder") < head.index("ner-decoder")
    assert head.index("ner-encoder") < head.index("encoder-bio")
    rows = [line.split() for line in text.split("SURNAME")[1].splitlines() if line.strip()]
    cells = [cell for row in rows for cell in row][:8]
    systems = reports.comparison["systems"]
    f1 = [systems[name]["by_type"]["SURNAME"]["f1"] for name in THREE[:2]]
    assert cells[:4] == ["3", *(f"{score:.2f}" for score in f1), "480"]
    assert "ours" in {a.get("class") for _, a in page.elements}


def test_the_study_of_params_has_a_page(tree):
    params = load(Path(__file__).parents[2] / "params.yaml")
    reports = tree(params.studies["ner"].experiments)
    reports.params = params
    page = parsed_page(reports)
    assert params.studies["ner"].experiments[-1] in page.sections["making"]
    assert "training.epochs" in page.sections["making"]


def test_published_scores_are_separate_from_ours(tree):
    page = parsed_page(tree(THREE[:2]))
    text = page.sections["published"]
    for system in ("encoder-bio", "decoder-bio", "generative", "generative-neftune"):
        assert system in text
    assert "do not compare them with our scores" in " ".join(text.split())
    assert "github.com/AUSTIN2526/learning-wx-b-in-30-days" in text
    assert "ner-encoder" not in text
    hollow = page.figures["forest"]["data"][-1]
    assert hollow["marker"]["symbol"] == "circle-open"
    assert len(hollow["x"]) == 4


def test_every_experiment_has_its_examples(tree):
    page = parsed_page(tree(SEVEN))
    assert page.sections["mistakes"].count("4 records") == 7
    assert page.sections["mistakes"].count("Most frequent confusions of ") == 7
    marks = [a["class"] for tag, a in page.elements if tag == "mark"]
    assert {"missed", "wrong_boundary", "correct"} <= {*marks[6:]}


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

    def backbone_of(self, experiment):
        self.read |= {"experiments", "backbones"}
        return self.params.backbone_of(experiment)


def test_the_stage_depends_on_every_setting_that_its_page_shows(tree):
    """Otherwise the page would show outdated settings."""
    params = RecordedParams(tree(THREE).params)
    report.main(params, "ner")
    stage = read_yaml(HOME / "dvc.yaml")["stages"]["report"]["do"]
    assert {"experiments", "backbones", "studies.ner"} <= params.read
    assert params.read == {key.replace("${key}", "ner") for key in stage["params"]}


def test_further_test_sets_are_columns(tree):
    reports = tree(THREE, further=["new"])
    page = parsed_page(reports)
    text = page.text
    assert "On new, the number of groups (3) is too low to compare experiments" in text
    assert "F1 on new" in text
    assert "On new" in text.split("Beyond noise?")[1]
    for name, system in reports.comparison["further"]["new"]["systems"].items():
        assert f"{system['f1']['value']:.3f}" in page.cells(name)
