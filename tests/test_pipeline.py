"""A built small project; slow, a run under both engines: same bytes, only stale stages."""

import json
import re
import shlex
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from shutil import rmtree

import pytest
from typer.testing import CliRunner

from tests import import_traces, trust
from tests.project_copy import ROOT
from tests.small_project import LOCAL, REPRODUCIBLE, STAGES, SmallProject, stages_run
from wxb.cli.app import app

# The pages that need neither files of the user nor a cluster; README masks what they write.
PAGES = "using-models pipeline reproducing your-data architectures python method params"
COMMANDS = [*(f"docs/{page}.md" for page in PAGES.split()), "README.md"]
# Words of the comment on a command, and what its output must have.
PROMISES = {
    "its page": r"reports/gates\.html",
    "scores with intervals": r"ner-encoder .* 0\.\d+ \(0\.\d+–\d\.\d+\)",
    "paired tests": r"\| p \| corrected p \|",
    "with metrics and state": r"ner-encoder .* 0\.\d+ ",
    "what makes it stale": r"^(stale|up to date)",
    "with defaults": r"encoding\.stride +\d",
    "headline score": r"reports/headlines/ner-encoder\.json +0\.\d+",
    "JSONL": r'^\{"',
    "hashes all outputs": r"\d{3} files hashed, 0 faults",
}


def other_settings(params):
    """Change the learning rate of one experiment and the prediction batches of another."""
    params["experiments"]["ner-encoder"]["training"].update(learning_rate=2e-2)
    params["experiments"]["ner-generative-neftune"]["prediction"].update(batch_size=16)


def in_parallel(*calls):
    """Run calls in threads; returns their results."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


@pytest.fixture(scope="module")
def by_snakemake(tmp_path_factory):
    project = SmallProject(tmp_path_factory.mktemp("snakemake") / "project")
    assert project.snakemake() == STAGES
    return project


@pytest.fixture(scope="module")
def by_dvc(tmp_path_factory):
    project = SmallProject(tmp_path_factory.mktemp("dvc") / "project")
    assert project.repro(PYTHONHASHSEED="1") == STAGES
    return project


def test_no_drafts_and_checkpoints_are_left(built_project):
    drafts = [p for p in built_project.folder.rglob("*.partial*") if ".git" not in p.parts]
    assert drafts == []
    assert not list((built_project.folder / ".wxb").rglob("checkpoint-*"))


def test_engines_run_nothing_that_has_run(built_project, tmp_path):
    project = built_project.copy(tmp_path / "project")
    rmtree(project.folder / ".wxb/backbones")  # a clone has none before `check` runs
    assert "Nothing to be done" in project.run("snakemake", "--dry-run", "ner")
    assert "Nothing to be done" in project.run("snakemake", "--cores", "2", "ner")
    assert "up to date" in project.run("dvc", "repro", "report@ner")


def test_stages_depend_on_the_code_they_import(built_project):
    """Editing a module that is imported but not declared would leave wrong results."""
    assert import_traces.imported(built_project.traces).keys() == STAGES
    assert import_traces.undeclared(built_project, built_project.traces) == {}
    assert import_traces.unused(built_project, built_project.traces) == {}


@pytest.mark.slow
class TestPipeline:
    """These tests run in this order, in one process: each changes the projects."""

    def test_both_engines_write_the_same_bytes(self, by_snakemake, by_dvc, built_project):
        first = by_snakemake.hashes()
        assert first == by_dvc.hashes() == built_project.hashes()
        assert {top for top in REPRODUCIBLE if any(f.startswith(f"{top}/") for f in first)} == {
            *REPRODUCIBLE
        }

    def test_a_touched_file_reruns_nothing(self, by_snakemake):
        for name in ("wxb/tasks/ner/models/bio.py", "data/raw/pii/records.jsonl", "local.json"):
            (by_snakemake.folder / name).touch()
        assert by_snakemake.snakemake() == set()
        assert by_snakemake.repro() == set()

    def test_a_changed_setting_reruns_the_stages_that_use_it(self, by_snakemake, by_dvc):
        changed = {"train@ner-encoder", "evaluate@ner-encoder", "compare@ner", "report@ner"}
        changed |= {"lesson@attention"}  # it shows the trained model
        changed |= {"evaluate@ner-generative-neftune"}  # prediction needs no training
        changed |= {"check"}
        for project in (by_snakemake, by_dvc):
            project.commit("before")
            project.edit(other_settings)
        assert in_parallel(by_snakemake.snakemake, by_dvc.repro) == [changed, changed]
        assert "learning_rate" in by_dvc.run("dvc", "params", "diff")
        assert by_snakemake.hashes() == by_dvc.hashes()

    def test_reruns_stop_where_bytes_are_the_same(self, by_snakemake, by_dvc):
        for project in (by_snakemake, by_dvc):
            (project.folder / "local.json").write_text(json.dumps(LOCAL[:-1]))
            project.append("wxb/tasks/ner/reading/conll.py", "# a comment\n")
            project.append("wxb/reporting/templates/page.html", "<!-- a comment -->\n")
            project.append("wxb/masking/rules.py", "# no stage imports it\n")
        expected = {
            "preprocess@pii",  # writes the same records
            "download@local",
            "preprocess@local",
            "compare@ner",  # writes the same table
            "report@ner",
            *(f"lesson@{name}" for name in ("attention", "gates", "images")),  # the same template
        }
        assert in_parallel(by_snakemake.snakemake, by_dvc.repro) == [expected, expected]

    def test_commands_of_the_readme(self, by_snakemake, monkeypatch):
        monkeypatch.chdir(by_snakemake.folder)
        # This process imports the code that the project has a copy of.
        monkeypatch.setattr("wxb.cli.app.require_own_code", lambda: None)
        readme = "".join((ROOT / page).read_text() for page in COMMANDS)
        # The only tagger, and the only commit here.
        readme = re.sub("ner-(crf|decoder-bidirectional)", "ner-encoder", readme)
        readme = readme.replace("HEAD~1", "HEAD")
        commands = defaultdict(str)  # comments of each
        for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL):
            for command, comment in re.findall(r"^(\w.*?)(?: *# (.*))?$", block, re.MULTILINE):
                # The environment is shared, so nothing is installed; benchmarks take minutes.
                if not re.match(r"([A-Z_]+=\S+ )*(make|pip|source|python)", command):
                    commands[command] += comment
        assert all(any(words in comment for comment in commands.values()) for words in PROMISES)
        params = by_snakemake.folder / "params.yaml"
        tiny = params.read_text()
        for command, comment in commands.items():
            program, *arguments = shlex.split(command)
            if program != "wxb" or {*arguments} & {"|", "&&"} or "--install-completion" in command:
                # Completion looks for a parent shell; bash is none if this is its last command.
                output = by_snakemake.run("bash", "-c", f"{command}\nexit $?")
            else:
                result = CliRunner().invoke(app, arguments)
                output = result.output
                assert result.exit_code == 0, (command, output[-3000:], result.exception)
            for words in filter(comment.__contains__, PROMISES):
                assert re.search(PROMISES[words], output, re.MULTILINE), (command, output[-3000:])
            params.write_text(tiny)  # with a profile all that follows would train for minutes
        for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
            exec(code, {})

    def test_invalid_params_stop_both_engines(self, by_dvc):
        before = by_dvc.hashes()
        by_dvc.edit(lambda params: params["experiments"]["ner-encoder"].update(bakbone="encoder"))
        for command in (["snakemake", "--cores", "2"], ["dvc", "repro"]):
            code, output = by_dvc.attempt(*command)
            assert code != 0
            assert "experiments.ner-encoder.bakbone" in output
            assert "did you mean 'backbone'" in output
            assert stages_run(output) == ({"check"} if command[0] == "dvc" else set())
            assert by_dvc.hashes() == before


@pytest.mark.slow
def test_interrupts_and_flipped_bits_do_no_harm():
    assert trust.main(commands=3, engines=3, flips=6) == 0
