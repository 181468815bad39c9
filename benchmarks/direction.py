"""What does the causal mask cost a decoder that tags, by data, size and word features?

The sets are those of own_data.py, and the raw records of the demo, which `dvc repro download@pii`
generates. Each cell is trained four times by direction.yaml: with and without the mask,
and each of these with and without the letter features of two words on either side, which show a
causal decoder what follows. Results are kept as in own_data.py.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from own_data import OPTIONS, Run, groups, parse_cells, result, score
from own_data_sets import SETS, Data

from wxb import tasks
from wxb.core import paths
from wxb.metrics.intervals import intervals, paired_difference
from wxb.project.reproduction import benchmarks

TASK, TEMPLATE = "ner", Path(__file__).with_suffix(".yaml")
MASKS = ("causal", "bidirectional")
FEATURES = {"": "no", "_words": "yes"}  # endings of the rows of TEMPLATE
GAIN = "without the mask, ahead by"
SETS["demo"] = Data(
    TASK,
    {
        "path": str(paths.raw("pii").resolve()),
        "fields": {"input": "input", "language": None, "id": None},
        "split": {
            "by": "template",
            "test": 0.2,
            "valid": 0.1,
            "further": {"situations": {"by": "scene", "share": 0.5}},
        },
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
    is_printing_only: Annotated[
        bool, typer.Option("--kept", help="train nothing; print the results in the folder")
    ] = False,
) -> None:
    """Train the decoders on each cell; print F1 and the paired differences."""
    torch.set_num_threads(1)
    options = {**OPTIONS, "seed": seed}
    run = Run(data.resolve(), folder.resolve(), options, tests, False, is_printing_only)
    template, metric = TEMPLATE.read_text("utf-8"), tasks.get(TASK).metrics.headline
    scores = partial(score, TASK)
    rows = []
    for name, size, _ in parse_cells(cells or [TASK]):
        for ending, features in FEATURES.items():
            cells_of = (result(run, name, size, f"{mask}{ending}", template) for mask in MASKS)
            pair = [cell for cell in cells_of if cell]
            if len(pair) < len(MASKS):
                continue
            causal, bidirectional = map(groups, pair)
            rows.append(
                {
                    "set": name,
                    "training records": pair[0]["train"],
                    "test records": pair[0]["test"],
                    "word features": features,
                    "causal: F1": intervals(causal, scores, [metric])[metric.key],
                    "bidirectional: F1": intervals(bidirectional, scores, [metric])[metric.key],
                    GAIN: paired_difference(bidirectional, causal, scores, metric)[:3],
                }
            )
    benchmarks.report(rows, output, {GAIN: "+.3f"})


if __name__ == "__main__":
    benchmarks.run(app)
