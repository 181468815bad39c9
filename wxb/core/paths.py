"""Where every artifact of the pipeline lies, spelled once; relative to the project's root."""

from __future__ import annotations

from pathlib import Path

PROFILE = "profile.json"  # of a clean corpus
SETTINGS = "wxb.json"  # of a trained experiment, beside its weights
LABELS = "labels.json"  # of targets
ALIGNMENT = "alignment.json"  # of targets: what became of gold
SEED = "seed-"  # begins the folder of another seed than a study's first
DATA = Path("data")
RAW, CLEAN, TOKENIZERS = DATA / "raw", DATA / "clean", DATA / "tokenizers"
FEATURES, TARGETS = DATA / "features", DATA / "targets"
MODELS = Path("models")
LOGS = Path("logs")
REPORTS = Path("reports")
METRICS, PREDICTIONS = REPORTS / "metrics", REPORTS / "predictions"
TRAINING, STUDIES, COST = REPORTS / "training", REPORTS / "studies", REPORTS / "cost"
INDEX = REPORTS / "index.html"  # leads to the pages of all studies and lessons
PROVENANCE = REPORTS / "provenance.json"  # where the committed studies were made
SEEDS = REPORTS / "seeds.json"  # the study with several seeds, as README shows it
PROMISE = REPORTS / "tiny.json"  # the bytes that are promised for the profile tiny
VECTORS = Path(".wxb/vectors")  # of texts that were searched

# Folders beside those of studies.
LESSONS, PRETRAIN, PARITY = "lessons", "pretrain", "parity"


def raw(corpus: str) -> Path:
    """The folder of a corpus as it was brought in."""
    return RAW / corpus


def clean(corpus: str) -> Path:
    """The folder of its clean records, by split."""
    return CLEAN / corpus


def tokenizer(name: str) -> Path:
    """The folder of the tokenizer of a backbone or a trained experiment."""
    return TOKENIZERS / name


def features(experiment: str) -> Path:
    """The folder of the encoded inputs of an experiment."""
    return FEATURES / experiment


def targets(experiment: str) -> Path:
    """The folder of what it is to learn."""
    return TARGETS / experiment


def model(name: str) -> Path:
    """The folder of a backbone or a trained experiment."""
    return MODELS / name


def metrics(study: str, name: str) -> Path:
    """The metrics of an experiment; in place of a study LESSONS, PRETRAIN or PARITY."""
    return METRICS / study / f"{name}.json"


def predictions(study: str, experiment: str) -> Path:
    """The folder of what an experiment predicted for the test records."""
    return PREDICTIONS / study / experiment


def training(study: str, name: str) -> Path:
    """The folder of the curves of a training; in place of a study PRETRAIN."""
    return TRAINING / study / name


def study(name: str, suffix: str = "json") -> Path:
    """The comparison of a study, as json, csv or md."""
    return STUDIES / f"{name}.{suffix}"


def page(name: str) -> Path:
    """The page of a study or lesson."""
    return REPORTS / f"{name}.html"


def cost(verb: str, name: str) -> Path:
    """What a stage took: seconds, memory, and where."""
    return COST / verb / f"{name}.json"


def log(stage: str) -> Path:
    """What a stage such as `train@NAME` printed."""
    return LOGS / f"{stage}.log"
