"""Where unfinished training is kept, so that a killed stage goes on instead of starting again.

DVC deletes a stage's outputs before it runs it, so checkpoints live elsewhere: in a folder named
after everything that decides the result. Change any of it and training starts afresh.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from pydantic import BaseModel
from safetensors import SafetensorError, safe_open

from wxb.core.files import sha256

FOLDER = Path(".wxb/checkpoints")
OWN = ("__main__", "stages", "wxb")  # top-level modules whose code decides the result

# What transformers' Trainer calls the files of a checkpoint (transformers/trainer.py). They are
# not imported from there: that takes seconds, which `wxb` would need at each start.
STATE = "trainer_state.json"
SCHEDULER, OPTIMIZER = "scheduler.pt", "optimizer.pt"
SHARDED = ("optimizer.bin", "pytorch_model_fsdp.bin")  # by accelerate, of FSDP


def folder(stage: str, settings: Iterable[BaseModel | int], inputs: Iterable[Path]) -> Path:
    """The folder of checkpoints for these settings, input files and folders, and this code."""
    blocks = [block.model_dump() if isinstance(block, BaseModel) else block for block in settings]
    files = sorted((path.name, sha256(path)) for path in [*_files(inputs), *_own_modules()])
    digest = hashlib.sha256(json.dumps([blocks, files], sort_keys=True).encode()).hexdigest()
    return FOLDER / f"{stage}-{digest[:16]}"


def kept(stage: str) -> bool:
    """Whether a checkpoint of the stage waits for it, whatever the settings it was made with."""
    found = FOLDER.glob("*/checkpoint-*")
    return any(path.parent.name.rpartition("-")[0] == stage for path in found)


def last_complete(checkpoints: Path, processes: int = 1, *, sharded: bool = False) -> Path | None:
    """The newest checkpoint from which training can go on, or None. Removes the ones after it.

    Training will write those again, file by file: were one left with its old state, it would look
    complete before it is.
    """
    found = sorted(checkpoints.glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    for checkpoint in reversed(found):
        if _is_complete(checkpoint, processes, sharded):
            return checkpoint
        (checkpoint / STATE).unlink(missing_ok=True)  # first: this removal may be killed, too
        shutil.rmtree(checkpoint)
    return None


def _is_complete(checkpoint: Path, processes: int, sharded: bool) -> bool:
    """Whether nothing is missing that the Trainer would silently do without, or stumble over.

    It writes its state last, so a state that can be read means that all else was written. But a
    removal may have been killed, and removes in any order. Then the Trainer goes on without random
    state and optimiser, or ends with the last weights because the best ones are gone.
    """
    # Each of several processes has random numbers of its own, and may be the last that writes.
    many = [f"rng_state_{number}.pth" for number in range(processes)]
    progress = SHARDED if sharded else (OPTIMIZER,)
    try:
        state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        for name in (SCHEDULER, *progress, *(many if processes > 1 else ["rng_state.pth"])):
            ZipFile(checkpoint / name).close()
        best = state["best_model_checkpoint"]
        return all(map(_has_weights, [checkpoint, *([Path(best)] if best else [])]))
    except (FileNotFoundError, json.JSONDecodeError, BadZipFile, SafetensorError):
        return False


def _has_weights(checkpoint: Path) -> bool:
    """Whether there are weights; raises SafetensorError if some of them were cut off."""
    files = list(checkpoint.glob("*.safetensors"))
    for file in files:
        with safe_open(file, framework="numpy"):
            pass  # opening compares the length of the file with its header
    return bool(files)


def _files(paths: Iterable[Path]) -> list[Path]:
    return [
        file
        for path in paths
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    ]


def _own_modules() -> list[Path]:
    """The files of this project that are loaded now; the stage that runs is `__main__`."""
    own = [m for name, m in sys.modules.items() if name.split(".")[0] in OWN]
    return [Path(file) for module in own if (file := getattr(module, "__file__", None))]
