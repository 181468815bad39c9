"""What a reader who does not know a study needs first: task, example, experiments and terms."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
    "tfidf": "logistic regression on weighted counts of words",
    "recurrent": "an LSTM with random initial weights",
    "sft": "supervised fine-tuning on questions and answers",
    "majority": "the most frequent class of the training records",
    "mentions": "the strings that are labelled in training records",
    "nearest": "the answer of the most similar training record",
}


def about(study: Study, task: Page) -> Iterator[str]:
    """Paragraphs on the task, one test record, the experiments and their terms."""
    names = [*study.systems]
    text, answer = _example(study.predictions[names[0]], task)
    experiments = {name: _line(study, name) for name in names}
    lines = " ".join(experiments.values())
    terms = [f"{t}: {meaning}" for t, meaning in TERMS.items() if re.search(rf"\b{t}\b", lines)]
    split = study.params.corpora[study.params.experiments[names[0]].corpus].split
    held_out = {"test": "file" if split.files else split.by or "text"}
    held_out |= {name: test_set.by or "file" for name, test_set in (split.further or {}).items()}
    yield f"Task: {study.params.experiments[names[0]].task}. {task.RULE}"
    yield f"Example: {text} → {answer}"
    yield f"Experiments: {'; '.join(f'{name}: {line}' for name, line in experiments.items())}."
    if terms:
        yield f"Terms: {'; '.join(terms)}."
    yield f"Held out: {', '.join(f'{key} ({name})' for name, key in held_out.items())}."


def tuning_text(experiment: Experiment) -> str:
    """How an experiment differs from full fine-tuning, such as "LoRA r 4"; empty if it does not."""
    tuning = experiment.tuning
    lora = f"{'QLoRA' if tuning.four_bit else 'LoRA'} r {tuning.lora.r}" if tuning.lora else ""
    frozen = "frozen" if tuning.frozen else ""
    scale = " by padded length" if tuning.neftune_padded else ""
    noise = f"NEFTune {tuning.neftune_alpha:g}{scale}" if tuning.neftune_alpha else ""
    return ", ".join(filter(None, [lora, frozen, *experiment.traits, noise]))


def commit() -> str:
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
    if experiment.is_baseline:
        return f"baseline without training, {tuning_text(experiment)}"
    backbone = study.params.backbone_of(experiment)
    kind = f" ({backbone.architecture.model_type})" if backbone.architecture else ""
    where = "" if backbone.is_tokenizer_only else f" on {experiment.backbone}{kind}"
    return ", ".join(filter(None, [f"{experiment.method}{where}", tuning_text(experiment)]))


def _example(rows: Sequence[Any], task: Page) -> list[str]:
    """The text and the answer of the first test record that fits in LENGTH, or of the shortest."""
    examples = [(task.example(row), task.answer(row)) for row in rows if row.gold] or [
        (task.example(rows[0]), task.answer(rows[0]))
    ]
    short = (example for example in examples if len("".join(example)) <= LENGTH)
    example = next(short, min(examples, key=lambda example: len("".join(example))))
    return [text if len(text) <= LENGTH else f"{text[:LENGTH]} …" for text in example]
