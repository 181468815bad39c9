"""Trained experiments, ready to use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from safetensors import SafetensorError

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import PARAMS
from wxb.core.params import load as load_params
from wxb.core.params.experiments import Prediction
from wxb.core.params.tasks import prediction as prediction_form
from wxb.project.root import root as find_root

if TYPE_CHECKING:
    from wxb.tasks.methods import Trained


def load(experiment: str | Path, **prediction: Any) -> Trained:
    """The predictor of a trained experiment: `load(name).predict(inputs)`.

    `experiment` is a name in params.yaml of the project that the current folder is in, or the path
    of a folder that a train stage wrote. `prediction` are settings of the group of that name, such
    as `batch_size`, as values or as text; the others are as params.yaml has them for a name, and
    their defaults for a folder. Raises WxbError where the experiment is unknown or not trained,
    and for settings that its method does not have.
    """
    folder = find(experiment)
    try:
        settings = read_json(folder / paths.SETTINGS)
        method = tasks.get(settings["task"]).method(settings["method"])
        form = prediction_form(settings["task"], settings["method"])
        given = {**_of_params(experiment, form), **form.only_page, **prediction}
        predictor = method.Predictor.load(folder, _checked(form, given))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RuntimeError,
        ImportError,
        SafetensorError,
    ) as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which needs no other training
            raise
        raise WxbError(
            f"{folder}: expected a model that its train stage wrote; it cannot be loaded"
            f" ({type(error).__name__}: {error}). Train it again: dvc repro --force"
            f" --single-item train@{folder.name}"
        ) from error
    return predictor


def _of_params(experiment: str | Path, form: type[Prediction]) -> dict[str, Any]:
    """The settings of a form that params.yaml has for an experiment; none for a folder."""
    root = find_root()
    if root is None or isinstance(experiment, Path):
        return {}
    block = load_params(root / PARAMS).experiments.get(experiment)
    return block.prediction.model_dump() if block and isinstance(block.prediction, form) else {}


def _checked(form: type[Prediction], given: Mapping[str, Any]) -> Prediction:
    """The settings of a form with the given values; the others have their defaults."""
    try:
        return form.model_validate(given)
    except ValidationError as error:
        known = ", ".join(f"{name} ({field.default})" for name, field in form.model_fields.items())
        faults = "; ".join(
            ": ".join([*map(str, fault["loc"]), fault["msg"]]) for fault in error.errors()
        )
        raise WxbError(f"settings of `prediction`: {faults}; there are: {known}") from None


def find(experiment: str | Path) -> Path:
    """The folder of a trained experiment; errors as in `load`."""
    folder = Path(experiment)
    if (folder / paths.SETTINGS).is_file():
        return folder
    if isinstance(experiment, Path) or len(folder.parts) != 1:
        raise WxbError(
            f"{folder}: expected the folder of a trained experiment, with {paths.SETTINGS} in it"
            f" ({'it has none' if folder.is_dir() else 'there is no such folder'}); give a name of"
            " params.yaml or another path"
        )
    root = find_root()
    if root is None:
        raise WxbError(
            f"{Path.cwd()}: no {PARAMS} here or above, so experiments have no names; go into a"
            " project, or give the path of a trained experiment's folder"
        )
    folder = root / paths.model(folder.name)
    if not (folder / paths.SETTINGS).is_file():
        load_params(root / PARAMS).named("experiments", str(experiment))
        raise WxbError(
            f"{folder}: experiment {experiment!r} is not trained yet; in {root.resolve()} run"
            f" `dvc repro train@{experiment}` first"
        )
    return folder
