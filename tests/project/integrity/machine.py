"""A hypothesis machine that edits and damages a project of two tasks, and runs both engines.

After each run it compares the stages that ran with those of the oracle, and all bytes with a clean
build. `python -m tests.project.integrity.trust` runs it for long.
"""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

from dvc.repo import Repo
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.project import toy_dag
from tests.project.integrity import two_tasks
from tests.project.integrity.oracle import Oracle, read, stages
from tests.project.integrity.toy import flip, git
from wxb.project.dag import LOCKFILE
from wxb.project.engines import plan, repaired
from wxb.project.integrity.verify import verify

STARTED = Path("logs/started")
STUDIES = list(two_tasks.PARAMS["studies"])
# DVC and the project flush what they write, which takes a disk milliseconds each time.
MEMORY = next((path for path in ["/dev/shm"] if os.access(path, os.W_OK)), None)
EVERY = 5  # steps between two runs, at most
numbers = st.integers(0, 10**6)


class DisagreementError(AssertionError):
    """The engines did other than the oracle expects."""


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


def by_snakemake(target):
    """`snakemake` as a user runs it; slow."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2"]
    done = subprocess.run(
        [*command, *filter(None, [target.partition("@")[2]])], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


class Project(RuleBasedStateMachine):
    """Each rule is one change of a user, a fault, or a run."""

    counts: ClassVar = Counter()
    has_snakemake = False

    @initialize()
    def create(self):
        self.files = contextlib.ExitStack()
        logging.getLogger("dvc").setLevel(logging.ERROR)
        folder = Path(self.files.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
        environment = {
            **os.environ,
            "DVC_SITE_CACHE_DIR": f"{folder}/site",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self.files.callback(os.environ.update, dict(os.environ))
        os.environ.update(environment)
        toy_dag.create(folder / "project", two_tasks.FILES)
        self.files.enter_context(contextlib.chdir(folder / "project"))
        self.oracle, self.commits = Oracle(), []
        self.steps, self.last_run = 0, 0
        self.maybe = set()  # stages that an interrupted run started
        self.commit()

    def teardown(self):
        self.files.close()

    # Changes of a user

    def edit_params(self, change):
        path = Path("params.yaml")
        params = json.loads(path.read_text())
        change(params)
        path.write_text(json.dumps(params, indent=1))

    def pick(self, number, names):
        names = sorted(names)
        return names[number % len(names)]

    def experiments(self):
        return json.loads(Path("params.yaml").read_text())["experiments"]

    @rule(n=numbers, value=st.integers(1, 3), block=st.sampled_from(["training", "prediction"]))
    def change_params(self, n, value, block):
        key = {"training": "rate", "prediction": "beam"}[block]
        name = self.pick(n, self.experiments())
        self.edit_params(lambda p: p["experiments"][name][block].update({key: value}))

    @rule(value=st.integers(1, 2))
    def change_seed(self, value):
        self.edit_params(lambda p: p.update(seed=value))

    @rule()
    def reformat_params(self):
        params = json.loads(Path("params.yaml").read_text())
        indent = self.steps % 4 + 1
        Path("params.yaml").write_text(json.dumps(params, indent=indent))

    @rule(n=numbers, value=st.integers(1, 3), is_comment=st.booleans())
    def edit_code(self, n, value, is_comment):
        path = Path(self.pick(n, [*two_tasks.CODE, *two_tasks.UNUSED]))
        comment = f"# {value}\n" if is_comment else ""
        path.write_text(f"VALUE = {1 if is_comment else value}\n{comment}")

    @rule(verb=st.sampled_from([*two_tasks.STAGES]), value=st.integers(0, 2))
    def edit_stage(self, verb, value):
        path = f"stages/{verb}.py"
        Path(path).write_text(two_tasks.FILES[path] + f"# {value}\n" * bool(value))

    @rule(n=numbers, words=st.lists(st.sampled_from(["Ann", "sun", "Bob", "SUN"]), max_size=3))
    def edit_data(self, n, words):
        path = self.pick(n, [name for name in two_tasks.FILES if name.startswith("raw/")])
        Path(path).write_text(" ".join(words) + "\n")

    @rule(n=numbers, is_new=st.booleans())
    def add_or_remove_data(self, n, is_new):
        path = Path("raw", self.pick(n, ["names", "news"]), "more.txt")
        if is_new:
            path.write_text("more\n")
        else:
            path.unlink(missing_ok=True)

    @rule(n=numbers)
    def touch(self, n):
        path = Path(self.pick(n, read(Path())))
        os.utime(path)

    @rule(n=numbers, rename=st.booleans())
    def add_or_rename_experiment(self, n, rename):
        old = self.pick(n, self.experiments())
        new = f"{old.partition('-')[0]}-{n % 3}"
        if new in self.experiments():
            return

        def change(params):
            params["experiments"][new] = item = params["experiments"][old]
            names = params["studies"][item["study"]]["experiments"]
            names.append(new)
            if rename:
                del params["experiments"][old]
                names.remove(old)

        self.edit_params(change)

    @rule(n=numbers)
    def remove_experiment(self, n):
        name = self.pick(n, self.experiments())

        def change(params):
            names = params["studies"][params["experiments"][name]["study"]]["experiments"]
            if len(names) > 1:
                del params["experiments"][name]
                names.remove(name)

        self.edit_params(change)

    @rule()
    def commit(self):
        git("add", "-A")
        git("commit", "--allow-empty", "-qm", "1")
        sha = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
        self.commits.append((sha, dict(self.oracle.last), set(self.maybe)))

    @rule(n=numbers)
    def check_out(self, n):
        if not self.maybe:
            self.commit()
            sha, last, self.maybe = self.commits[n % len(self.commits)]
            git("checkout", "-q", sha)
            self.oracle.last, self.maybe = dict(last), set(self.maybe)

    # Faults

    def outputs(self):
        files = read(Path())
        outs = [
            out for stage in stages(files) for out in stage.outs if stage.name in self.oracle.last
        ]
        return [name for name in files if any(name == o or name.startswith(f"{o}/") for o in outs)]

    @rule(n=numbers, whole=st.booleans())
    def delete_output(self, n, whole):
        if names := self.outputs():
            path = Path(self.pick(n, names))
            shutil.rmtree(path.parent) if whole else path.unlink()

    @rule(n=numbers)
    def corrupt_output(self, n):
        if names := self.outputs():
            Path(self.pick(n, names)).write_bytes(b"corrupt")

    @precondition(lambda self: LOCKFILE.exists() and not self.maybe)
    @rule(n=numbers, in_cache=st.booleans())
    def flip_byte(self, n, in_cache):
        """What DVC cannot see, `wxb verify --repair` names."""
        names = [str(p) for p in self.cached()] if in_cache else self.outputs()
        names = [name for name in names if Path(name).stat().st_size]
        if names:
            path = Path(self.pick(n, names))
            flip(path)
            faults = [str(fault.path) for fault in verify(repair=True).faults]
            assert any(str(path).startswith(fault) for fault in faults), (path, faults)

    def cached(self):
        return [path for path in Path(".dvc/cache/files").rglob("*") if path.is_file()]

    @rule(n=numbers)
    def delete_object(self, n):
        if paths := self.cached():
            Path(self.pick(n, map(str, paths))).unlink()

    @rule()
    def delete_cache(self):
        shutil.rmtree(".dvc/cache", ignore_errors=True)
        self.oracle.known.clear()

    @rule(share=st.floats(0, 1), number=st.sampled_from([signal.SIGINT, signal.SIGKILL]))
    def interrupt(self, share, number):
        """Stop a run with all its processes at any moment."""
        STARTED.write_text("")
        child = os.fork()
        if child == 0:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            code = 1
            try:
                by_dvc("")
                code = 0
            finally:
                os._exit(code)
        time.sleep(share)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, number)
        os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # a stage that Ctrl-C has not ended yet
        self.maybe |= {*STARTED.read_text().split()}
        self.counts["interrupts"] += 1

    # Runs

    @rule(study=st.sampled_from(["", *STUDIES]))
    def run_by_dvc(self, study):
        self.run(study, by_dvc)

    @rule(study=st.sampled_from(["", *STUDIES]))
    def run_as_snakemake_does(self, study):
        self.run(study, by_plan)

    @precondition(lambda self: self.has_snakemake)
    @rule(study=st.sampled_from(["", *STUDIES]))
    def run_by_snakemake(self, study):
        self.run(study, by_snakemake)

    @invariant()
    def run_often(self):
        self.counts["steps"] += 1
        self.steps += 1
        if self.steps - self.last_run > EVERY:
            self.run("", (by_dvc, by_plan)[self.steps % 2])

    def run(self, study, engine):
        target = f"report@{study}" if study else ""
        expected = self.oracle.expect(Path(), target)
        STARTED.write_text("")
        self.counts["runs"] += 1
        self.last_run = self.steps
        try:
            engine(target)
        except Exception:
            self.counts["refusals"] += 1
            raise
        ran = STARTED.read_text().split()
        is_right = expected.due - self.maybe <= {*ran} <= expected.due
        if not is_right or len(ran) != len({*ran}):
            self.counts["disagreements"] += 1
            raise DisagreementError(
                f"ran {sorted(ran)}, expected {sorted(expected.due)}, {self.maybe}"
            )
        self.counts["stages"] += len(ran)
        files = read(Path())
        wrong = [name for name, content in expected.files.items() if files.get(name) != content]
        if wrong:
            self.counts["wrong"] += 1
            raise DisagreementError(f"other bytes than a clean build: {wrong}")
        if not target:
            self.maybe.clear()
