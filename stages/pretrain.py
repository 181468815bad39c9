"""Pretrain a backbone from random weights or a checkpoint; without `pretraining`, copy these."""

import shutil
from pathlib import Path

from wxb.core import paths
from wxb.core.files import write_json
from wxb.core.params import Params
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.runtime.command import run
from wxb.training import checkpoints, processes


def main(params: Params, name: str) -> None:
    """Write a backbone (or only its tokenizer), metrics and curves; a killed run resumes."""
    backbone = params.block("backbones", name)
    corpus, tokens = paths.CLEAN / backbone.corpus / paths.TRAINING_DATA, paths.TOKENIZERS / name
    metrics, curves = paths.metrics(paths.PRETRAIN, name), paths.TRAINING / paths.PRETRAIN / name
    caption = f"pretrain@{name}"
    outputs = paths.MODELS / name, curves, metrics
    launch = processes.launch(params.processes(caption))
    with launch, processes.publish(*outputs) as (model_folder, curves_folder, metrics_file):
        if backbone.is_tokenizer_only:
            model_folder.mkdir()
            curves_folder.mkdir()
            SavedTokenizer(tokens).save_pretrained(model_folder)
            write_json(metrics_file, {"parameters": 0, "trainable_parameters": 0})
            return
        from wxb.training import pretraining  # its imports take seconds

        settings = [backbone.model_dump(), params.seed, params.threads, params.portable]
        start = Path(".wxb/backbones", name)  # a link to a local checkpoint, or an empty file
        checkpoint_folder = checkpoints.folder(caption, settings, [corpus, tokens, start])
        result = pretraining.pretrain(
            backbone,
            corpus,
            tokens,
            seed=params.seed,
            checkpoints=checkpoint_folder,
            caption=caption,
            model_folder=model_folder,
            curves=curves_folder,
        )
        write_json(metrics_file, result)
    if processes.rank() == 0:
        shutil.rmtree(checkpoint_folder, ignore_errors=True)


if __name__ == "__main__":
    run("pretrain", main, __doc__)
