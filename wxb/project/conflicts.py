"""Files in which git left both sides of a merge."""

from __future__ import annotations

import re
from pathlib import Path

from wxb.core import paths
from wxb.core.errors import WxbError

FILES = (Path("params.yaml"), Path("dvc.yaml"), Path("dvc.lock"))
RESULTS = (paths.METRICS, paths.HEADLINES, paths.STUDIES)
MARKER = re.compile(rb"^<{7} ", re.MULTILINE)
SHOWN = 3  # most files in a message


def require_none() -> None:
    """Raise WxbError, with the cure, if a file of the project or its results has a conflict."""
    results = [path for folder in RESULTS for path in sorted(folder.rglob("*.*"))]
    files = [path for path in (*FILES, *results) if path.is_file()]
    if names := [str(path) for path in files if MARKER.search(path.read_bytes())]:
        listed = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        raise WxbError(
            f"merge conflict in {listed}. Edit params.yaml and dvc.yaml; of the"
            " others keep either side, such as `git checkout --ours dvc.lock reports`. Then run"
            " the stages again: only those whose inputs differ run"
        )
