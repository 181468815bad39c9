"""Train the tokenizer of a backbone on its corpus, or load that of its checkpoint."""

from wxb.core import compatibility, hub, paths
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text import tokenizers
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Write the tokenizer of the backbone `name`. WxbError if its checkpoint does not fit."""
    backbone = params.block("backbones", name)
    if backbone.checkpoint:
        with hub.checkpoint(backbone.checkpoint, backbone.revision) as folder:
            compatibility.require(params, name, folder)  # adapters may lack a tokenizer
            tokenizer = tokenizers.load(folder)
            compatibility.require(params, name, folder, tokenizer)
    else:
        settings = backbone.tokenizer
        path = paths.CLEAN / backbone.corpus / paths.TRAINING_DATA / "train.parquet"
        texts = [text for column in settings.texts for text in clean.texts(path, column)]
        tokenizer = tokenizers.train(settings.kind, settings.vocabulary, texts)
    with publish(paths.TOKENIZERS / name) as (out,):
        tokenizer.save_pretrained(out)


if __name__ == "__main__":
    run("tokenizer", main, __doc__)
