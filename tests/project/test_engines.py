"""Snakemake runs the same stages as DVC in a toy project, in any state.

tests/test_pipeline.py checks that both write the same bytes and rerun the same stages. The stages
that ran are read from DVC's output ("Running stage"), never from Snakemake's plan.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import toy_dag
from tests.repository import edit
from wxb.project import status
from wxb.project.engines import page_stages, plan

pytestmark = pytest.mark.slow
BIN = Path(sys.executable).parent

STUDY_S = {"download@a", "train@x", "compare@s", "report@s"}
STUDY_T = {"download@b", "train@z-1", "compare@t", "report@t"}


def snakemake(project: Path, *arguments: str, check: bool = True) -> str:
    """Both output streams of Snakemake, which gets a PATH without its environment."""
    environment = os.environ | {"PATH": "/usr/bin:/bin", "EXPECTED_PREFIX": sys.prefix}
    environment.pop("PYTHONPATH", None)
    command = [BIN / "snakemake", "--cores", "2", *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=project, env=environment, **streams)
    assert (done.returncode == 0) == check, done.stdout
    return done.stdout


def stages_run(output: str) -> set[str]:
    stages = re.findall(r"Running stage '(.+)'", output)
    assert len(stages) == len(set(stages)), "a stage ran twice"
    return set(stages)


def modification_times(project: Path) -> dict[str, int]:
    """When each file was last written, in nanoseconds, without the engines' own files."""
    files = {path.relative_to(project): path for path in project.rglob("*") if path.is_file()}
    return {
        str(name): path.stat().st_mtime_ns
        for name, path in files.items()
        if name.parts[0] not in (".git", ".snakemake")
        and name.parts[:2] != (".dvc", "tmp")
        and "__pycache__" not in name.parts
    }


@pytest.fixture(scope="module")
def by_snakemake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy project in which all stages ran, in a folder whose name has a space."""
    project = toy_dag.create(tmp_path_factory.mktemp("engines") / "by snakemake")
    snakemake(project)
    return project


@pytest.fixture
def project(by_snakemake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a copy in which all stages ran, without the folder .snakemake."""
    project = tmp_path / "a copy"
    shutil.copytree(by_snakemake, project, ignore=shutil.ignore_patterns(".snakemake"))
    monkeypatch.chdir(project)
    return project


def test_dry_run_and_report_change_nothing_and_are_right(project: Path, tmp_path: Path) -> None:
    edit("params.yaml", "rate: 3", "rate: 4")
    before = modification_times(project)
    planned = snakemake(project, "-n")
    assert set(re.findall(r"--single-item (\S+)", planned)) == STUDY_T - {"download@b"}
    assert "no target 'reports/t.html'" in snakemake(project, "-n", "reports/t.html", check=False)
    snakemake(project, "--report", str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").exists()
    assert modification_times(project) == before


def test_planning_does_not_disturb_a_run(project: Path) -> None:
    edit("params.yaml", "rate: 1,", "rate: 2,")
    edit("params.yaml", "rate: 3,", "rate: 4,")
    hold, log = project / "hold", project / "dvc.txt"
    hold.touch()  # trainings wait until they have been planned
    with log.open("w") as output:
        environment = os.environ | {"PATH": f"{BIN}:/usr/bin:/bin", "EXPECTED_PREFIX": sys.prefix}
        dvc = subprocess.Popen(
            [BIN / "dvc", "repro"], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    seen: set[str] = set()
    trainings = {"train@x", "train@z-1"}
    planned = ""
    while dvc.poll() is None:
        assert {stage.name for stage in plan()} == STUDY_S | STUDY_T
        seen |= {step.name for step in status.steps() if step.is_running}
        if seen & trainings and not planned:  # other stages are too fast
            assert "active in this project (PID" in snakemake(project, check=False)
            planned = snakemake(project, "-n")
            hold.unlink()
    assert dvc.returncode == 0, log.read_text()
    assert seen & trainings
    assert "report@" in planned
    assert stages_run(log.read_text()) == (STUDY_S | STUDY_T) - {"download@a", "download@b"}
    assert not any(stage.is_due for stage in plan())


def test_a_failure_names_its_stage_and_can_be_repaired(project: Path) -> None:
    edit("params.yaml", "rate: 1,", "rate: -1,")
    edit("params.yaml", "rate: 3, seconds: 0", "rate: 7, seconds: 1")
    output = snakemake(project, check=False)
    assert "Error in rule train@x" in output
    assert "repro --single-item train@x" in output
    assert "rate must not be negative" in output
    assert (project / "logs/train@x.log").read_text() == "rate must not be negative"
    assert (project / "reports/metrics/t/z-1.json").read_text() == '{"n": 7}', "did not finish"

    edit("params.yaml", "rate: -1,", "rate: 8,")
    assert stages_run(snakemake(project, "s")) == {"train@x", "compare@s", "report@s"}


def test_plan_has_the_order_of_dvc_and_due_stages_downstream(project: Path) -> None:
    (project / "data/b.txt").unlink()
    stages = {stage.name: stage for stage in plan()}
    assert set(stages) == STUDY_S | STUDY_T
    assert {name for name, stage in stages.items() if stage.is_due} == STUDY_T
    assert stages["compare@s"].upstream == ("train@x",)
    assert page_stages(stages.values()) == {"s": "report@s", "t": "report@t"}
