"""The how-to pages do what they say: their blocks are obeyed, in order, in a project of size tiny.

The words after the three backticks tell what a block is:

- `LANGUAGE FILE`: the content of that file; what goes to params.yaml is added to what is there:
  mappings key by key, lists item by item, and any other value takes the place of the one before.
- `sh`: commands to run. `diff`: a change to apply. `text`: lines that the commands before it print.
- `yaml` alone: what could be added to params.yaml as well; it is checked, and not kept.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from ruamel.yaml import YAML

from tests import traced
from tests.built import ran
from tests.copied import ROOT
from wxb.cli import reference
from wxb.cli.app import app
from wxb.core.params import check
from wxb.project import readme

PAGES = ("adding-a-corpus.md", "adding-an-experiment.md")
TASK = "adding-a-task.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "t"), ("EMAIL", "t@example.org"))
}


class Block(NamedTuple):
    language: str
    file: str
    content: str


def blocks(page):
    return [Block(*found) for found in BLOCK.findall((ROOT / "docs" / page).read_text())]


def add(new, to):
    """Add plain content to that of params.yaml, as the pages ask for."""
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(to.get(key), Mapping):
            add(value, to[key])
        elif isinstance(value, list) and isinstance(to.get(key), list):
            to[key] += value
        else:
            to[key] = value


class Reader:
    """Someone who does what a page says."""

    def __init__(self, project):
        self.project, self.printed = project, ""

    def obey(self, block):
        match block:
            case Block("sh", _, commands):
                self.printed = self.project.run("bash", "-ec", commands)
            case Block("text", "", expected):
                for line in expected.splitlines():
                    assert line.strip() in self.printed, self.printed[-2000:]
            case Block("diff", _, change):
                (self.project.folder / "change").write_text(change)
                self.project.run("git", "apply", "change")
            case Block("yaml", "params.yaml", content):
                self.project.edit(lambda params: add(YAML(typ="safe").load(content), to=params))
            case Block("yaml", "", content):
                params = YAML(typ="safe").load(self.project.folder / "params.yaml")
                add(YAML(typ="safe").load(content), to=params)
                check(params)
            case Block(_, file, content) if file:
                path = self.project.folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            case _:
                raise AssertionError(f"a block of no known kind: {block}")


@pytest.fixture(scope="module")
def project(built, tmp_path_factory):
    """One for the pages on blocks: what the first makes, the next has."""
    return committed(built, tmp_path_factory.mktemp("docs"))


def committed(built, folder):
    """A project that was committed before anything is added to it."""
    made = built.copy(folder / "project")
    made.environment |= NAMES
    made.reset()
    made.edit(lambda params: params.update(portable=False))  # which takes twice the time
    made.commit("begin")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_is_followed_to_the_letter_leads_where_it_says(project, page):
    reader = Reader(project)
    for block in blocks(page):
        reader.obey(block)


@pytest.mark.slow
def test_a_task_is_a_folder_and_blocks_and_runs_under_both_engines(built, tmp_path):
    project, traces = committed(built, tmp_path), tmp_path / "traces"
    traces.mkdir()
    project.environment |= traced.environment(project, traces)
    reader = Reader(project)
    engines = []
    for block in blocks(TASK):
        reader.obey(block)
        if block.language == "sh":
            engines += re.findall(r"^(dvc repro|snakemake) .*$", block.content, re.MULTILINE)
    assert engines == ["dvc repro", "snakemake"]
    assert ran(reader.printed) == {
        "check",
        "train@language-mean",
        "evaluate@language-mean",
        "compare@language",
        "report@language",
    }
    assert traced.undeclared(project, traces) == {}
    assert "Which language is it?" in (project.folder / "reports/language.html").read_text()
    changed = project.run("git", "status", "--porcelain", "--untracked-files=all").splitlines()
    results = ("dvc.lock", "reports/metrics/", "reports/studies/")  # kept in git, written by stages
    own = {line[3:] for line in changed if not line[3:].startswith(results)}
    files = {block.file for block in blocks(TASK) if block.file}
    assert own == files
    assert {file for file in files if not file.startswith("wxb/tasks/language/")} == {"params.yaml"}


def test_a_small_task_is_short():
    code = [block.content for block in blocks(TASK) if block.language == "python"]
    assert len([line for line in "".join(code).splitlines() if line.strip()]) <= 150


def test_what_is_added_joins_what_is_there():
    there = {"a": {"b": [1], "c": 2}, "d": 3}
    add({"a": {"b": [4], "e": 5}, "d": 6}, to=there)
    assert there == {"a": {"b": [1, 4], "c": 2, "e": 5}, "d": 6}


SITE = sorted((ROOT / "docs").rglob("*.md"))


def anchors(page):
    """The anchors of a page's headings, as the site and GitHub make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", SITE, ids=lambda page: page.name)
def test_links_of_a_page_lead_to_a_page_of_the_site_and_its_heading(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        file = (page.parent / target).resolve() if target else page
        assert file.is_relative_to(ROOT / "docs"), target  # the site holds nothing else
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def test_every_page_is_in_the_menu():
    menu = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text()))
    assert menu == {page.relative_to(ROOT / "docs").as_posix() for page in SITE}


def test_the_reference_of_commands_is_fresh():
    assert (ROOT / reference.PATH).read_text() == reference.page(app), "run `wxb readme`"


def test_the_picture_shows_every_stage():
    stages = {verb for verb, _, _ in readme.stages(ROOT / "dvc.yaml")}
    for name in ("dag-light.svg", "dag-dark.svg"):
        picture = (ROOT / "docs/img" / name).read_text()
        assert stages <= set(re.findall(r">(\w+)</text>", picture)), name
