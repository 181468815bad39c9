"""What stages ask of the machine that runs them: nothing of it changes a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import NonNegativeInt, PositiveInt

from wxb.core.errors import choices
from wxb.core.params.section import Section

# The section of params.yaml that holds the blocks of a verb.
SECTIONS = {
    **dict.fromkeys(("download", "preprocess"), "corpora"),
    **dict.fromkeys(("tokenizer", "pretrain"), "backbones"),
    **dict.fromkeys(("tokenize", "align", "train", "evaluate"), "experiments"),
    **dict.fromkeys(("compare", "report"), "studies"),
    "lesson": "lessons",
    "parity": "parity",
}


class Resources(Section):
    """Names are Snakemake's, and those of its plugin for Slurm; what is None is not asked for."""

    runtime: PositiveInt | None = None  # minutes
    mem_mb: PositiveInt | None = None  # of each node
    nodes: PositiveInt | None = None  # of Slurm, over which one training's processes are spread
    gpu: NonNegativeInt | None = None
    slurm_partition: str | None = None
    slurm_account: str | None = None


def of_stage(stage: str, asked: Mapping[str, Resources]) -> dict[str, Any]:
    """What a stage such as `train@NAME` asks for: as its verb does, and itself."""
    verb = stage.partition("@")[0]
    blocks = [asked[name] for name in (verb, stage) if name in asked]
    return {k: v for block in blocks for k, v in block.model_dump(exclude_none=True).items()}


def faults(asked: Mapping[str, Resources], blocks: Any) -> Iterator[str]:
    """The names that are neither a verb nor a stage."""
    for stage in asked:
        verb, at, name = stage.partition("@")
        if verb not in SECTIONS:
            yield f"resources.{stage}: unknown verb {verb!r}{choices(verb, SECTIONS)}"
        elif at and name not in (known := getattr(blocks, SECTIONS[verb])):
            yield f"resources.{stage}: {SECTIONS[verb]} has no {name!r}{choices(name, known)}"
        elif (nodes := asked[stage].nodes or 1) > 1 and blocks.processes(stage) % nodes:
            yield (
                f"resources.{stage}.nodes: found {nodes}; expected a divisor of the training's"
                f" `processes`, {blocks.processes(stage)} of {stage}: these are spread over nodes"
            )
