"""What initial weights of ours are worth: pretraining from them, and from transformers' own.

Tokenizer, texts, steps and seed are the same on both sides; see
`wxb.training.backbones.initialization`.
"""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import torch
import typer
from rich.console import Console
from rich.table import Table
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from wxb.core.params import load
from wxb.core.params.backbones import Backbone
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.training.backbone import pretrain
from wxb.training.backbones import weights

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # a table is cut nowhere, whatever the terminal

METRICS = ("loss", "accuracy", "copy_accuracy")


def plain(backbone: Backbone, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model of a backbone with transformers' own initial weights; seed torch before."""
    with patch.object(weights, "initialize", lambda model: None):
        return weights.initial(backbone, tokenizer)


@app.command()
def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="backbones that are trained from scratch")
    ] = None,
    threads: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Pretrain backbones both ways (by default encoder and decoder), and compare the metrics."""
    torch.set_num_threads(threads)
    params = load()
    table = Table("backbone", "initial weights", *METRICS)
    for name in names or ["encoder", "decoder"]:
        backbone = params.named("backbones", name)
        tokenizer = load_tokenizer(Path("data/tokenizers", name))
        for whose, initial in {"ours": weights.initial, "transformers'": plain}.items():
            set_seed(params.seed)
            model = initial(backbone, tokenizer)
            with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
                _, metrics = pretrain(
                    model,
                    tokenizer,
                    backbone,
                    Path("data/clean", backbone.corpus),
                    seed=params.seed,
                    unfinished=Path(folder),
                    label=f"{name}, {whose} weights",
                )
            found = (f"{metrics[key]:.3f}" if key in metrics else "–" for key in METRICS)
            table.add_row(name, whose, *found)
    console.print(table)


if __name__ == "__main__":
    app()
