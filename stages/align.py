"""Turn the gold of one experiment's records into what it is to learn, and account for all of it."""

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text.encoded import write_columns
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Make the training targets of the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    task = tasks.get(experiment.task)
    corpus, features = paths.clean(experiment.corpus), paths.features(name)
    labels = read_json(corpus / paths.PROFILE)["labels"]
    saved = SavedTokenizer(paths.tokenizer(experiment.backbone))
    method = tasks.method_of(experiment, labels, saved)
    accounts = {}
    with publish(paths.targets(name)) as (out,):
        out.mkdir()
        for split in clean.splits(corpus):
            label = f"align@{name}: {split}"
            chunks = clean.chunks(corpus / f"{split}.parquet", task.record, label)
            columns, splits, accounts[split] = method.align(features / f"{split}.arrow", chunks)
            write_columns(out / f"{split}.arrow", columns, splits)
        write_json(out / paths.LABELS, labels)
        write_json(out / paths.ALIGNMENT, accounts)


if __name__ == "__main__":
    run("align", main, __doc__)
