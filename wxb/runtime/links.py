"""Links among the outputs of stages. DVC makes some itself, from files to its cache."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from wxb.core import paths
from wxb.core.errors import WxbError

FOLDERS = (paths.DATA, paths.MODELS, paths.LOGS, paths.REPORTS)


def require_plain_folders(outputs: Iterable[Path] = ()) -> None:
    """Raise WxbError if a folder that holds outputs is a link: DVC would refuse to save them.

    Checks the top folders, and those above `outputs`, which are paths in the project.
    """
    for folder in dict.fromkeys([*FOLDERS, *(p for out in outputs for p in out.parents)]):
        if folder.is_symlink():
            missing = "" if folder.exists() else ", which does not exist (is its disk mounted?)"
            raise WxbError(
                f"{folder} is a link to {folder.readlink()}{missing}; DVC writes outputs to folders"
                " of the project only. Replace the link with a folder. To keep large files on"
                " another disk, run `dvc config --local cache.dir FOLDER` and"
                " `dvc config --local cache.type symlink`"
            )


def require_targets(outputs: Iterable[Path]) -> None:
    """Raise WxbError if an output is, or contains, a link whose target does not exist."""
    for output in outputs:
        for path in [output, *(output.rglob("*") if output.is_dir() else ())]:
            if path.is_symlink() and not path.exists():
                raise WxbError(
                    f"{path} is a link to {path.readlink()}, which does not exist. Mount its disk;"
                    " if the file is lost, `wxb verify --repair` removes such links"
                )
