"""Folders of checkpoints, from which a killed stage resumes.

DVC deletes the outputs of a stage before it runs. So checkpoints are in a separate folder, whose
name has a hash of everything that the result depends on. If any of it changes, training restarts.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wxb.core.files import publish, read_json, sha256, write_json

FOLDER = Path(".wxb/checkpoints")
# Folders of code that affects a result, also of modules that a stage imports later.
WXB = Path(__file__).parents[1]
PARTS = ("core", "corpora", "lessons", "models", "runtime", "tasks", "training")
CODE = (WXB.with_name("stages"), *(WXB / part for part in PARTS))

STATE = "trainer_state.json"  # in transformers/trainer.py, which takes seconds to import
SUMS = "sha256.json"  # the hashes of the other files of a checkpoint; written last


def folder(stage: str, settings: Sequence[Any], inputs: Iterable[Path]) -> Path:
    """The path of a stage's checkpoint folder, named by a hash of settings, inputs and CODE.

    `settings` are JSON values, `inputs` files or folders. Files are hashed by their path in these
    or in CODE, and by content.
    """
    pairs = [(root, path) for root in CODE for path in root.rglob("*.py")]
    for root in inputs:
        is_folder = root.is_dir()
        parts = root.rglob("*") if is_folder else [root]
        pairs += [(root if is_folder else root.parent, path) for path in parts]
    files = sorted((f"{p.relative_to(r)}", sha256(p)) for r, p in pairs if p.is_file())
    digest = hashlib.sha256(json.dumps([settings, files], sort_keys=True).encode()).hexdigest()
    return FOLDER / f"{stage}-{digest[:16]}"


def seal(checkpoint: Path) -> None:
    """Write the hashes of all files of a complete checkpoint beside them."""
    files = [file for file in sorted(checkpoint.iterdir()) if file.is_file() and file.name != SUMS]
    sums = {file.name: sha256(file) for file in files}
    with publish(checkpoint / SUMS) as (draft,):
        write_json(draft, sums)


def last_complete(checkpoints: Path) -> Path | None:
    """The newest undamaged checkpoint of a folder, or None; deletes damaged ones after it.

    A checkpoint is also damaged if the best one that it names is. Prints a line for each deletion.
    A deletion may be killed, so the hashes go first.
    """
    newest_last = sorted(checkpoints.glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    for checkpoint in reversed(newest_last):
        if _is_complete(checkpoint):
            return checkpoint
        print(f"{checkpoint} is damaged or incomplete; it was removed", flush=True)
        (checkpoint / SUMS).unlink(missing_ok=True)
        shutil.rmtree(checkpoint)
    return None


def _is_complete(checkpoint: Path) -> bool:
    """Whether a checkpoint, and the best one that it names, have the bytes that were sealed."""
    try:
        best = read_json(checkpoint / STATE)["best_model_checkpoint"]
        for folder in (checkpoint, *([Path(best)] if best else [])):
            sums = read_json(folder / SUMS)
            if any(sha256(folder / name) != digest for name, digest in sums.items()):
                return False
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return False
    return True
