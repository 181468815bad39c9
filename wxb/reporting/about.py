"""The task and the experiments of a study, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wxb.core.params.experiments import Experiment

if TYPE_CHECKING:
    from wxb.reporting.charts.parts import Study  # imports plotly


def about(study: Study, rule: str) -> Iterator[str]:
    """Paragraphs on the task with its `rule` of scoring, and on the experiments."""
    names = [*study.systems]
    yield f"Task: {study.params.experiments[names[0]].task}. {rule}"
    yield f"Experiments: {'; '.join(f'{name}: {_line(study, name)}' for name in names)}."


def tuning_text(experiment: Experiment) -> str:
    """How an experiment differs from full fine-tuning, such as "LoRA r 4"; empty if it does not."""
    tuning = experiment.tuning
    lora = f"{'QLoRA' if tuning.four_bit else 'LoRA'} r {tuning.lora.r}" if tuning.lora else ""
    frozen = "frozen" if tuning.frozen else ""
    scale = " by padded length" if tuning.neftune_padded else ""
    noise = f"NEFTune {tuning.neftune_alpha:g}{scale}" if tuning.neftune_alpha else ""
    return ", ".join(filter(None, [lora, frozen, *experiment.traits, noise]))


def _line(study: Study, name: str) -> str:
    """The method, backbone and tuning of an experiment."""
    experiment = study.params.experiments[name]
    if experiment.is_baseline:
        return f"baseline without training, {tuning_text(experiment)}"
    backbone = study.params.backbone_of(experiment)
    kind = f" ({backbone.architecture.model_type})" if backbone.architecture else ""
    where = "" if backbone.is_tokenizer_only else f" on {experiment.backbone}{kind}"
    return ", ".join(filter(None, [f"{experiment.method}{where}", tuning_text(experiment)]))
