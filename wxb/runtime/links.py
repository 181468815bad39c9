"""Links among the outputs of stages. DVC makes some itself, from files to its cache."""

from collections.abc import Iterable
from pathlib import Path

from wxb.core.errors import WxbError


def require_valid_links(outputs: Iterable[Path]) -> None:
    """Raise WxbError for a linked folder above an output, and for a link without a target."""
    for output in outputs:
        inner = output.rglob("*") if output.is_dir() else ()
        for path in filter(Path.is_symlink, [*output.parents, output, *inner]):
            if path in output.parents:
                raise WxbError(
                    f"{path} is a link to {path.readlink()}, but DVC saves only files inside the"
                    " project. Replace the link with a folder; to keep files on another disk, run"
                    " `dvc config --local cache.dir FOLDER` and `dvc config --local cache.type"
                    " symlink`"
                )
            if not path.exists():
                raise WxbError(
                    f"{path} is a link to {path.readlink()}, which does not exist. Mount its disk;"
                    " if the file is lost, `wxb verify --repair` removes the link"
                )
