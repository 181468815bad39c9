"""Train and run spaCy's entity recognizer, for comparison with our models.

It is a blank pipeline whose only component is `ner`, trained from scratch with spaCy's default
settings (batches that grow from 100 to 1,000 words, dropout 0.1, Adam). Each epoch is scored on the
validation split, and the best one is kept.
"""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

# The libraries below read these variables at import.
os.environ.update({f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "MKL", "OPENBLAS", "BLIS")})


from wxb.core.errors import WxbError
from wxb.core.progress import Progress
from wxb.corpora.records import Record
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import Span, f1

try:
    import spacy
    from spacy.language import Language
    from spacy.schemas import ConfigSchemaTraining
    from spacy.training import Example
    from spacy.util import fix_random_seed, registry
except ModuleNotFoundError as error:
    sys.exit(f"{error}; install it with `pip install --editable '.[benchmarks]'`")

PEER = f"spaCy {spacy.__version__}"
MULTILINGUAL = "xx"  # spaCy's code of a pipeline for any language


class Fit(NamedTuple):
    """A trained pipeline, its epoch, its F1 on validation records (if any), and seconds."""

    nlp: Language
    epoch: int
    valid_f1: float | None
    seconds: float


def languages_of(records: Iterable[Record]) -> list[str]:
    """The languages of records, each of which gets a pipeline.

    MULTILINGUAL alone if a record has no language.
    """
    languages = sorted({record.language or "" for record in records})
    return [MULTILINGUAL] if "" in languages else languages


def select_language(
    records: Sequence[Record], language: str, languages: Sequence[str]
) -> list[Record]:
    """The records for the pipeline of a language; all of them if it is the only one."""
    return [record for record in records if len(languages) == 1 or record.language == language]


def pipeline(language: str) -> Language:
    """A blank pipeline with an entity recognizer, not initialized.

    Raises WxbError if spaCy has no tokenizer for that language, or lacks a library for it.
    """
    try:
        nlp = spacy.blank(language)
    except ImportError as error:
        raise WxbError(
            f"found language {language!r}, expected one that spaCy can tokenize ({error})"
        ) from None
    nlp.add_pipe("ner")
    return nlp


def train_ner(
    nlp: Language,
    train: Sequence[Record],
    valid: Sequence[Record],
    *,
    epochs: int,
    seed: int,
    label: str,
) -> Fit:
    """Train a blank pipeline in place with spaCy's default settings; reports progress.

    The final weights are those of the epoch with the best F1 on `valid`, the earliest of equals, or
    of the last epoch without validation records. The same seed gives the same weights. The seconds
    include preparing examples and validation, as in the `train` stage.
    """
    start = time.monotonic()
    fix_random_seed(seed)
    training = registry.resolve(nlp.config.interpolate()["training"], schema=ConfigSchemaTraining)
    examples = [example(nlp, record) for record in train]
    optimizer = nlp.initialize(lambda: examples)
    progress = Progress(label, epochs * len(examples), unit="record")
    metrics_shown: dict[str, float | str] = {}
    best_epoch, best_f1, best = epochs, -1.0, b""
    for epoch in range(1, epochs + 1):
        random.shuffle(examples)
        done = (epoch - 1) * len(examples)
        for batch in training["batcher"](examples):
            nlp.update(batch, sgd=optimizer, drop=training["dropout"])
            done += len(batch)
            progress.update(done, epoch=epoch, **metrics_shown)
        if valid:
            f1 = _f1(nlp, valid)
            metrics_shown = {"valid_f1": f"{f1:.3f}"}
            if f1 > best_f1:
                best_epoch, best_f1, best = epoch, f1, nlp.to_bytes()
    if valid:
        nlp.from_bytes(best)
    seconds = time.monotonic() - start
    return Fit(nlp, best_epoch, best_f1 if valid else None, seconds)


def example(nlp: Language, record: Record) -> Example:
    """The training example of a record; tokens of misaligned gold spans have no target."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[W030\]")
        return Example.from_dict(
            nlp.make_doc(record.input), {"entities": [tuple(span) for span in record.gold or ()]}
        )


def predict(
    nlp: Language, records: Sequence[Record], vocabulary: Set[tuple[str, str]] = frozenset()
) -> list[metrics.PredictionRow]:
    """Records with their gold and predicted spans; `vocabulary` as in `Scorer.rows`."""
    # spaCy has no scores of spans.
    predictions = [[(span, 1.0) for span in spans] for spans in _spans(nlp, records)]
    return metrics.Scorer().rows(records, predictions, vocabulary)


def parameter_count(nlp: Language) -> int:
    """Number of parameters of the recognizer."""
    return sum(
        node.get_param(name).size
        for node in nlp.get_pipe("ner").model.walk()
        for name in node.param_names
        if node.has_param(name)
    )


def _spans(nlp: Language, records: Sequence[Record]) -> list[tuple[Span, ...]]:
    return [
        tuple(Span(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents)
        for doc in nlp.pipe(record.input for record in records)
    ]


def _f1(nlp: Language, records: Sequence[Record]) -> float:
    return f1([record.gold or () for record in records], _spans(nlp, records))
