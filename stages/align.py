"""Turn the gold of an experiment's records into training targets, and count all of it."""

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text.encoded import write_columns
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Write targets and counts of gold by split. WxbError if `valid` loses all gold."""
    experiment = params.block("experiments", name)
    task = tasks.get(experiment.task)
    corpus, features = paths.CLEAN / experiment.corpus / paths.TRAINING_DATA, paths.FEATURES / name
    tokenizer = SavedTokenizer(paths.TOKENIZERS / experiment.backbone)
    method = task.method(experiment.method)(experiment, read_json(corpus / paths.LABELS), tokenizer)
    accounts = {}
    with publish(paths.TARGETS / name) as (out,):
        out.mkdir()
        for split in clean.TRAINING_SPLITS:
            caption = f"align@{name}: {split}"
            chunks = clean.read_labelled_chunks(corpus / f"{split}.parquet", task.record, caption)
            file = features / f"{split}.arrow"
            columns, row_splits, accounts[split] = method.targets(file, chunks)
            write_columns(out / f"{split}.arrow", columns, row_splits)
        if 0 < accounts["valid"]["gold"] == accounts["valid"].get("lost"):
            raise WxbError(
                f"{corpus}/valid.parquet: all gold is lost: training lacks its classes or types, or"
                " it is too long. So validation cannot choose an epoch; add records, or change"
                " `split` of the corpus or `encoding.max_length` of the experiment"
            )
        write_json(out / paths.ALIGNMENT, accounts)


if __name__ == "__main__":
    run("align", main, __doc__)
