"""Read the items of an experiment as training does, without training: `items.py <experiment>`."""

import sys

from wxb import tasks
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params, load
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import SavedTokenizer


def main(params: Params, name: str) -> None:
    """Make each training and validation item once, as batches by length need it."""
    experiment = params.block("experiments", name)
    features, targets = paths.FEATURES / name, paths.TARGETS / name
    tokenizer = SavedTokenizer(paths.TOKENIZERS / experiment.backbone)
    task, labels = tasks.get(experiment.task), read_json(targets / paths.LABELS)
    method = task.method(experiment.method)(experiment, labels, tokenizer)
    for split in ("train", "valid"):
        files = (folder / f"{split}.arrow" for folder in (features, targets))
        path = clean.split_file(paths.CLEAN / experiment.corpus, split)
        for _ in method.items(*files, clean.read_labelled(path, task.record)):
            pass


if __name__ == "__main__":
    main(load(), sys.argv[1])
