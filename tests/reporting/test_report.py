"""The stage and its page, from the reports of the stages before to one HTML file."""

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
from wxb.reporting.charts.formatting import signed

HOME = Path(__file__).resolve().parents[2]
SEVEN = ["ner-encoder", "ner-decoder", "ner-third", *(f"ner-{name}" for name in "abcd")]
THREE = SEVEN[:3]
SECTIONS = ["results", "noise", "types", "mistakes", "cost", "training", "published", "making"]
FIGURES = ["forest", "errors", "f1-seconds", "f1-parameters", "seconds", "valid_f1"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def ranked(members):
    """As the page lists the members of a tree: the best first, and equal ones in its order."""
    return sorted(members, key=lambda name: min(SEVEN.index(name), 2), reverse=True)


class Page(HTMLParser):
    """What a browser would make of a page: its elements, its visible text, its scripts."""

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
        """The text from an experiment's reproducing command to the end of its table row."""
        return self.text.split(f"dvc repro evaluate@{row_of}")[1].split("dvc repro")[0]


def written(tree) -> Page:
    report.main(tree.params, "ner")
    return Page(Path("reports/ner.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", [1, 2, 7])
def test_sections_figures_and_commands_are_all_there(tree, number):
    page = written(tree(SEVEN[:number]))
    assert list(page.sections) == SECTIONS
    places = [a["id"] for tag, a in page.elements if "figure" in (a.get("class") or "").split()]
    losses = [f"loss-{name}" for name in ranked(SEVEN[:number])]
    assert places == [*FIGURES, *losses, "pretraining-loss"]
    assert {*places} == {*page.figures}
    for name in SEVEN[:number]:
        assert f"dvc repro evaluate@{name}" in page.text
    links = {a["href"] for tag, a in page.elements if tag == "a"}
    assert links == {f"#{section}" for section in SECTIONS}


def test_lead_comes_first(tree):
    page = written(tree(THREE))
    told = page.text.split("Which is better?")[-1].split("test records")[0]
    assert told.strip().startswith(
        "ner-third, ner-decoder and ner-encoder: no difference found (F1"
    )
    assert "too few to tell 3 pairs apart" in told
    assert "Training ner-third takes 1 min 40 s for 1.23 M parameters" in told
    assert "Its commonest error is" in told


def test_every_pair_is_in_the_matrix_from_both_sides(tree):
    made = tree(SEVEN)
    page = written(made)
    told = page.sections["noise"]
    cells = [a for tag, a in page.elements if tag == "td" and "pale" in (a.get("class") or "")]
    assert len(cells) == 42  # 50 resamples are too few to tell 21 pairs apart
    assert "too few" in told
    for pair in made.comparison["pairs"]:
        value, low = pair["difference"]["value"], pair["difference"]["low"]
        for number in (value, 0 - value, low):
            assert signed(number, F1).replace("-", "−") in told
        assert f"p {pair['difference']['p_value']:.3f} → " in told
    assert "+0.000" not in told
    assert "−0.000" not in told


def test_two_experiments_need_no_correction(tree):
    page = written(tree(THREE[:2]))
    told = page.sections["noise"]
    assert "Holm" not in told
    assert "→" not in told


def test_one_experiment_has_no_matrix(tree):
    told = written(tree(["ner-encoder"])).sections["noise"]
    assert "nothing to be compared with" in told
    assert "+" not in told


def test_numbers_in_the_table_are_those_of_the_study(tree):
    made = tree(THREE)
    page = written(made)
    for name, system in made.comparison["systems"].items():
        cells = page.cells(name)
        for metric in ("f1", "precision", "recall"):
            score = system[metric]
            assert f"{score['value']:.3f}" in cells
            assert f"{score['low']:.3f}–{score['high']:.3f}" in cells
        assert f"{system['predicted']} found" in cells
        assert f"{made.comparison['support']} gold" in cells
        assert "12,000 examples" in cells
        assert "120 a second" in cells
        assert "2.35 M" in cells
        assert "1.23 M trained" in cells
        assert "1 h 01 min" in cells  # 3600 + 100 + 5 s
        assert "some machine" not in cells
        bars = {bar["name"]: bar["x"] for bar in page.figures["errors"]["data"]}
        assert (
            bars["wrong boundary"][ranked(THREE).index(name)] == system["errors"]["wrong_boundary"]
        )


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
    # As many as the lead needs to name the type.
    records = [(f"{HOSTILE}-{number}", text, [(0, 5, kind)]) for number in range(40)]
    records.append(("en-2", "Ann", [(0, 3, "<b>X")]))
    friendly = written(tree(THREE[:2]))
    shutil.rmtree("reports")
    hostile = written(tree(THREE[:2], records))
    for tag in ("script", "img", "b"):
        count = [sum(t == tag for t, _ in page.elements) for page in (friendly, hostile)]
        assert count[0] == count[1], tag
    assert HOSTILE in hostile.text
    assert kind in hostile.text
    for section in ("types", "mistakes"):
        assert kind in hostile.sections[section]


def test_systems_are_listed_by_their_scores_and_as_params_do_on_demand(tree):
    told = written(tree(SEVEN)).text.split("Beyond noise?")[0]
    first, second = told.split("In the order of params.yaml\n")
    for text, order in ((first, ranked(SEVEN)), (second, SEVEN)):
        assert re.findall("dvc repro evaluate@(.+)", text) == order
    shutil.rmtree("reports")
    assert "In the order of" not in written(tree(SEVEN[:1])).text


def test_initial_weights_are_told_of_backbones_that_start_from_ours(tree):
    made = tree(THREE[:2])
    assert "weights of decoder and encoder are not" in written(made).sections["cost"]
    content = made.params.model_dump()
    content["backbones"]["encoder"] |= {
        "architecture": None,
        "tokenizer": None,
        "checkpoint": "some/model",
    }
    made.params = check(content)
    assert "weights of decoder are not" in written(made).sections["cost"]


def test_curves_that_nobody_drew(tree):
    made = tree(THREE[:2])
    shutil.rmtree("reports/training")
    page = written(made)
    assert not {"loss-ner-encoder", "valid_f1", "pretraining-loss"} & set(page.figures)
    assert "Pretraining loss of each backbone: not recorded here." in page.text


def test_a_loss_that_was_logged_out_of_turn_is_no_point(tree):
    made = tree(THREE[:1])
    path = Path("reports/training/ner/ner-encoder/loss.csv")
    path.write_text("step,loss\n10,2.0\n13,9.0\n20,1.0\n")
    page = written(made)
    assert page.figures["loss-ner-encoder"]["data"][0]["x"] == [10, 20]
    assert page.figures["loss-ner-encoder"]["data"][0]["y"][1] == pytest.approx(3.4)


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
    told = page.sections["making"]
    differing, common = told.split("Settings in common", 1)
    assert "backbone.tokenizer.kind" in differing
    assert "training.epochs" in common
    assert "training.epochs" not in differing


def test_curves_of_one_experiment_look_alike_in_every_figure(tree):
    drawn = written(tree(SEVEN)).figures
    for number, name in enumerate(ranked(SEVEN)):
        loss, valid_loss = drawn[f"loss-{name}"]["data"]
        valid_f1 = drawn["valid_f1"]["data"][number]
        assert loss["line"]["color"] == valid_loss["line"]["color"] == valid_f1["line"]["color"]
        assert valid_loss["line"]["dash"] == "dash"
        assert valid_f1["marker"]["symbol"] == drawn["forest"]["data"][number]["marker"]["symbol"]
    assert "valid_accuracy" not in drawn
    looks = {(t["line"]["color"], t["marker"]["symbol"]) for t in drawn["valid_f1"]["data"]}
    assert len(looks) == 7


def test_who_is_watched_by_accuracy_has_a_figure_for_it(tree):
    made = tree(THREE)
    for name in THREE[1:]:
        path = Path("reports/training/ner", name, "valid_f1.csv")
        path.rename(path.with_name("valid_accuracy.csv"))
    page = written(made)
    drawn = {
        key: [trace["name"] for trace in page.figures[key]["data"]]
        for key in ("valid_f1", "valid_accuracy")
    }
    assert drawn["valid_f1"] == THREE[:1]
    assert drawn["valid_accuracy"] == ranked(THREE[1:])
    symbols = [trace["marker"]["symbol"] for trace in page.figures["valid_accuracy"]["data"]]
    assert symbols == [figures.symbol(0), figures.symbol(1)]


def test_scores_by_type_stand_beside_the_published_ones(tree):
    made = tree(THREE[:2])
    page = written(made)
    told = page.sections["types"]
    head = told.split("generative-neftune\n")[0].split("here\n")[1]
    assert head.index("published") < head.index("ner-decoder") < head.index("ner-encoder")
    assert head.index("ner-encoder") < head.index("encoder-bio")
    rows = [line.split() for line in told.split("SURNAME")[1].splitlines() if line.strip()]
    cells = [cell for row in rows for cell in row][:8]
    systems = made.comparison["systems"]
    f1 = [systems[name]["by_type"]["SURNAME"]["f1"] for name in ranked(THREE[:2])]
    assert cells[:4] == ["3", *(f"{score:.2f}" for score in f1), "480"]
    assert "ours" in {a.get("class") for _, a in page.elements}


def test_the_study_of_params_has_a_page(tree):
    params = load(Path(__file__).parents[2] / "params.yaml")
    made = tree(params.studies["ner"].experiments)
    made.params = params
    page = written(made)
    assert params.studies["ner"].experiments[-1] in page.sections["making"]
    assert "training.epochs" in page.sections["making"]


def test_published_scores_stand_apart_from_ours(tree):
    page = written(tree(THREE[:2]))
    told = page.sections["published"]
    for system in ("encoder-bio", "decoder-bio", "generative", "generative-neftune"):
        assert system in told
    assert "can be held against a number of ours" in told
    assert "github.com/AUSTIN2526/learning-wx-b-in-30-days" in told
    assert "ner-encoder" not in told
    hollow = page.figures["forest"]["data"][-1]
    assert hollow["marker"]["symbol"] == "circle-open"
    assert len(hollow["x"]) == 4


def test_every_experiment_has_its_examples(tree):
    page = written(tree(SEVEN))
    assert page.sections["mistakes"].count("4 records") == 7
    marks = [a["class"] for tag, a in page.elements if tag == "mark"]
    assert {"missed", "wrong_boundary", "correct"} <= {*marks[6:]}


class Watched:
    """Params that remember which of their keys were read."""

    def __init__(self, params):
        self.params, self.read = params, set()

    def __getattr__(self, key):
        self.read.add(key)
        return getattr(self.params, key)

    def named(self, section, name):
        self.read.add(f"{section}.{name}")
        return self.params.named(section, name)

    def origin(self, experiment):
        self.read |= {"experiments", "backbones"}
        return self.params.origin(experiment)


def test_the_stage_depends_on_every_setting_that_its_page_shows(tree):
    """Else the page goes on showing what params.yaml said before."""
    params = Watched(tree(THREE).params)
    report.main(params, "ner")
    stage = read_yaml(HOME / "dvc.yaml")["stages"]["report"]["do"]
    assert {"experiments", "backbones", "studies.ner"} <= params.read
    assert params.read == {key.replace("${key}", "ner") for key in stage["params"]}


def test_further_test_sets_stand_beside_the_first(tree):
    made = tree(THREE, further=["new"])
    page = written(made)
    text = page.text
    assert "On new no difference was found between" in text
    assert "F1 on new" in text
    assert "On new" in text.split("Beyond noise?")[1]
    for name, system in made.comparison["further"]["new"]["systems"].items():
        assert f"{system['f1']['value']:.3f}" in page.cells(name)
