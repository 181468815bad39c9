"""Model cards: what a trained experiment was made from, what it scores, its limits, how to use it.

The form is that of the Hugging Face hub (huggingface_hub.ModelCard), scores in its metadata.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

from wxb.errors import WxbError
from wxb.files import publish, read_json
from wxb.params import Params
from wxb.params.experiments import SEED, Experiment
from wxb.project import trained
from wxb.project.inventory import tuning
from wxb.reporting.settings import origin
from wxb.reporting.wording import amount
from wxb.tasks.ner.evaluation import BY_TYPE

TEMPLATE = Path(__file__).with_suffix(".md")
DIGITS = 4  # of a score in the metadata


def card(params: Params, name: str, folder: Path | None = None) -> str:
    """The card of a trained and scored experiment, as Markdown; its examples load from `folder`.

    Raises WxbError where the experiment is unknown, not trained, or not scored.
    """
    from huggingface_hub import ModelCard

    experiment: Experiment = params.named("experiments", name)
    model = trained.find(name)
    scores = _made(Path("reports/metrics", experiment.study, f"{name}.json"), name)
    table = _made(Path("reports/predictions", experiment.study, name, BY_TYPE), name)
    corpus = params.corpora[experiment.corpus]
    about = read_json(Path("data/clean", experiment.corpus, "profile.json"))
    settings = read_json(model / trained.SETTINGS)
    figures = read_json(scores)
    languages = [code for code in about["splits"]["train"]["languages"] if code != "unknown"]
    described = ModelCard.from_template(
        _metadata(name, experiment, figures, languages),
        template_path=str(TEMPLATE),
        name=name,
        folder=folder or model,
        base=f"models/{experiment.backbone}",
        body=_body(params, experiment),
        tuning=tuning(experiment),
        adapter=experiment.tuning.lora is not None,
        parameters=amount(figures["parameters"]),
        trainable=amount(figures["trainable_parameters"]),
        origin=origin(corpus),
        generated=corpus.generate is not None,
        augmented=corpus.augment is not None,
        languages=languages,
        **{split: about["splits"][split] for split in ("train", "valid", "test")},
        scores=figures,
        missed=round(100 * (1 - figures["recall"])),
        by_type=_rows(table),
        seeds=params.studies[experiment.study].seeds,
        types=settings["types"],
        threshold=settings["threshold"],
        max_length=settings["max_length"],
        # BERT's pooler, which a tagger has no use for, would be made anew from random numbers.
        options=", add_pooling_layer=False" if _type(model) == "bert" else "",
        why_not=_only_ours(experiment),
    )
    return str(described)


def share(params: Params, name: str, folder: Path) -> None:
    """Copy a trained experiment to a new folder, with its card as README.md; errors as in `card`.

    Raises WxbError too where the folder is there already, or cannot be written.
    """
    if folder.exists():
        raise WxbError(f"{folder}: is there already; name a folder that is not")
    text = card(params, name, folder)
    try:
        with publish(folder) as (draft,):
            # What the card tells of is the model of the first seed.
            others = shutil.ignore_patterns(f"{SEED}*")
            shutil.copytree(trained.find(name), draft, ignore=others)
            (draft / "README.md").write_text(text, encoding="utf-8")
    except OSError as error:
        # copytree goes on where one file fails, and tells all: (from, to, why).
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        raise WxbError(
            f"{folder}: cannot copy the model there ({why}); nothing is left of the attempt: name"
            " a folder with room for it, where you may write"
        ) from error


def _metadata(
    name: str, experiment: Experiment, scores: dict[str, float], languages: list[str]
) -> Any:
    from huggingface_hub import EvalResult, ModelCardData

    task = "token-classification"
    return ModelCardData(
        model_name=name,
        library_name="peft" if experiment.tuning.lora else "transformers",
        pipeline_tag=task if experiment.method == "tagging" else "text-generation",
        language=languages or None,
        tags=["wxb", "named-entity-recognition"],
        eval_results=[
            EvalResult(
                task_type=task,
                dataset_type=experiment.corpus,
                dataset_name=experiment.corpus,
                dataset_split="test",
                metric_type=metric,
                metric_value=round(scores[metric], DIGITS),
            )
            for metric in ("f1", "precision", "recall")
        ],
    )


def _body(params: Params, experiment: Experiment) -> str:
    backbone = params.backbones[experiment.backbone]
    shape = backbone.architecture
    kind = (
        f"{shape.model_type} with {shape.num_hidden_layers} layers of {shape.hidden_size}"
        if shape
        else f"`{backbone.checkpoint}`"
    )
    steps = backbone.pretraining.steps if backbone.pretraining else 0
    return f"{kind}, pretrained for {steps:,} steps ({backbone.objective})" if steps else kind


def _type(model: Path) -> str:
    """The architecture of a whole model; empty for an adapter."""
    config = model / "config.json"
    return str(read_json(config)["model_type"]) if config.exists() else ""


def _only_ours(experiment: Experiment) -> str:
    """Why plain transformers cannot give what the model says; empty where they can."""
    if experiment.method == "generation":
        return "The model writes its answers in a form of wxb's own, which wxb reads and locates."
    if experiment.word_features:
        return "Its head reads the letters of the words around besides, which wxb gives to it."
    if experiment.tuning.four_bit:
        return "Its backbone is kept in 4 bits, in the way that wxb loads it."
    return ""


def _rows(table: Path) -> list[dict[str, Any]]:
    with table.open(encoding="utf-8", newline="") as file:
        rows = [
            {**row, **{key: float(row[key]) for key in ("f1", "precision", "recall")}}
            for row in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda row: (row["f1"], row["type"]))


def _made(path: Path, name: str) -> Path:
    if not path.exists():
        raise WxbError(f"{path}: not there yet; run `dvc repro evaluate@{name}` first")
    return path
