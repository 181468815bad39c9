"""spaCy's entity recogniser, trained and asked as benchmarks do: the peer of ours.

It starts from nothing, as ours do: a blank pipeline whose only component is `ner`, with the
settings that spaCy gives a new pipeline (batches that grow from 100 to 1,000 words, dropout 0.1,
Adam). Each epoch is scored on the validation split, and the best one is kept.
"""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

# The libraries below read these when they are imported.
os.environ.update({f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "MKL", "OPENBLAS", "BLIS")})

import typer

from wxb.core.errors import WxbError
from wxb.core.progress import Progress
from wxb.corpora.records import Record
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import counts, prf
from wxb.tasks.ner.record.spans import Span

try:
    import spacy
    from spacy.language import Language
    from spacy.schemas import ConfigSchemaTraining
    from spacy.training import Example
    from spacy.util import fix_random_seed, registry
except ModuleNotFoundError as error:
    sys.exit(f"{error}; install it with `pip install --editable '.[benchmarks]'`")

PEER = f"spaCy {spacy.__version__}"
MANY = "xx"  # spaCy's name for a pipeline of no particular language
WIDTH = 160  # characters; a table is cut nowhere, whatever the terminal


class Fit(NamedTuple):
    """A trained pipeline, the epoch it is from, and that epoch's F1 on valid (None without one)."""

    nlp: Language
    epoch: int
    valid_f1: float | None
    seconds: float


def languages_of(records: Iterable[Record]) -> list[str]:
    """The languages of some records, for each of which a pipeline is trained.

    One for all, MANY, where some record's is not noted.
    """
    languages = sorted({record.language or "" for record in records})
    return [MANY] if "" in languages else languages


def of_language(records: Sequence[Record], language: str, all_: Sequence[str]) -> list[Record]:
    """The records that the pipeline of a language is for: all of them where there is but one."""
    return [record for record in records if len(all_) == 1 or record.language == language]


def pipeline(language: str) -> Language:
    """A blank pipeline with an entity recogniser, not initialised.

    Raises WxbError when spaCy has no tokenizer of that language, or lacks a library for it.
    """
    try:
        nlp = spacy.blank(language)
    except ImportError as error:
        raise WxbError(
            f"found language {language!r}, expected one that spaCy can tokenize ({error});"
            f" choose another with --language, e.g. {MANY}"
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
    """Train a blank pipeline in place by spaCy's default settings.

    It ends with the weights of the epoch of best F1 on `valid`, the earliest of equals; without
    validation records, with those of the last epoch. The same seed gives the same weights. The
    seconds include preparing examples and validating, as the `train` stage does.
    """
    started = time.monotonic()
    fix_random_seed(seed)
    training = registry.resolve(nlp.config.interpolate()["training"], schema=ConfigSchemaTraining)
    examples = [example(nlp, record) for record in train]
    optimizer = nlp.initialize(lambda: examples)
    progress = Progress(label, epochs * len(examples), unit="record")
    told: dict[str, float | str] = {}
    best_epoch, best_f1, best = epochs, -1.0, b""
    for epoch in range(1, epochs + 1):
        random.shuffle(examples)
        done = (epoch - 1) * len(examples)
        for batch in training["batcher"](examples):
            nlp.update(batch, sgd=optimizer, drop=training["dropout"])
            done += len(batch)
            progress.at(done, epoch=epoch, **told)
        if valid:
            f1 = _f1(nlp, valid)
            told = {"valid_f1": f"{f1:.3f}"}
            if f1 > best_f1:
                best_epoch, best_f1, best = epoch, f1, nlp.to_bytes()
    if valid:
        nlp.from_bytes(best)
    seconds = time.monotonic() - started
    return Fit(nlp, best_epoch, best_f1 if valid else None, seconds)


def example(nlp: Language, record: Record) -> Example:
    """A record to train on; tokens of a gold span between their boundaries have no target."""
    with warnings.catch_warnings():
        # Such spans are counted and told at the end.
        warnings.filterwarnings("ignore", message=r"\[W030\]")
        return Example.from_dict(
            nlp.make_doc(record.input), {"entities": [tuple(span) for span in record.gold or ()]}
        )


def misaligned(nlp: Language, record: Record) -> list[Span]:
    """The gold spans of a record that begin or end inside one of spaCy's tokens."""
    doc = nlp.make_doc(record.input)
    return [span for span in record.gold or () if doc.char_span(span.start, span.end) is None]


def judge(
    nlp: Language, records: Sequence[Record], known: Set[tuple[str, str]] = frozenset()
) -> list[metrics.Judged]:
    """Records with all their gold spans, and those that the pipeline finds; see `ner.judge`."""
    return [
        # spaCy says no more than that it found them.
        metrics.Scorer().judge(record, [(span, 1.0) for span in found], known)
        for record, found in zip(records, _found(nlp, records), strict=True)
    ]


def parameters(nlp: Language) -> int:
    """How many numbers the recogniser has learnt."""
    return sum(
        node.get_param(name).size
        for node in nlp.get_pipe("ner").model.walk()
        for name in node.param_names
        if node.has_param(name)
    )


def _found(nlp: Language, records: Sequence[Record]) -> list[tuple[Span, ...]]:
    return [
        tuple(Span(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents)
        for doc in nlp.pipe(record.input for record in records)
    ]


def _f1(nlp: Language, records: Sequence[Record]) -> float:
    table = counts([record.gold or () for record in records], _found(nlp, records))
    f1: float = prf(table.sum(axis=0))[2]
    return f1


def run(app: typer.Typer, name: str) -> None:
    """Run a command line; a WxbError is told without a traceback, exit code 1."""
    try:
        app()
    except WxbError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(1)
