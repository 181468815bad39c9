"""Small trained classifiers, and their training texts."""

from pathlib import Path

from tests import tiny, training_steps
from wxb import tasks
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.tokenizers import SavedTokenizer

GOOD, BAD = ("fine", "lovely", "bright"), ("dull", "weak", "grey")
TEXTS = [
    (f"The {thing} {when} was {word}.", "good" if word in GOOD else "bad")
    for thing in ("film", "play", "song", "book")
    for when in ("yesterday", "today")
    for word in (*GOOD, *BAD)
]
RECORDS = [Record(str(n), text, label, None, text) for n, (text, label) in enumerate(TEXTS)]
LABELS = ["bad", "good"]
TRAINING = {"epochs": 6, "batch_size": 8, "learning_rate": 5e-3}


def encoder(pooling="cls", **encoding):
    return training_steps.experiment(
        "classification",
        "encoder",
        encoding={"max_length": 24, **encoding},
        model={"pooling": pooling, "dropout": 0.0},
        training=TRAINING,
    )


def prompt(**settings):
    """A decoder that answers an instruction."""
    return training_steps.experiment(
        "classification",
        "prompt",
        encoding={"max_length": 24, "instruction": "Good or bad?", **settings},
        tuning={"frozen": True} if settings else {},
        training={**TRAINING, "learning_rate": 2e-3},
    )


def regression(**training):
    """An encoder whose linear layer is a logistic regression."""
    return training_steps.experiment(
        "classification",
        "encoder",
        encoding={"max_length": 24},
        tuning={"frozen": True},
        model={"pooling": "mean"},
        training={"C": [1.0, 10.0], "class_weight": "balanced", **training},
    )


def scratch(method, **model):
    """A network that is trained from scratch."""
    return training_steps.experiment(
        "classification",
        method,
        encoding={"max_length": 24},
        model=model or {"embedding_size": 16},
        training=TRAINING,
    )


def tfidf(**training):
    settings = {"C": [1.0, 10.0], **training}
    return training_steps.experiment("classification", "tfidf", training=settings)


def train(experiment, folder: Path, kind="wordpiece"):
    """Train as the stages do; returns the predictor, and the same after saving and loading."""
    backbone = folder / "backbone"
    texts = [record.input for record in RECORDS]
    tokenizers.train(kind, 300, texts).save_pretrained(backbone)
    if kind == "wordpiece":
        tiny.bert(backbone, vocab_size=len(SavedTokenizer(backbone)))
    if kind == "byte-level-bpe":
        size = len(SavedTokenizer(backbone))
        tiny.llama(backbone, vocab_size=size, max_position_embeddings=256)
    method = tasks.get("classification").method(experiment.method)
    classifier = method(experiment, LABELS, tokenizers.load(backbone))
    predictor, history, counts = training_steps.train(classifier, backbone, RECORDS, folder)
    assert {"step", "epoch"} <= {*history[-1]}
    assert (counts["gold"], counts["kept"], counts["lost"]) == (len(RECORDS), len(RECORDS), 0)
    return predictor, training_steps.saved_and_loaded(predictor, experiment, folder / "model")
