"""The published figures of the series' chat model, and the effects of its choices here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wxb.core.params import Params
from wxb.core.params.experiments import Experiment
from wxb.reporting.charts.baselines import trained

# Day 28: Meta-Llama-3-8B-Instruct, QLoRA r 32 on q, k, v, o and NEFTune alpha 5, after 2 epochs.
LOSS = 1.88124

LOSS_ON_ALL, PADDED_NOISE = "loss over all tokens", "noise by the padded length"


class Effect(NamedTuple):
    """A published choice, and the headline score without it minus the score with it."""

    choice: str
    ours: str  # the experiment without it
    published: str  # the experiment with it
    difference: Mapping[str, float]


def effects(params: Params, comparison: Mapping[str, Any]) -> list[Effect]:
    """Score differences of experiments whose training differs only in one published choice.

    The choices are loss on all tokens and NEFTune noise by padded length. The experiment without
    the choice comes first in the study.
    """
    blocks = {name: params.experiments[name] for name in trained(comparison)}
    pairs = {(pair["a"], pair["b"]): pair["difference"] for pair in comparison["pairs"]}
    return [
        Effect(choice, ours, published, pairs[ours, published])
        for published, block in blocks.items()
        for choice, settings in _without_choices(block).items()
        for ours, other in blocks.items()
        if _settings(other) == settings and (ours, published) in pairs
    ]


def _settings(block: Experiment) -> dict[str, Any]:
    """The settings that affect training."""
    return block.model_dump(exclude={"prediction"})


def _without_choices(block: Experiment) -> dict[str, dict[str, Any]]:
    """The settings without each of the published choices that they have, by choice."""
    settings = _settings(block)
    encoding, tuning = settings["encoding"], settings["tuning"]
    without = {}
    if encoding["loss"] == "all":
        without[LOSS_ON_ALL] = {**settings, "encoding": {**encoding, "loss": "assistant"}}
    if tuning["neftune_padded"]:
        without[PADDED_NOISE] = {**settings, "tuning": {**tuning, "neftune_padded": False}}
    return without
