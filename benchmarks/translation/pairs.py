"""Trains and scores four translators on real pairs with the project's stages.

The recipes are in pairs.yaml. All systems share a folder; a system with scores there is not trained
again. A stopped command continues from its last checkpoint; its minutes lack those before the stop.
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

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params, check, read_yaml
from wxb.project.reproduction import benchmarks

RECIPES = Path(__file__).with_suffix(".yaml")
CORPUS, BACKBONE, STUDY = "pairs", "pieces", "translation"
BLEU = "BLEU (95% interval)"
MINUTES = (2, 4, 8, 12, 16)  # of training, at which the table has BLEU on validation records
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    systems: Annotated[
        list[str] | None, typer.Argument(help="systems of the recipes; default: all")
    ] = None,
    data: Annotated[Path, typer.Option(help="folder of raw data")] = Path("../shared/data"),
    folder: Annotated[Path, typer.Option(help="folder of all outputs")] = Path(".wxb/translation"),
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    recipes: Annotated[Path, typer.Option(help="file of recipes")] = RECIPES,
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 1,
    is_printing_only: Annotated[
        bool, typer.Option("--kept", help="train nothing; print the results in the folder")
    ] = False,
) -> None:
    """Train systems on pairs and score them on the test split; print scores and BLEU by minutes."""
    torch.set_num_threads(threads)
    recipe = read_yaml(recipes)
    chosen = systems or [*recipe["systems"]]
    for name in chosen:
        if name not in recipe["systems"]:
            raise WxbError(f"there is no system {name!r}{choices(name, recipe['systems'])}")
    params = project(recipe, data.resolve())
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        if not is_printing_only:
            run_stages(params, chosen)
        rows = table_rows(with_scores(chosen))
    formats = dict.fromkeys((BLEU, "chrF", "TER", *map(heading, MINUTES)), ".1f")
    benchmarks.report(rows, output, {**formats, "CPU minutes": ".0f"})


def with_scores(systems: Sequence[str]) -> list[str]:
    """The systems that were trained and scored."""
    return [name for name in systems if paths.metrics(STUDY, name).exists()]


def heading(minutes: int) -> str:
    """The heading of validation BLEU after minutes of training."""
    return f"valid BLEU, {minutes} min"


def run_stages(params: Params, systems: Sequence[str]) -> None:
    """Run the shared stages whose outputs are missing, then those of systems without scores."""
    for stage, output, name in (
        (download, paths.raw(CORPUS), CORPUS),
        (preprocess, paths.clean(CORPUS), CORPUS),
        (tokenizer, paths.tokenizer(BACKBONE), BACKBONE),
        (pretrain, paths.model(BACKBONE), BACKBONE),
    ):
        if not output.exists():
            stage.main(params, name)
    done = with_scores(systems)
    for name in [name for name in systems if name not in done]:
        for stage in (tokenize, align, train, evaluate):
            start = time.monotonic(), time.process_time()
            stage.main(params, name)
            times = time.monotonic() - start[0], time.process_time() - start[1]
            with publish(paths.cost(stage.__name__.rpartition(".")[2], name)) as (draft,):
                write_json(draft, dict(zip(("seconds", "cpu_seconds"), times, strict=True)))


def table_rows(systems: Sequence[str]) -> list[dict[str, Any]]:
    """Scores and costs of systems, and validation BLEU by minutes of training."""
    rows = []
    for name in systems:
        scores, cost = read_json(paths.metrics(STUDY, name)), read_json(paths.cost("train", name))
        with (paths.training(STUDY, name) / "valid_bleu.csv").open(encoding="utf-8") as file:
            points = [(int(step), float(bleu)) for step, bleu in [*csv.reader(file)][1:]]
        minutes = cost["cpu_seconds"] / 60
        curve = [(minutes * step / points[-1][0], bleu) for step, bleu in points]
        rows.append(
            {
                "system": name,
                BLEU: [scores[key] for key in ("bleu", "bleu_low", "bleu_high")],
                "chrF": scores["chrf"],
                "TER": scores["ter"],
                "exact": scores["exact"],
                "parameters": f"{scores['parameters'] / 1e6:.1f} M",
                "updates": scores["updates"],
                "CPU minutes": minutes,
                **{heading(at): latest(curve, at) for at in MINUTES},
            }
        )
    return rows


def latest(curve: Sequence[tuple[float, float]], minutes: float) -> float | None:
    """The last score of a curve in its first minutes; None before it and after its end."""
    if minutes > curve[-1][0]:
        return None
    return max(((at, score) for at, score in curve if at <= minutes), default=(0, None))[1]


def project(recipe: Mapping[str, Any], data: Path) -> Params:
    """The parameters of a project with all systems on one corpus."""
    corpus = {**recipe["corpus"], "path": str(data / recipe["corpus"]["path"])}
    names = {"study": STUDY, "corpus": CORPUS, "backbone": BACKBONE}
    study = {"task": "translation", "title": "What translates best?", "seed": 1}
    return check(
        {
            "seed": 1,
            "threads": 1,
            "portable": False,
            "corpora": {CORPUS: corpus},
            "backbones": {BACKBONE: {"corpus": CORPUS, **recipe["backbone"]}},
            "experiments": {
                name: {**names, **recipe["experiment"], **system}
                for name, system in recipe["systems"].items()
            },
            "studies": {STUDY: {**study, "experiments": [*recipe["systems"]]}},
            "lessons": {},
        }
    )


if __name__ == "__main__":
    benchmarks.run(app)
