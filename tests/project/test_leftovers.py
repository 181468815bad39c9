"""What `wxb clean` removes and keeps."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.commands import sleeping_process
from tests.project.test_profiles import edit
from tests.repository import git, write
from wxb.cli.app import app
from wxb.core.params import PARAMS
from wxb.project.engines import PlanError

pytestmark = pytest.mark.usefixtures("params")


def make(*paths):
    for path in paths:
        write(f"{path}/file", "")


def clean(*options):
    result = CliRunner().invoke(app, ["clean", *options], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


CHECKPOINTS = ".wxb/checkpoints"


def test_nothing_is_removed_while_a_stage_runs():
    """Otherwise training would lose its best weights."""
    make(f"{CHECKPOINTS}/train@old-1", "models/.old.partial", "data/features/old")
    with sleeping_process("stages.train", "old") as pid:
        write(".wxb/locks/train@old.lock", str(pid))
        with pytest.raises(PlanError, match=rf"nothing was removed: .*\(PID {pid}: .*train old\)"):
            clean()
        assert "3 to remove" in clean("--dry-run")
    assert "3 removed" in clean()


def test_checkpoints_of_stopped_runs_are_kept():
    stopped, before = f"{CHECKPOINTS}/train@ner-encoder-new", f"{CHECKPOINTS}/train@ner-encoder-old"
    others = [f"{CHECKPOINTS}/{name}-1" for name in ("pretrain@encoder", "lesson@images")]
    gone = f"{CHECKPOINTS}/train@gone-1"
    make(before, gone, stopped, *others)
    os.utime(before, (1, 1))
    assert "2 to remove" in clean("--dry-run")
    assert Path(before).exists()
    assert "2 removed" in clean()
    assert not Path(before).exists()
    assert not Path(gone).exists()
    assert all(Path(path).exists() for path in (stopped, *others))


def test_inputs_in_output_folders_are_kept():
    """Users may put raw records and checkpoints into the folders that stages write to."""
    pinned = {"corpus": "pii", "objective": "none", "checkpoint": "models/b/c"}
    edit(Path(PARAMS), lambda content: content["lessons"]["attention"].update(path="models/mine"))
    edit(Path(PARAMS), lambda content: content["backbones"].update(pinned=pinned))
    mine = {"generate": None, "path": "data/raw/mine.jsonl"}
    edit(Path(PARAMS), lambda content: content["corpora"]["pii"].update(mine))
    make("models/mine", "models/b/c", "models/other", "data/raw/mine.jsonl")
    assert clean() == "models/other\n1 removed\n"


def test_files_in_the_index_are_kept():
    """Committed results of a study that only a profile adds are not leftovers."""
    committed = [
        "reports/studies/weibo.json",
        "reports/metrics/pretrain/weibo-encoder.json",
        "reports/metrics/ner/old.json",
    ]
    for path in [*committed, "reports/studies/mine.json"]:
        write(path, "")
    make("models/weibo-encoder")
    git("init", "-q")
    git("add", *committed)
    assert clean() == "models/weibo-encoder\nreports/studies/mine.json\n2 removed\n"
    assert all(Path(path).exists() for path in committed)


@pytest.fixture
def results():
    """Results as a clone of the project has them, of blocks that params.yaml lacks."""
    folders = ("metrics/ner", "studies", "headlines", "seeds", "benchmarks")
    return [write(f"reports/{folder}/old.json", "") for folder in folders]


@pytest.mark.parametrize("repository", ["none", "no index", "no result in the index"])
def test_results_are_kept_where_git_tracks_none(results, repository):
    make("models/old")
    if repository != "none":
        git("init", "-q")
    if repository == "no result in the index":
        git("add", "params.yaml")
    assert clean() == "models/old\n1 removed\n"
    assert all(path.exists() for path in results)


@pytest.mark.parametrize("fault", ["another user", "no git", "damaged index"])
def test_nothing_is_removed_if_git_cannot_answer(results, monkeypatch, tmp_path, fault):
    make("models/old")
    git("init", "-q")
    git("add", "--force", "reports")
    if fault == "another user":
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    elif fault == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        Path(".git/index").write_bytes(b"damaged")
    for options in ([], ["--dry-run"]):
        failed = CliRunner().invoke(app, ["clean", *options])
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert "git" in str(failed.exception)
    assert Path("models/old").exists()
    assert all(path.exists() for path in results)


def test_only_outputs_of_removed_blocks_are_removed():
    outputs = ["models/{}", "reports/predictions/ner/{}", "reports/metrics/ner/{}.json"]
    outputs += ["reports/headlines/{}.json", "data/features/{}", "reports/cost/train/{}.json"]
    kept, gone = ([name.format(block) for name in outputs] for block in ("ner-encoder", "old"))
    gone += [f"{CHECKPOINTS}/train@x-1", "reports/x.html"]
    gone += ["reports/metrics/lessons/gone.json", "reports/gone.html"]
    gone += [f"reports/{name}/x" for name in ("predictions", "training")]
    make("reports/training/pretrain/encoder", *kept, *gone, "models/encoder")
    git("init", "-q")
    git("add", "reports/headlines/ner-encoder.json")
    assert "12 to remove" in clean("--dry-run")
    assert all(Path(path).exists() for path in gone)
    assert sorted(clean().splitlines()) == sorted([*gone, "12 removed"])
    assert not any(Path(path).exists() for path in gone)
    assert all(Path(path).exists() for path in [*kept, "models/encoder"])


def test_a_link_is_removed_but_not_its_target(tmp_path):
    make("kept", "models")
    Path("models/old").symlink_to(tmp_path / "kept")
    (Path("models/file")).unlink()
    assert "1 removed" in clean()
    assert (tmp_path / "kept/file").exists()
    assert not Path("models/old").is_symlink()
