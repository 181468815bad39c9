"""Find files of blocks that are no longer in params.yaml, and of stopped runs.

Files in git's index are kept: they include results of studies that only a profile adds. If git
tracks no result, all results are kept.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from wxb.core import paths
from wxb.core.params import Params
from wxb.core.params.resources import SECTIONS
from wxb.project import revisions
from wxb.training.checkpoints import FOLDER as CHECKPOINTS


def find_leftovers(params: Params) -> Iterator[Path]:
    """Yield what `wxb clean` removes.

    These are outputs of blocks that params.yaml no longer has, unfinished drafts, and checkpoints
    from which no run would resume. Tracked files are kept, and all results if none is tracked.
    """
    tracked = [Path(file) for file in revisions.tracked("data", "models", "reports")]
    has_results = any(map(_is_result, tracked))
    for path in _obsolete_outputs(params, tracked):
        if has_results or not _is_result(path):
            yield path
    yield from _obsolete_checkpoints(params)


def _obsolete_outputs(params: Params, tracked: Iterable[Path]) -> Iterator[Path]:
    """Drafts, and untracked outputs and pages of blocks not in params.yaml, nor named in it."""
    experiments, corpora, backbones = params.experiments, params.corpora, params.backbones
    known: dict[Path, Collection[str]] = {
        paths.RAW: corpora,
        paths.CLEAN: corpora,
        paths.TOKENIZERS: {*backbones, *experiments},
        paths.FEATURES: experiments,
        paths.TARGETS: experiments,
        paths.MODELS: {*backbones, *experiments},
        paths.HEADLINES: experiments,
        paths.METRICS: {*params.studies, paths.PRETRAIN, paths.LESSONS},
        paths.PREDICTIONS: params.studies,
        paths.TRAINING: {*params.studies, paths.PRETRAIN},
        paths.METRICS / paths.PRETRAIN: backbones,
        paths.TRAINING / paths.PRETRAIN: backbones,
        paths.STUDIES: params.studies,
        paths.METRICS / paths.LESSONS: params.lessons,
        **{paths.COST / verb: getattr(params, section) for verb, section in SECTIONS.items()},
        **{
            kind / study: block.experiments
            for kind in (paths.METRICS, paths.PREDICTIONS, paths.TRAINING)
            for study, block in params.studies.items()
        },
    }
    blocks = [*corpora.values(), *backbones.values(), *params.lessons.values()]
    values = [getattr(block, key, None) for block in blocks for key in ("path", "checkpoint")]
    own = [Path(value) for value in values if value]
    used = {p.resolve() for path in (*own, *tracked) for p in (path, *path.parents)}
    for folder, names in known.items():
        for path in sorted(folder.glob("[!.]*")):
            if not {path.stem, path.name} & {*names} and path.resolve() not in used:
                yield path
                has_page = folder in (paths.PREDICTIONS, paths.METRICS / paths.LESSONS)
                if has_page and (page := paths.page(path.stem)).exists():
                    yield page
        yield from sorted(folder.glob(".*.partial"))


def _is_result(path: Path) -> bool:
    """Whether a path is in a folder of committed results."""
    folders = (paths.METRICS, paths.STUDIES, paths.HEADLINES, paths.SEEDS, paths.BENCHMARKS)
    return any(map(path.is_relative_to, folders))


def _obsolete_checkpoints(params: Params) -> Iterator[Path]:
    """All checkpoints except the newest of each stage in params.yaml, one for each of its seeds."""
    needed = {f"pretrain@{name}": 1 for name in params.backbones}
    needed |= {f"lesson@{name}": 1 for name in params.lessons}
    for name, experiment in params.experiments.items():
        needed[f"train@{name}"] = len(params.studies[experiment.study].seeds)
    counts: Counter[str] = Counter()
    for path in sorted(CHECKPOINTS.glob("*"), key=lambda p: p.stat().st_mtime, reverse=True):
        stage = path.name.rpartition("-")[0]
        counts[stage] += 1
        if counts[stage] > needed.get(stage, 0):
            yield path
