"""Model cards of trained experiments: data, scores, limits and use.

They have the format of the Hugging Face hub (huggingface_hub.ModelCard), with scores in the
metadata. The texts on scores and use are those of the task, in its module `card`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError, require_output
from wxb.core.files import publish, read_json
from wxb.core.params import Params
from wxb.core.params.experiments import Experiment
from wxb.core.params.tasks import FOLDER
from wxb.core.wording import counted
from wxb.metrics import TEST
from wxb.project import trained
from wxb.reporting.about import tuning_text
from wxb.reporting.charts.formatting import amount, origin, rounded
from wxb.tasks.cards import Card

DIGITS = 4  # decimals of scores in the metadata


def card(params: Params, name: str, folder: Path | None = None) -> str:
    """The card of a scored experiment, as Markdown; its examples load the model from `folder`.

    Raises WxbError if the experiment is unknown, a baseline, not trained or not scored.
    """
    from huggingface_hub import ModelCard
    from jinja2 import Environment, FileSystemLoader

    experiment: Experiment = params.block("experiments", name)
    if experiment.is_baseline:
        raise WxbError(f"{name} is a baseline, which has no card: its folder has training records")
    scorer = tasks.get(experiment.task).metrics
    task = tasks.get(experiment.task).card or Card()
    model = trained.find(name)
    metrics = paths.metrics(experiment.study, name)
    require_output(metrics, f"evaluate@{name}")
    scores = read_json(metrics)
    corpus = params.corpora[experiment.corpus]
    splits = read_json(paths.clean(experiment.corpus) / paths.PROFILE)["splits"]
    languages = [code for code in splits["train"]["languages"] if code != "unknown"]
    template = Environment(loader=FileSystemLoader(FOLDER)).get_template(task.TEMPLATE)
    text = template.render(
        card_data=_metadata(task, name, experiment, scores, languages).to_yaml(),
        name=name,
        folder=folder or model,
        base=paths.model(experiment.backbone).as_posix(),
        backbone=_backbone(params, experiment),
        tuning=tuning_text(experiment),
        adapter=experiment.tuning.lora is not None,
        parameters=amount(scores["parameters"]),
        trainable=amount(scores["trainable_parameters"]),
        rounded=rounded,
        origin=origin(corpus),
        generated=corpus.generate is not None,
        languages=languages,
        **{split: splits[split] for split in ("train", "valid", TEST)},
        scores=scores,
        seeds=params.studies[experiment.study].seeds,
        corpus=corpus,
        settings=read_json(model / paths.SETTINGS),
        purpose=task.PURPOSE,
        example=task.EXAMPLE,
        scorer=scorer,
        headline=scorer.headline,
        further=[name for name in splits if f"{name}_{scorer.HEADLINE}" in scores],
        **task.facts(experiment, model, paths.predictions(experiment.study, name), scores),
    )
    return str(ModelCard(text))


def share(params: Params, name: str, folder: Path) -> None:
    """Copy a trained experiment to a new folder, with its card as README.md.

    Raises WxbError as in `card`, and if the folder exists or cannot be written.
    """
    if folder.exists():
        raise WxbError(f"{folder} already exists; name a new folder")
    text = card(params, name, folder)
    try:
        with publish(folder) as (draft,):
            # The card is about the model of the first seed.
            others = shutil.ignore_patterns(f"{paths.SEED}*")
            shutil.copytree(trained.find(name), draft, ignore=others)
            (draft / "README.md").write_text(text, encoding="utf-8")
    except OSError as error:
        # copytree continues after errors, and raises them all as (source, target, reason).
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        raise WxbError(
            f"{folder}: cannot copy the model ({reason}); nothing was written. Name a writable"
            " folder with enough space"
        ) from error


def _metadata(
    task: Card,
    name: str,
    experiment: Experiment,
    scores: Mapping[str, float],
    languages: list[str],
) -> Any:
    from huggingface_hub import EvalResult, ModelCardData

    return ModelCardData(
        model_name=name,
        library_name="peft" if experiment.tuning.lora else "transformers",
        pipeline_tag=task.pipeline(experiment),
        language=languages or None,
        tags=["wxb", *task.TAGS],
        eval_results=[
            EvalResult(
                task_type=task.TASK,
                dataset_type=experiment.corpus,
                dataset_name=experiment.corpus,
                dataset_split=TEST,
                metric_type=metric,
                metric_value=round(scores[metric], DIGITS),
            )
            for metric in task.SCORES
        ],
    )


def _backbone(params: Params, experiment: Experiment) -> str:
    """The backbone in a sentence: architecture and pretraining."""
    backbone = params.backbone_of(experiment)
    shape = backbone.architecture
    if backbone.is_tokenizer_only:
        return "only a tokenizer of these texts; the model starts from random weights"
    kind = (
        f"{shape.model_type} with {counted(shape.num_hidden_layers, 'layers')} of"
        f" {shape.hidden_size}"
        if shape
        else f"`{backbone.checkpoint}`"
    )
    steps = backbone.pretraining.steps if backbone.pretraining else 0
    return (
        f"{kind}, pretrained for {counted(steps, 'steps')} ({backbone.objective})"
        if steps
        else kind
    )
