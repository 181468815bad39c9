"""Compare pretraining from our initial weights and from those of transformers.

Tokenizer, texts, steps and seed are the same on both sides; see
`wxb.training.backbones.initialization`.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import io
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import torch
import typer
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from wxb.core.params import load
from wxb.core.params.backbones import Backbone
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.project import benchmarks
from wxb.training.backbones import weights
from wxb.training.pretraining import pretrain

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

METRICS = ("loss", "accuracy", "copy_accuracy")


def plain(backbone: Backbone, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model of a backbone with the initial weights of transformers; seed torch before."""
    with patch.object(weights, "initialize", lambda model: None):
        return weights.initial_model(backbone, tokenizer)


@app.command()
def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="backbones pretrained from scratch")
    ] = None,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Pretrain backbones (default: encoder, decoder) from both initializations; print metrics."""
    torch.set_num_threads(threads)
    params = load()
    rows = []
    for name in names or ["encoder", "decoder"]:
        backbone = params.block("backbones", name)
        tokenizer = load_tokenizer(Path("data/tokenizers", name))
        for origin, initialize in {"ours": weights.initial_model, "transformers'": plain}.items():
            set_seed(params.seed)
            model = initialize(backbone, tokenizer)
            with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
                _, metrics = pretrain(
                    model,
                    tokenizer,
                    backbone,
                    Path("data/clean", backbone.corpus),
                    seed=params.seed,
                    checkpoints=Path(folder),
                    label=f"{name}, {origin} weights",
                )
            scores = {key.replace("_", " "): metrics.get(key) for key in METRICS}
            rows.append({"backbone": name, "initial weights": origin, **scores})
    benchmarks.report(rows, output)


if __name__ == "__main__":
    benchmarks.run(app)
