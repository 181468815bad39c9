"""What the series printed of its chat model, and what each of its choices does here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wxb.core.params import Params
from wxb.core.params.experiments import Experiment

# Day 28: Meta-Llama-3-8B-Instruct, QLoRA r 32 on q, k, v, o and NEFTune alpha 5, after 2 epochs.
LOSS = 1.88124

LOSS_ON_ALL, PADDED_NOISE = "loss over all tokens", "noise by the padded length"


class Effect(NamedTuple):
    """What a published choice does to the headline: the score without it, minus that with it."""

    choice: str
    ours: str
    published: str
    difference: Mapping[str, float]


def effects(params: Params, comparison: Mapping[str, Any]) -> list[Effect]:
    """The experiments of a study that differ in nothing but a published choice, compared."""
    blocks = {name: params.experiments[name] for name in comparison["systems"]}
    pairs = {(pair["a"], pair["b"]): pair["difference"] for pair in comparison["pairs"]}
    found = []
    for published, block in blocks.items():
        for choice, without in _without(block).items():
            for ours, other in blocks.items():
                if _made(other) == without and (ours, published) in pairs:
                    difference = pairs[ours, published]
                    found.append(Effect(choice, ours, published, difference))
    return found


def _made(block: Experiment) -> dict[str, Any]:
    """All settings that what is learnt hangs on."""
    return block.model_dump(exclude={"prediction"})


def _without(block: Experiment) -> dict[str, dict[str, Any]]:
    """The settings without each of the published choices that are made in them."""
    made = _made(block)
    found = {}
    if made["encoding"]["loss"] == "all":
        found[LOSS_ON_ALL] = {**made, "encoding": {**made["encoding"], "loss": "assistant"}}
    if made["tuning"]["neftune_padded"]:
        found[PADDED_NOISE] = {**made, "tuning": {**made["tuning"], "neftune_padded": False}}
    return found
