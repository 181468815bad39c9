"""Copy, download or generate the raw files of a corpus."""

from __future__ import annotations

import importlib
import inspect
import shutil
from pathlib import Path

from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.files import write_jsonl
from wxb.core.params.corpora import Corpus
from wxb.core.progress import track
from wxb.corpora import web


def fetch(corpus: Corpus, folder: Path, *, seed: int, label: str) -> None:
    """Copy, download or generate the raw files of a corpus into an empty folder.

    Raises WxbError if `path` does not exist, the generator fails, or a download fails.
    """
    path = Path(corpus.path)
    if not path.exists():
        raise WxbError(f"{corpus.path}: no such file or folder; correct `path` of the corpus")
    if corpus.generate:
        _generate(corpus, folder, seed=seed, label=label)
    elif corpus.hub:
        hub.fetch(corpus.hub.repository, corpus.hub.revision, corpus.hub.files, folder)
    elif corpus.urls:
        for download in corpus.urls:
            web.fetch(download, folder, label=label)
    elif path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
    else:
        shutil.copyfile(path, folder / path.name)


def _generate(corpus: Corpus, folder: Path, *, seed: int, label: str) -> None:
    """Write the records of `generate` in the Python module at `path` to records.jsonl.

    A generator that also writes files, such as recordings, has a parameter `folder`.
    """
    assert corpus.generate is not None
    module = ".".join(Path(corpus.path).with_suffix("").parts)
    try:
        generate = importlib.import_module(module).generate
    except (ModuleNotFoundError, AttributeError, TypeError) as error:  # TypeError: path has ..
        raise WxbError(
            f"{corpus.path}: found {error}; expected a Python module with a function `generate`"
        ) from None
    total = corpus.generate.labelled + corpus.generate.unlabelled
    try:
        settings = {**corpus.generate.model_dump(), "seed": seed}
        if "folder" in inspect.signature(generate).parameters:
            settings["folder"] = folder
        records = generate(**settings)
    except ValueError as error:
        raise WxbError(f"{corpus.path}: {error}; change `generate` of the corpus") from None
    write_jsonl(folder / "records.jsonl", track(records, label, total))
