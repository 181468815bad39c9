"""A stage publishes nothing if an input that dvc.yaml declares has changed meanwhile."""

import os
import re
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests import demo
from tests.repository import git, write
from tests.runtime.toy import ROOT, events, python, start
from wxb.core.errors import WxbError
from wxb.project import status
from wxb.runtime import inputs

DVC_YAML = """
stages:
  toy:
    foreach: ${experiments}
    do:
      cmd: python -m stages.toy ${key}
      params: [seed, "experiments.${key}.rate", "studies.${item.study}.seed"]
      deps: [code, "data/${item.corpus}", large]
      outs: [out]
"""
PARAMS = """
seed: 1
experiments: {x: {corpus: a, study: s, rate: 1}, y: {corpus: b, study: s, rate: 1}}
studies: {s: {seed: 3}}
"""


@pytest.fixture
def folder(cwd):
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("params.yaml").write_text(PARAMS)
    for name in ("code/main.py", "data/a", "data/b"):
        write(name, name)
    Path("large").write_bytes(bytes(inputs.HASHED + 1))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda: write("params.yaml", PARAMS.replace("rate: 1", "rate: 2", 1)), "x.rate"),
        (lambda: write("params.yaml", PARAMS.replace("seed: 3", "seed: 4")), "studies.s.seed"),
        (lambda: write("code/main.py", "other"), "code/main.py"),
        (lambda: write("code/new.py", ""), "code/new.py"),
        (lambda: Path("data/a").unlink(), "data/a"),
        (lambda: os.utime("large", (1, 1)), "large"),
    ],
)
def test_changed_inputs_are_named(folder, change, names):
    before = inputs.read("toy@x")
    change()
    with pytest.raises(WxbError, match=rf"inputs of toy@x changed .*{re.escape(names)}$"):
        inputs.require_unchanged("toy@x", before)


@pytest.mark.parametrize(
    "change",
    [
        lambda: write("params.yaml", PARAMS.replace("y: {corpus: b, study: s, rate: 1}", "y: {}")),
        lambda: write("params.yaml", f"# a comment{PARAMS}"),
        lambda: write("data/b", "of another block"),
        lambda: write("code/__pycache__/main.pyc", ""),
        lambda: write("code/.main.py.partial", ""),
        lambda: write("code/main.py", "code/main.py"),  # the same bytes, as by an editor
    ],
)
def test_other_changes_do_not_matter(folder, change):
    before = inputs.read("toy@x")
    change()
    inputs.require_unchanged("toy@x", before)


def test_inputs_are_those_of_dvc(cwd):
    """For each stage of this project, with all parameters and files."""
    demo.write(cwd)
    git("init", "-q")
    Repo.init().close()
    for name in ("demos", "dvc.yaml", "stages", "wxb"):
        (cwd / name).symlink_to(ROOT / name)
    for step in status.steps():
        if step.name == status.CHECK:
            continue
        keys = {name.removeprefix("params.yaml: ") for name in inputs.read(step.name)}
        assert {*step.after} <= keys, step.name
        assert all("${" not in key for key in keys), step.name


def test_a_stage_whose_parameters_change_publishes_nothing(project):
    (project / "dvc.yaml").write_text(
        "stages: {toy: {foreach: '${studies}', do: {params: [seed], deps: []}}}"
    )
    with start(project, "toy.py", "slow") as process:
        events(project, 1)
        params = project / "params.yaml"
        params.write_text(re.sub(r"(?m)^seed: .*", "seed: 12345", params.read_text()))
        (project / "go").touch()
        assert process.wait(60) == 1
        assert "inputs of toy@slow changed while it ran" in process.stderr.read()
    assert not (project / "reports/cost/toy/slow.json").exists()
    assert python(project, "toy.py", "x").returncode == 0
