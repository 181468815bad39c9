"""The bytes that parameters with `portable` promise on every x86-64 CPU with AVX2.

`make portable` runs the profile tiny in a clone, and writes the hashes of what it made.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from wxb.core import paths
from wxb.core.files import read_json, sha256
from wxb.core.params import PARAMS, read_yaml
from wxb.project.profiles import flat
from wxb.project.revisions import WorkingTree

FOLDERS = (paths.MODELS.as_posix(), paths.METRICS.as_posix())


class Kept(NamedTuple):
    """What became of the promised files."""

    files: int
    missing: list[str]
    differing: list[str]

    @property
    def line(self) -> str:
        """It in one line, with the files that differ."""
        made = self.files - len(self.missing)
        equal = made - len(self.differing)
        same = f"{equal} of {made} files have the bytes that {paths.PROMISE} promises"
        lacking = f", {len(self.missing)} are not made" if self.missing else ""
        other = f"; other bytes: {', '.join(self.differing)}" if self.differing else ""
        return f"portable: {same}{lacking}{other}"


def promised() -> dict[str, object]:
    """The parameters here as one hash, and the SHA-256 of every model and metric made of them."""
    tree = WorkingTree()
    files = [path for folder in FOLDERS for path in tree.files(folder)]
    names = {name for section in ("studies", "lessons") for name in read_yaml(PARAMS)[section]}
    names |= {paths.PRETRAIN, paths.LESSONS, paths.PARITY}
    made = [
        path
        for path in files
        if not Path(path).name.startswith(".")  # DVC's .gitignore
        # The kept metrics of other studies come with every clone, and were made by none of these.
        and (path.startswith("models/") or Path(path).parent.name in names)
    ]
    return {"params": _params(), "files": {path: sha256(Path(path)) for path in made}}


def kept() -> Kept | None:
    """Whether what was made here is as promised; None where other parameters were promised."""
    if not paths.PROMISE.exists():
        return None
    promise = read_json(paths.PROMISE)
    if promise["params"] != _params():
        return None
    found = {path: Path(path) for path in promise["files"]}
    return Kept(
        len(found),
        [path for path, file in found.items() if not file.is_file()],
        [
            path
            for path, file in found.items()
            if file.is_file() and sha256(file) != promise["files"][path]
        ],
    )


def _params() -> str:
    content = json.dumps(flat(read_yaml(PARAMS)), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(promised(), indent=2))
