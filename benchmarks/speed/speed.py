"""Time the project and its peers, print one table, and write reports/benchmarks/speed.json.

Each figure is the median of paired, alternating measurements in this run, with their range. What
cannot be measured here, such as a missing peer, is a row that says why. `make bench` runs this.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import io
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import engines
import masking
import models
import tokenize_align
import torch
import training
import typer
from rich.console import Console
from timing import Comparison

from wxb.core import paths
from wxb.core.errors import WxbError, error_line
from wxb.core.progress import Progress
from wxb.project import benchmarks

PACKAGES = ("torch", "transformers", "tokenizers", "dvc", "snakemake", "numpy", "pyarrow")
CHARACTERS = 150  # of each text that the tagger reads
TEXTS, MEMORY, MATMUL = 1500, 1536, 45  # goals: texts/s, MiB, % of the rate of matrix products
OUTPUT = paths.BENCHMARKS / "speed.json"
LONG = 10_000  # records that take longer than the start-up of a stage
AT_MOST = ("MiB",)  # units of which less is better

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130, highlight=False)


class Sizes(NamedTuple):
    """How much is measured."""

    turns: int
    records: int  # for training, prediction and tokens
    stage_records: tuple[int, ...]  # raw records of the stages
    empty_stages: tuple[int, ...]  # stages of DVC and Snakemake


class Row(NamedTuple):
    """A figure of the table; without a value, `note` says why it was not measured."""

    what: str
    peer: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "times as fast"
    goal: float | None = None  # at most, for MiB; at least, for other units
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is reached; None without a goal or a value."""
        if self.value is None or self.goal is None:
            return None
        return self.value <= self.goal if self.unit in AT_MOST else self.value >= self.goal

    @classmethod
    def from_values(cls, what: str, values: list[float], **options: Any) -> Row:
        """The median of several measurements, with their range."""
        numbers = [float(f"{f(values):.3g}") for f in (statistics.median, min, max)]
        return cls(what, value=numbers[0], low=numbers[1], high=numbers[2], **options)

    @classmethod
    def from_comparison(cls, row: Comparison) -> Row:
        """How many times as fast as a peer."""
        return cls.from_values(row.what, row.ratios, peer=row.peer, goal=row.goal)


def tokens(sizes: Sizes) -> Iterator[Row]:
    """Tokens and tags in memory."""
    sample = tokenize_align.demo_records(sizes.records * 5)
    for kind in tokenize_align.KINDS:
        yield from map(
            Row.from_comparison, tokenize_align.comparisons(kind, sample, 2 * sizes.turns)
        )


def stages(sizes: Sizes) -> Iterator[Row]:
    """Peak memory and records per CPU second of all stages but training."""
    sample = tokenize_align.demo_records(sizes.records)
    for run in tokenize_align.stages("wordpiece", sample, sizes.stage_records):
        what = f"stage {run.verb}, {run.size:,} records"
        yield Row(what, value=round(run.peak), unit="MiB", goal=MEMORY)
        if run.size >= LONG:
            yield Row(what, value=round(run.rate), unit="records per CPU s")


def tagger(sizes: Sizes) -> Iterator[Row]:
    """Training and prediction of the demo's encoder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = training.demo(folder, sizes.records)
        yield Row.from_comparison(training.comparison(data, "a tagger", sizes.turns))
        model = data.method.new_model(data.backbone)
        data.fit(model, folder, epochs=2)
        recognizer = data.method.predictor(model, folder)
        recognizer.save(folder / "model")
        recognizer = type(recognizer).load(folder / "model")
        inputs = [record.input for record in data.records]
        rates = [_texts_per_second(recognizer, inputs) for _ in range(1 + sizes.turns)][1:]
        what = f"find spans in texts of {CHARACTERS} characters"
        yield Row.from_values(what, rates, unit="texts per CPU s", goal=TEXTS)
        peer = masking.pipeline_of(recognizer, folder / "model")
        rows = masking.comparisons(recognizer, peer, inputs, sizes.turns)
        yield from map(Row.from_comparison, rows)


def _texts_per_second(recognizer: Any, inputs: list[str]) -> float:
    """Texts of CHARACTERS characters in a CPU second of prediction."""
    joined = " ".join(inputs)
    texts = [joined[start : start + CHARACTERS] for start in range(0, len(joined), CHARACTERS)]
    start = time.process_time()
    recognizer.predict(texts)
    return len(texts) / (time.process_time() - start)


def architectures(sizes: Sizes) -> Iterator[Row]:
    """Training and generation of native architectures."""
    yield from map(Row.from_comparison, models.comparisons(2 * sizes.turns))
    shares = models.matmul_shares(sizes.turns)
    what, unit = "training step at width 512, llama", "% of matmul rate"
    yield Row.from_values(what, shares, peer="torch.matmul", unit=unit, goal=MATMUL)


def dag(sizes: Sizes) -> Iterator[Row]:
    """Stages in DVC and Snakemake."""
    yield from map(Row.from_comparison, engines.comparisons(sizes.turns))
    for row in engines.scaling(sizes.empty_stages):
        what = f"{row.command}, {row.stages:,} empty stages"
        yield Row(what, value=float(f"{row.seconds:.3g}"), unit="s")


GROUPS: tuple[Callable[[Sizes], Iterator[Row]], ...] = (
    tokens,
    stages,
    tagger,
    architectures,
    dag,
)


def measure(sizes: Sizes) -> Iterator[Row]:
    """All rows; a group that cannot be measured ends with a row that says why."""
    for group in GROUPS:
        try:
            for row in group(sizes):
                console.print(f"{row.what}: {row.value} {row.unit}")
                yield row
        except (ImportError, OSError, WxbError) as error:
            what = (group.__doc__ or "").rstrip(".")
            yield Row(what, note=f"not measured: {error_line(error)}")


def cells(row: Row) -> dict[str, Any]:
    """A row of the table as text: units differ, so each cell has its own digits."""
    value, spread = "", ""
    if row.value is not None:
        value = f"{row.value:,.4g}"
        spread = "" if row.low is None else f"{row.low:,.4g} to {row.high:,.4g}"
    return {
        "what": row.what,
        "compared with": row.peer or row.note,
        "median": value,
        "range": spread,
        "unit": row.unit if value else "",
        "goal": "" if row.goal is None else f"{row.goal:,.4g}",
        "met": {True: "yes", False: "no", None: ""}[row.is_met],
    }


@app.command()
def main(
    turns: Annotated[int, typer.Option(min=1, help="measurements of each side")] = 5,
    records: Annotated[int, typer.Option(min=20)] = 1000,
    stage_records: Annotated[str, typer.Option(help="numbers of records")] = "2000,50000",
    empty_stages: Annotated[str, typer.Option(help="numbers of stages")] = "100,1000",
    output: Annotated[Path, typer.Option(help="the JSON file to write")] = OUTPUT,
) -> None:
    """Measure everything, about ten minutes on two idle cores, and write the figures."""
    torch.set_num_threads(1)
    Progress.console = io.StringIO()
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    numbers = (tuple(map(int, text.split(","))) for text in (stage_records, empty_stages))
    rows = [cells(row) for row in measure(Sizes(turns, records, *numbers))]
    installed = {d.name: d.version for d in metadata.distributions()}
    versions = {name: installed[name] for name in PACKAGES if name in installed}
    benchmarks.report(
        rows, output, turns=turns, cores=cores, load=round(load, 1), versions=versions
    )


if __name__ == "__main__":
    app()
