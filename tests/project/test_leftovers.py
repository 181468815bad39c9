"""What `wxb clean` takes, and what it leaves."""

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.commands import asleep
from tests.repository import git
from wxb.cli.app import app
from wxb.core.params import load, read_yaml
from wxb.project import leftovers
from wxb.project.params_file import rendered

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)


def make(*paths):
    for path in map(Path, paths):
        path.mkdir(parents=True)
        (path / "file").touch()


def clean(*options):
    told = CliRunner().invoke(app, ["clean", *options], catch_exceptions=False)
    assert told.exit_code == 0
    return told.stdout


def edit(change):
    content = read_yaml(Path("params.yaml"))
    change(content)
    Path("params.yaml").write_text(rendered(content))


CHECKPOINTS = ".wxb/checkpoints"


def test_what_a_running_stage_works_with_is_left():
    """Else a training ends with its last weights, as its best ones are gone."""
    mine = (f"{CHECKPOINTS}/train@old-1", "models/.old.partial", "data/features/old")
    make(*mine, f"{CHECKPOINTS}/train@older-1", "models/.older.partial", "models/older")
    locks = Path(".wxb/locks")
    locks.mkdir()
    with asleep("stages.train", "old") as pid:
        (locks / "train@old.lock").write_text(str(pid))
        told = clean("--unfinished")
        assert all(Path(path).exists() for path in mine)
        assert [f"kept: {path} (train@old is running)" in told for path in mine] == [True] * 3
        assert "3 removed" in told
    assert "3 removed" in clean()
    assert not any(Path(path).exists() for path in mine)


def test_downloads_are_left_while_one_runs():
    make(".wxb/downloads/part")
    (left,) = leftovers.find(load(), ["download@pii"])
    assert left == (Path(".wxb/downloads/part"), "download@pii", "")
    assert "1 removed" in clean()


def test_what_a_stopped_run_would_go_on_from_is_left_unless_asked_for():
    stopped, before = f"{CHECKPOINTS}/train@ner-encoder-new", f"{CHECKPOINTS}/train@ner-encoder-old"
    others = [f"{CHECKPOINTS}/{name}-1" for name in ("pretrain@encoder", "lesson@images")]
    gone = f"{CHECKPOINTS}/train@gone-1"
    make(before, gone, stopped, *others)
    os.utime(before, (1, 1))
    told = clean("--dry-run")
    assert "2 to remove" in told
    assert Path(before).exists()
    assert "2 removed" in (told := clean())
    assert not Path(before).exists()
    assert not Path(gone).exists()
    for path in (stopped, *others):
        assert f"kept: {path} (a stopped run would go on from it)" in told
    assert "`wxb clean --unfinished` removes" in told
    assert "3 removed" in clean("--unfinished")
    assert not any(Path(CHECKPOINTS).iterdir())


def test_downloads_are_left_until_their_corpus_is_there():
    address = {"address": "https://example.org/a.jsonl", "sha256": "0" * 64}
    edit(lambda content: content["corpora"]["pii"].update(generate=None, urls=[address]))
    make(".wxb/downloads/part")
    assert "a stopped run would go on from it" in clean()
    make("data/raw/pii")
    assert "1 removed" in clean()


def test_what_params_name_is_left_wherever_it_lies():
    """Raw records and checkpoints of one's own may lie in the folders that stages write to."""
    edit(lambda content: content["lessons"]["attention"].update(path="models/mine"))
    edit(
        lambda content: content["parity"]["bert"].update(architecture=None, checkpoint="models/b/c")
    )
    edit(
        lambda content: content["corpora"]["pii"].update(generate=None, path="data/raw/mine.jsonl")
    )
    make("models/mine", "models/b/c", "models/other", "data/raw/mine.jsonl")
    assert clean() == "models/other\n1 removed\n"


def test_what_git_has_is_left():
    """The committed results of a study that only a profile brings are no leftovers."""
    committed = [
        "reports/studies/weibo.json",
        "reports/metrics/pretrain/weibo-encoder.json",
        "reports/metrics/ner/old.json",
    ]
    for path in map(Path, [*committed, "reports/studies/mine.json"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    make("models/weibo-encoder")
    git("init", "-q")
    git("add", *committed)
    assert clean() == "models/weibo-encoder\nreports/studies/mine.json\n2 removed\n"
    assert all(Path(path).exists() for path in committed)


def test_a_link_is_removed_and_not_where_it_leads(tmp_path):
    make("kept", "models")
    Path("models/old").symlink_to(tmp_path / "kept")
    (Path("models/file")).unlink()
    assert "1 removed" in clean()
    assert (tmp_path / "kept/file").exists()
    assert not Path("models/old").is_symlink()


def test_files_of_a_user_beside_what_is_made_are_left():
    make("data/own/letters")
    Path("data/README.md").touch()
    clean("--unfinished")
    assert Path("data/own/letters/file").exists()
    assert Path("data/README.md").exists()
