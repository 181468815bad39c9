"""The peers of own_data.py: what somebody would write without this project, at default settings.

Each function trains on records and returns the rows of the test records. A peer that chooses
nothing by validation records trains on these, too.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from own_data_sets import Data, Splits

from wxb.corpora.records import Record
from wxb.tasks.classification import metrics as classification
from wxb.tasks.translation import metrics as translation

EPOCHS, RECORDS = 20, 20_000  # that spaCy trains on at least


def classify(splits: Splits, set_: Data, seed: int) -> list[Any]:
    """Rows by TF-IDF and logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    train, test = _training_records(splits), splits["test"]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    pipeline.fit([record.input for record in train], [record.gold for record in train])
    predicted = pipeline.predict([record.input for record in test])
    return [
        classification.PredictionRow(record.id, record.input, record.gold, label, {})
        for record, label in zip(test, predicted, strict=True)
    ]


def find_spans(splits: Splits, set_: Data, seed: int) -> list[Any]:
    """Rows by spaCy's blank pipeline, which trains for EPOCHS or, with few records, on RECORDS."""
    import spacy_peer

    train, valid = splits["train"], splits["valid"]
    epochs = max(EPOCHS, RECORDS // len(train))
    nlp = spacy_peer.pipeline(set_.language)
    fit = spacy_peer.train_ner(nlp, train, valid, epochs=epochs, seed=seed, label="spaCy")
    return spacy_peer.predict(fit.nlp, splits["test"])


def translate(splits: Splits, set_: Data, seed: int) -> list[Any]:
    """Rows with the translation of the nearest training source, by TF-IDF of characters."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    train, test = _training_records(splits), splits["test"]
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
    vectors = vectorizer.fit_transform([record.input for record in train])
    queries = vectorizer.transform([record.input for record in test])
    nearest = np.asarray((queries @ vectors.T).argmax(axis=1)).ravel()
    return [
        translation.PredictionRow(record.id, record.input, record.gold, train[index].gold[0])
        for record, index in zip(test, nearest, strict=True)
    ]


def _training_records(splits: Splits) -> list[Record]:
    return [*splits["train"], *splits["valid"]]


PEERS: dict[str, Callable[[Splits, Data, int], list[Any]]] = {
    "classification": classify,
    "ner": find_spans,
    "translation": translate,
}
PACKAGES = {"ner": "spacy"}  # scikit-learn if a task has none


def version_of(task: str) -> str:
    """The package of a peer and its version."""
    package = PACKAGES.get(task, "scikit-learn")
    return f"{package} {version(package)}"
