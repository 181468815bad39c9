"""Folders of checkpoints, from which a killed stage resumes.

DVC deletes the outputs of a stage before it runs. So checkpoints are in a separate folder, whose
name has a hash of everything that the result depends on. If any of it changes, training restarts.
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

from wxb.core.files import read_json, sha256

FOLDER = Path(".wxb/checkpoints")
OWN = ("__main__", "stages", "wxb")  # top-level modules whose code affects the result

# Names of the files of a checkpoint in transformers/trainer.py, which takes seconds to import.
STATE = "trainer_state.json"
SCHEDULER, OPTIMIZER = "scheduler.pt", "optimizer.pt"


def folder(stage: str, settings: Iterable[BaseModel | int], inputs: Iterable[Path]) -> Path:
    """The checkpoint folder of a stage, named by a hash of settings, inputs and loaded code.

    `inputs` are files or folders. All of them are read.
    """
    blocks = [block.model_dump() if isinstance(block, BaseModel) else block for block in settings]
    below = [[*path.rglob("*")] if path.is_dir() else [path] for path in inputs]
    own = [m for name, m in sys.modules.items() if name.split(".")[0] in OWN]
    code = [Path(file) for module in own if (file := getattr(module, "__file__", None))]
    paths = [path for group in [*below, code] for path in group if path.is_file()]
    files = sorted((path.name, sha256(path)) for path in paths)
    digest = hashlib.sha256(json.dumps([blocks, files], sort_keys=True).encode()).hexdigest()
    return FOLDER / f"{stage}-{digest[:16]}"


def has_checkpoint(stage: str) -> bool:
    """Whether the stage has a checkpoint, with any settings."""
    paths = FOLDER.glob("*/checkpoint-*")
    return any(path.parent.name.rpartition("-")[0] == stage for path in paths)


def last_complete(checkpoints: Path, processes: int = 1) -> Path | None:
    """The newest complete checkpoint of a folder, or None; deletes the incomplete ones after it.

    Training writes those again, file by file. With its old state file, a half-written checkpoint
    would look complete.
    """
    newest_last = sorted(checkpoints.glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    for checkpoint in reversed(newest_last):
        if _is_complete(checkpoint, processes):
            return checkpoint
        (checkpoint / STATE).unlink(missing_ok=True)  # first: this deletion may be killed, too
        shutil.rmtree(checkpoint)
    return None


def _is_complete(checkpoint: Path, processes: int) -> bool:
    """Whether a checkpoint has all files that training resumes from, undamaged.

    The Trainer writes its state file last, but a killed deletion may leave it with other files
    missing. The Trainer would then continue without random state and optimizer, or end with the
    last weights instead of the best.
    """
    # Each process has its own random state, and may be the last to write it.
    by_process = [f"rng_state_{rank}.pth" for rank in range(processes)]
    random = by_process if processes > 1 else ["rng_state.pth"]
    try:
        state = read_json(checkpoint / STATE)
        for name in (SCHEDULER, OPTIMIZER, *random):
            ZipFile(checkpoint / name).close()
        best = state["best_model_checkpoint"]
        return all(map(_has_weights, [checkpoint, *([Path(best)] if best else [])]))
    except (FileNotFoundError, json.JSONDecodeError, BadZipFile, SafetensorError):
        return False


def _has_weights(checkpoint: Path) -> bool:
    """Whether a checkpoint has weights; raises SafetensorError if a file is truncated."""
    files = list(checkpoint.glob("*.safetensors"))
    for file in files:
        with safe_open(file, framework="numpy"):
            pass  # opening compares the length of the file with its header
    return bool(files)
