"""The whole pipeline at size tiny, under both engines: same bytes, exactly what is stale runs."""

import hashlib
import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from tests import traced
from tests.copied import ROOT, Project
from tests.corpora.made import lettered
from wxb.cli.app import app
from wxb.params import load

# What contract 1 of the design names; reports/training is kept to the same promise.
REPEATABLE = [
    "data",
    "models",
    "reports/metrics",
    "reports/predictions",
    "reports/studies",
    "reports/training",
]

PARAMS = load(ROOT / "params.yaml")
# Both tasks and both tokenizers, with an architecture of our own, and with all that tuning knows;
# more would take minutes.
EXPERIMENTS = ["ner-encoder", "ner-generative-neftune"]
PARITY = ["bert", "llama"]
# What these experiments do without: transformers trains some architectures whose code here only
# evaluates them, and the defaults are those of simpler tasks.
ELSEWHERE = {PARAMS.experiments[name].architecture for name in EXPERIMENTS}
ELSEWHERE |= {"wxb/corpora/labelling.py", "wxb/metrics/scorer.py"}
BLOCKS = {
    ("download", "preprocess"): [*PARAMS.corpora, "local"],
    ("tokenizer", "pretrain"): PARAMS.backbones,
    ("tokenize", "align", "train", "evaluate"): EXPERIMENTS,
    ("compare", "report"): PARAMS.studies,
    ("lesson",): PARAMS.lessons,
    ("parity",): PARITY,
}
# By verb: the stages of a verb are one block of dvc.yaml.
STAGES_OF = {
    verb: [f"{verb}@{name}" for name in names] for verbs, names in BLOCKS.items() for verb in verbs
} | {"check": ["check"]}
STAGES = {stage for stages in STAGES_OF.values() for stage in stages}
LOCAL = [
    {
        "input": f"Call Ann {lettered(i)}.",
        "spans": [{"start": 5, "end": 8, "type": "NAME"}],
        "author": i,
    }
    for i in range(20)
]


class Tiny(Project):
    """The project with fewer experiments, and one more corpus, from a local file."""

    def __init__(self, folder):
        super().__init__(folder)
        self.edit(few)
        (folder / "local.json").write_text(json.dumps(LOCAL))
        self.edit(
            lambda params: params["corpora"].update(
                local={
                    "task": "ner",
                    "path": "local.json",
                    "fields": {"id": None},
                    "split": {"by": "author", "test": 0.2, "valid": 0.2},
                }
            )
        )
        self.commit("begin")

    def commit(self, message):
        self.run("git", "add", "-A")
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        self.run("git", *name, "commit", "-qm", message)

    def repro(self, *targets, **environment):
        """The stages that `dvc repro` really ran."""
        return ran(self.run("dvc", "repro", *targets, **environment))

    def snakemake(self, *targets, **environment):
        """The stages that DVC really ran under `snakemake --cores 2`."""
        return ran(self.run("snakemake", "--cores", "2", *targets, **environment))

    def append(self, name, text):
        path = self.folder / name
        path.write_text(path.read_text() + text)

    def hashes(self):
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for top in REPEATABLE
            for path in sorted((self.folder / top).rglob("*"))
            if path.is_file() and path.name != ".gitignore"
        }


def other_settings(params):
    """One experiment learns at another rate, one predicts in other batches."""
    params["experiments"]["ner-encoder"]["training"].update(learning_rate=2e-2)
    params["experiments"]["ner-generative-neftune"]["prediction"].update(batch_size=16)


def few(params):
    params["portable"] = False  # which takes twice the time
    params["lessons"]["images"]["training"]["epochs"] = 1
    params["studies"]["ner"]["experiments"] = EXPERIMENTS
    params["experiments"]["ner-encoder"]["model"]["implementation"] = "native"
    tuning = params["experiments"]["ner-generative-neftune"]["tuning"]
    alpha = tuning["neftune_alpha"]
    tuning.update(params["experiments"]["ner-decoder-qlora"]["tuning"], neftune_alpha=alpha)
    for section, kept in {"experiments": EXPERIMENTS, "parity": PARITY}.items():
        for name in {*params[section]} - {*kept}:
            del params[section][name]


def ran(output):
    return set(re.findall(r"Running stage '([^']+)'", output))


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


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
def both(tmp_path_factory, traces):
    """The project made by Snakemake, and by DVC alone."""
    by_snakemake = Tiny(tmp_path_factory.mktemp("snakemake") / "project")
    by_dvc = Tiny(tmp_path_factory.mktemp("dvc") / "project")
    assert at_once(
        lambda: by_snakemake.snakemake(**traced.environment(by_snakemake, traces)),
        lambda: by_dvc.repro(PYTHONHASHSEED="1"),
    ) == [STAGES, STAGES]
    return by_snakemake, by_dvc


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

    def test_stages_depend_on_the_code_they_import(self, by_snakemake, traces):
        """A module that is imported but not declared would leave stale results behind."""
        assert traced.undeclared(by_snakemake, traces) == {}
        imported, declared = traced.imported(traces), traced.code(by_snakemake)
        assert imported.keys() == STAGES
        for verb, stages in STAGES_OF.items():
            used = set().union(*(imported[stage] for stage in stages))
            named = set().union(*(declared[stage] for stage in stages))
            # What one experiment imports, another of the verb may do without.
            files = {path for path in named if path.endswith(".py")}
            assert files - used - ELSEWHERE == set(), verb
            assert {f"wxb/params/{name}" for name in SCHEMA.get(verb, ())} <= named, verb

    def test_touched_file_reruns_nothing(self, by_snakemake):
        for name in ("wxb/tasks/ner/tagging/bio.py", "data/raw/pii/records.jsonl", "local.json"):
            (by_snakemake.folder / name).touch()
        assert by_snakemake.snakemake() == set()
        assert by_snakemake.repro() == set()

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

    def test_a_change_reruns_what_reads_it_and_stops_where_bytes_are_the_same(
        self, by_snakemake, by_dvc
    ):
        for project in (by_snakemake, by_dvc):
            (project.folder / "local.json").write_text(json.dumps(LOCAL[:-1]))
            project.append("wxb/corpora/fetching.py", "# a comment\n")
            project.append("wxb/tasks/ner/reading/conll.py", "# a comment\n")
            project.append("wxb/reporting/templates/results.html", "<!-- a comment -->\n")
            project.append("wxb/errors.py", "# what an error says is no part of any result\n")
        expected = {
            "download@pii",  # gives the same records as before
            "preprocess@pii",
            "download@local",
            "preprocess@local",
            "report@ner",
        }
        assert at_once(by_snakemake.snakemake, by_dvc.repro) == [expected, expected]

    def test_commands_of_the_readme(self, by_snakemake, monkeypatch):
        monkeypatch.chdir(by_snakemake.folder)
        readme = (ROOT / "README.md").read_text()
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
        for command in commands:
            program, *arguments = shlex.split(command)
            if program != "wxb" or {*arguments} & {"|", "&&"} or "--install-completion" in command:
                by_snakemake.run("bash", "-c", command)
            else:
                told = CliRunner().invoke(app, arguments)
                assert told.exit_code == 0, (command, told.output[-3000:], told.exception)
            params.write_text(tiny)  # with a profile all that follows would train for minutes
        for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
            exec(code, {})

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
