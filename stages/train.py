"""Fine-tune the model of one experiment; a killed run goes on from its last checkpoint."""

import shutil
from functools import partial
from pathlib import Path

from transformers import set_seed

from stages import run
from wxb import checkpoints, tasks
from wxb.batches import collate
from wxb.corpora import clean
from wxb.files import publish, read_json
from wxb.params import Params
from wxb.tokenizers import load
from wxb.training import fit, write_curves


def main(params: Params, name: str) -> None:
    """Train the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    task = tasks.module(experiment.task)
    backbone = Path("models", experiment.backbone)
    features, targets = Path("data/features", name), Path("data/targets", name)
    types = read_json(targets / "types.json")
    tokenizer = task.vocabulary(load(backbone), types, experiment)
    set_seed(params.seed)
    model = task.build(backbone, types, experiment, tokenizer)
    unfinished = checkpoints.folder(
        f"train@{name}",
        [experiment, params.seed, params.threads, params.portable],
        [backbone, features, targets],
    )
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
    history = fit(
        model,
        experiment.training,
        **items,
        collate=partial(collate, pad=tokenizer.pad_token_id),
        targets=task.TARGETS,
        figures=task.figures,
        summarize=task.summarize,
        best=task.BEST,
        seed=params.seed,
        checkpoints=unfinished,
        label=f"train@{name}",
    )
    predictor = task.Predictor.of(model, tokenizer, types, experiment, targets / "train.arrow")
    predictor.choose_threshold(
        [record.text for record in records["valid"]],
        [record.spans or () for record in records["valid"]],
        label=f"train@{name}: threshold",
    )
    curves = Path("reports/training", experiment.study, name)
    with publish(Path("models", name), curves) as (folder, drawn):
        predictor.save(folder, experiment)
        write_curves(drawn, history)
    shutil.rmtree(unfinished)


if __name__ == "__main__":
    run("train", main, __doc__)
