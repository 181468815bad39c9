"""Lay the gold spans of one experiment on its tokens, and account for every one of them."""

from pathlib import Path

import numpy as np

from stages import run
from wxb import tasks
from wxb.corpora import clean
from wxb.files import publish, read_json, write_json
from wxb.params import Params
from wxb.tasks.ner.tagging.bio import account
from wxb.text.encoded import joined, part, read_encoded, write_columns
from wxb.text.tokenizers import SavedTokenizer
from wxb.text.windows import over


def main(params: Params, name: str) -> None:
    """Make the training targets of the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    task = tasks.module(experiment.task, experiment.method)
    corpus = Path("data/clean", experiment.corpus)
    types = read_json(corpus / "profile.json")["types"]
    saved = SavedTokenizer(Path("data/tokenizers", experiment.backbone))
    tokenizer = task.vocabulary(saved, types, experiment)
    accounts = {}
    with publish(f"data/targets/{name}") as (out,):
        out.mkdir()
        for split in clean.splits(corpus):
            encoded = read_encoded(Path("data/features", name, f"{split}.arrow"))
            parts, fates, reached = [], [], 0
            for records in clean.lots(corpus / f"{split}.parquet", f"align@{name}: {split}"):
                tokens = part(encoded, reached, reached + len(records))
                windows = over(
                    tokens, tokenizer, max_length=experiment.max_length, stride=experiment.stride
                )
                columns, splits, met = task.aligned(tokens, windows, records, types, tokenizer)
                parts.append((columns, splits))
                fates.append(met)
                reached += len(records)
            write_columns(out / f"{split}.arrow", *joined(parts))
            accounts[split] = account(np.concatenate(fates))
        write_json(out / "types.json", types)
        write_json(out / "alignment.json", accounts)


if __name__ == "__main__":
    run("align", main, __doc__)
