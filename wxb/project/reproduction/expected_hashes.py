"""The hashes of models and metrics that parameters with `portable: true` must reproduce.

They hold on every x86-64 CPU with AVX2. `make portable` runs the profile tiny in a clone, and
writes the hashes of its files to reports/tiny.json with this module.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from wxb.core import paths
from wxb.core.files import read_json, sha256
from wxb.core.params import PARAMS, read_yaml
from wxb.core.params.section import flatten
from wxb.project.reproduction.comparison import Results
from wxb.project.revisions import WorkingTree

FOLDERS = (paths.MODELS.as_posix(), paths.METRICS.as_posix())


class HashCheck(NamedTuple):
    """The number of expected files, and the paths of those not written here, or that differ."""

    files: int
    missing: list[str]
    differing: list[str]

    @property
    def line(self) -> str:
        """One line with the counts and the differing files."""
        present = self.files - len(self.missing)
        equal = present - len(self.differing)
        head = f"{equal} of {present} files have the hashes in {paths.EXPECTED_HASHES}"
        missing = f", {len(self.missing)} were not run here" if self.missing else ""
        differing = f"; they differ: {', '.join(self.differing)}" if self.differing else ""
        return f"portable: {head}{missing}{differing}"


def current_hashes() -> dict[str, object]:
    """One hash of params.yaml, and the SHA-256 of every model and metrics file of its blocks.

    Without experiments in 4 bits: bitsandbytes selects its CPU kernels itself.
    """
    tree = WorkingTree()
    params = read_yaml(PARAMS)
    folders = {name for section in ("studies", "lessons") for name in params[section]}
    folders |= {paths.PRETRAIN, paths.LESSONS}
    experiments = params["experiments"].items()
    quantized = {name for name, block in experiments if (block.get("tuning") or {}).get("four_bit")}
    files = [
        path
        for folder in FOLDERS
        for path in map(Path, tree.files(folder))
        if not path.name.startswith(".")  # DVC's .gitignore
        and not quantized & {path.parent.name, path.stem}
        # Every clone has committed metrics of other studies, which no run here wrote.
        and (path.parts[0] == paths.MODELS.name or path.parent.name in folders)
    ]
    return {"params": _params_hash(), "files": {path.as_posix(): sha256(path) for path in files}}


def check_hashes() -> HashCheck | None:
    """Compare files with reports/tiny.json; None if it does not exist or has other parameters."""
    if not paths.EXPECTED_HASHES.exists():
        return None
    expected = read_json(paths.EXPECTED_HASHES)
    if expected["params"] != _params_hash():
        return None
    hashes = expected["files"]
    results = Results(WorkingTree())
    present = [path for path in hashes if Path(path).is_file() and _has_run(results, Path(path))]
    return HashCheck(
        len(hashes),
        [path for path in hashes if path not in present],
        [path for path in present if sha256(Path(path)) != hashes[path]],
    )


def _has_run(results: Results, path: Path) -> bool:
    """Whether a file is a model, or metrics that a run wrote here; a clone has committed ones."""
    if path.parts[0] == paths.MODELS.name:
        return True
    folder = path.parent.name
    return results.has_run(path.stem if folder == paths.LESSONS else folder, path.stem)


def _params_hash() -> str:
    content = json.dumps(flatten(read_yaml(PARAMS)), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(current_hashes(), indent=2))
