"""Turn the gold of one experiment's records into what it is to learn, and account for all of it."""

from stages import run
from wxb import paths, tasks
from wxb.corpora import clean
from wxb.files import publish, read_json, write_json
from wxb.params import Params
from wxb.text.encoded import write_columns
from wxb.text.tokenizers import SavedTokenizer


def main(params: Params, name: str) -> None:
    """Make the training targets of the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    method = tasks.method(experiment.task, experiment.method)
    corpus, features = paths.clean(experiment.corpus), paths.features(name)
    labels = read_json(corpus / paths.PROFILE)["labels"]
    saved = SavedTokenizer(paths.tokenizer(experiment.backbone))
    tokenizer = method.vocabulary(saved, labels, experiment)
    accounts = {}
    with publish(paths.targets(name)) as (out,):
        out.mkdir()
        for split in clean.splits(corpus):
            chunks = clean.chunks(
                corpus / f"{split}.parquet",
                tasks.record(experiment.task),
                f"align@{name}: {split}",
            )
            columns, splits, accounts[split] = method.aligned(
                features / f"{split}.arrow", chunks, labels, tokenizer, experiment
            )
            write_columns(out / f"{split}.arrow", columns, splits)
        write_json(out / paths.LABELS, labels)
        write_json(out / paths.ALIGNMENT, accounts)


if __name__ == "__main__":
    run("align", main, __doc__)
