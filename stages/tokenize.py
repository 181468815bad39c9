"""Turn the inputs of one experiment's labelled records into what its model reads."""

from stages import run
from wxb import paths, tasks
from wxb.corpora import clean
from wxb.files import publish
from wxb.params import Params
from wxb.text.tokenizers import SavedTokenizer


def main(params: Params, name: str) -> None:
    """Tokenize for the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    method = tasks.method(experiment.task, experiment.method)
    corpus = paths.clean(experiment.corpus)
    tokenizer = SavedTokenizer(paths.tokenizer(experiment.backbone))
    with publish(paths.features(name)) as (out,):
        out.mkdir()
        for split in clean.splits(corpus):
            records = clean.labelled(corpus / f"{split}.parquet", tasks.record(experiment.task))
            label = f"tokenize@{name}: {split}"
            path = out / f"{split}.arrow"
            method.encode(records, tokenizer, experiment, path, label=label)


if __name__ == "__main__":
    run("tokenize", main, __doc__)
