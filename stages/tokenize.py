"""Turn the labelled records of one experiment into token ids with checked character offsets."""

from pathlib import Path

from stages import run
from wxb.corpora import clean
from wxb.files import publish
from wxb.params import Params
from wxb.text.encoded import write_encoded
from wxb.text.tokenizers import SavedTokenizer, encode


def main(params: Params, name: str) -> None:
    """Tokenize for the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    corpus = Path("data/clean", experiment.corpus)
    tokenizer = SavedTokenizer(Path("data/tokenizers", experiment.backbone))
    with publish(f"data/features/{name}") as (out,):
        out.mkdir()
        for split in clean.splits(corpus):
            texts = clean.texts(corpus / f"{split}.parquet", labelled=True)
            encoded = encode(tokenizer, texts, label=f"tokenize@{name}: {split}")
            write_encoded(out / f"{split}.arrow", encoded)


if __name__ == "__main__":
    run("tokenize", main, __doc__)
