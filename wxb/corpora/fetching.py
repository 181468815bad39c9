"""Bring the raw data of a corpus into a folder: generate, copy or fetch it (hub, web)."""

from __future__ import annotations

import importlib
import inspect
import shutil
from pathlib import Path

from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.files import write_jsonl
from wxb.core.params.corpora import Corpus
from wxb.core.progress import tracked
from wxb.corpora import web


def fetch(corpus: Corpus, folder: Path, *, seed: int, label: str) -> None:
    """Fill an empty folder with the raw files of a corpus, unchanged.

    Raises WxbError when `path` is not what the corpus says it is, or the hub or the web do not
    give it.
    """
    path = Path(corpus.path)
    if not path.exists():
        raise WxbError(f"{corpus.path}: no such file or folder; set `path` of the corpus")
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
    """Call `generate` of the Python module at `path` and keep its records as JSON Lines.

    One that writes files besides, such as recordings, takes `folder`.
    """
    assert corpus.generate is not None
    module = ".".join(Path(corpus.path).with_suffix("").parts)
    try:
        generate = importlib.import_module(module).generate
    except (ModuleNotFoundError, AttributeError, TypeError) as error:  # TypeError: path goes up
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
    write_jsonl(folder / "records.jsonl", tracked(records, label, total))
