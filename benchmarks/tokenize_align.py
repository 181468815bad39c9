"""Measure the speed and memory of turning texts into tokens with tags.

All measurements use records of the demo's generator:

1. `encode` (tokens with checked character offsets) and `align` (tags, and the status of every
   span), in memory: records a second, and the ratio to `encode_batch` of the tokenizer library.
2. `align`, compared with a plain loop over spans and tokens.
3. The stages tokenize and align on increasing numbers of records: records a second, peak memory.

Both sides of a ratio alternate; the table has the median of the ratios of each turn.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.table import Table
from ruamel.yaml import YAML

from demos.pii import generate
from wxb.cli.running import run_benchmark
from wxb.core.files import write_json
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.tokenizers import encode, train
from wxb.corpora.text.windows import text_windows
from wxb.tasks.ner.record import Labelling
from wxb.tasks.ner.record.spans import Span
from wxb.tasks.ner.tagging.bio import IGNORED, align

ROOT = Path(__file__).parents[1]
VOCABULARY, MAX_LENGTH, STRIDE = 6000, 128, 32  # as in the demo

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # fixed, so that no terminal truncates the table


@app.command()
def main(
    records: Annotated[int, typer.Option(min=100, help="number of records in memory")] = 20_000,
    turns: Annotated[int, typer.Option(min=1)] = 5,
    sizes: Annotated[
        str, typer.Option(help="numbers of records for the stages")
    ] = "125000,250000,500000",
    seed: int = 1,
) -> None:
    """Time tokenize and align on records like the demo's, on all cores."""
    sample = _records(records, seed)
    texts, gold = [r.input for r in sample], [r.gold or () for r in sample]
    types = sorted({span.type for spans in gold for span in spans})
    lengths = [len(text) for text in texts]
    console.print(
        f"{records} records, median {statistics.median(lengths):.0f} characters,"
        f" {sum(map(len, gold)) / records:.1f} spans each; {os.cpu_count()} cores"
    )
    for kind in ("wordpiece", "byte-level-bpe"):
        tokenizer = train(kind, VOCABULARY, texts)
        _in_memory(kind, tokenizer, texts, gold, types, turns)
        _stages(kind, tokenizer, sample, [int(size) for size in sizes.split(",") if size])


def _records(count: int, seed: int) -> list[Record]:
    languages = ["en", "de", "fr", "es", "zh"]
    rows = generate(labelled=count, unlabelled=0, languages=languages, seed=seed)
    return [
        Record(
            id=str(index),
            input=row["input"],
            gold=tuple(sorted(Span(s["start"], s["end"], s["type"]) for s in row["spans"])),
            language=row["language"],
            group="",
        )
        for index, row in enumerate(rows)
    ]


def _in_memory(
    kind: str,
    tokenizer: Any,
    texts: Sequence[str],
    gold: Sequence[Sequence[Span]],
    types: Sequence[str],
    turns: int,
) -> None:
    encoded = encode(tokenizer, texts)

    def align_only() -> None:
        align(encoded, _windows(encoded, tokenizer), gold, types)

    def encode_and_align() -> None:
        encoded = encode(tokenizer, texts)
        align(encoded, _windows(encoded, tokenizer), gold, types)

    table = Table("in memory", "records/s", "peer", "records/s", "seconds, ours / peer", title=kind)
    for name, ours, peer_name, peer in (
        (
            "encode + align",
            encode_and_align,
            "encode_batch alone",
            lambda: _batch(tokenizer, texts),
        ),
        ("align", align_only, "a loop over spans", lambda: _loop(encoded, gold, types)),
    ):
        pairs = [(_seconds(ours), _seconds(peer)) for _ in range(turns)]
        rates = (len(texts) / statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(own / theirs for own, theirs in pairs)
        own_rate, peer_rate = (f"{rate:,.0f}" for rate in rates)
        table.add_row(name, own_rate, peer_name, peer_rate, f"{ratio:.2f}")
    console.print(table)


def _windows(encoded: Encoded, tokenizer: Any) -> Any:
    return text_windows(encoded, tokenizer, max_length=MAX_LENGTH, stride=STRIDE)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


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
        tokens = range(encoded.splits[row], encoded.splits[row + 1])
        tags.append([0 if ends[token] > starts[token] else IGNORED for token in tokens])
        for span in spans:
            inside = False
            for column, token in enumerate(tokens):
                if starts[token] < span.end and ends[token] > span.start and tags[-1][column] == 0:
                    tags[-1][column] = 1 + 2 * type_index[span.type] + inside
                    inside = True
    return tags


def _stages(kind: str, tokenizer: Any, sample: Sequence[Record], sizes: Sequence[int]) -> None:
    """Time both stages as subprocesses in a temporary project, on repeated records."""
    table = Table(
        "stage", "records", "records/s", "peak MiB", "start-up s", title=f"{kind}, stages"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _create_project(folder, kind, tokenizer, sample)
        start_up = {verb: _run(verb, folder)[0] for verb in ("tokenize", "align")}
        for size in sizes:
            _repeat(folder / "data/clean/pii/train.parquet", size)
            for verb in ("tokenize", "align"):
                seconds, peak = _run(verb, folder)
                rate = size / (seconds - start_up[verb])
                table.add_row(
                    verb, f"{size:,}", f"{rate:,.0f}", f"{peak:,.0f}", f"{start_up[verb]:.1f}"
                )
    console.print(table)


def _create_project(folder: Path, kind: str, tokenizer: Any, sample: Sequence[Record]) -> None:
    """Write a project with one experiment, its tokenizer and a small clean corpus."""
    content = load(ROOT / "params.yaml").model_dump(mode="json")
    experiment = "ner-encoder" if kind == "wordpiece" else "ner-decoder"
    content["threads"] = os.cpu_count()
    content["experiments"] = {"timed": content["experiments"][experiment]}
    content["studies"]["ner"]["experiments"] = ["timed"]
    YAML().dump(content, folder / "params.yaml")
    backbone = content["experiments"]["timed"]["backbone"]
    tokenizer.save_pretrained(folder / "data/tokenizers" / backbone)
    corpus = folder / "data/clean/pii"
    corpus.mkdir(parents=True)
    clean.write(folder / "all.parquet", sample, Labelling())
    for split in clean.SPLITS:
        clean.write(corpus / f"{split}.parquet", sample[:10], Labelling())
    types = sorted({span.type for record in sample for span in record.gold or ()})
    write_json(corpus / "profile.json", {"labels": types, "splits": dict.fromkeys(clean.SPLITS)})


def _repeat(path: Path, size: int) -> None:
    """Write `size` records by repeating those of all.parquet, with constant memory."""
    table = pq.read_table(path.parents[3] / "all.parquet")
    with pq.ParquetWriter(path, table.schema) as writer:
        for start in range(0, size, table.num_rows):
            writer.write_table(table.slice(0, min(table.num_rows, size - start)))


def _run(verb: str, folder: Path) -> tuple[float, float]:
    """Run a stage in a subprocess; returns its seconds and peak memory (MiB)."""
    for output in ("features", "targets"):
        if verb == "tokenize" or output == "targets":
            shutil.rmtree(folder / "data" / output, ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", f"stages.{verb}", "timed"]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit((folder / f"logs/{verb}@timed.log").read_text())
    return seconds, usage.ru_maxrss / 1024


if __name__ == "__main__":
    run_benchmark(app)
