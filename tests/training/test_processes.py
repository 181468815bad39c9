"""Two processes make the updates of one, go on after a kill, and leave the same in the end.

So they do with the whole model in each, and with a part of it in each (FSDP).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from wxb.core.errors import WxbError
from wxb.core.params import ParamsError, check, read_yaml
from wxb.core.params.training import Training
from wxb.training import processes
from wxb.training.sharing import own_part

ROOT = Path(__file__).parents[2]
# 19 records: the last batch of 8 has 3, of which one process gets two and the other one.
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
from wxb.metrics import Metric
from wxb.core.params.training import Training
from wxb.training import processes
from wxb.training.batches import collate
from wxb.training.run import TrainingRun
from wxb.training.trainer import fit

class Block(nn.Linear):
    def forward(self, states):
        return states + super().forward(states).relu()

class Model(nn.Module):
    _no_split_modules = ["Block"]

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(30, 16), nn.Linear(16, 30)
        self.out.weight = self.embed.weight
        self.blocks = nn.Sequential(Block(16, 16), Block(16, 16))
        self.blocks[0].bias.requires_grad = False
        self.register_buffer("factor", torch.full((), 0.5))

    def forward(self, input_ids, attention_mask, labels):
        logits = self.out(self.factor * self.blocks(self.embed(input_ids)))
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits}

count = int(sys.argv[1])
rng = np.random.default_rng(0)
items = [rng.integers(1, 30, rng.integers(3, 12)) for _ in range(19)]
items = [{"input_ids": ids, "labels": (ids * 7) % 30} for ids in items]
with processes.together(count):
    for fsdp in (False, True)[:count]:
        settings = Training(epochs=6, batch_size=8, learning_rate=1e-2, processes=count, fsdp=fsdp,
                            gradient_accumulation=int(sys.argv[2]))
        with processes.published(Path(f"made-{fsdp}")) as (folder,):
            set_seed(1)
            model = Model()
            history = fit(model, TrainingRun(
                settings, train=items, valid=items[:5], collate=partial(collate, pad=0),
                seed=1, checkpoints=Path(f"checkpoints-{fsdp}"), label="toy",
                summarize=lambda logits, labels: logits.argmax(-1), best=Metric("right", "right"),
                compute_metrics=lambda found, labels: {"right": float((found == labels).mean())},
            ))
            folder.mkdir()
            (folder / "history.json").write_text(json.dumps(history, sort_keys=True))
            del model.out.weight  # that of the embeddings
            save_file(model.state_dict(), folder / "model.safetensors")
"""


def start(folder, count, accumulation=1):
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    return subprocess.Popen(
        [sys.executable, "train.py", str(count), str(accumulation)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=(folder / "log").open("ab"),
        stderr=subprocess.STDOUT,
    )


def train(folder, count, accumulation=1):
    assert start(folder, count, accumulation).wait(600) == 0, (folder / "log").read_text()
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By their number of processes, the folders of trainings."""
    return {count: train(tmp_path_factory.mktemp("runs") / str(count), count) for count in (1, 2)}


@pytest.mark.slow
@pytest.mark.parametrize("fsdp", [False, True])
def test_two_processes_give_the_curve_of_one(runs, fsdp):
    made = runs[1] / "made-False", runs[2] / f"made-{fsdp}"
    alone, both = (json.loads((folder / "history.json").read_text()) for folder in made)
    assert len(alone) == len(both) > 10
    for row, other in zip(alone, both, strict=True):
        assert row.keys() == other.keys()
        for key, value in row.items():
            # In the loss the last batch of validation is filled up for the second process.
            rel = 0.2 if key == "valid_loss" else 1e-4
            assert other[key] == pytest.approx(value, rel=rel, abs=1e-6), key
    weights, others = (load_file(folder / "model.safetensors") for folder in made)
    assert weights.keys() == others.keys()
    for name, values in weights.items():
        assert np.allclose(values, others[name], atol=1e-4), name


@pytest.mark.slow
def test_killed_processes_go_on_to_the_same_bytes(runs, tmp_path):
    killed = tmp_path / "killed"
    # The second training is to find what one leaves that was killed in its last epoch.
    shutil.copytree(runs[2] / "checkpoints-True", killed / "checkpoints-True")
    max(killed.glob("*/*/rng_state_1.pth")).unlink()
    process = start(killed, 2)
    deadline = time.monotonic() + 120
    while not any(killed.glob("checkpoints-False/*/trainer_state.json")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)  # the first alone: the other notices
    process.wait()
    if not (killed / "made-True").exists():
        train(killed, 2)
    assert "going on from checkpoints-True/checkpoint-15" in (killed / "log").read_text()
    for name in ("model.safetensors", "history.json"):
        for made in ("made-False", "made-True"):
            assert (runs[2] / made / name).read_bytes() == (killed / made / name).read_bytes()


def test_processes_that_something_else_has_started(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    with processes.together(4):
        assert processes.count() == 4
    with pytest.raises(WxbError, match=r"found 4 processes .*expected `training.processes`"):
        processes.together(2).__enter__()


def test_one_that_fails_ends_all(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(
        "import time\nfrom wxb.training import processes\n"
        "with processes.together(2):\n"
        "    if processes.rank():\n        raise SystemExit(3)\n"
        "    time.sleep(60)\n"
    )
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 1
    assert "process 1 of 2 failed (exit code 3)" in done.stderr


def test_what_others_write_is_thrown_away(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with processes.published(tmp_path / "out") as (draft,):
        draft.write_text("mine")
    assert not [*tmp_path.iterdir()]
    monkeypatch.setenv("RANK", "0")
    with processes.published(tmp_path / "out") as (draft,):
        draft.write_text("mine")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("length", range(1, 10))
def test_parts_of_a_batch_are_all_of_it(length, monkeypatch):
    items = [*range(length)]
    monkeypatch.setenv("WORLD_SIZE", "3")
    parts = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        parts.append(own_part(list, items))
    if length < 3:  # each has them all, and the mean of the three is theirs
        assert parts == [items] * 3
    else:
        assert sorted(item for part in parts for item in part) == items
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_model_is_divided_among_several():
    with pytest.raises(ValueError, match="fsdp is set, and processes is 1"):
        Training(epochs=1, batch_size=8, learning_rate=1.0, fsdp=True)
    content = read_yaml(ROOT / "params.yaml")
    content["experiments"]["ner-decoder-qlora"]["training"] |= {"processes": 2, "fsdp": True}
    with pytest.raises(ParamsError, match=r"four_bit and training.fsdp exclude each other"):
        check(content)


def test_a_batch_is_divided_evenly():
    with pytest.raises(ValueError, match="batch_size 8 is not a multiple of processes 3"):
        Training(epochs=1, batch_size=8, learning_rate=1.0, processes=3)
