"""Two processes train as one does, and resume after a kill."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.torch import load_file

from tests.project_copy import ROOT
from wxb.core.errors import WxbError
from wxb.core.params.training import Training
from wxb.training import processes, trainer

# A gradient is a sum of at most 8 x 12 terms below 1, so in float64 it errs by 96 x 2^-53 = 1e-14.
# AdamW divides it by at least its epsilon of 1e-8, so an update at the rate 1e-2 errs by at most
# 1e-8, and the 18 updates by 2e-7.
CLOSE = 1e-6
# 19 records: the last batch of 8 has 3, two for one process and one for the other.
TRAIN = """
import json, sys
from functools import partial
from pathlib import Path
import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F
from transformers import set_seed
from wxb.core.params.training import Training
from wxb.training import processes
from wxb.training.batches import collate
from wxb.training.trainer import fit

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(30, 16), nn.Linear(16, 30)
        self.out.weight = self.embed.weight
        self.hidden = nn.Linear(16, 16)

    def forward(self, input_ids, attention_mask, labels):
        logits = self.out(self.hidden(self.embed(input_ids)).relu())
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits}

count = int(sys.argv[1])
rng = np.random.default_rng(0)
items = [rng.integers(1, 30, rng.integers(3, 12)) for _ in range(19)]
items = [{"input_ids": ids, "labels": (ids * 7) % 30} for ids in items]
settings = Training(epochs=6, batch_size=8, learning_rate=1e-2, processes=count)
with processes.launch(count), processes.publish(Path("model")) as (folder,):
    set_seed(1)
    model = Model().double()  # so that another order of sums changes little
    history = fit(
        model, settings, items, items, collate=partial(collate, pad=0),
        seed=1, checkpoints=Path("checkpoints"), caption="toy",
        summarize=lambda logits, labels: logits.argmax(-1), metric="right",
        compute_metrics=lambda r: {"right": float((r.predictions == r.label_ids).mean())},
    )
    if count > 1:  # others wait for the first for more than half an hour, the default
        group = torch.distributed.distributed_c10d._get_default_group()
        assert group._get_backend(torch.device("cpu")).options._timeout.days == 1
    folder.mkdir()
    (folder / "history.json").write_text(json.dumps(history, sort_keys=True))
    del model.out.weight  # that of the embeddings
    save_file(model.state_dict(), folder / "model.safetensors")
"""


def start(folder, count):
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    return subprocess.Popen(
        [sys.executable, "train.py", str(count)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=(folder / "log").open("ab"),
        stderr=subprocess.STDOUT,
    )


def train(folder, count):
    assert start(folder, count).wait(600) == 0, (folder / "log").read_text()
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of trainings, by the number of processes."""
    return {count: train(tmp_path_factory.mktemp("runs") / str(count), count) for count in (1, 2)}


@pytest.mark.slow
def test_two_processes_have_the_history_of_one(runs):
    one, two = (json.loads((runs[n] / "model/history.json").read_text()) for n in (1, 2))
    assert len(one) == len(two) > 10
    for row, other_row in zip(one, two, strict=True):
        assert row.keys() == other_row.keys()
        for key, value in row.items():
            if key != "valid_loss":  # the last batch of the second process has repeated items
                assert other_row[key] == pytest.approx(value, rel=CLOSE), key
    weights, other_weights = (load_file(runs[n] / "model/model.safetensors") for n in (1, 2))
    assert weights.keys() == other_weights.keys()
    for name, values in weights.items():
        np.testing.assert_allclose(values, other_weights[name], rtol=0, atol=CLOSE, err_msg=name)


@pytest.mark.slow
def test_killed_processes_resume_to_the_same_bytes(runs, tmp_path):
    killed = tmp_path / "killed"
    process = start(killed, 2)
    deadline = time.monotonic() + 120
    while not any(killed.glob("checkpoints/*/rng_state_1.pth")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)  # only the first: the other notices
    process.wait()
    train(killed, 2)
    for name in ("model.safetensors", "history.json"):
        assert (runs[2] / "model" / name).read_bytes() == (killed / "model" / name).read_bytes()


def test_launch_starts_nothing_if_world_size_is_set(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    with processes.launch(4):
        assert processes.count() == 4
    with pytest.raises(WxbError, match=r"found 4 processes .*expected 2"):
        processes.launch(2).__enter__()


@pytest.mark.parametrize(
    ("end", "code"), [("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", -9)]
)
def test_a_failed_process_ends_all(tmp_path, end, code):
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, time\nfrom wxb.training import processes\n"
        "with processes.launch(2):\n"
        f"    if processes.rank():\n        {end}\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert process.returncode == 1
    assert f"process 1 of 2 failed (exit code {code})" in process.stderr


def test_only_files_of_the_first_process_are_published(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with processes.publish(tmp_path / "out") as (draft,):
        draft.write_text("mine")
    assert not [*tmp_path.iterdir()]
    monkeypatch.setenv("RANK", "0")
    with processes.publish(tmp_path / "out") as (draft,):
        draft.write_text("mine")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("length", range(1, 10))
def test_parts_of_a_batch_add_up(length, monkeypatch):
    monkeypatch.setattr(trainer, "broadcast_object_list", lambda _: [[*range(length)]])
    monkeypatch.setenv("WORLD_SIZE", "3")
    parts = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        batches = trainer._Parts(range(length), 5)
        parts.append([*batches])
        assert len(parts[-1]) == len(batches)
    for index, start in enumerate(range(0, length, 5)):
        whole = [*range(start, min(start + 5, length))]
        shares = [batches[index] for batches in parts]
        if len(whole) < 3:  # each has them all, so their mean is the same
            assert shares == [whole] * 3
        else:
            assert sorted(item for share in shares for item in share) == whole
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_batch_size_must_be_a_multiple_of_processes():
    with pytest.raises(ValueError, match="batch_size 8 is not a multiple of processes 3"):
        Training(epochs=1, batch_size=8, learning_rate=1.0, processes=3)
