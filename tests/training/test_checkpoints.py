"""Where unfinished training lives: named after what decides the result, and never half read."""

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
    def make(place, text="a"):
        data = tmp_path / place / "data"
        data.mkdir(parents=True)
        (data / "train.arrow").write_text(text)
        (data / "nested").mkdir()
        (data / "nested" / "types.json").write_text("[]")
        single = tmp_path / place / "single.json"
        single.write_text("{}")
        return [data, single]

    return make


def test_the_name_does_not_depend_on_place_or_order(inputs):
    here, there = inputs("here"), inputs("there")
    name = folder("train@x", [Head(projection=8), 1, 1], here)
    assert name == folder("train@x", [Head(projection=8), 1, 1], there)
    assert name == folder("train@x", [Head(projection=8), 1, 1], here[::-1])
    assert name.parent == FOLDER
    assert name.name.startswith("train@x-")


def test_the_name_depends_on_settings_and_content(inputs):
    head = Head(projection=8)
    here, other, renamed = inputs("here"), inputs("other", text="b"), inputs("renamed")
    (renamed[0] / "train.arrow").rename(renamed[0] / "valid.arrow")
    names = [
        folder("train@x", [head, 1, 12], here),
        folder("train@x", [head, 11, 2], here),  # the same digits
        folder("train@x", [head, 2, 1], here),
        folder("train@x", [Head(projection=9), 1, 12], here),
        folder("train@x", [head, 1, 12], other),
        folder("train@x", [head, 1, 12], renamed),
        folder("train@x", [head, 1, 12], here[:1]),
        folder("train@y", [head, 1, 12], here),
    ]
    assert all(a != b for a, b in combinations(names, 2))


def test_the_name_depends_on_the_code(inputs, tmp_path, monkeypatch):
    import wxb.tasks.ner.tagging.bio

    here = inputs("here")
    before = folder("train@x", [1], here)
    changed = tmp_path / "align.py"
    changed.write_text("# another way to align")
    monkeypatch.setattr(wxb.tasks.ner.tagging.bio, "__file__", str(changed))
    assert folder("train@x", [1], here) != before


def checkpoint(folder, step, *, best=None, **content):
    """A checkpoint with the files that the Trainer writes, or what `content` says of them."""
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
    for name, written in files.items():
        if written is not None:
            stem, _, suffix = name.rpartition("_")
            (path / f"{stem}.{suffix}").write_bytes(written)
    return path


def archive():
    stream = io.BytesIO()
    torch.save({"step": 1}, stream)
    return stream.getvalue()


ARCHIVE = archive()


def test_the_newest_is_newest_by_number(tmp_path):
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
def test_a_cut_off_checkpoint_is_passed_over_and_removed(tmp_path, content):
    complete = checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 3, **content)
    assert last_complete(tmp_path) == complete
    assert list(tmp_path.iterdir()) == [complete]


def test_a_checkpoint_whose_best_one_is_gone_is_passed_over(tmp_path):
    best = checkpoint(tmp_path, 2)
    last = checkpoint(tmp_path, 4, best=best)
    assert last_complete(tmp_path) == last
    (best / "model.safetensors").unlink()
    assert last_complete(tmp_path) is None
    checkpoint(tmp_path, 4, best=tmp_path / "checkpoint-3")
    assert last_complete(tmp_path) is None


def test_none_where_there_is_none(tmp_path):
    assert last_complete(tmp_path / "missing") is None
    checkpoint(tmp_path, 3, trainer_state_json=None)
    assert last_complete(tmp_path) is None


class Linear(nn.Module):
    """The smallest model with random numbers of its own (dropout)."""

    def __init__(self):
        super().__init__()
        self.layer, self.dropout = nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, input_ids, labels):
        logits = self.layer(self.dropout(input_ids))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def fit_linear(checkpoints):
    """The weights after three epochs by a figure that says the first was best."""
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
    """Training with only its checkpoints left to remove: where, a copy of them, and the weights."""
    place = tmp_path_factory.mktemp("finished")
    weights = fit_linear(place / "train@x")
    shutil.copytree(place / "train@x", place / "copy")
    assert {p.name for p in (place / "copy").iterdir()} == {"checkpoint-4", "checkpoint-12"}
    return place / "train@x", place / "copy", weights


@settings(max_examples=6)
@given(order=st.randoms(use_true_random=False), share=st.floats(0, 1))
@pytest.mark.slow
def test_what_a_killed_removal_has_left_does_not_change_the_weights(finished, order, share):
    path, copy, weights = finished
    shutil.rmtree(path)
    shutil.copytree(copy, path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    order.shuffle(files)
    for file in files[: round(share * len(files))]:
        file.unlink()
    assert fit_linear(path) == weights
