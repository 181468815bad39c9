"""How fast recordings become features, and in how much memory, beside one file at a time.

The peer is the loop that examples show: `librosa.load` at 16 kHz, then transformers'
`WhisperFeatureExtractor`, whose window is 30 seconds. Ours is what the stages preprocess and
tokenize do: reading, resampling, trimming, measuring and writing the recordings, then their
features. Both take the same files, noise that swells and fades; the peer takes the first of them,
as many as `--peer` says, in the same run.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import typer
from rich.console import Console
from rich.table import Table

from stages.preprocess import preprocess
from wxb.core.files import write_jsonl
from wxb.core.progress import tracked
from wxb.corpora import clean
from wxb.tasks.speech import reading, record
from wxb.tasks.speech.params import Corpus, Seq2Seq
from wxb.tasks.speech.reading.writing import write
from wxb.tasks.speech.seq2seq.method import Method

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)
RATE = 22_050


@app.command()
def main(
    hours: Annotated[float, typer.Option(help="of recordings, all together")] = 10.0,
    seconds: Annotated[float, typer.Option(help="of one recording, on average")] = 6.0,
    peer: Annotated[int, typer.Option(help="recordings that the peer takes")] = 300,
    bands: int = 80,
    seed: int = 1,
) -> None:
    """Make recordings in a temporary folder, prepare them both ways, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = made(folder / "raw", round(3600 * hours / seconds), seconds, seed)
        one_by_one(files[:3], bands)  # what is compiled and loaded once does not count
        began = time.monotonic()
        heard = one_by_one(files[:peer], bands)
        theirs = heard / (time.monotonic() - began)
        with Peak() as memory:
            began = time.monotonic()
            prepared(folder, seconds, bands)
            ours = 3600 * hours / (time.monotonic() - began)
    table = Table("", "times real time", "ratio", "peak memory")
    table.add_row("librosa.load and WhisperFeatureExtractor", f"{theirs:.0f}", "1.0", "")
    table.add_row("ours", f"{ours:.0f}", f"{ours / theirs:.1f}", f"{memory.mib:,} MiB")
    console.print(table)
    console.print(
        f"{len(files):,} recordings, {hours:g} h; {len(os.sched_getaffinity(0))} CPUs. Memory is of"
        " all our processes together."
    )


class Peak:
    """The most memory that this process and its children hold while a block runs."""

    def __enter__(self) -> Peak:
        self.mib, self._ended = 0, Event()
        self._watch = Thread(target=self._sample)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def _sample(self) -> None:
        own = psutil.Process()
        while not self._ended.wait(0.1):
            held = 0
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    held += process.memory_info().rss
            self.mib = max(self.mib, held // 2**20)


def made(folder: Path, count: int, seconds: float, seed: int) -> list[Path]:
    """Write recordings of half to one and a half times that length, and their manifest."""
    rng = np.random.default_rng(seed)
    (folder / "audio").mkdir(parents=True)
    rows, files = [], []
    noise = rng.normal(size=round(3 * seconds * RATE)).astype(np.float32)
    for number in tracked(range(count), "make", count, unit="file"):
        length = round(rng.uniform(0.5, 1.5) * seconds * RATE)
        start = rng.integers(0, len(noise) - length)
        swell = np.sin(np.arange(length) / RATE * rng.uniform(5, 15)) ** 2
        files.append(folder / "audio" / f"{number:06}.flac")
        write(files[-1], 0.1 * swell * noise[start : start + length], RATE)
        rows.append({"ID": str(number), "path": f"audio/{files[-1].name}", "sentence": str(number)})
    write_jsonl(folder / "manifest.jsonl", rows)
    return files


def one_by_one(files: list[Path], bands: int) -> float:
    """What the peer makes of the files; gives the seconds of sound that they hold."""
    import librosa  # here: the processes that prepare recordings import this module, too
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=bands)
    heard, features = 0.0, []
    for file in files:
        samples, rate = librosa.load(file, sr=16_000)
        features.append(extractor(samples, sampling_rate=rate, return_tensors="np"))
        heard += len(samples) / rate
    return heard


def prepared(folder: Path, seconds: float, bands: int) -> None:
    """What the stages preprocess and tokenize make of the manifest."""
    split = {"test": 0.1, "valid": 0.1}
    corpus = Corpus.model_validate({"task": "speech", "path": "raw", "split": split})
    out = folder / "clean"
    preprocess(
        folder / "raw",
        corpus,
        reading.Reading(),
        record.Labelling(),
        seed=1,
        label="preprocess",
        out=out,
    )
    block: dict[str, Any] = {
        "study": "s",
        "corpus": "c",
        "task": "speech",
        "method": "seq2seq",
        "backbone": "b",
        "architecture": "wxb/models/whisper.py",
        "encoding": {"window": round(2 * seconds), "mel_bands": bands, "max_length": 24},
        "model": {},
        "tuning": {},
        "training": {"epochs": 1, "batch_size": 1, "learning_rate": 1e-3},
        "prediction": {},
    }
    experiment = Seq2Seq.model_validate(block)
    for name in clean.splits(out):
        records = clean.labelled(out / f"{name}.parquet", record.Labelling())
        Method(experiment, [], None).encode(
            records, folder / f"{name}.arrow", label=f"tokenize: {name}"
        )


if __name__ == "__main__":
    app()
