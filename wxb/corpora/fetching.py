"""Copy, download or generate the raw files of a corpus."""

import importlib
import inspect
import shutil
from pathlib import Path

from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.files import kind_of, write_jsonl
from wxb.core.params.corpora import Corpus
from wxb.core.progress import Progress, track
from wxb.corpora import web


def fetch(corpus: Corpus, folder: Path, *, seed: int, caption: str) -> None:
    """Copy, download or generate the raw files of a corpus into an empty folder.

    Raises WxbError if `path` does not exist, the generator fails, or a download fails.
    """
    path = Path(corpus.path)
    if not path.exists():
        raise WxbError(f"{corpus.path}: no such file or folder; correct `path` of the corpus")
    if corpus.generate:
        _generate(corpus, folder, seed=seed, caption=caption)
    elif corpus.hub:
        hub.fetch(corpus.hub.repository, corpus.hub.revision, corpus.hub.files, folder)
    elif corpus.urls:
        for download in corpus.urls:
            web.fetch(download, folder, caption=caption)
    elif path.is_dir():
        _copy(path, folder, caption)
    else:
        shutil.copyfile(path, folder / path.name)


def _copy(source: Path, folder: Path, caption: str) -> None:
    """Copy a folder with the content of links; prints which entries it skips."""
    skipped: list[str] = []

    def ignore(parent: str, names: list[str]) -> list[str]:
        paths = [Path(parent, name) for name in sorted(names)]
        ignored = [path for path in paths if not (path.is_file() or path.is_dir())]
        # A link to a folder that contains it would have no end.
        ignored += [
            p for p in paths if p.is_dir() and p.parent.resolve().is_relative_to(p.resolve())
        ]
        skipped.extend(f"{path.relative_to(source)}{kind_of(path)}" for path in ignored)
        return [path.name for path in ignored]

    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=ignore)
    if skipped:
        print(f"{caption}: skipped: {', '.join(skipped)}", file=Progress.console)


def _generate(corpus: Corpus, folder: Path, *, seed: int, caption: str) -> None:
    """Write the records of `generate` in the Python module at `path` to records.jsonl.

    A generator that also writes files, such as recordings, has a parameter `folder`. `path` must be
    a Python file or package: the module beside a data file of that name is not imported.
    """
    assert corpus.generate is not None
    path = Path(corpus.path)
    if path.suffix != ".py" and not (path / "__init__.py").is_file():
        raise WxbError(
            f"{corpus.path}: found data; expected a Python module with a function `generate`:"
            " correct `path` of the corpus, or remove its `generate`"
        )
    total = corpus.generate.labelled + corpus.generate.unlabelled
    settings = {**corpus.generate.model_dump(), "seed": seed}
    try:
        generate = importlib.import_module(".".join(path.with_suffix("").parts)).generate
        if "folder" in inspect.signature(generate).parameters:
            settings["folder"] = folder
        records = generate(**settings)
    except (ValueError, ModuleNotFoundError, AttributeError, TypeError) as error:
        detail = "expected a Python module whose function `generate` takes those of the corpus"
        raise WxbError(f"{corpus.path}: {error}; {detail}") from None  # TypeError: path has ..
    write_jsonl(folder / "records.jsonl", track(records, caption, total))
