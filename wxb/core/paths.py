"""Paths of all artifacts of the pipeline, relative to the project's root."""

from pathlib import Path

PROFILE = "profile.json"  # in the folder of a clean corpus
TRAINING_DATA = "training"  # in the same folder: train, valid and labels, which training reads
SETTINGS = "wxb.json"  # in the folder of a trained experiment
LABELS = "labels.json"  # in the folder of training data
ALIGNMENT = "alignment.json"  # in the folder of targets: counts of aligned and lost gold
SEED = "seed-"  # prefix of the folders of all seeds of a study but the first
# Folders with a subfolder for each corpus, backbone or experiment, some of them by study.
DATA = Path("data")
RAW, CLEAN, TOKENIZERS = DATA / "raw", DATA / "clean", DATA / "tokenizers"
FEATURES, TARGETS = DATA / "features", DATA / "targets"
MODELS = Path("models")
LOGS = Path("logs")
REPORTS = Path("reports")
HEADLINES = REPORTS / "headlines"  # the score that ranks each experiment; DVC's tables show it
METRICS = REPORTS / "metrics"
PREDICTIONS = REPORTS / "predictions"
TRAINING, STUDIES, COST = REPORTS / "training", REPORTS / "studies", REPORTS / "cost"
INDEX = REPORTS / "index.html"  # links to the pages of all studies and lessons
PROVENANCE = REPORTS / "provenance.json"  # the machines and versions of the committed studies
BENCHMARKS = REPORTS / "benchmarks"  # committed figures of benchmarks/
SEEDS = REPORTS / "seeds"  # studies with several seeds, which `make seeds` writes

# Names used instead of a study's in paths below reports/.
LESSONS, PRETRAIN = "lessons", "pretrain"


def metrics(study: str, name: str) -> Path:
    """The metrics file of an experiment; `study` may also be LESSONS or PRETRAIN."""
    return METRICS / study / f"{name}.json"


def study(name: str, suffix: str = "json") -> Path:
    """The comparison file of a study; `suffix` is json, csv or md."""
    return STUDIES / f"{name}.{suffix}"


def seeds(study: str) -> Path:
    """The comparison file in SEEDS of a study with several seeds."""
    return SEEDS / f"{study}.json"


def page(name: str) -> Path:
    """The HTML page of a study or lesson."""
    return REPORTS / f"{name}.html"


def cost(verb: str, name: str) -> Path:
    """The file with the seconds, memory and machine of a stage."""
    return COST / verb / f"{name}.json"


def log(stage: str) -> Path:
    """The log file of a stage such as `train@NAME`."""
    return LOGS / f"{stage}.log"
