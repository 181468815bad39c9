"""Fine-tune the model of one experiment; a killed run goes on from its last checkpoint."""

import shutil
from functools import partial
from pathlib import Path

from transformers import set_seed

from stages import run
from wxb import tasks
from wxb.corpora import clean
from wxb.files import publish, read_json
from wxb.params import Params
from wxb.text.tokenizers import load
from wxb.training import checkpoints
from wxb.training.batches import collate
from wxb.training.trainer import fit, write_curves


def main(params: Params, name: str) -> None:
    """Train the experiment `name` of params.yaml, once with each seed of its study."""
    experiment = params.named("experiments", name)
    study = params.studies[experiment.study]
    task = tasks.module(experiment.task, experiment.method)
    backbone = Path("models", experiment.backbone)
    features, targets = Path("data/features", name), Path("data/targets", name)
    types = read_json(targets / "types.json")
    tokenizer = task.vocabulary(load(backbone), types, experiment)
    records = {
        split: clean.labelled(Path("data/clean", experiment.corpus, f"{split}.parquet"))
        for split in ("train", "valid")
    }
    items = {
        split: task.dataset(
            features / f"{split}.arrow",
            targets / f"{split}.arrow",
            tokenizer,
            [record.text for record in chosen],
            experiment,
        )
        for split, chosen in records.items()
    }
    unfinished = {
        seed: checkpoints.folder(
            f"train@{name}",
            [experiment, seed, params.threads, params.portable],
            [backbone, features, targets],
        )
        for seed in study.seeds
    }
    curves = Path("reports/training", experiment.study, name)
    with publish(Path("models", name), curves) as (models, drawn):
        for seed, folder in unfinished.items():
            label = f"train@{name}" + (f" (seed {seed})" if len(study.seeds) > 1 else "")
            set_seed(seed)
            model = task.build(backbone, types, experiment, tokenizer)
            history = fit(
                model,
                experiment.training,
                **items,
                collate=partial(collate, pad=tokenizer.pad_token_id),
                targets=task.TARGETS,
                figures=task.figures,
                summarize=task.summarize,
                best=task.BEST,
                seed=seed,
                checkpoints=folder,
                label=label,
            )
            predictor = task.Predictor.of(
                model, tokenizer, types, experiment, targets / "train.arrow"
            )
            predictor.choose_threshold(
                [record.text for record in records["valid"]],
                [record.spans or () for record in records["valid"]],
                label=f"{label}: threshold",
            )
            last = history[-1]
            predictor.save(
                models / study.folder(seed),
                experiment,
                updates=int(last["step"]),
                examples=round(last["epoch"] * len(items["train"])),
            )
            write_curves(drawn / study.folder(seed), history)
    for folder in unfinished.values():
        shutil.rmtree(folder)


if __name__ == "__main__":
    run("train", main, __doc__)
