"""The stage of lessons, in a project of its own: files, targets, and how other commands see it."""

import json
import re
import sys

import pytest
from ruamel.yaml import YAML

from tests.copied import ROOT, Project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("lesson") / "project")


def wxb(project, *arguments):
    return project.run("wxb", *arguments)


@pytest.mark.slow
class TestLesson:
    """In this order: the project is made once and changes from test to test."""

    def test_a_table_that_is_not_made_says_how(self, project):
        code, output = project.attempt("wxb", "table", "gates")
        assert code == 1
        assert "dvc repro lesson@gates" in output

    def test_one_lesson_runs_and_nothing_else(self, project):
        output = project.run("dvc", "repro", "lesson@gates")
        assert re.findall(r"Running stage '([^']+)'", output) == ["check", "lesson@gates"]
        metrics = json.loads((project.folder / "reports/metrics/lessons/gates.json").read_text())
        assert metrics["xor_perceptron_steps"] <= 0.75
        assert metrics["xor_mlp_numpy"] == 1
        assert (project.folder / "reports/cost/lesson/gates.json").exists()

    def test_its_page_holds_all_that_it_shows(self, project):
        page = (project.folder / "reports/gates.html").read_text(encoding="utf-8")
        assert "A perceptron learns OR and AND" in page
        assert not re.search(r'(src|href)="(?!#)', page.partition("<script")[0])
        places = set(re.findall(r'class="figure" id="([^"]+)"', page))
        drawn = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
        assert drawn
        assert places == set(json.loads(drawn[1])) != set()
        ids = re.findall(r' id="([^"]+)"', page.partition("<script")[0])
        assert len(ids) == len(set(ids))
        assert {link[1:] for link in re.findall(r'href="(#[^"]+)"', page)} <= set(ids)

    def test_its_table_shows_every_figure_and_the_index_its_page(self, project):
        told = wxb(project, "table", "gates", "--all")
        assert "What can a perceptron learn" in told
        assert re.search(r"xor perceptron steps +0\.500", told)
        assert str(project.folder / "reports/gates.html") in told
        wxb(project, "report")
        assert 'href="gates.html"' in (project.folder / "reports/index.html").read_text()

    def test_list_and_show_know_it(self, project):
        listed = json.loads(wxb(project, "list", "--json"))["lessons"]
        assert listed["gates"]["stale"] is False
        assert listed["gates"]["metrics"]["xor_mlp_torch"] == 1
        assert not listed["images"]["reported"]
        shown = wxb(project, "show", "gates")
        for part in ("Lesson gates", "up to date", "snakemake --cores 2 gates", "learning_rate"):
            assert part in shown

    def test_snakemake_makes_the_other_by_its_name(self, project):
        output = project.run("snakemake", "--cores", "1", "images")
        assert re.findall(r"Running stage '([^']+)'", output) == ["lesson@images"]
        assert "Nothing to be done" in project.run("snakemake", "--cores", "1", "images", "gates")
        accuracy = re.search(r"accuracy +(0\.\d+) \(0\.\d+–[01]\.\d+\)", wxb(project, "list"))
        assert accuracy
        assert float(accuracy[1]) > 0.6

    def test_another_knob_reruns_its_lesson_only(self, project):
        project.edit(lambda params: params["lessons"]["gates"].update(hidden=4))
        output = project.run("dvc", "repro", "lesson@gates", "lesson@images")
        assert re.findall(r"Running stage '([^']+)'", output) == ["check", "lesson@gates"]

    def test_who_watches_a_run_is_told_of_it_and_does_not_disturb_it(self, project):
        project.edit(lambda params: params["lessons"]["gates"].update(hidden=6))
        code = "from wxb.cli.app import main; main()"
        watching = project.start(sys.executable, "-c", code, "watch", "gates")
        assert "0 of 1 stages done, 0 running, 1 waiting; nothing" in watching.stdout.readline()
        project.run("dvc", "repro", "lesson@gates")
        told, _ = watching.communicate(timeout=300)
        assert watching.returncode == 0
        assert "lesson@gates: begins" in told
        assert told.splitlines()[-2].endswith("all done: 1 stage")
        assert told.splitlines()[-1].endswith("lesson@gates: done")
        assert "every stage is up to date" in wxb(project, "watch", "gates")

    def test_its_path_may_be_what_another_stage_makes(self, project):
        project.edit(lambda params: params["lessons"]["gates"].update(path="models/ner-encoder"))
        graph = project.run("dvc", "dag", "--dot", "lesson@gates")
        assert '"train@ner-encoder" -> "lesson@gates"' in graph
        assert '"lesson@images"' not in graph

    def test_a_removed_lesson_leaves_nothing_behind(self, project):
        project.edit(lambda params: params["lessons"].pop("gates"))
        assert "reports/metrics/lessons/gates.json" in wxb(project, "clean")
        assert not (project.folder / "reports/metrics/lessons/gates.json").exists()
        assert (project.folder / "reports/metrics/lessons/images.json").exists()


def test_every_lesson_has_a_module_and_a_path_of_the_project():
    lessons = YAML(typ="safe").load((ROOT / "params.yaml").read_text())["lessons"]
    for block in lessons.values():
        assert (ROOT / "wxb/lessons" / f"{block['lesson']}.py").exists()
        made = block["path"].startswith("models/")  # by another stage
        assert made or (ROOT / block["path"]).exists()
