"""The box at the top of a study's page: what a reader who does not know the study needs first."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wxb.core.params.corpora import Split
from wxb.core.params.experiments import Experiment

if TYPE_CHECKING:
    from wxb.reporting.charts.parts import Page, Study  # imports plotly

LENGTH = 110  # characters: the most of an example, and of its answer
TERMS = {
    "LoRA": "small trained matrices beside frozen weights",
    "QLoRA": "LoRA on 4-bit weights",
    "NEFTune": "noise on the embeddings in training",
    "bidirectional": "a decoder whose tokens also see later ones",
    "crf": "a conditional random field on features of words, no network",
    "frozen": "the backbone is not trained",
    "TF-IDF": "counts of words, weighted by how rare they are",
    "tfidf": "logistic regression on weighted counts of words",
    "recurrent": "an LSTM with random initial weights",
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
    """The box of a study; its example is the first short test record with an answer."""
    names = [*study.comparison["systems"]]
    lines = {name: _line(study, name) for name in names}
    text = " ".join(lines.values())
    split = study.params.corpora[study.params.experiments[names[0]].corpus].split
    return About(
        *_example(study.predictions[names[0]], task),
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


def _example(rows: Sequence[Any], task: Page) -> tuple[str, str]:
    """The text and the answer of the first test record that fits in LENGTH, or of the shortest."""
    examples = [(task.example(row), task.answer(row)) for row in rows if row.gold] or [
        (task.example(rows[0]), task.answer(rows[0]))
    ]
    short = (example for example in examples if len("".join(example)) <= LENGTH)
    text, answer = next(short, min(examples, key=lambda example: len("".join(example))))
    return _shortened(text), _shortened(answer)


def _shortened(text: str) -> str:
    return text if len(text) <= LENGTH else f"{text[:LENGTH]} …"
