"""Four translators on pairs at hand, trained and scored by the project's own stages.

Recipes are those of pairs.yaml. The stages of all systems share a folder, in which they find what
is made already: a command that was stopped goes on from its last checkpoint.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params, check, read_yaml

RECIPES = Path(__file__).with_suffix(".yaml")
CORPUS, BACKBONE, STUDY = "pairs", "pieces", "translation"
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130, highlight=False)  # a table is cut nowhere, whatever the terminal


@app.command()
def main(
    systems: Annotated[list[str] | None, typer.Argument(help="of the recipes; all")] = None,
    data: Annotated[Path, typer.Option(help="folder of all data")] = Path("../shared/data"),
    output: Annotated[Path, typer.Option(help="where all is made")] = Path(".wxb/translation"),
    recipes: Annotated[Path, typer.Option(help="what is trained")] = RECIPES,
    threads: Annotated[int, typer.Option(min=1, help="of torch")] = 1,
    kept: Annotated[bool, typer.Option(help="only print what is there")] = False,
) -> None:
    """Train systems on pairs, score them on the test split, and print BLEU over minutes, too."""
    torch.set_num_threads(threads)
    recipe = read_yaml(recipes)
    chosen = systems or [*recipe["systems"]]
    for name in chosen:
        if name not in recipe["systems"]:
            raise WxbError(f"there is no system {name!r}{choices(name, recipe['systems'])}")
    params = project(recipe, data.resolve())
    output.mkdir(parents=True, exist_ok=True)
    with chdir(output):
        if not kept:
            make(params, chosen)
        print_made([name for name in chosen if paths.metrics(STUDY, name).exists()])


def make(params: Params, systems: Sequence[str]) -> None:
    """Run the stages of systems; those that all share where their outputs are not there."""
    for stage, made, name in (
        (download, paths.raw(CORPUS), CORPUS),
        (preprocess, paths.clean(CORPUS), CORPUS),
        (tokenizer, paths.tokenizer(BACKBONE), BACKBONE),
        (pretrain, paths.model(BACKBONE), BACKBONE),
    ):
        if not made.exists():
            stage.main(params, name)
    for name in systems:
        for stage in (tokenize, align, train, evaluate):
            begun = time.monotonic(), time.process_time()
            stage.main(params, name)
            took = time.monotonic() - begun[0], time.process_time() - begun[1]
            with publish(paths.cost(stage.__name__.rpartition(".")[2], name)) as (draft,):
                write_json(draft, dict(zip(("seconds", "cpu_seconds"), took, strict=True)))


def print_made(systems: Sequence[str]) -> None:
    """Scores and cost of systems, then the BLEU of validation over minutes of training."""
    headers = ("system", "BLEU", "chrF", "TER", "exact", "parameters", "updates", "train", "of CPU")
    table, curves = (
        Table(*headers, box=box.MARKDOWN),
        Table("system", "minutes: BLEU of validation"),
    )
    for name in systems:
        found = read_json(paths.metrics(STUDY, name))
        cost = read_json(paths.cost("train", name))
        low, high = found["bleu_low"], found["bleu_high"]
        table.add_row(
            name,
            f"{found['bleu']:.1f} ({low:.1f} to {high:.1f})",
            *(f"{found[key]:.1f}" for key in ("chrf", "ter")),
            f"{found['exact']:.3f}",
            f"{found['parameters'] / 1e6:.1f} M",
            f"{found['updates']:,}",
            *(f"{cost[key] / 60:.0f} min" for key in ("seconds", "cpu_seconds")),
        )
        with (paths.training(STUDY, name) / "valid_bleu.csv").open(encoding="utf-8") as file:
            points = [(int(step), float(bleu)) for step, bleu in [*csv.reader(file)][1:]]
        minute = cost["cpu_seconds"] / 60 / points[-1][0]  # of an update: one is like another
        told = [f"{step * minute:.1f}: {bleu:.1f}" for step, bleu in points]
        curves.add_row(name, ", ".join(told))
    console.print(table)
    console.print(curves)


def project(recipe: Mapping[str, Any], data: Path) -> Params:
    """The parameters of all systems on one corpus."""
    corpus = {**recipe["corpus"], "path": str(data / recipe["corpus"]["path"])}
    names = {"study": STUDY, "corpus": CORPUS, "backbone": BACKBONE}
    study = {"task": "translation", "title": "What translates best?", "seed": 1}
    return check(
        {
            "seed": 1,
            "threads": 1,
            "portable": False,
            "resamples": 1000,
            "corpora": {CORPUS: corpus},
            "backbones": {BACKBONE: {"corpus": CORPUS, **recipe["backbone"]}},
            "experiments": {
                name: {**names, **recipe["experiment"], **system}
                for name, system in recipe["systems"].items()
            },
            "studies": {STUDY: {**study, "experiments": [*recipe["systems"]]}},
            "lessons": {},
            "parity": {},
        }
    )


if __name__ == "__main__":
    app()
