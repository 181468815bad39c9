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
    corpus = paths.CLEAN / experiment.corpus / paths.TRAINING_DATA
    features, targets = paths.FEATURES / name, paths.TARGETS / name
    tokenizer = SavedTokenizer(paths.TOKENIZERS / experiment.backbone)
    task, labels = tasks.get(experiment.task), read_json(corpus / paths.LABELS)
    method = task.method(experiment.method)(experiment, labels, tokenizer)
    for split in ("train", "valid"):
        files = (folder / f"{split}.arrow" for folder in (features, targets))
        for _ in method.items(
            *files, clean.read_labelled(corpus / f"{split}.parquet", task.record)
        ):
            pass


if __name__ == "__main__":
    main(load(), sys.argv[1])
