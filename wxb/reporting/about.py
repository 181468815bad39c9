"""The box at the top of a study's page: what a reader who does not know the study needs first."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from wxb.core.params.corpora import Split
from wxb.core.params.experiments import Experiment

if TYPE_CHECKING:
    from wxb.reporting.charts.parts import Page, Study  # imports plotly

LENGTH = 300  # most characters of the example and of its answer
TERMS = {
    "LoRA": "trains two small matrices beside each frozen matrix of weights",
    "QLoRA": "LoRA on weights that are stored in 4 bits",
    "NEFTune": "adds noise to the embeddings during training",
    "bidirectional": "a decoder without its causal mask: each token also sees the later ones",
    "crf": "a conditional random field: a weight for each pair of word feature and tag, no network",
    "frozen": "the backbone is not trained",
    "TF-IDF": "counts of words, weighted by how rare they are",
    "tfidf": "logistic regression on counts of words, weighted by how rare they are",
    "recurrent": "an LSTM that is trained from random weights",
    "sft": "supervised fine-tuning on questions and answers",
}
RULES = {  # of baselines
    "majority": "the most frequent class of the training records",
    "mentions": "the strings that are labelled in training records",
    "nearest": "the answer of the most similar training record",
}


class About(NamedTuple):
    """One test record with its answer, each experiment in a line, and the terms of these lines."""

    example: str
    answer: str
    experiments: Mapping[str, str]
    terms: Mapping[str, str]
    held_out: Mapping[str, str]  # by test set
    commit: str  # empty without git


def about(study: Study, task: Page) -> About:
    """The box of a study; its example is the first test record."""
    names = [*study.comparison["systems"]]
    first = next(iter(study.predictions[names[0]]))
    lines = {name: _line(study, name) for name in names}
    text = " ".join(lines.values())
    split = study.params.corpora[study.params.experiments[names[0]].corpus].split
    return About(
        _shortened(task.example(first)),
        _shortened(task.answer(first)),
        lines,
        {term: meaning for term, meaning in TERMS.items() if re.search(rf"\b{term}\b", text)},
        held_out(split),
        _commit(),
    )


def held_out(split: Split) -> dict[str, str]:
    """What each test set has that training lacks: the values of a field, texts, or files."""
    others = {name: test_set.by or "file" for name, test_set in (split.further or {}).items()}
    return {"test": "file" if split.files else split.by or "text", **others}


def tuning_text(experiment: Experiment) -> str:
    """How an experiment differs from full fine-tuning, such as "LoRA r 4"; empty if it does not."""
    tuning = experiment.tuning
    lora = f"{'QLoRA' if tuning.four_bit else 'LoRA'} r {tuning.lora.r}" if tuning.lora else ""
    frozen = "frozen" if tuning.frozen else ""
    scale = " by padded length" if tuning.neftune_padded else ""
    noise = f"NEFTune {tuning.neftune_alpha:g}{scale}" if tuning.neftune_alpha else ""
    return ", ".join(filter(None, [lora, frozen, *experiment.traits, noise]))


def _commit() -> str:
    """The commit of the code and parameters, and whether they differ from it; empty without git."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "--no-optional-locks", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    head = git("rev-parse", "--short", "HEAD")
    is_same = not git("diff", "--quiet", "HEAD", "--", ".", ":!dvc.lock", ":!reports").returncode
    name = "" if head.returncode else head.stdout.strip()
    return name if is_same or not name else f"{name} with changes"


def _line(study: Study, name: str) -> str:
    """The method, backbone and tuning of an experiment."""
    experiment = study.params.experiments[name]
    tuning = tuning_text(experiment)
    if experiment.is_baseline:
        return f"baseline without training: {RULES.get(tuning, tuning)}"
    backbone = study.params.backbone_of(experiment)
    shape = backbone.architecture
    kind = f" ({shape.model_type})" if shape else ""
    where = "" if backbone.is_tokenizer_only else f" on {experiment.backbone}{kind}"
    return ", ".join(filter(None, [f"{experiment.method}{where}", tuning]))


def _shortened(text: str) -> str:
    return text if len(text) <= LENGTH else f"{text[:LENGTH]} …"
