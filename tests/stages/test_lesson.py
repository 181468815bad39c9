"""The stage `lesson`: files, targets and other commands."""

import json
import re

import pytest

from tests.project_copy import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("lesson") / "project")


def wxb(project, *arguments):
    return project.run("wxb", *arguments)


@pytest.mark.slow
class TestLesson:
    """These tests run in order and share a project that they change."""

    def test_one_lesson_runs_and_nothing_else(self, project):
        output = project.run("dvc", "repro", "lesson@gates")
        assert re.findall(r"Running stage '([^']+)'", output) == ["check", "lesson@gates"]
        metrics = json.loads((project.folder / "reports/metrics/lessons/gates.json").read_text())
        assert metrics["xor_perceptron_steps"] <= 0.75
        assert metrics["xor_mlp_numpy"] == 1
        assert (project.folder / "reports/cost/lesson/gates.json").exists()

    def test_its_table_has_all_metrics_and_the_index_links_its_page(self, project):
        output = wxb(project, "table", "gates", "--all")
        assert re.search(r"xor perceptron steps +0\.500", output)
        assert str(project.folder / "reports/gates.html") in output
        wxb(project, "report")
        assert 'href="gates.html"' in (project.folder / "reports/index.html").read_text()

    def test_snakemake_runs_a_lesson_by_its_name(self, project):
        output = project.run("snakemake", "--cores", "1", "images")
        assert re.findall(r"Running stage '([^']+)'", output) == ["lesson@images"]
        assert "Nothing to be done" in project.run("snakemake", "--cores", "1", "images", "gates")
        accuracy = re.search(r"accuracy +(0\.\d+) \(0\.\d+–[01]\.\d+\)", wxb(project, "list"))
        assert accuracy
        assert float(accuracy[1]) > 0.6

    def test_its_path_may_be_an_output_of_another_stage(self, project):
        project.edit(lambda params: params["lessons"]["gates"].update(path="models/ner-encoder"))
        graph = project.run("dvc", "dag", "--dot", "lesson@gates")
        assert '"train@ner-encoder" -> "lesson@gates"' in graph
        assert '"lesson@images"' not in graph
