"""The blocks of `resources`: memory, time and GPUs of stages. They never change a result."""

from pydantic import NonNegativeInt, PositiveInt

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
    """Resources by the names of Snakemake and its plugin for Slurm; None is that of its profile."""

    runtime: PositiveInt | None = None  # minutes
    mem_mb: PositiveInt | None = None
    gpu: NonNegativeInt | None = None
    slurm_partition: str | None = None
    slurm_account: str | None = None
