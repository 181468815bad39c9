"""Folders of checkpoints: their names, and the detection of damaged checkpoints."""

import json
import sys
from itertools import combinations

import pytest

from tests.lines import ROOT
from wxb.training import checkpoints
from wxb.training.checkpoints import FOLDER, STATE, SUMS, folder, last_complete, seal


@pytest.fixture
def inputs(tmp_path):
    def make(name, text="a"):
        data = tmp_path / name / "data"
        data.mkdir(parents=True)
        (data / "train.arrow").write_text(text)
        (data / "nested").mkdir()
        (data / "nested" / "types.json").write_text("[]")
        single = tmp_path / name / "single.json"
        single.write_text("{}")
        return [data, single]

    return make


def test_the_name_does_not_depend_on_parent_folder_or_order(inputs):
    first, second = inputs("first"), inputs("second")
    name = folder("train@x", [{"projection": 8}, 1, 1], first)
    assert name == folder("train@x", [{"projection": 8}, 1, 1], second)
    assert name == folder("train@x", [{"projection": 8}, 1, 1], first[::-1])
    assert name.parent == FOLDER
    assert name.name.startswith("train@x-")


def test_the_name_depends_on_settings_and_content(inputs):
    head = {"projection": 8}
    plain, edited, renamed = inputs("plain"), inputs("edited", text="b"), inputs("renamed")
    (renamed[0] / "train.arrow").rename(renamed[0] / "valid.arrow")
    (moved := inputs("moved"))[0].joinpath("nested").rename(moved[0] / "other")  # a class
    names = [
        folder("train@x", [head, 1, 12], plain),
        folder("train@x", [head, 11, 2], plain),  # the same digits
        folder("train@x", [head, 2, 1], plain),
        folder("train@x", [{"projection": 9}, 1, 12], plain),
        folder("train@x", [head, 1, 12], edited),
        folder("train@x", [head, 1, 12], renamed),
        folder("train@x", [head, 1, 12], moved),
        folder("train@x", [head, 1, 12], plain[:1]),
        folder("train@y", [head, 1, 12], plain),
    ]
    assert all(a != b for a, b in combinations(names, 2))


def test_the_name_depends_on_the_code(inputs, tmp_path, monkeypatch):
    paths, code = inputs("data"), tmp_path / "code"
    code.mkdir()
    monkeypatch.setattr(checkpoints, "CODE", (code,))
    before = folder("train@x", [1], paths)
    (code / "align.py").write_text("# another way to align")
    assert folder("train@x", [1], paths) != before


@pytest.mark.parametrize("name", ["wxb.training.trainer", "wxb.tasks.ner.models.tagger"])
def test_the_name_depends_on_modules_that_training_imports_later(name, inputs, monkeypatch):
    hashed = []
    monkeypatch.setattr(checkpoints, "sha256", lambda path: hashed.append(path) or "0")
    monkeypatch.delitem(sys.modules, name, raising=False)
    folder("train@x", [1], inputs("data"))
    assert ROOT / f"{name.replace('.', '/')}.py" in hashed


FILES = ["model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", STATE]


def checkpoint(folder, step, *, best=None):
    """A sealed checkpoint with the files of the Trainer."""
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    for name in FILES:
        (path / name).write_bytes(f"{name} of step {step}".encode())
    state = {"global_step": step, "best_model_checkpoint": None if best is None else str(best)}
    (path / STATE).write_text(json.dumps(state))
    seal(path)
    return path


def test_checkpoints_are_ordered_by_step(tmp_path):
    newest = [checkpoint(tmp_path, step) for step in (900, 1000, 99)][1]
    assert last_complete(tmp_path) == newest
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "no hashes"])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_deleted_with_a_sentence(tmp_path, capsys, name, damage):
    complete = checkpoint(tmp_path, 2)
    file = checkpoint(tmp_path, 3) / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    match damage:
        case "flip":
            file.write_bytes(content)
        case "cut":
            file.write_bytes(content[:-9])
        case "remove":
            file.unlink()
        case "no hashes":
            file.with_name(SUMS).unlink()
    assert last_complete(tmp_path) == complete
    assert list(tmp_path.iterdir()) == [complete]
    assert capsys.readouterr().out.count("is damaged or incomplete; it was removed") == 1


def test_a_checkpoint_whose_best_one_is_damaged_is_skipped(tmp_path):
    best = checkpoint(tmp_path, 2)
    last = checkpoint(tmp_path, 4, best=best)
    assert last_complete(tmp_path) == last
    (best / "model.safetensors").write_bytes(b"")
    assert last_complete(tmp_path) is None
    checkpoint(tmp_path, 4, best=tmp_path / "checkpoint-3")
    assert last_complete(tmp_path) is None
