"""Find and load trained experiments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import DEFECTS, WxbError
from wxb.core.files import read_json
from wxb.core.params import PARAMS, Params
from wxb.core.params import load as load_params
from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Prediction
from wxb.core.params.tasks import experiment_class
from wxb.project.root import find_root

if TYPE_CHECKING:
    from wxb.tasks.methods import Predictor


def load(experiment: str | Path, **prediction: Any) -> Predictor:
    """Load the predictor of a trained experiment: `load(name).predict(inputs)`.

    `experiment` is a name in params.yaml of the project that contains the working folder, or the
    path of a folder that a train stage wrote. `prediction` overrides settings of the block
    `prediction`, such as `batch_size`, with values or text. Other settings come from params.yaml
    for a name, and from a shared or merged folder; those that only reports use are off. Raises
    WxbError if the experiment is unknown, not trained or damaged, and for invalid settings.
    """
    folder = find(experiment)
    with _load_errors(folder):
        settings = read_json(folder / paths.SETTINGS)
        block = experiment_class(settings["task"], settings["method"])
        form: Any = block.model_fields["prediction"].annotation
        params = None if isinstance(experiment, Path) else _params()
        known = params.experiments.get(str(experiment)) if params else None
        if known and isinstance(known.prediction, form):
            settings["prediction"] = known.prediction.model_dump()
        values = {**settings.get("prediction", {}), **form.only_page, **prediction}
        return predictor_class(experiment).load(folder, _validate(form, values))


def predictor_class(experiment: str | Path) -> type[Predictor]:
    """The class of the predictor of a trained experiment, without loading its weights."""
    folder = find(experiment)
    with _load_errors(folder):
        settings = read_json(folder / paths.SETTINGS)
        return tasks.get(settings["task"]).method(settings["method"]).PREDICTOR


def names() -> list[str]:
    """The trained experiments of the project that contains the working folder."""
    params, models = _params(), (find_root() or Path()) / paths.MODELS
    known = params.experiments if params else ()
    return [name for name in known if (models / name / paths.SETTINGS).is_file()]


@contextmanager
def _load_errors(folder: Path) -> Iterator[None]:
    """Turn errors, except DEFECTS and a GPU's, into a WxbError with the command to train again."""
    try:
        yield
    except Exception as error:  # libraries raise any other for damaged files
        of_gpu = ("OutOfMemoryError", "AcceleratorError")
        if isinstance(error, (WxbError, *DEFECTS)) or type(error).__name__ in of_gpu:
            raise
        name = folder.parent.name if folder.name.startswith(paths.SEED) else folder.name
        raise WxbError(
            f"{folder}: cannot load the model ({type(error).__name__}: {error}). Train it again:"
            f" dvc repro --force --single-item train@{name}; copy it again if it was shared"
        ) from error


def corpus_in_params(experiment: str) -> Corpus | None:
    """The corpus of an experiment in params.yaml; None for a folder or an unknown name."""
    params = _params()
    block = params.experiments.get(experiment) if params else None
    return params.corpora[block.corpus] if params and block else None


def warn_if_generated(experiment: str) -> None:
    """Print a warning to stderr if an experiment was trained on generated texts."""
    if (corpus := corpus_in_params(experiment)) and corpus.generate:
        warning = "was trained on generated texts. It misses more in real ones: check the output."
        print(f"{experiment} {warning}", file=sys.stderr)


def _params() -> Params | None:
    root = find_root()
    return load_params(root / PARAMS) if root else None


def _validate(form: type[Prediction], values: Mapping[str, Any]) -> Prediction:
    """Validate settings, which may be text; absent ones get defaults. WxbError lists all faults."""
    try:
        return form.model_validate(values, strict=False)
    except ValidationError as error:
        faults = "; ".join(
            ": ".join([*map(str, fault["loc"]), fault["msg"].removeprefix("Value error, ")])
            for fault in error.errors()
        )
        raise WxbError(f"settings of `prediction`: {faults}") from None


def find(experiment: str | Path) -> Path:
    """The folder of a trained experiment. A str is a name, or else a path. Errors as in `load`."""
    folder, root = Path(experiment), find_root()
    own = None  # comes first: a folder of the same name may be an older copy
    if root and isinstance(experiment, str) and len(folder.parts) == 1:
        own = root / paths.MODELS / folder
    for path in filter(None, (own, folder)):
        if (path / paths.SETTINGS).is_file():
            return path
    if root is None or own is None:
        place = f"no {PARAMS} here or in a parent folder" if root is None else "no such folder"
        raise WxbError(
            f"{folder}: expected a name of params.yaml, or the folder of a trained experiment with"
            f" {paths.SETTINGS} ({'it has none' if folder.is_dir() else place})"
        )
    load_params(root / PARAMS).block("experiments", str(experiment))
    raise WxbError(
        f"{own}: experiment {experiment!r} is not trained, or in training; in {root.resolve()} run"
        f" `dvc repro train@{experiment}`, `dvc pull train@{experiment}` if shared, or `wxb watch`"
    )
