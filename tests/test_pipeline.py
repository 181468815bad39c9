"""The pipeline at its smallest, under both engines: same bytes, exactly what is stale runs."""

import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from tests import traced
from tests.built import EXPERIMENTS, LOCAL, PARAMS, REPEATABLE, STAGES, STAGES_OF, Smallest, ran
from tests.copied import ROOT
from wxb.cli.app import app

# What these experiments do without: transformers trains some architectures whose code here only
# evaluates them.
ELSEWHERE = {PARAMS.experiments[name].architecture for name in EXPERIMENTS}
ELSEWHERE |= {"wxb/runtime/gpus.py"}  # which the check computes without
# The pages whose commands run as they are; own files or a cluster are what the others need.
COMMANDS = [
    "README.md",
    *(f"docs/{page}.md" for page in ("using-models", "pipeline", "reproducing")),
    *(f"docs/{page}.md" for page in ("your-data", "architectures")),
]


def other_settings(params):
    """One experiment learns at another rate, one predicts in other batches."""
    params["experiments"]["ner-encoder"]["training"].update(learning_rate=2e-2)
    params["experiments"]["ner-generative-neftune"]["prediction"].update(batch_size=16)


# The schema of its own blocks, which a verb depends on.
SCHEMA = {
    "download": {"corpora.py"},
    "preprocess": {"corpora.py"},
    "tokenizer": {"backbones.py"},
    "pretrain": {"backbones.py", "training.py"},
    "train": {"experiments.py", "training.py"},
    "evaluate": {"experiments.py"},
    "compare": {"experiments.py"},
    "lesson": {"lessons.py", "training.py"},
    "parity": {"backbones.py"},
}


def at_once(*calls):
    """What the calls return; each has a project of its own, and waits for processes."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


@pytest.fixture(scope="module")
def both(built, tmp_path_factory):
    """The project made by Snakemake, and by DVC alone."""
    by_dvc = Smallest(tmp_path_factory.mktemp("dvc") / "project")
    assert by_dvc.repro(PYTHONHASHSEED="1") == STAGES
    return built.copy(tmp_path_factory.mktemp("snakemake") / "project"), by_dvc


@pytest.fixture
def by_snakemake(both):
    return both[0]


@pytest.fixture
def by_dvc(both):
    return both[1]


class TestPipeline:
    """In this order, in one process: the projects are made once and change from test to test."""

    def test_same_bytes_under_both_engines(self, by_snakemake, by_dvc):
        first, second = by_snakemake.hashes(), by_dvc.hashes()
        assert first == second
        assert {top for top in REPEATABLE if any(f.startswith(f"{top}/") for f in first)} == {
            *REPEATABLE
        }

    def test_nothing_is_published_but_what_the_dag_names(self, by_snakemake):
        left = [p for p in by_snakemake.folder.rglob("*.partial*") if ".git" not in p.parts]
        assert left == []
        assert not list((by_snakemake.folder / ".wxb").rglob("checkpoint-*"))

    def test_second_run_does_nothing_and_says_so(self, by_snakemake):
        assert "Nothing to be done" in by_snakemake.run("snakemake", "--cores", "2", "ner")
        assert "up to date" in by_snakemake.run("dvc", "repro", "report@ner")

    def test_stages_depend_on_the_code_they_import(self, by_snakemake, built):
        """A module that is imported but not declared would leave stale results behind."""
        assert traced.undeclared(by_snakemake, built.traces) == {}
        imported, declared = traced.imported(built.traces), traced.code(by_snakemake)
        assert imported.keys() == STAGES
        for verb, stages in STAGES_OF.items():
            used = set().union(*(imported[stage] for stage in stages))
            named = set().union(*(declared[stage] for stage in stages))
            # What one experiment imports, another of the verb may do without.
            files = {path for path in named if path.endswith(".py")}
            unused = sorted(files - used - ELSEWHERE)
            assert [traced.has_unused(verb, path) for path in unused] == []
            assert {f"wxb/core/params/{name}" for name in SCHEMA.get(verb, ())} <= named, verb

    @pytest.mark.slow
    def test_touched_file_reruns_nothing(self, by_snakemake):
        for name in ("wxb/tasks/ner/tagging/bio.py", "data/raw/pii/records.jsonl", "local.json"):
            (by_snakemake.folder / name).touch()
        assert by_snakemake.snakemake() == set()
        assert by_snakemake.repro() == set()

    @pytest.mark.slow
    def test_another_setting_reruns_the_stages_that_read_it(self, by_snakemake, by_dvc):
        changed = {"train@ner-encoder", "evaluate@ner-encoder", "compare@ner", "report@ner"}
        changed |= {"lesson@attention"}  # which shows the trained model
        changed |= {"evaluate@ner-generative-neftune"}  # how it predicts is not trained
        changed |= {"check"}
        for project in (by_snakemake, by_dvc):
            project.commit("before")
            project.edit(other_settings)
        assert at_once(by_snakemake.snakemake, by_dvc.repro) == [changed, changed]
        assert "learning_rate" in by_dvc.run("dvc", "params", "diff")
        assert by_snakemake.hashes() == by_dvc.hashes()

    @pytest.mark.slow
    def test_a_change_reruns_what_reads_it_and_stops_where_bytes_are_the_same(
        self, by_snakemake, by_dvc
    ):
        for project in (by_snakemake, by_dvc):
            (project.folder / "local.json").write_text(json.dumps(LOCAL[:-1]))
            project.append("wxb/corpora/fetching.py", "# a comment\n")
            project.append("wxb/tasks/ner/reading/conll.py", "# a comment\n")
            project.append("wxb/reporting/templates/results.html", "<!-- a comment -->\n")
            project.append("wxb/core/errors.py", "# what an error says is no part of any result\n")
        expected = {
            "download@pii",  # gives the same records as before
            "preprocess@pii",
            "download@local",
            "preprocess@local",
            "report@ner",
        }
        assert at_once(by_snakemake.snakemake, by_dvc.repro) == [expected, expected]

    @pytest.mark.slow
    def test_commands_of_the_readme(self, by_snakemake, monkeypatch):
        monkeypatch.chdir(by_snakemake.folder)
        readme = "".join((ROOT / page).read_text() for page in COMMANDS)
        readme = readme.replace("ner-decoder-bidirectional", "ner-encoder")  # the tagger here
        commands = [
            command
            for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
            for line in block.splitlines()
            # The environment is that of all tests: nothing may be installed into it.
            if (command := line.partition("#")[0].strip())
            and not command.startswith(("make", "pip", "source"))
        ]
        assert len(commands) > 8
        params = by_snakemake.folder / "params.yaml"
        tiny = params.read_text()
        for command in dict.fromkeys(commands):
            program, *arguments = shlex.split(command)
            if program != "wxb" or {*arguments} & {"|", "&&"} or "--install-completion" in command:
                # Completion looks for a parent shell; bash is none if this is its last command.
                by_snakemake.run("bash", "-c", f"{command}\nexit $?")
            else:
                told = CliRunner().invoke(app, arguments)
                assert told.exit_code == 0, (command, told.output[-3000:], told.exception)
            params.write_text(tiny)  # with a profile all that follows would train for minutes
        for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
            exec(code, {})

    @pytest.mark.slow
    def test_metrics_are_shown_and_compared(self, by_snakemake):
        shown = by_snakemake.run("dvc", "metrics", "show")
        assert "reports/metrics/ner/ner-encoder.json" in shown
        assert "f1_low" in shown
        assert "f1" in by_snakemake.run("dvc", "metrics", "diff", "--all")
        assert "train@ner-generative" in by_snakemake.run("dvc", "dag", "--dot")
        assert "train@ner-generative" in by_snakemake.run("snakemake", "--rulegraph")
        assert "loss" in (
            by_snakemake.folder
            / by_snakemake.run("dvc", "plots", "show").strip().split("file://")[-1]
        ).read_text(encoding="utf-8")
        by_snakemake.run("snakemake", "--report", "report.html")
        assert (by_snakemake.folder / "report.html").stat().st_size > 100_000

    @pytest.mark.slow
    def test_wrong_params_stop_both_engines(self, by_dvc):
        before = by_dvc.hashes()
        by_dvc.edit(lambda params: params["experiments"]["ner-encoder"].update(bakbone="encoder"))
        for command in (["snakemake", "--cores", "2"], ["dvc", "repro"]):
            code, output = by_dvc.attempt(*command)
            assert code != 0
            assert "experiments.ner-encoder.bakbone" in output
            assert "did you mean 'backbone'" in output
            assert ran(output) == ({"check"} if command[0] == "dvc" else set())
            assert by_dvc.hashes() == before
