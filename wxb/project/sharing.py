"""Share trained experiments: model cards of the Hugging Face hub, and merged adapters."""

import shutil
from functools import partial
from pathlib import Path

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError, error_line, require_output
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.core.params.experiments import Experiment
from wxb.core.params.tasks import FOLDER
from wxb.core.pretrained import ADAPTER
from wxb.metrics import TEST
from wxb.project import status, trained
from wxb.reporting.formatting import amount, origin, rounded, variant_text, without_folders

CARD = "README.md"


def card(params: Params, name: str, folder: Path | None = None) -> str:
    """The card of a scored experiment, as Markdown.

    Its example loads the name of `folder`, or the path of the trained model without one. Raises
    WxbError for a baseline, a few-shot experiment, or one without a model, scores or clean corpus.
    """
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    experiment: Experiment = params.block("experiments", name)
    if experiment.is_baseline or "few-shot" in experiment.traits:
        raise WxbError(f"{name} has no card: its folder has records of its corpus")
    task = tasks.get(experiment.task)
    model = trained.find(name)
    metrics_file = paths.metrics(experiment.study, name)
    require_output(metrics_file, f"evaluate@{name}")
    scores = read_json(metrics_file)
    metrics = [metric for metric in task.metrics.METRICS if metric.key in scores]
    profile = paths.CLEAN / experiment.corpus / paths.PROFILE
    require_output(profile, f"preprocess@{experiment.corpus}")
    splits = read_json(profile)["splits"]
    predictor = task.method(experiment.method).PREDICTOR
    libraries = {ADAPTER: "peft", "config.json": "transformers"}  # by the file that they look for
    library = next((lib for file, lib in libraries.items() if (model / file).exists()), None)
    data = ModelCardData(
        model_name=name,
        library_name=library,
        pipeline_tag=predictor.hub_task,
        language=[code for code in splits["train"]["languages"] if code != "unknown"] or None,
        tags=["wxb", experiment.task],
        eval_results=[
            EvalResult(
                task_type=predictor.hub_task,
                dataset_type=experiment.corpus,
                dataset_name=experiment.corpus,
                dataset_split=TEST,
                metric_type=metric.key,
                metric_value=round(scores[metric.key], 4),
            )
            for metric in metrics
        ],
    )
    text = ModelCard.from_template(
        data,
        template_path=str(FOLDER / "card.md"),
        name=name,
        folder=folder.name if folder else model,
        experiment=experiment,
        checkpoint=without_folders(params.root_backbone(experiment).checkpoint or ""),
        tuning=variant_text(experiment),
        library=library,
        origin=origin(params.corpora[experiment.corpus]),
        generated=params.corpora[experiment.corpus].generate is not None,
        splits=splits,
        scores=scores,
        metrics=metrics,
        signature=task.metrics.SIGNATURE,
        seeds=params.studies[experiment.study].seeds,
        example=predictor.example,
        amount=amount,
        rounded=rounded,
    )
    return str(text)


def share(params: Params, name: str, folder: Path) -> None:
    """Copy a trained experiment to a new folder outside the pipeline, with its card as README.md.

    Only the model of the first seed is copied. An adapter gets its base model in a folder inside.
    Raises WxbError as in `card`, if the results are known to be stale, and if the folder exists or
    cannot be written.
    """
    from wxb.training.backbones import tuning

    _require_new(folder)
    text = card(params, name, folder)
    for stage, _ in status.staleness().reasons(f"evaluate@{name}"):
        raise WxbError(f"{stage} is stale; run `dvc repro evaluate@{name}`, or `dvc checkout`")
    try:
        with publish(folder) as (draft,):
            # The card is about the model of the first seed.
            others = shutil.ignore_patterns(f"{paths.SEED}*")
            model = trained.find(name)
            # Not `copy`: links to DVC's cache are read-only.
            copy = partial(shutil.copytree, ignore=others, copy_function=shutil.copyfile)
            copy(model, draft)
            if (base := tuning.base_folder(model)) != model:
                copy(base, draft / base.name)
                if (base / paths.SETTINGS).exists():
                    _copy_settings(base, draft / base.name)
            prediction = params.experiments[name].prediction.model_dump()
            _copy_settings(model, draft, prediction=prediction)
            (draft / CARD).write_text(text, encoding="utf-8")
    except OSError as error:
        fault = f"{folder}: cannot copy the model ({error_line(error)})"
        raise WxbError(f"{fault}; nothing was written") from error


def merge(experiment: str | Path, output: Path) -> None:
    """Merge a trained adapter, and write the full model to a new folder outside the pipeline.

    Its logits are those of the adapter except for rounding. A backbone in 4 bits is dequantized to
    float32. Raises WxbError if the model is not an adapter, or if `output` exists.
    """
    from wxb.training.backbones import tuning

    folder = trained.find(experiment)
    if not (folder / ADAPTER).exists():
        raise WxbError(f"{folder}: expected an adapter, with {ADAPTER}; found none")
    _require_new(output)
    predictor = trained.load(experiment)
    model, prediction = predictor.model, predictor.prediction.model_dump(exclude={"shots"})
    model.backbone = tuning.merge_adapter(model.backbone, folder)
    with publish(output) as (draft,):
        draft.mkdir()
        for file in filter(Path.is_file, folder.iterdir()):
            if file.suffix != ".safetensors" and file.name not in (ADAPTER, tuning.BASE, CARD):
                shutil.copyfile(file, draft / file.name)
        model.save_pretrained(draft)
        _copy_settings(folder, draft, four_bit=False, prediction=prediction)


def _copy_settings(model: Path, draft: Path, **changes: object) -> None:
    """Copy a model's settings with `changes`, but without the records of its few-shot prompt."""
    settings = {**read_json(model / paths.SETTINGS), **changes}
    settings.pop("examples", None)
    write_json(draft / paths.SETTINGS, settings)


def _require_new(folder: Path) -> None:
    """Raise WxbError if a folder exists, or is below `models`, `reports` or `data`."""
    if folder.exists():
        raise WxbError(f"{folder} already exists; name a new folder")
    for owned in (paths.MODELS, paths.REPORTS, paths.DATA):
        if owned.resolve() in folder.resolve().parents:
            raise WxbError(f"{folder}: {owned}/ belongs to the pipeline; name a folder outside")
