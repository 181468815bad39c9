"""Pages of docs/: how-to pages are executed in a project with the profile tiny, links are checked.

The words after the three backticks determine how a block is executed:

- `LANGUAGE FILE`: the content of that file. Blocks for params.yaml are merged into it: mappings key
  by key, lists item by item, and other values are replaced.
- `sh`: commands to run. `diff`: a patch to apply. `text`: lines that the commands before it print.
- `yaml` alone: a block that could be added to params.yaml; it is only validated.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from ruamel.yaml import YAML

from docs import generate
from tests import import_traces
from tests.project_copy import ROOT
from tests.repository import write
from tests.small_project import stages_run
from wxb.core.params import check

TASK = "adding-a-task.md"
BLOCK = re.compile(r'^```(\w+)(?: title="(\S+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
NAMES = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Block(NamedTuple):
    language: str
    file: str
    content: str


def blocks(page):
    return [Block(*groups) for groups in BLOCK.findall((ROOT / "docs" / page).read_text())]


def merge(new, to):
    """Merge the content of a block into that of params.yaml."""
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(to.get(key), Mapping):
            merge(value, to[key])
        elif isinstance(value, list) and isinstance(to.get(key), list):
            to[key] += value
        else:
            to[key] = value


def execute(page, project):
    """Execute the blocks of a page in a project."""
    output = ""
    for block in blocks(page):
        match block:
            case Block("sh", _, commands):
                output = project.run("bash", "-ec", commands)
            case Block("text", "", expected):
                for line in expected.splitlines():
                    assert line.strip() in output, output[-2000:]
            case Block("diff", _, patch):
                (project.folder / "patch").write_text(patch)
                project.run("git", "apply", "patch")
            case Block("yaml", "params.yaml", content):
                new = YAML(typ="safe").load(content)
                project.edit(lambda params, new=new: merge(new, to=params))
            case Block("yaml", "", content):
                params = YAML(typ="safe").load(project.folder / "params.yaml")
                merge(YAML(typ="safe").load(content), to=params)
                check(params)
            case Block(_, file, content) if file:
                write(project.folder / file, content)
            case _:
                raise AssertionError(f"unknown kind of block: {block}")


@pytest.fixture(scope="module")
def project(built_project, tmp_path_factory):
    """A project for all pages on blocks, which are executed one after another."""
    return committed_copy(built_project, tmp_path_factory.mktemp("docs"))


def committed_copy(built_project, folder):
    """A copy of the built project with a commit."""
    project = built_project.copy(folder / "project")
    project.environment |= NAMES
    project.reset()
    project.edit(enlarge_training)
    project.commit("first")
    return project


def enlarge_training(params):
    """Leave more records to train on: a model that finds nothing has the same scores again."""
    params["portable"] = False  # it doubles the time
    params["corpora"]["pii"]["split"]["further"]["situations"]["share"] = 0.25


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["a-corpus", "an-experiment", "a-method", "a-metric"])
def test_all_blocks_of_a_page_can_be_executed(project, extension):
    execute(f"adding-{extension}.md", project)


@pytest.mark.slow
def test_the_page_on_tasks_adds_one_that_passes_the_shared_tests(built_project, tmp_path):
    project, traces = committed_copy(built_project, tmp_path), tmp_path / "traces"
    traces.mkdir()
    project.environment |= import_traces.environment(project, traces)
    execute(TASK, project)
    project.edit(lambda params: params["experiments"]["language-mean"]["training"].update(epochs=1))
    assert stages_run(project.run("snakemake", "--cores", "2", "language")) == {
        "check",
        "train@language-mean",
        "evaluate@language-mean",
        "compare@language",
        "report@language",
    }
    assert import_traces.undeclared(project, traces) == {}
    assert "Which language is it?" in (project.folder / "reports/language.html").read_text()
    changed = project.run("git", "status", "--porcelain", "--untracked-files=all").splitlines()
    outputs = ("dvc.lock", "reports/headlines/", "reports/metrics/", "reports/studies/")  # in git
    added = {line[3:] for line in changed if not line[3:].startswith(outputs)}
    assert {file for file in added if not file.startswith("wxb/tasks/language/")} == {"params.yaml"}


def test_a_small_task_is_short():
    assert len((ROOT / "docs" / TASK).read_text().splitlines()) <= 250
    code = [block.content for block in blocks(TASK) if block.language == "python"]
    assert len([line for line in "".join(code).splitlines() if line.strip()]) <= 115


SITE = sorted((ROOT / "docs").rglob("*.md"))


def anchors(page):
    """The anchors of a page's headings on the site and on GitHub."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text).strip().lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", [*SITE, *map(ROOT.joinpath, generate.READMES)], ids=str)
def test_links_lead_to_existing_pages_and_headings(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    link = r"""(?:\]\(|src(?:set)?=")(?!https?:)([^)#"]*)#?([^)"]*)"""
    for target, anchor in re.findall(link, text):
        file = (page.parent / target).resolve() if target else page
        assert page not in SITE or file.is_relative_to(ROOT / "docs"), target  # as on the site
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def test_every_page_is_in_the_menu():
    menu = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text()))
    assert menu == {page.relative_to(ROOT / "docs").as_posix() for page in SITE}


def test_the_reference_of_commands_is_current():
    assert (ROOT / generate.COMMANDS).read_text() == generate._commands_page()


def test_the_figure_of_the_dag_has_all_stages():
    stages = {verb for verb, _, _ in generate.stages(ROOT / "dvc.yaml")}
    for name in ("dag-light.svg", "dag-dark.svg"):
        figure = (ROOT / "docs/img" / name).read_text()
        assert stages <= set(re.findall(r">(\w+)</text>", figure)), name
