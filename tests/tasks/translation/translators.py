"""A tokenizer trained on a few phrases, and translators with random weights."""

from functools import cache

import torch

from demos.phrases import generate
from tests import training_steps
from wxb.corpora.text import tokenizers
from wxb.tasks.translation.models.predictor import special_ids_and_size
from wxb.tasks.translation.models.seq2seq import Seq2SeqModel
from wxb.tasks.translation.seq2seq import Decoder, Recurrent, Transformer

LONGEST = 20
PAIRS = [*generate(labelled=60, unlabelled=0, languages=["en", "zh"], seed=1)]
SOURCES = [pair["chinese"] for pair in PAIRS]
TARGETS = [pair["english"] for pair in PAIRS]
SHAPES = {
    "seq2seq": Recurrent(kind="recurrent", attention=False, embedding_size=8, hidden_size=6),
    "attention": Recurrent(kind="recurrent", attention=True, embedding_size=8, hidden_size=6),
    "transformer": Transformer(
        kind="transformer", width=8, heads=2, layers=2, feed_forward=12, label_smoothing=0.1
    ),
    "gpt2": Decoder(kind="gpt2", n_embd=8, n_layer=2, n_head=2),
}


@cache
def tokenizer():
    return tokenizers.train("byte-level-bpe", 400, [*SOURCES, *TARGETS])


def random_model(name, *, seed=0, std=0.4):
    """A model whose random weights are large enough for clear differences of probability."""
    torch.manual_seed(seed)
    shape = SHAPES[name].model_dump()
    model = Seq2SeqModel(tokenizer(), shape, special_ids_and_size(tokenizer()), LONGEST)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return model.double().eval()


def experiment(name="transformer", **changes):
    settings = {
        "encoding": {"max_length": LONGEST},
        "model": SHAPES[name].model_dump(),
        "training": {"epochs": 1, "batch_size": 4, "learning_rate": 0.001},
        **changes,
    }
    return training_steps.experiment("translation", "seq2seq", **settings)
