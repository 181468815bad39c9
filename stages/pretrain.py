"""Pretrain one backbone on its corpus, or put the weights of its checkpoint in the same place."""

import shutil

from wxb.core import paths
from wxb.core.files import write_json
from wxb.core.params import Params
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.runtime.command import run
from wxb.training import checkpoints, processes


def main(params: Params, name: str) -> None:
    """Pretrain the backbone `name` of params.yaml; one without weights is its tokenizer alone."""
    backbone = params.named("backbones", name)
    corpus, tokens = paths.clean(backbone.corpus), paths.tokenizer(name)
    metrics, curves = paths.metrics(paths.PRETRAIN, name), paths.training(paths.PRETRAIN, name)
    label = f"pretrain@{name}"
    outputs = paths.model(name), curves, metrics
    together = processes.together(params.processes(label), params.nodes(label))
    with together, processes.published(*outputs) as (folder, drawn, measured):
        if backbone.weightless:
            folder.mkdir()
            drawn.mkdir()
            SavedTokenizer(tokens).save_pretrained(folder)
            write_json(measured, {"parameters": 0, "trainable_parameters": 0})
            return
        from wxb.training import backbone as training  # its imports take seconds

        unfinished = checkpoints.folder(
            label, [backbone, params.seed, params.threads, params.portable], [corpus, tokens]
        )
        found = training.make(
            backbone,
            corpus,
            tokens,
            seed=params.seed,
            unfinished=unfinished,
            label=label,
            model_folder=folder,
            curves=drawn,
        )
        write_json(measured, found)
    if processes.rank() == 0:
        shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    run("pretrain", main, __doc__)
