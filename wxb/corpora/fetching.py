"""Copy, download or generate the raw files of a corpus."""

import importlib
import inspect
import shutil
from pathlib import Path

from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.files import write_jsonl
from wxb.core.params.corpora import Corpus, Generate
from wxb.core.progress import track
from wxb.corpora import web


def fetch(corpus: Corpus, folder: Path, *, seed: int, caption: str) -> None:
    """Copy, download or generate the raw files of a corpus into an empty folder.

    Raises WxbError if `path` does not exist, even for a download, or if any of these fails.
    """
    path = Path(corpus.path)
    if not path.exists():
        raise WxbError(f"{corpus.path}: no such file or folder; correct `path` of the corpus")
    if corpus.generate:
        _generate(corpus.path, corpus.generate, folder, seed=seed, caption=caption)
    elif corpus.hub:
        hub.fetch_dataset(corpus.hub.repository, corpus.hub.revision, corpus.hub.files, folder)
    elif corpus.urls:
        for download in corpus.urls:
            web.fetch(download, folder, caption=caption)
    elif path.is_dir():
        try:
            shutil.copytree(path, folder, dirs_exist_ok=True)
        except shutil.Error as error:
            (source, _, reason), *_ = error.args[0]
            raise WxbError(f"{source}: cannot be copied ({reason}); remove it") from None
    else:
        shutil.copyfile(path, folder / path.name)


def _generate(path: str, settings: Generate, folder: Path, *, seed: int, caption: str) -> None:
    """Write the records of `generate` in the Python module at `path` to records.jsonl.

    A generator that also writes files, such as recordings, has a parameter `folder`. Raises
    WxbError if the module or the call is wrong, and for a ValueError while records are drawn.
    """
    total = settings.labelled + settings.unlabelled
    arguments = {**settings.model_dump(), "seed": seed}
    try:
        module = ".".join(Path(path).with_suffix("").parts)
        generate = importlib.import_module(module).generate
        if "folder" in inspect.signature(generate).parameters:
            arguments["folder"] = folder
        records = generate(**arguments)
    except (ValueError, ModuleNotFoundError, AttributeError, TypeError) as error:
        raise WxbError(
            f"{path}: {error}; expected a Python module whose function `generate` takes"
            " those of the corpus; if it has data, remove `generate`"
        ) from None  # TypeError: path has ..
    try:
        write_jsonl(folder / "records.jsonl", track(records, caption, total))
    except ValueError as error:
        raise WxbError(f"{path}: {error}; correct `generate` of the corpus") from None
