"""Small trained classifiers, and their training texts."""

from pathlib import Path

from tests import tiny
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import write_columns
from wxb.corpora.text.saved import SavedTokenizer
from wxb.tasks.classification import params

GOOD, BAD = ("fine", "lovely", "bright"), ("dull", "weak", "grey")
TEXTS = [
    (f"The {thing} {when} was {word}.", "good" if word in GOOD else "bad")
    for thing in ("film", "play", "song", "book")
    for when in ("yesterday", "today")
    for word in (*GOOD, *BAD)
]
RECORDS = [Record(str(n), text, label, None, text) for n, (text, label) in enumerate(TEXTS)]
LABELS = ["bad", "good"]
COMMON = {"study": "s", "corpus": "c", "task": "classification", "backbone": "b", "tuning": {}}
TRAINING = {"epochs": 6, "batch_size": 8, "learning_rate": 5e-3}


def encoder(pooling="cls", **encoding):
    return params.Encoder(
        **COMMON,
        method="encoder",
        architecture="wxb/models/bert.py",
        encoding={"max_length": 24, **encoding},
        model={"pooling": pooling, "dropout": 0.0},
        training=TRAINING,
        prediction={"explained": 3},
    )


def regression(**training):
    """An encoder whose linear layer is a logistic regression."""
    changes = {
        "tuning": {"frozen": True},
        "model": {"pooling": "mean"},
        "training": {"C": [1.0, 10.0], "class_weight": "balanced", **training},
    }
    return params.Encoder(**{**encoder("mean").model_dump(), **changes})


def recurrent():
    return params.Recurrent(
        **COMMON,
        method="recurrent",
        architecture="wxb/models",
        encoding={"max_length": 24},
        model={"embedding_size": 16, "hidden_size": 16},
        training=TRAINING,
        prediction={"explained": 3},
    )


def tfidf(**training):
    return params.Tfidf(
        **COMMON,
        method="tfidf",
        architecture="wxb/models/__init__.py",
        encoding={},
        model={},
        training={"C": [1.0, 10.0], **training},
        prediction={"explained": 3},
    )


def train(method, experiment, folder: Path, kind="wordpiece"):
    """Train as the stages do; returns the predictor, and the same after saving and loading."""
    backbone = folder / "backbone"
    texts = [record.input for record in RECORDS]
    tokenizers.train(kind, 300, texts).save_pretrained(backbone)
    if kind == "wordpiece":
        tiny.bert(backbone, vocab_size=len(SavedTokenizer(backbone)))
    classifier = method.with_vocabulary(experiment, LABELS, tokenizers.load(backbone))
    classifier.encode(RECORDS, folder / "features", label="test")
    columns, splits, account = classifier.align(folder / "features", [RECORDS])
    assert account == {"gold": len(RECORDS), "kept": len(RECORDS), "lost": 0}
    write_columns(folder / "targets", columns, splits)
    items = classifier.dataset(folder / "features", folder / "targets", RECORDS)
    run = classifier.training_run(
        items, items, seed=1, checkpoints=folder / "checkpoints", label="test"
    )
    model, history = classifier.fit(backbone, run)
    assert {"step", "epoch"} <= {*history[-1]}
    predictor = method.Predictor.from_training(model, classifier, folder / "targets")
    predictor.calibrate(RECORDS, label="test")
    predictor.save(folder / "model", experiment, updates=1, examples=1)
    return predictor, method.Predictor.load(folder / "model", experiment.prediction)
