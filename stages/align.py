"""Lay the gold spans of one experiment on its tokens, and account for every one of them."""

from pathlib import Path

from stages import run
from wxb import tasks
from wxb.align import account
from wxb.corpora import clean
from wxb.features import read_encoded
from wxb.files import publish, read_json, write_json
from wxb.params import Params
from wxb.tokenizers import load


def main(params: Params, name: str) -> None:
    """Make the training targets of the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    task = tasks.module(experiment.task)
    corpus = Path("data/clean", experiment.corpus)
    types = read_json(corpus / "profile.json")["types"]
    tokenizer = task.vocabulary(load(f"data/tokenizers/{experiment.backbone}"), types, experiment)
    accounts = {}
    with publish(f"data/targets/{name}") as (out,):
        out.mkdir()
        for split in clean.SPLITS:
            encoded = read_encoded(Path("data/features", name, f"{split}.arrow"))
            records = clean.labelled(corpus / f"{split}.parquet")
            fates = task.write_aligned(out / f"{split}.arrow", encoded, records, types, tokenizer)
            accounts[split] = account(fates)
        write_json(out / "types.json", types)
        write_json(out / "alignment.json", accounts)


if __name__ == "__main__":
    run("align", main, __doc__)
