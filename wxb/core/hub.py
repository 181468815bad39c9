"""Download checkpoints and data sets from the Hugging Face hub, through its local cache.

Cached files of a pinned commit need no network. All failures raise WxbError.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from wxb.core.errors import DEFECTS, WxbError, error_line
from wxb.core.files import read_json
from wxb.core.packages import GGUF, PACKAGES, packaged_checkpoint, require_gguf
from wxb.core.pretrained import ADAPTER, WEIGHTS

# The files that transformers reads at the top of a repository. Python files and pickles (*.bin,
# *.pth) can run code, so they are never downloaded.
TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
LFS = b"version https://git-lfs"

Kind = Literal["model", "dataset"]


@contextmanager
def checkpoint(
    name: str | Path, revision: str | None = None, *, weights: bool = False
) -> Iterator[Path]:
    """Yield the folder or GGUF file of a checkpoint that is local, in PACKAGES or on the hub.

    The path may be temporary. Downloads missing files if `revision` is set, weights only if
    `weights` is; folders must then have complete safetensors or an adapter. Raises WxbError for
    unusable checkpoints, and replaces exceptions of the `with` block, except DEFECTS, by WxbError.
    """
    with TemporaryDirectory() as temporary:
        source = Path(name)
        if name in PACKAGES:
            source = packaged_checkpoint(str(name), Path(temporary))
        if source.suffix == GGUF:
            require_gguf(source)
        elif not source.is_dir():
            if revision is None:
                cure = "correct `checkpoint`, or set `revision` to a commit if it is of the hub"
                raise WxbError(f"{name}: no such file or folder; {cure}")
            files = [*TOKENIZER_FILES, "model*.safetensors"] if weights else TOKENIZER_FILES
            source = _snapshot(str(name), revision, files, "model")
        small = (f for f in source.glob("*") if f.is_file() and f.stat().st_size < 1024)
        if pointer := next((f for f in small if f.read_bytes().startswith(LFS)), None):
            raise WxbError(f"{pointer}: found a pointer of Git LFS; run `git lfs pull` in {source}")
        is_adapter = (source / ADAPTER).exists()  # the module `compatibility` names its cure
        try:
            if weights and source.is_dir() and not is_adapter:
                _require_weights(name, source)
            yield source
        except (WxbError, *DEFECTS):
            raise
        except Exception as error:  # libraries raise any other for damaged files
            raise WxbError(
                f"{name}: expected a checkpoint that transformers can load without custom code;"
                f" found: {error_line(error)}"
            ) from error


def _require_weights(name: str | Path, folder: Path) -> None:
    """Raise WxbError for missing safetensors, or for a full file and shards in one local folder."""
    index, files = folder / f"{WEIGHTS}.index.json", {path.name for path in folder.iterdir()}
    if WEIGHTS in files and index.name in files and Path(name).is_dir():
        raise WxbError(f"{name}: found {WEIGHTS} and {index.name}; remove the older weights")
    names = read_json(index)["weight_map"].values() if index.name in files else [index.name]
    if missing := [] if WEIGHTS in files else sorted({*names} - files):
        if index.name in files or any(folder.glob("model-*.safetensors")):
            raise WxbError(f"{name}: found no {', '.join(missing[:3])}; copy all weights again")
        inner = (path.parent for path in folder.glob(f"*/{WEIGHTS}"))
        if others := ", ".join(sorted(map(str, [*inner, *folder.glob(f"*{GGUF}")]))):
            raise WxbError(f"{name}: found no {WEIGHTS}; set `checkpoint` to one of {others}")
        raise WxbError(
            f"{name}: found no model.safetensors; other formats (pytorch_model.bin) can run code:"
            " choose a revision with safetensors, or convert weights that you trust with"
            " `save_pretrained` and set `checkpoint` to that folder"
        )


def fetch_dataset(repository: str, revision: str, patterns: Sequence[str], folder: Path) -> None:
    """Copy the files of a data set that match one of the patterns into `folder`.

    Downloads uncached files first. As on the hub, `*` also matches `/`. Raises WxbError if the
    download fails or no file matches.
    """
    from huggingface_hub.utils import filter_repo_objects

    cache = _snapshot(repository, revision, patterns, "dataset")
    cached = [path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.is_file()]
    # The cache may also have files that other patterns matched.
    names = list(filter_repo_objects(cached, allow_patterns=list(patterns)))
    if not names:
        raise WxbError(
            f"{repository}: found no file that matches {', '.join(patterns)}; change `files` of the"
            f" corpus: https://huggingface.co/datasets/{repository}/tree/{revision} lists the files"
        )
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cache / name, folder / name)


def _snapshot(repository: str, revision: str, files: Sequence[str], kind: Kind) -> Path:
    """Download uncached files (of a model only those at its top), and return the cached folder."""
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
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:  # hf_xet: RuntimeError
        page = f"https://huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repository}"
        raise WxbError(
            f"{repository}: no download of revision {revision!r} ({error_line(error)}). Compare"
            f" both with {page}/commits/main; a restricted one needs HF_TOKEN. Run it again with a"
            " network, or set `checkpoint`, or `path` of the corpus, to a local folder"
        ) from error
