"""Turn the inputs of an experiment's labelled records into model inputs, such as token ids."""

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Write the model inputs of an experiment for the labelled records of train and valid."""
    experiment = params.block("experiments", name)
    task, corpus = tasks.get(experiment.task), paths.CLEAN / experiment.corpus / paths.TRAINING_DATA
    tokenizer = SavedTokenizer(paths.TOKENIZERS / experiment.backbone)
    labels = read_json(corpus / paths.LABELS)
    method = task.method(experiment.method)(experiment, labels, tokenizer)
    with publish(paths.FEATURES / name) as (out,):
        out.mkdir()
        for split in clean.TRAINING_SPLITS:
            caption = f"tokenize@{name}: {split}"
            chunks = clean.read_labelled_chunks(corpus / f"{split}.parquet", task.record, caption)
            method.encode(chunks, out / f"{split}.arrow", caption=caption)


if __name__ == "__main__":
    run("tokenize", main, __doc__)
