"""How long a study will train on this machine, before it runs."""

from __future__ import annotations

from typing import Any

from wxb.cli.new.recipes import Size
from wxb.core.errors import WxbError
from wxb.core.params import Params

TOKENS = 1.5  # of a word, about
UPDATE = 0.02  # least seconds of an update
PASSES = 1.1  # over the training records and, for validation, some others


def training_seconds(params: Params, name: str, size: Size) -> float | None:
    """About the seconds of training an experiment, by its FLOPs; None if they are unknown.

    Counts the pretraining of its backbone. Sets the number of torch's threads.
    """
    experiment: Any = params.experiments[name]
    if experiment.max_length is None:
        return 0.0  # no network
    import torch

    from wxb.project.estimate.estimate import estimates
    from wxb.project.estimate.shape import experiment_shape
    from wxb.project.estimate.throughput import seconds_by_flops

    torch.set_num_threads(params.threads)
    length = min(experiment.max_length, max(8, round(TOKENS * size.words) + 2))
    encoding = experiment.encoding.model_copy(update={"max_length": length})
    corpus = params.corpora[experiment.corpus]
    split = corpus.split.model_copy(update={"files": None, "test": None, "further": None})
    split = split.model_copy(update={"valid": size.valid / max(1, size.train + size.valid)})
    sized = corpus.model_copy(update={"max_records": size.train + size.valid, "split": split})
    changed = params.model_copy(
        update={
            "corpora": {**params.corpora, experiment.corpus: sized},
            "experiments": {
                **params.experiments,
                name: experiment.model_copy(update={"encoding": encoding}),
            },
        }
    )
    try:
        if not hasattr(experiment.training, "batch_size"):
            shape = experiment_shape(changed, name)
            return seconds_by_flops(PASSES * size.train * shape.flops(1, length))
        return sum(
            max(seconds_by_flops(each.flops), UPDATE * each.updates)
            for each in estimates(changed, name, timed=False)
        )
    except WxbError:
        return None  # other inputs than tokens
