"""The blocks of `resources`: memory, time and GPUs of stages. They never change a result."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import NonNegativeInt, PositiveInt

from wxb.core.errors import choices
from wxb.core.params.section import Section

# The section of params.yaml with the blocks that a verb runs for.
SECTIONS = {
    **dict.fromkeys(("download", "preprocess"), "corpora"),
    **dict.fromkeys(("tokenizer", "pretrain"), "backbones"),
    **dict.fromkeys(("tokenize", "align", "train", "evaluate"), "experiments"),
    **dict.fromkeys(("compare", "report"), "studies"),
    "lesson": "lessons",
}


class Resources(Section):
    """Resources by the names of Snakemake and its plugin for Slurm; None requests nothing."""

    runtime: PositiveInt | None = None  # minutes
    mem_mb: PositiveInt | None = None
    gpu: NonNegativeInt | None = None
    slurm_partition: str | None = None
    slurm_account: str | None = None


def find_errors(resources: Mapping[str, Resources], params: Any) -> Iterator[str]:
    """Error messages for unknown verbs and stages."""
    for stage in resources:
        verb, separator, name = stage.partition("@")
        if verb not in SECTIONS:
            yield f"resources.{stage}: unknown verb {verb!r}{choices(verb, SECTIONS)}"
        elif separator and name not in (known := getattr(params, SECTIONS[verb])):
            yield f"resources.{stage}: {SECTIONS[verb]} has no {name!r}{choices(name, known)}"
