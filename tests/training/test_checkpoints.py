"""Folders of checkpoints: their names, and the detection of incomplete checkpoints."""

import io
import json
import shutil
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from torch import nn
from transformers import set_seed

from wxb.core.params.training import Training
from wxb.metrics import Metric
from wxb.tasks.ner.params import Head
from wxb.training.checkpoints import FOLDER, folder, last_complete
from wxb.training.run import TrainingRun
from wxb.training.trainer import fit


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
    import wxb.tasks.ner.record.bio

    paths = inputs("data")
    before = folder("train@x", [1], paths)
    changed = tmp_path / "align.py"
    changed.write_text("# another way to align")
    monkeypatch.setattr(wxb.tasks.ner.record.bio, "__file__", str(changed))
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


class Linear(nn.Module):
    """A minimal model with randomness in training (dropout)."""

    def __init__(self):
        super().__init__()
        self.layer, self.dropout = nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, input_ids, labels):
        logits = self.layer(self.dropout(input_ids))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def fit_linear(checkpoints):
    """The weights after three epochs, the first of which has the best metric."""
    values = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)
    items = [{"input_ids": v, "labels": int(v[0] > 0)} for v in values]
    set_seed(3)
    model = Linear()
    fit(
        model,
        TrainingRun(
            Training(epochs=3, batch_size=4, learning_rate=1e-2, warmup_ratio=0.0),
            train=items,
            valid=items[:8],
            collate=lambda rows: {k: torch.tensor(np.array([r[k] for r in rows])) for k in rows[0]},
            targets=["labels"],
            compute_metrics=lambda logits, labels: {
                "f1": -float((logits.argmax(-1) == labels).mean())
            },
            summarize=None,
            best=Metric("f1", "F1"),
            seed=3,
            checkpoints=checkpoints,
            label="test",
        ),
    )
    return {name: value.tolist() for name, value in model.state_dict().items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Finished training: the folder of checkpoints, a copy of it, and the weights."""
    parent = tmp_path_factory.mktemp("finished")
    weights = fit_linear(parent / "train@x")
    shutil.copytree(parent / "train@x", parent / "copy")
    assert {p.name for p in (parent / "copy").iterdir()} == {"checkpoint-4", "checkpoint-12"}
    return parent / "train@x", parent / "copy", weights


@settings(max_examples=6)
@given(order=st.randoms(use_true_random=False), share=st.floats(0, 1))
@pytest.mark.slow
def test_partly_deleted_checkpoints_do_not_change_the_weights(finished, order, share):
    path, copy, weights = finished
    shutil.rmtree(path)
    shutil.copytree(copy, path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    order.shuffle(files)
    for file in files[: round(share * len(files))]:
        file.unlink()
    assert fit_linear(path) == weights
