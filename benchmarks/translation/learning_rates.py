"""Trains each translator of the demo at several learning rates, and scores validation records.

It reads no test record. The rates in params/translation.yaml are the best of this search. A last
row has the decoder without attention if it gets the source in its first state only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.progress import track

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.models.seq2seq import State
from wxb.project import benchmarks
from wxb.tasks.translation.record import LABELLING
from wxb.tasks.translation.seq2seq import Seq2SeqMethod

RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2)
STUDY = "translation"
WITHOUT_CONTEXT = "translation-seq2seq, source in the first state only"
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


class Training(NamedTuple):
    """A training of a row of the table, with the best validation BLEU of its epochs."""

    experiment: str
    learning_rate: float
    updates: int
    bleu: float


class WithoutContext(Seq2SeqMethod):
    """A method whose decoder without attention reads zeros instead of the context of the source."""

    def new_model(self, backbone: Path) -> Any:
        """A model with random weights."""
        model = super().new_model(backbone)
        encode = model.model.encode

        def encode_without_context(*inputs: torch.Tensor) -> State:
            state: State = encode(*inputs)
            return state._replace(source=torch.zeros_like(state.source))

        model.model.encode = encode_without_context
        return model


def train(name: str, learning_rate: float, epochs: int) -> Training:
    """Train a row of the table with a learning rate, seed 1 and one thread."""
    torch.set_num_threads(1)
    experiment = name.partition(",")[0]
    method_class = WithoutContext if name == WITHOUT_CONTEXT else Seq2SeqMethod
    settings = load().block("experiments", experiment)
    changes = {"learning_rate": learning_rate, "epochs": epochs, "early_stopping_patience": epochs}
    training = settings.training.model_copy(update=changes)
    backbone, corpus = paths.MODELS / settings.backbone, paths.CLEAN / settings.corpus
    method = method_class(
        settings.model_copy(update={"training": training}), [], load_tokenizer(backbone)
    )
    items = [
        method.items(
            paths.FEATURES / experiment / f"{split}.arrow",
            paths.TARGETS / experiment / f"{split}.arrow",
            clean.read_labelled(clean.split_file(corpus, split), LABELLING),
        )
        for split in ("train", "valid")
    ]
    with tempfile.TemporaryDirectory() as folder:
        options = {"seed": 1, "checkpoints": Path(folder), "caption": f"{name} {learning_rate:g}"}
        _, history = method.train(backbone, *items, **options)
    scores = [row[f"valid_{method.METRIC}"] for row in history if "valid_loss" in row]
    return Training(name, learning_rate, int(history[-1]["step"]), round(max(scores), 2))


def search(
    rows: Sequence[str], rates: Sequence[float], *, epochs: int, processes: int
) -> list[Training]:
    """Train each row of the table at each learning rate, in several processes; shows progress."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names, chosen = zip(*product(rows, rates), strict=True)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        results = pool.map(train, names, chosen, [epochs] * len(names))
        return [*track(results, "trainings", total=len(names), transient=True)]


@app.command()
def main(
    rates: Annotated[list[float] | None, typer.Argument(help="Learning rates.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 5,
    processes: Annotated[int, typer.Option(min=1, help="Trainings at a time.")] = 2,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table.")] = None,
) -> None:
    """Print the validation BLEU of all experiments of the study by learning rate.

    The stages `pretrain` and `align` must have run.
    """
    params = load()
    experiments = params.block("studies", STUDY).experiments
    names = [name for name in experiments if params.experiments[name].method != "baseline"]
    names.append(WITHOUT_CONTEXT)
    trainings = search(names, rates or RATES, epochs=epochs, processes=processes)
    rows = []
    for name in names:
        own = [training for training in trainings if training.experiment == name]
        scores = {f"{training.learning_rate:g}": training.bleu for training in own}
        rows.append({"experiment": name, "updates": own[0].updates, **scores})
    benchmarks.report(rows, output, {f"{rate:g}": ".1f" for rate in rates or RATES}, epochs=epochs)


if __name__ == "__main__":
    benchmarks.run(app)
