"""Fine-tune the model of one experiment; a killed run goes on from its last checkpoint."""

import shutil
from functools import partial
from pathlib import Path

from transformers import set_seed

from stages import run
from wxb import checkpoints, tasks
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
    tokenizer = load(backbone)
    set_seed(params.seed)
    model = task.build(backbone, read_json(targets / "types.json"), experiment)
    unfinished = checkpoints.folder(
        f"train@{name}",
        [experiment, params.seed, params.threads],
        [backbone, features, targets],
    )
    history = fit(
        model,
        experiment.training,
        train=task.dataset(features / "train.arrow", targets / "train.arrow"),
        valid=task.dataset(features / "valid.arrow", targets / "valid.arrow"),
        collate=partial(task.collate, pad=tokenizer.pad_token_id),
        targets=task.TARGETS,
        figures=task.figures,
        summarize=task.summarize,
        best=task.BEST,
        seed=params.seed,
        checkpoints=unfinished,
        label=f"train@{name}",
    )
    predictor = task.Predictor(
        model, tokenizer, read_json(targets / "types.json"), max_length=experiment.max_length
    )
    valid = clean.labelled(Path("data/clean", experiment.corpus, "valid.parquet"))
    predictor.choose_threshold(
        [record.text for record in valid],
        [record.spans or () for record in valid],
        label=f"train@{name}: threshold",
    )
    curves = Path("reports/training", experiment.study, name)
    with publish(Path("models", name), curves) as (folder, drawn):
        predictor.save(folder, experiment)
        write_curves(drawn, history)
    shutil.rmtree(unfinished)


if __name__ == "__main__":
    run("train", main, __doc__)
