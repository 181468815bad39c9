"""Random edits, faults and runs of a small project, each compared with an oracle.

Each stage writes a hash of all that it depends on, so the oracle knows the right bytes without a
run. After each run all outputs have these bytes, and no stage ran whose inputs and outputs were as
its last run left them.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from dvc.repo import Repo
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from ruamel.yaml import YAML

from tests.project import toy_dag
from tests.repository import commit, git
from wxb.project.engines import plan, repaired

# Commands are `stage.py OUTPUT PARAMETER DEPENDENCY...`. An output without a suffix is a folder.
DVC_YAML = """
stages:
  check:
    cmd: python -IS stage.py .wxb/checked.txt
    deps: [params.yaml]
    outs: [.wxb/checked.txt]
  clean:
    foreach: ${corpora}
    do:
      cmd: >-
        python -IS stage.py data/${key} corpora.${key}
        .wxb/checked.txt raw/${key} code/${item.task}/reading
      params: ["corpora.${key}"]
      deps: [stage.py, .wxb/checked.txt, "raw/${key}", "code/${item.task}/reading"]
      outs: ["data/${key}"]
  train:
    foreach: ${experiments}
    do:
      cmd: >-
        python -IS stage.py models/${key} experiments.${key}.training
        data/${item.corpus} code/${item.task}/method.py
      params: ["experiments.${key}.training"]
      deps: [stage.py, "data/${item.corpus}", "code/${item.task}/method.py"]
      outs: ["models/${key}"]
  evaluate:
    foreach: ${experiments}
    do:
      cmd: >-
        python -IS stage.py reports/metrics/${item.study}/${key}.json
        experiments.${key}.prediction data/${item.corpus} models/${key}
      params: ["experiments.${key}.prediction"]
      deps: [stage.py, "data/${item.corpus}", "models/${key}"]
      metrics:
        - reports/metrics/${item.study}/${key}.json: {cache: false}
  compare:
    foreach: ${studies}
    do:
      cmd: python -IS stage.py reports/studies/${key}.json studies.${key} reports/metrics/${key}
      params: ["studies.${key}"]
      deps: [stage.py, "reports/metrics/${key}"]
      outs: ["reports/studies/${key}.json"]
"""
STAGE = """
import hashlib, json, os, sys
output, *inputs = sys.argv[1:]
with open("logs/started", "a") as file:
    file.write(output + "\\n")
value = json.load(open("params.yaml"))
for key in inputs[0].split(".") if inputs else ():
    value = value[key]
files = []
for path in inputs[1:]:
    found = [os.path.join(top, n) for top, _, names in os.walk(path) for n in names]
    files += sorted(found) if os.path.isdir(path) else [path]
contents = [[file, open(file).read()] for file in files]
text = json.dumps([output, value if inputs else "", contents])
path = output if os.path.splitext(output)[1] else output + "/all.txt"
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "w") as file:
    file.write(hashlib.md5(text.encode()).hexdigest())
"""
EXPERIMENTS = {
    name: {"task": t, "corpus": c, "study": s, "training": {"rate": 1}, "prediction": {"beam": 1}}
    for name, t, c, s in [
        ("encoder", "ner", "names", "tags"),
        ("decoder", "ner", "names", "tags"),
        ("linear", "classification", "news", "topics"),
    ]
}
PARAMS = {
    "corpora": {"names": {"task": "ner"}, "news": {"task": "classification"}},
    "studies": {"tags": {"seed": 1}, "topics": {"seed": 1}},
    "experiments": EXPERIMENTS,
}
SOURCES = [f"raw/{name}/{split}.txt" for name in PARAMS["corpora"] for split in ("train", "test")]
SOURCES += [f"code/{task}/method.py" for task in ("ner", "classification")]
SOURCES += [f"code/{task}/reading/lines.py" for task in ("ner", "classification")]
FILES = {
    "dvc.yaml": DVC_YAML,
    "params.yaml": json.dumps(PARAMS, indent=1),  # JSON is YAML, and read in a fraction of the time
    # Otherwise DVC writes files .gitignore, also to folders that stages read.
    ".gitignore": "/data/\n/models/\n/reports/studies/\n/logs/\n/.wxb/\n/.snakemake/\n*.pyc\n",
    "stage.py": STAGE,
    "logs/started": "",
    "notes.md": "no stage depends on it",
    **dict.fromkeys(SOURCES, "1\n"),
}
STARTED = Path("logs/started")
EVERY = 5  # steps between two runs, at most
numbers = st.integers(0, 10**6)


def outputs():
    """The paths of the outputs by name of stage, upstream first, with the words of its command."""
    params, result = json.loads(Path("params.yaml").read_text()), {}
    for verb, block in YAML(typ="safe").load(Path("dvc.yaml"))["stages"].items():
        items = params[block["foreach"][2:-1]] if "foreach" in block else {"": {}}
        for key, item in items.items():
            values = {"key": key, **{f"item.{name}": value for name, value in item.items()}}
            command = block.get("do", block)["cmd"]
            command = re.sub(r"\$\{(.+?)\}", lambda match, values=values: values[match[1]], command)
            words = command.split()[3:]
            path = words[0] if Path(words[0]).suffix else f"{words[0]}/all.txt"
            result[f"{verb}@{key}" if key else verb] = path, words
    return result


def expected_contents():
    """The right content of each output, by name of stage."""
    params, stages = json.loads(Path("params.yaml").read_text()), outputs()
    skipped = {".git", ".dvc", ".snakemake", "__pycache__", "logs"}
    files = {
        str(path): path.read_text()
        for path in Path().rglob("*")
        if not skipped & {*path.parts} and path.is_file()
    }
    for path, _ in stages.values():
        files.pop(path, None)
    result = {}
    for name, (path, (output, *inputs)) in stages.items():
        value = params
        for key in inputs[0].split(".") if inputs else ():
            value = value[key]
        contents = []
        for dep in inputs[1:]:
            names = sorted(name for name in files if name == dep or name.startswith(f"{dep}/"))
            contents += [[name, files[name]] for name in names]
        text = json.dumps([output, value if inputs else "", contents])
        result[name] = files[path] = hashlib.md5(text.encode()).hexdigest()
    return result


def by_dvc(target):
    """`dvc repro`, after the repairs of `wxb doctor`."""
    with repaired(print):
        pass
    with Repo() as repo:
        repo.reproduce(target or None)


def by_plan(target):
    """What Snakemake does: repair, `check`, plan, then each stage that is due by itself."""
    with repaired(print):
        pass
    with Repo() as repo:
        repo.reproduce("check", single_item=True)
    planned = plan()
    needed = {target} if target else {stage.name for stage in planned}
    for stage in reversed(planned):
        needed |= {*stage.upstream} if stage.name in needed else set()
    for stage in planned:
        if stage.is_due and stage.name in needed:
            with Repo() as repo:
                repo.reproduce(stage.name, single_item=True)


class Project(RuleBasedStateMachine):
    """Each rule is one change of a user, a fault, or a run."""

    @initialize()
    def create(self):
        logging.getLogger("dvc").setLevel(logging.ERROR)
        self.files = contextlib.ExitStack()
        folder = Path(self.files.enter_context(tempfile.TemporaryDirectory()))
        self.files.callback(os.environ.update, dict(os.environ))
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.environ.update(DVC_SITE_CACHE_DIR=f"{folder}/site", PATH=path)
        toy_dag.create(folder / "project", FILES)
        self.files.enter_context(contextlib.chdir(folder / "project"))
        self.last, self.commits = {}, []  # `last`: the content after the last run, by stage
        self.steps = self.last_run = 0
        self.commit()

    def teardown(self):
        self.files.close()

    def pick(self, number, names):
        names = sorted(map(str, names))
        return Path(names[number % len(names)])

    def edit_params(self, change):
        path = Path("params.yaml")
        params = json.loads(path.read_text())
        change(params)
        path.write_text(json.dumps(params, indent=self.steps % 4 + 1))  # also other whitespace

    @rule(n=numbers, value=st.integers(1, 3), block=st.sampled_from(["training", "prediction"]))
    def change_setting(self, n, value, block):
        def change(params):
            experiment = params["experiments"][str(self.pick(n, params["experiments"]))]
            experiment[block] = {"rate": value}

        self.edit_params(change)

    @rule(n=numbers, action=st.sampled_from(["add", "rename", "remove"]))
    def change_experiments(self, n, action):
        def change(params):
            old = str(self.pick(n, params["experiments"]))
            item = params["experiments"][old]
            if action != "add" and len(params["experiments"]) > 3:
                del params["experiments"][old]
            if action != "remove":
                params["experiments"][f"{old.partition('-')[0]}-{n % 3}"] = item

        self.edit_params(change)

    @rule(n=numbers, value=st.integers(1, 3))
    def edit_source(self, n, value):
        self.pick(n, [*SOURCES, "notes.md"]).write_text(f"{value}\n")

    @rule(n=numbers, is_new=st.booleans())
    def add_or_remove_data(self, n, is_new):
        path = Path("raw", self.pick(n, PARAMS["corpora"]), "more.txt")
        path.write_text("more\n") if is_new else path.unlink(missing_ok=True)

    @rule()
    def commit(self):
        self.commits.append((commit(), dict(self.last)))

    @rule(n=numbers)
    def check_out(self, n):
        self.commit()
        sha, last = self.commits[n % len(self.commits)]
        git("checkout", "-q", sha)
        self.last = dict(last)

    def made(self):
        return [Path(path) for path, _ in outputs().values() if Path(path).exists()]

    def cached(self):
        return [path for path in Path(".dvc/cache/files").rglob("*") if path.is_file()]

    @rule(n=numbers, fault=st.sampled_from(["delete", "delete folder", "overwrite"]))
    def damage_output(self, n, fault):
        if paths := self.made():
            path = self.pick(n, paths)
            if fault == "overwrite":
                path.write_text("corrupt")
            else:
                path.unlink() if fault == "delete" else shutil.rmtree(path.parent)

    @rule(n=numbers, whole=st.booleans())
    def delete_cache(self, n, whole):
        if paths := self.cached():
            shutil.rmtree(".dvc/cache") if whole else self.pick(n, paths).unlink()

    @rule(share=st.floats(0, 1), how=st.sampled_from([signal.SIGINT, signal.SIGKILL]))
    def interrupt(self, share, how):
        """Stop a run with all its processes at any moment."""
        STARTED.write_text("")
        child = os.fork()
        if child == 0:
            try:  # a signal as soon as there is a group must not reach pytest in this process
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                by_dvc("")
            finally:
                os._exit(0)
        time.sleep(share)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, how)
        os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # a stage that Ctrl-C has not ended yet
        started = {*STARTED.read_text().split()}
        for name, (_, (output, *_)) in outputs().items():
            if output in started:
                self.last.pop(name, None)

    @rule(
        study=st.sampled_from(["", *PARAMS["studies"]]), engine=st.sampled_from([by_dvc, by_plan])
    )
    def run_engine(self, study, engine):
        self.run(f"compare@{study}" if study else "", engine)

    @invariant()
    def run_often(self):
        self.steps += 1
        if self.steps - self.last_run > EVERY:
            self.run("", (by_dvc, by_plan)[self.steps % 2])

    def run(self, target, engine):
        stages, expected = outputs(), expected_contents()
        intact = {
            output
            for name, (path, (output, *_)) in stages.items()
            if self.last.get(name) == expected[name] and Path(path).exists()
            if Path(path).read_text() == expected[name]
        }
        STARTED.write_text("")
        engine(target)
        ran = Counter(STARTED.read_text().split())
        assert not intact & ran.keys() - {".wxb/checked.txt"}, "a stage ran that was up to date"
        assert {*ran.values()} <= {1}, "a stage ran twice"
        with Repo() as repo:
            needed = {s.addressing for s in repo.stage.collect(target or None, with_deps=True)}
        for name in needed & stages.keys():
            content = Path(stages[name][0]).read_text()
            assert content == expected[name], f"{name} has other bytes than a clean build"
            self.last[name] = content
        self.last_run = self.steps


@pytest.mark.slow
def test_random_steps():
    run_state_machine_as_test(
        Project,
        settings=settings(
            max_examples=4,
            stateful_step_count=60,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=[*HealthCheck],
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["stale", "needless"])
def test_the_oracle_sees_a_stage_that_is_left_out_or_runs_needlessly(fault):
    project = Project()
    project.create()
    project.run("", by_dvc)
    if fault == "stale":
        Path("raw/names/train.txt").write_text("2\n")
    engines = {"stale": print, "needless": lambda _: STARTED.write_text("models/encoder\n")}
    with pytest.raises(AssertionError, match="other bytes" if fault == "stale" else "up to date"):
        project.run("", engines[fault])
    project.teardown()
