"""A merge of two branches with results, and folders that lead out of the project."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.project.toy import stages_run
from tests.project_copy import ROOT
from tests.repository import git, write
from wxb.cli.app import app
from wxb.core.errors import WxbError
from wxb.project import status
from wxb.project.engines import plan, repair_and_run_check
from wxb.project.verify import verify


@pytest.mark.parametrize("file", ["dvc.lock", "params.yaml", "reports/metrics/s/x.json"])
def test_every_command_names_a_merge_conflict(toy_project, file):
    text = Path(file).read_text() if Path(file).exists() else "{}\n"
    conflicted = f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n"
    path = write(file, conflicted)
    for command in ("list", "show x", "compare", "table", "verify", "doctor", "clean --dry-run"):
        result = CliRunner().invoke(app, command.split())
        assert isinstance(result.exception, WxbError), command
        assert f"conflict in {file}" in str(result.exception), command
    with pytest.raises(WxbError, match=rf"conflict in {file}"):
        repair_and_run_check()
    assert f"conflict in {file}" in status.staleness().why_unknown
    assert path.read_text() == conflicted
    path.write_text(text)
    assert stages_run() == []


def test_a_folder_with_braces_is_refused(tmp_path, monkeypatch):
    (tmp_path / "{a}").mkdir()
    monkeypatch.chdir(tmp_path / "{a}")
    with pytest.raises(WxbError, match="paths with braces"):
        repair_and_run_check()


def test_a_merge_of_results_keeps_one_side_and_reruns_what_differs(toy_project):
    """With the .gitattributes of this project: nobody merges derived files line by line."""
    shutil.copy(ROOT / ".gitattributes", toy_project)
    score = Path("reports/metrics/score.json")
    score.parent.mkdir(parents=True)
    yaml = Path("dvc.yaml").read_text().replace("score.json", str(score))
    Path("dvc.yaml").write_text(re.sub(r"echo '.*?' >", "cp used", yaml))
    for branch, source in (("main", "first\n"), ("a", "of a\n"), ("b", "of b\n")):
        git("checkout", "-q", "-B", branch, *(["main"] if branch != "main" else []))
        Path("source").write_text(source)
        stages_run()
        git("add", "-A", ":!ran")
        git("commit", "-qm", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "a")
    assert score.read_text() == "of b\n"  # no markers
    git("checkout", "--ours", "dvc.lock", "reports", "source")
    assert stages_run() == []


@pytest.mark.parametrize("is_mounted", [True, False])
def test_a_linked_folder_is_refused_before_a_stage_runs(toy_project, tmp_path, is_mounted):
    if is_mounted:
        (tmp_path / "scratch").mkdir()
    Path("dvc.yaml").write_text(Path("dvc.yaml").read_text().replace("outs: [used]", "outs: [m/x]"))
    Path("m").symlink_to(tmp_path / "scratch")
    for refusal in (status.steps, repair_and_run_check, verify):
        with pytest.raises(WxbError, match=r"^m is a link .*cache\.dir"):
            refusal()


def test_a_link_without_a_target_is_named(toy_project):
    shutil.rmtree(".dvc/cache")
    Path("made/other").unlink()
    Path("made/other").symlink_to("/lost/object")
    for refusal in (status.steps, repair_and_run_check):
        with pytest.raises(
            WxbError, match=r"^made/other is a link to /lost/object, which does not"
        ):
            refusal()


def test_an_absent_source_with_intact_outputs_counts_as_unchanged(toy_project):
    """As for whoever pulled the results without the files of data/own."""
    Path("source").unlink()
    make, *others = plan()
    assert (make.is_due, make.absent) == (False, ("source",))
    assert not any(stage.is_due or stage.absent for stage in others)
    Path("params.yaml").write_text("rate: 2\n")
    assert not plan()[0].is_due
    Path("made/other").write_text("altered")
    make, *_ = plan()
    assert (make.is_due, make.absent) == (True, ())
    git("checkout", "-q", "source")
    for name in ("dvc.yaml", "source"):  # another source, which does not exist either
        Path(name).rename(f"{name}.old")
    Path("dvc.yaml").write_text(Path("dvc.yaml.old").read_text().replace("[source]", "[typo]"))
    make, *_ = plan()
    assert (make.is_due, make.absent) == (True, ())


def test_a_folder_of_outputs_is_not_an_absent_source(toy_project):
    """As in a clone without the cache, where a stage reads all results of others."""
    yaml = Path("dvc.yaml").read_text().replace("outs: [made]", "outs: [made/file, made/other]")
    Path("dvc.yaml").write_text(yaml)
    assert stages_run() == ["make"]
    for folder in ("made", ".dvc/cache"):
        shutil.rmtree(folder)
    assert not any(stage.absent for stage in plan())
