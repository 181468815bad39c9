"""Where unfinished training is kept, so that a killed stage goes on instead of starting again.

DVC deletes a stage's outputs before it runs it, so checkpoints live elsewhere: in a folder named
after everything that decides the result. Change any of it and training starts afresh.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

FOLDER = Path(".wxb/checkpoints")
OWN = ("__main__", "stages", "wxb")  # top-level modules whose code decides the result


def folder(stage: str, settings: Iterable[BaseModel | int], inputs: Iterable[Path]) -> Path:
    """The folder of checkpoints for these settings, input files and folders, and this code."""
    blocks = [block.model_dump() if isinstance(block, BaseModel) else block for block in settings]
    files = sorted((path.name, _sha256(path)) for path in [*_files(inputs), *_own_modules()])
    digest = hashlib.sha256(json.dumps([blocks, files], sort_keys=True).encode()).hexdigest()
    return FOLDER / f"{stage}-{digest[:16]}"


def last_complete(checkpoints: Path) -> Path | None:
    """The newest checkpoint that was written to its end, or None.

    The Trainer writes its state last; one that cannot be read was cut off.
    """
    found = sorted(checkpoints.glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    return next(filter(_is_complete, reversed(found)), None)


def _is_complete(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True


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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
