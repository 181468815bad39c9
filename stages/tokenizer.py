"""Train the tokenizer of one backbone on its corpus, or load its checkpoint's."""

from wxb.core import paths
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text import tokenizers
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Make the tokenizer of the backbone `name` of params.yaml."""
    backbone = params.named("backbones", name)
    train = paths.clean(backbone.corpus) / "train.parquet"
    of = backbone.tokenizer.texts if backbone.tokenizer else []
    read = {"input": clean.texts, "gold": clean.gold_texts}
    tokenizer = tokenizers.make(backbone, [text for column in of for text in read[column](train)])
    with publish(paths.tokenizer(name)) as (out,):
        tokenizer.save_pretrained(out)


if __name__ == "__main__":
    run("tokenizer", main, __doc__)
