"""Fine-tune the model of an experiment; a killed run resumes from its last checkpoint."""

import shutil
from functools import partial

from wxb import tasks
from wxb.core import compatibility, paths
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import SavedTokenizer, load
from wxb.runtime.command import run
from wxb.tasks.methods import SplitFiles
from wxb.training import checkpoints, processes
from wxb.training.curves import write_curves


def main(params: Params, name: str) -> None:
    """Write a calibrated model and curves for each seed (copies if untrained), and a tokenizer."""
    experiment = params.block("experiments", name)
    study = params.studies[experiment.study]
    backbone = paths.MODELS / experiment.backbone
    corpus = paths.CLEAN / experiment.corpus / paths.TRAINING_DATA
    features, targets = paths.FEATURES / name, paths.TARGETS / name
    # A baseline does not need transformers, whose import takes seconds.
    tokenizer = SavedTokenizer(backbone) if experiment.is_baseline else load(backbone)
    task, labels = tasks.get(experiment.task), read_json(corpus / paths.LABELS)
    method = task.method(experiment.method)(experiment, labels, tokenizer)
    compatibility.require(params, experiment.backbone, backbone, only=name)

    splits = [
        SplitFiles(
            features / f"{split}.arrow",
            targets / f"{split}.arrow",
            partial(clean.read_labelled, corpus / f"{split}.parquet", task.record),
        )
        for split in clean.TRAINING_SPLITS
    ]
    settings = experiment.model_dump(exclude={"prediction"})
    checkpoint_folders = {
        seed: checkpoints.folder(
            f"train@{name}",
            [settings, seed, params.threads, params.portable],
            [corpus, backbone, features, targets],
        )
        for seed in study.seeds
    }
    curves = paths.TRAINING / experiment.study / name
    # An experiment that continues this one uses its tokenizer.
    outputs = paths.MODELS / name, curves, paths.TOKENIZERS / name
    launch = processes.launch(params.processes(f"train@{name}"))
    with launch, processes.publish(*outputs) as (models, curves_folder, tokenizer_folder):
        method.tokenizer.save_pretrained(tokenizer_folder)
        for seed, folder in checkpoint_folders.items():
            predictor = None  # free the memory of the previous seed
            caption = f"train@{name}" + (f" (seed {seed})" if len(study.seeds) > 1 else "")
            predictor, history = method.train_predictor(
                backbone, *splits, seed=seed, checkpoints=folder, caption=caption
            )
            untrained = experiment.tuning.frozen and not history[-1]["step"]
            saved = study.seeds if untrained else [seed]
            for model_seed in saved if processes.rank() == 0 else ():  # all have the same model
                predictor.save(models / study.seed_subfolder(model_seed))
                write_curves(curves_folder / study.seed_subfolder(model_seed), history)
            if untrained:  # the model is the same with each seed
                break
    for folder in checkpoint_folders.values() if processes.rank() == 0 else ():
        shutil.rmtree(folder, ignore_errors=True)  # some methods write no checkpoints


if __name__ == "__main__":
    run("train", main, __doc__)
