"""What is in a project's folders and no block of params.yaml is for, and what stopped runs left.

What git has is no leftover: results are committed of studies that only a profile brings.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import Params
from wxb.project import revisions
from wxb.training.checkpoints import FOLDER as CHECKPOINTS

RESUMABLE = "a stopped run would go on from it"


class Leftover(NamedTuple):
    """A file or folder that may go."""

    path: Path
    running: str = ""  # the stage that works with it at this moment; empty for none
    use: str = ""  # what it would still serve; empty where nothing would come back to it


def find(params: Params, running: Sequence[str]) -> Iterator[Leftover]:
    """All leftovers of the project in the working folder; `running` are the stages that run now."""
    blocks = {stage.partition("@")[2]: stage for stage in running}
    for path in _unnamed(params):
        name = path.name.removeprefix(".").removesuffix(".partial")
        yield Leftover(path, blocks.get(name) or blocks.get(Path(name).stem, ""))
    yield from _checkpoints(params, running)
    yield from _downloads(params, running)
    if paths.VECTORS.exists():
        yield Leftover(paths.VECTORS, use="a search of the same texts would use it")


def remove(path: Path) -> None:
    """Remove a file, a folder with all that is in it, or a link and not where it leads."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _unnamed(params: Params) -> Iterator[Path]:
    """What stages wrote for blocks that params.yaml no longer has, and unfinished drafts of any."""
    experiments, corpora, backbones = params.experiments, params.corpora, params.backbones
    known: dict[Path, Collection[str]] = {
        paths.RAW: corpora,
        paths.CLEAN: corpora,
        paths.TOKENIZERS: {*backbones, *experiments},
        paths.FEATURES: experiments,
        paths.TARGETS: experiments,
        paths.MODELS: {*backbones, *experiments},
        paths.METRICS / paths.PARITY: params.parity,
        paths.METRICS / paths.PRETRAIN: backbones,
        paths.TRAINING / paths.PRETRAIN: backbones,
        paths.STUDIES: params.studies,
        paths.METRICS / paths.LESSONS: params.lessons,
        **{
            kind / study: block.experiments
            for kind in (paths.METRICS, paths.PREDICTIONS, paths.TRAINING)
            for study, block in params.studies.items()
        },
    }
    used = {path.resolve() for path in (*_read(params), *_tracked())}
    for folder, names in known.items():
        for path in sorted(folder.glob("[!.]*")):
            if not {path.stem, path.name} & {*names} and path.resolve() not in used:
                yield path
        yield from sorted(folder.glob(".*.partial"))


def _read(params: Params) -> Iterator[Path]:
    """The files and folders that params.yaml names, and those that they lie in."""
    blocks = [*params.corpora.values(), *params.backbones.values()]
    for block in [*blocks, *params.lessons.values(), *params.parity.values()]:
        for key in ("path", "checkpoint"):
            if named := getattr(block, key, None):
                yield from (Path(named), *Path(named).parents)


def _tracked() -> Iterator[Path]:
    """The files that git's index has, and the folders that they lie in."""
    try:
        index = revisions.index()
    except WxbError:  # no repository, or an empty one
        return
    for folder in ("data", "models", "reports"):
        for file in map(Path, index.files(folder)):
            yield from (file, *file.parents)


def _checkpoints(params: Params, running: Sequence[str]) -> Iterator[Leftover]:
    """Those of every stage; it would go on from the newest, if its settings are the same still.

    A training has one for each seed.
    """
    sections: dict[str, Collection[str]] = {
        "pretrain": params.backbones,
        "train": params.experiments,
        "lesson": params.lessons,
    }
    wanted = {
        f"train@{name}": len(params.studies[experiment.study].seeds)
        for name, experiment in params.experiments.items()
    }
    met: Counter[str] = Counter()
    for path in sorted(CHECKPOINTS.glob("*"), key=lambda p: p.stat().st_mtime, reverse=True):
        stage = path.name.rpartition("-")[0]
        verb, _, name = stage.partition("@")
        there = name in sections.get(verb, {})
        newest = there and met[stage] < wanted.get(stage, 1)
        yield Leftover(path, stage if stage in running else "", RESUMABLE if newest else "")
        met[stage] += 1


def _downloads(params: Params, running: Sequence[str]) -> Iterator[Leftover]:
    """Parts of files, named by their hashes; some stage wants them until all have their corpus."""
    stage = next((stage for stage in running if stage.startswith("download@")), "")
    lacking = any(
        corpus.urls and not paths.raw(name).exists() for name, corpus in params.corpora.items()
    )
    from wxb.corpora.web import FOLDER as DOWNLOADS  # slow: it imports requests

    for path in sorted(DOWNLOADS.glob("*")):
        yield Leftover(path, stage, RESUMABLE if lacking else "")
