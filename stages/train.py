"""Fine-tune the model of one experiment; a killed run goes on from its last checkpoint."""

import shutil

from wxb import tasks
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import load
from wxb.runtime.command import run
from wxb.training import checkpoints, processes
from wxb.training.curves import write_curves


def main(params: Params, name: str) -> None:
    """Train the experiment `name` of params.yaml, once with each seed of its study."""
    experiment = params.named("experiments", name)
    study = params.studies[experiment.study]
    backbone, corpus = paths.model(experiment.backbone), paths.clean(experiment.corpus)
    features, targets = paths.features(name), paths.targets(name)
    labels = read_json(targets / paths.LABELS)
    method = tasks.method_of(experiment, labels, load(backbone))
    records = {
        split: clean.labelled(corpus / f"{split}.parquet", tasks.get(experiment.task).record)
        for split in ("train", "valid")
    }
    items = {
        split: method.dataset(features / f"{split}.arrow", targets / f"{split}.arrow", chosen)
        for split, chosen in records.items()
    }
    learnt = experiment.model_dump(exclude={"prediction"})
    unfinished = {
        seed: checkpoints.folder(
            f"train@{name}",
            [learnt, seed, params.threads, params.portable],
            [backbone, features, targets],
        )
        for seed in study.seeds
    }
    curves = paths.training(experiment.study, name)
    # An experiment that goes on from this one tokenizes as it does.
    outputs = paths.model(name), curves, paths.tokenizer(name)
    together = processes.together(params.processes(f"train@{name}"), params.nodes(f"train@{name}"))
    with together, processes.published(*outputs) as (models, drawn, tokens):
        method.tokenizer.save_pretrained(tokens)
        for seed, folder in unfinished.items():
            label = f"train@{name}" + (f" (seed {seed})" if len(study.seeds) > 1 else "")
            training_run = method.training_run(
                items["train"], items["valid"], seed=seed, checkpoints=folder, label=label
            )
            model, history = method.fit(backbone, training_run)
            if processes.rank():  # the first has the same model, and does the rest
                continue
            predictor = method.Predictor.from_training(model, method, targets / "train.arrow")
            predictor.calibrate(records["valid"], label=f"{label}: calibrate")
            last = history[-1]
            predictor.save(
                models / study.folder(seed),
                experiment,
                updates=int(last["step"]),
                examples=round(last["epoch"] * len(items["train"])),
            )
            write_curves(drawn / study.folder(seed), history)
    for folder in unfinished.values() if processes.rank() == 0 else ():
        shutil.rmtree(folder, ignore_errors=True)  # a method may keep no checkpoints


if __name__ == "__main__":
    run("train", main, __doc__)
