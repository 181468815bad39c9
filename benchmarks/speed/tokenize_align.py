"""Measure the speed and memory of turning texts into tokens with tags.

All measurements use records of the demo's generator:

1. `encode` (tokens with checked character offsets) in memory, compared with `encode_batch` of the
   tokenizer library.
2. `align` (tags, and the status of every span) in memory, compared with a loop over spans and
   tokens.
3. The stages preprocess, tokenize, align, evaluate and compare, and the reading of training items,
   on increasing numbers of records: records per CPU second and peak memory. A list of mentions is
   evaluated, as its predictions take little memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from ruamel.yaml import YAML
from timing import Comparison, compare

from demos.pii import generate
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.tokenizers import encode, train
from wxb.corpora.text.windows import text_windows
from wxb.project import benchmarks
from wxb.tasks.ner.models.bio import IGNORED, align
from wxb.tasks.ner.record import Span

ROOT = Path(__file__).parents[2]
VOCABULARY, MAX_LENGTH, STRIDE = 6000, 128, 32  # as in the demo
KINDS = ("wordpiece", "byte-level-bpe")
# What is measured, with its block of params.yaml, in order.
STEPS = {
    "preprocess": "pii",
    "tokenize": "timed",
    "align": "timed",
    "items": "timed",
    "evaluate": "mentions",
    "compare": "ner",
}
# Runs a module, and prints the CPU seconds and the peak memory of its process; that of `wait4`
# includes its parent's.
PEAK = """
import os, runpy, sys, time
sys.argv, os._exit = sys.argv[1:], sys.exit  # a stage that is done would print nothing more
try:
    runpy.run_module(sys.argv[0], run_name="__main__")
finally:
    status = dict(line.split(":") for line in open("/proc/self/status"))
    print(time.process_time(), status["VmHWM"].split()[0], flush=True)
"""
FEW = 100  # records of which a stage is mostly start-up
ENCODE, ALIGN = 0.8, 2.0  # goals: how many times as fast

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    records: Annotated[int, typer.Option(min=100, help="different records")] = 20_000,
    sizes: Annotated[
        str, typer.Option(help="numbers of records for the stages")
    ] = "2000,50000,200000",
    seed: int = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table of stages")] = None,
) -> None:
    """Run the stages on records like the demo's; print records per CPU second and peak memory."""
    sample = demo_records(records, seed)
    rows = [
        {
            "stage": run.verb,
            "records": run.size,
            "records per CPU s": round(run.rate),
            "peak MiB": round(run.peak),
        }
        for run in stages(KINDS[0], sample, [int(size) for size in sizes.split(",") if size])
    ]
    benchmarks.report(sorted(rows, key=lambda row: [*STEPS].index(row["stage"])), output)


def demo_records(count: int, seed: int = 1) -> list[Record]:
    """Labelled records of the demo's generator."""
    rows = generate(labelled=count, unlabelled=0, languages=["en", "zh"], seed=seed)
    return [
        Record(
            id=str(index),
            input=row["input"],
            gold=tuple(sorted(Span(s["start"], s["end"], s["type"]) for s in row["spans"])),
            language=row["language"],
            group=str(index),
        )
        for index, row in enumerate(rows)
    ]


def comparisons(kind: str, sample: Sequence[Record], turns: int) -> Iterator[Comparison]:
    """`encode` and `align` in memory, with a new tokenizer of a kind."""
    texts, gold = [r.input for r in sample], [r.gold for r in sample]
    types = sorted({span.type for spans in gold for span in spans})
    tokenizer = train(kind, VOCABULARY, texts)
    encoded = encode(tokenizer, texts)
    windows = text_windows(encoded, tokenizer, max_length=MAX_LENGTH, stride=STRIDE)
    yield compare(
        f"encode, {kind}",
        lambda: encode(tokenizer, texts),
        "encode_batch",
        lambda: _batch(tokenizer, texts),
        turns=turns,
        goal=ENCODE,
    )
    yield compare(
        f"align, {kind}",
        lambda: align(encoded, windows, gold, types),
        "a loop over spans",
        lambda: _loop(encoded, gold, types),
        turns=turns,
        goal=ALIGN,
    )


def _batch(tokenizer: Any, texts: Sequence[str]) -> None:
    tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)


def _loop(
    encoded: Encoded, gold: Sequence[Sequence[Span]], types: Sequence[str]
) -> list[list[int]]:
    """The tags of every text by a plain loop; equal to those of `align` except at conflicts."""
    type_index = {name: index for index, name in enumerate(types)}
    starts, ends = encoded.starts.tolist(), encoded.ends.tolist()
    tags = []
    for row, spans in enumerate(gold):
        tokens = range(encoded.row_splits[row], encoded.row_splits[row + 1])
        tags.append([0 if ends[token] > starts[token] else IGNORED for token in tokens])
        for span in spans:
            inside = False
            for column, token in enumerate(tokens):
                if starts[token] < span.end and ends[token] > span.start and tags[-1][column] == 0:
                    tags[-1][column] = 1 + 2 * type_index[span.type] + inside
                    inside = True
    return tags


class StageRun(NamedTuple):
    """A stage in a subprocess; its rate excludes the start-up, measured on few records."""

    verb: str
    size: int  # records
    rate: float  # records per CPU second
    peak: float  # MiB


def stages(kind: str, sample: Sequence[Record], sizes: Sequence[int]) -> Iterator[StageRun]:
    """Run the stages as subprocesses in a temporary project, on repeated records."""
    tokenizer = train(kind, VOCABULARY, [record.input for record in sample])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _create_project(folder, kind, tokenizer, sample)
        start_up = {verb: seconds for verb, seconds, _ in _run_all(folder)}
        for size in sizes:
            _repeat(folder, sample, size)
            for verb, seconds, peak in _run_all(folder):
                yield StageRun(verb, size, size / max(seconds - start_up[verb], 0.01), peak)


def _run_all(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Run all STEPS; yields each with its CPU seconds and peak memory (MiB)."""
    for verb, name in STEPS.items():
        if verb == "evaluate":
            for earlier in ("tokenize", "align", "train"):
                _run(earlier, name, folder)
        yield verb, *_run(verb, name, folder)
        if verb == "evaluate":
            _copy_results(folder)


def _copy_results(folder: Path) -> None:
    """Copy the results of the baseline to the tagger, which is not trained."""
    predictions = folder / paths.PREDICTIONS / "ner"
    shutil.copytree(predictions / "mentions", predictions / "timed", dirs_exist_ok=True)
    metrics = (folder / paths.metrics("ner", name) for name in ("mentions", "timed"))
    shutil.copy(*metrics)


def _create_project(folder: Path, kind: str, tokenizer: Any, sample: Sequence[Record]) -> None:
    """Write a project with a tagger and a baseline, their tokenizers and few raw records."""
    content = load(ROOT / "params.yaml").model_dump(mode="json")
    experiment = "ner-encoder" if kind == "wordpiece" else "ner-decoder"
    content["threads"] = os.cpu_count()
    content["corpora"]["pii"]["split"] = {"by": None, "test": 0.2, "valid": 0.1}
    timed, mentions = (content["experiments"][name] for name in (experiment, "ner-mentions"))
    content["experiments"] = {"timed": timed, "mentions": mentions}
    study = {**content["studies"]["ner"], "question": None}  # of others
    content["studies"] = {"ner": {**study, "experiments": [*content["experiments"]]}}
    YAML().dump(content, folder / "params.yaml")
    for path in (
        paths.TOKENIZERS / timed["backbone"],
        paths.TOKENIZERS / "words",
        paths.MODELS / "words",
    ):
        tokenizer.save_pretrained(folder / path)
    (folder / "data/raw/pii").mkdir(parents=True)
    _repeat(folder, sample, FEW)


def _repeat(folder: Path, sample: Sequence[Record], size: int) -> None:
    """Write `size` raw records, in which those of the sample are repeated after different words."""
    with (folder / "data/raw/pii/records.jsonl").open("w", encoding="utf-8") as file:
        for index in range(size):
            record = sample[index % len(sample)]
            word = "".join(chr(ord("a") + int(digit)) for digit in f"{index:07}")
            spans = [
                {"start": s.start + len(word) + 1, "end": s.end + len(word) + 1, "type": s.type}
                for s in record.gold
            ]
            row = {"id": str(index), "input": f"{word} {record.input}", "spans": spans}
            file.write(json.dumps({**row, "language": record.language}) + "\n")


def _run(verb: str, name: str, folder: Path) -> tuple[float, float]:
    """Run a stage, or `items`, in a subprocess; returns its CPU seconds and peak memory (MiB)."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}"}
    module = verb if verb == "items" else f"stages.{verb}"
    command = [sys.executable, "-c", PEAK, module, name]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise WxbError(f"{verb}: {done.stderr[-500:]}")
    log = folder / f"logs/{verb}@{name}.log"  # the standard output of a stage
    seconds, peak = (log.read_text() if log.exists() else done.stdout).split()[-2:]
    return float(seconds), int(peak) / 1024


if __name__ == "__main__":
    app()
