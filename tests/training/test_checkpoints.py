"""Folders of checkpoints: their names, and the detection of incomplete checkpoints."""

import io
import json
from itertools import combinations

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from wxb.tasks.ner.params import Head
from wxb.training.checkpoints import FOLDER, folder, last_complete


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
    name = folder("train@x", [Head(projection=8), 1, 1], first)
    assert name == folder("train@x", [Head(projection=8), 1, 1], second)
    assert name == folder("train@x", [Head(projection=8), 1, 1], first[::-1])
    assert name.parent == FOLDER
    assert name.name.startswith("train@x-")


def test_the_name_depends_on_settings_and_content(inputs):
    head = Head(projection=8)
    plain, edited, renamed = inputs("plain"), inputs("edited", text="b"), inputs("renamed")
    (renamed[0] / "train.arrow").rename(renamed[0] / "valid.arrow")
    names = [
        folder("train@x", [head, 1, 12], plain),
        folder("train@x", [head, 11, 2], plain),  # the same digits
        folder("train@x", [head, 2, 1], plain),
        folder("train@x", [Head(projection=9), 1, 12], plain),
        folder("train@x", [head, 1, 12], edited),
        folder("train@x", [head, 1, 12], renamed),
        folder("train@x", [head, 1, 12], plain[:1]),
        folder("train@y", [head, 1, 12], plain),
    ]
    assert all(a != b for a, b in combinations(names, 2))


def test_the_name_depends_on_the_code(inputs, tmp_path, monkeypatch):
    import wxb.tasks.ner.models.bio

    paths = inputs("data")
    before = folder("train@x", [1], paths)
    changed = tmp_path / "align.py"
    changed.write_text("# another way to align")
    monkeypatch.setattr(wxb.tasks.ner.models.bio, "__file__", str(changed))
    assert folder("train@x", [1], paths) != before


def checkpoint(folder, step, *, best=None, **content):
    """A checkpoint with the files of the Trainer; `content` replaces them, None removes them."""
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    weights = {"layer.weight": np.ones((4, 4), np.float32)}
    files = {
        "model_safetensors": save(weights),
        **dict.fromkeys(("optimizer_pt", "scheduler_pt", "rng_state_pth"), ARCHIVE),
        "trainer_state_json": json.dumps(
            {"global_step": step, "best_model_checkpoint": None if best is None else str(best)}
        ).encode(),
        **content,
    }
    for name, data in files.items():
        if data is not None:
            stem, _, suffix = name.rpartition("_")
            (path / f"{stem}.{suffix}").write_bytes(data)
    return path


def archive():
    stream = io.BytesIO()
    torch.save({"step": 1}, stream)
    return stream.getvalue()


ARCHIVE = archive()


def test_checkpoints_are_ordered_by_step(tmp_path):
    newest = [checkpoint(tmp_path, step) for step in (900, 1000, 99)][1]
    assert last_complete(tmp_path) == newest
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    "content",
    [
        *({"trainer_state_json": text} for text in (None, b"", b'{"global_step": 3, "log_his')),
        *({"model_safetensors": weights} for weights in (None, b"", save({})[:-1])),
        *(
            {name: state}
            for name in ("optimizer_pt", "scheduler_pt", "rng_state_pth")
            for state in (None, b"", ARCHIVE[:-9])
        ),
    ],
)
def test_an_incomplete_checkpoint_is_skipped_and_deleted(tmp_path, content):
    complete = checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 3, **content)
    assert last_complete(tmp_path) == complete
    assert list(tmp_path.iterdir()) == [complete]


def test_a_checkpoint_whose_best_one_is_gone_is_skipped(tmp_path):
    best = checkpoint(tmp_path, 2)
    last = checkpoint(tmp_path, 4, best=best)
    assert last_complete(tmp_path) == last
    (best / "model.safetensors").unlink()
    assert last_complete(tmp_path) is None
    checkpoint(tmp_path, 4, best=tmp_path / "checkpoint-3")
    assert last_complete(tmp_path) is None


def test_a_folder_without_checkpoints_is_none(tmp_path):
    assert last_complete(tmp_path / "missing") is None
    checkpoint(tmp_path, 3, trainer_state_json=None)
    assert last_complete(tmp_path) is None
