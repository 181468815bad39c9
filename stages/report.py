"""Write the page of a study: scores, errors, training curves and costs of its experiments.

The stage reads costs and alignments but depends on neither: costs are not reproducible, so they
must not make the page stale, and DVC cannot name the targets of a study's experiments.
"""

import csv
from pathlib import Path

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json
from wxb.core.params import Params
from wxb.metrics import evaluation
from wxb.reporting import costs, page
from wxb.reporting.figures import Curve
from wxb.reporting.parts import Page, Study
from wxb.runtime.command import run


def gather(params: Params, name: str) -> Study:
    """Read a study's comparison, first seed's predictions and curves, and any costs that exist."""
    study = params.block("studies", name)
    scorer = tasks.get(study.task).metrics
    stages = [s for member in study.experiments for s in costs.experiment_stages(params, member)]
    alignments = {m: paths.TARGETS / m / paths.ALIGNMENT for m in study.experiments}
    pretrained = [s.removeprefix("pretrain@") for s in stages if s.startswith("pretrain@")]
    return Study(
        params=params,
        scorer=scorer,
        comparison=read_json(paths.study(name)),
        predictions={
            m: evaluation.load_predictions(scorer, paths.PREDICTIONS / name / m)
            for m in study.experiments
        },
        curves={m: _curves_by_metric(paths.TRAINING / name / m) for m in study.experiments},
        pretraining={b: _curves_by_metric(paths.TRAINING / paths.PRETRAIN / b) for b in pretrained},
        costs=costs.read(stages),
        alignments={m: read_json(path)["train"] for m, path in alignments.items() if path.exists()},
    )


def main(params: Params, name: str) -> None:
    """Write the page of the study `name`."""
    with publish(paths.page(name)) as (draft,):
        task = tasks.get(params.block("studies", name).task).page or Page()
        draft.write_text(page.assemble(gather(params, name), task), encoding="utf-8")


def _curves_by_metric(folder: Path) -> dict[str, Curve]:
    """The curve in each CSV file of a folder, by metric; further seeds have their own folders."""
    curves: dict[str, Curve] = {}
    for path in sorted(folder.glob("*.csv")):
        rows = [*csv.reader(path.read_text(encoding="utf-8").splitlines())][1:]
        curves[path.stem] = [(int(step), float(value)) for step, value in rows]
    return curves


if __name__ == "__main__":
    run("report", main, __doc__)
