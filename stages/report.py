"""Write the page of one study: what its experiments scored, where they fail, what they cost.

Costs are read but are no dependency of the stage: they cannot be repeated, so they must not make a
report stale.
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json
from wxb.core.params import Params
from wxb.metrics import evaluation
from wxb.reporting import costs, page
from wxb.reporting.charts.figures import Curve
from wxb.reporting.charts.parts import Study
from wxb.runtime.command import run


def gather(params: Params, name: str) -> Study:
    """All that the stages before left about the study `name` of params.yaml."""
    study = params.named("studies", name)
    scorer = tasks.get(study.task).metrics
    begun_by = dict.fromkeys(costs.begun_by(params, member) for member in study.experiments)
    begun = [stage.partition("@")[::2] for stage in begun_by]
    backbones = [name for verb, name in begun if verb == "pretrain"]
    return Study(
        params=params,
        comparison=read_json(paths.study(name)),
        judged={m: evaluation.read(scorer, paths.predictions(name, m)) for m in study.experiments},
        curves={m: _curves(paths.training(name, m)) for m in study.experiments},
        pretraining={b: _curves(paths.training(paths.PRETRAIN, b)) for b in backbones},
        pretrained=_present((b, paths.metrics(paths.PRETRAIN, b)) for b in backbones),
        costs=_present(
            (f"{verb}@{block}", paths.cost(verb, block))
            for verb, block in (
                *begun,
                *(("train", member) for member in study.experiments),
                *(("evaluate", member) for member in study.experiments),
            )
        ),
    )


def main(params: Params, name: str) -> None:
    """Write the page of the study `name` of params.yaml."""
    with publish(paths.page(name)) as (draft,):
        task = tasks.get(params.named("studies", name).task).page
        draft.write_text(page.assemble(gather(params, name), task), encoding="utf-8")


def _curves(folder: Path) -> dict[str, Curve]:
    return {path.stem: _points(path) for path in sorted(folder.glob("*.csv"))}


def _points(path: Path) -> list[tuple[int, float]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(int(step), float(value)) for step, value in list(csv.reader(file))[1:]]


def _present(files: Iterable[tuple[str, Path]]) -> dict[str, Any]:
    return {name: read_json(path) for name, path in files if path.exists()}


if __name__ == "__main__":
    run("report", main, __doc__)
