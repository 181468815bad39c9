"""Compare decoders that tag with and without their causal mask, on sets of different sizes.

The sets are those of own_data.py, and the raw records of the demo, which `dvc repro download@pii`
generates. For each cell, direction.yaml has three pairs of decoders, with and without the mask:
like the demo's, with word features, and without pretraining. Word features are letters of two words
on either side, so they show a causal decoder what follows. Results are kept as in own_data.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from own_data import OPTIONS, Run, groups, parse_cells, result
from own_data_sets import SETS, Data

from wxb import tasks
from wxb.core import paths
from wxb.core.params import parse_yaml
from wxb.metrics.intervals import intervals, paired_difference
from wxb.project import benchmarks
from wxb.project.params_file import to_yaml

TASK, TEMPLATE = "ner", Path(__file__).with_suffix(".yaml")
MASKS = ("causal", "bidirectional")
# Endings of the rows of TEMPLATE, and the columns of each pair: F1 of MASKS, and their difference.
PAIRS = {
    "": ("F1", "gain"),
    "_words": ("F1 with word features", "gain with them"),
    "_scratch": ("F1 without pretraining", "gain without it"),
}
SITUATIONS = {"situations": {"by": "scene", "share": 0.5}}
SETS["demo"] = Data(
    TASK,
    {
        "path": str((paths.RAW / "pii").resolve()),
        "fields": {"input": "input", "language": None, "id": None},
        "split": {"by": "template", "test": 0.2, "valid": 0.1, "further": SITUATIONS},
    },
    (300, 1000),
)

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    cells: Annotated[
        list[str] | None,
        typer.Argument(help="set or set-size of NER: conll-300; default: all"),
    ] = None,
    data: Annotated[Path, typer.Option(help="folder of the sets")] = Path("../shared/data"),
    folder: Annotated[Path, typer.Option(help="folder of the results")] = Path(".wxb/direction"),
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    tests: Annotated[int, typer.Option(min=1, help="maximum number of test records")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="seed of splits and training")] = 1,
) -> None:
    """Train the decoders on each cell; print F1 and the paired differences."""
    torch.set_num_threads(1)
    options = {**OPTIONS, "seed": seed}
    run = Run(data.resolve(), folder.resolve(), options, tests)
    template = to_yaml(parse_yaml(TEMPLATE.read_text("utf-8")))  # `wxb new study` reads no aliases
    rows = []
    for name, size, _ in parse_cells(cells or [TASK]):
        systems = (f"{mask}{ending}" for ending in PAIRS for mask in MASKS)
        results = {system: result(run, name, size, system, template) for system in systems}
        rows.append(table_row(name, results))
    benchmarks.report(rows, output, {gain: "+.3f" for _, gain in PAIRS.values()})


def table_row(name: str, results: Mapping[str, Any]) -> dict[str, Any]:
    """The row of the table for a set at one size, from the results of all rows of TEMPLATE."""
    scorer = tasks.get(TASK).metrics
    first, scores = results[MASKS[0]], scorer.scores
    metric = scorer.headline(groups(first).total())
    cells = {"set": name, "training records": first["train"], "test records": first["test"]}
    for ending, (f1, gain) in PAIRS.items():
        pair = [groups(results[f"{mask}{ending}"]) for mask in MASKS]
        cells[f1] = [intervals(member, scores, [metric])[metric.key][0] for member in pair]
        cells[gain] = paired_difference(*reversed(pair), scores, metric)[:3]
    return cells


if __name__ == "__main__":
    benchmarks.run(app)
