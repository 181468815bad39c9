"""Turn the inputs of one experiment's labelled records into what its model reads."""

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Tokenize for the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    task, corpus = tasks.get(experiment.task), paths.clean(experiment.corpus)
    tokenizer = SavedTokenizer(paths.tokenizer(experiment.backbone))
    method = task.method(experiment.method)(experiment, [], tokenizer)
    with publish(paths.features(name)) as (out,):
        out.mkdir()
        for split in clean.splits(corpus):
            records = clean.labelled(corpus / f"{split}.parquet", task.record)
            label = f"tokenize@{name}: {split}"
            method.encode(records, out / f"{split}.arrow", label=label)


if __name__ == "__main__":
    run("tokenize", main, __doc__)
