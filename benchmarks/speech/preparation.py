"""Benchmarks the preparation of recordings: speed and peak memory, compared with a plain loop.

The peer is a loop over files: `librosa.load` at 16 kHz, then `WhisperFeatureExtractor` of
transformers with its window of 30 seconds. Ours are the stages preprocess and tokenize, which read,
resample, trim, measure and write recordings, and compute features. Both read the same files of
noise that swells and fades; the peer reads the first `--peer` of them.
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

from stages.preprocess import preprocess
from wxb.core.files import write_jsonl
from wxb.core.progress import track
from wxb.corpora import clean
from wxb.project.reproduction import benchmarks
from wxb.tasks.speech import reading, record
from wxb.tasks.speech.params import Corpus, Seq2Seq
from wxb.tasks.speech.reading.preparation import write
from wxb.tasks.speech.seq2seq.method import Method

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
RATE = 22_050


@app.command()
def main(
    hours: Annotated[float, typer.Option(help="total duration of the recordings")] = 10.0,
    seconds: Annotated[float, typer.Option(help="mean duration of a recording")] = 6.0,
    peer: Annotated[int, typer.Option(help="number of recordings for the peer")] = 300,
    bands: int = 80,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    seed: int = 1,
) -> None:
    """Write recordings to a temporary folder, prepare them both ways, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_recordings(folder / "raw", round(3600 * hours / seconds), seconds, seed)
        run_peer(files[:3], bands)  # compiles and loads what is needed, untimed
        start = time.monotonic()
        duration = run_peer(files[:peer], bands)
        theirs = duration / (time.monotonic() - start)
        with PeakMemory() as memory:
            start = time.monotonic()
            run_stages(folder, seconds, bands)
            ours = 3600 * hours / (time.monotonic() - start)
    cpus = len(os.sched_getaffinity(0))
    print(f"{len(files):,} recordings, {hours:g} h; {cpus} CPUs")
    names = "librosa.load and WhisperFeatureExtractor", "stages preprocess and tokenize"
    rows = [
        {"system": name, "times real time": speed, "ratio": speed / theirs, "peak MiB": mib}
        for name, speed, mib in zip(names, (theirs, ours), (None, memory.mib), strict=True)
    ]
    settings = {"hours": hours, "recordings": len(files), "cpus": cpus}
    benchmarks.report(rows, output, {"times real time": ".0f", "ratio": ".1f"}, **settings)


class PeakMemory:
    """The peak memory in `mib` of this process and its children while a block runs, in a thread."""

    def __enter__(self) -> PeakMemory:
        self.mib, self._ended = 0, Event()
        self._thread = Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        own = psutil.Process()
        while not self._ended.wait(0.1):
            total = 0
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    total += process.memory_info().rss
            self.mib = max(self.mib, total // 2**20)


def write_recordings(folder: Path, count: int, seconds: float, seed: int) -> list[Path]:
    """Write recordings of 0.5 to 1.5 times `seconds`, and their manifest; the audio files."""
    rng = np.random.default_rng(seed)
    (folder / "audio").mkdir(parents=True)
    rows, files = [], []
    noise = rng.normal(size=round(3 * seconds * RATE)).astype(np.float32)
    for index in track(range(count), "write", count, unit="file"):
        length = round(rng.uniform(0.5, 1.5) * seconds * RATE)
        start = rng.integers(0, len(noise) - length)
        swell = np.sin(np.arange(length) / RATE * rng.uniform(5, 15)) ** 2
        files.append(folder / "audio" / f"{index:06}.flac")
        write(files[-1], 0.1 * swell * noise[start : start + length], RATE)
        rows.append({"ID": str(index), "path": f"audio/{files[-1].name}", "sentence": str(index)})
    write_jsonl(folder / "manifest.jsonl", rows)
    return files


def run_peer(files: list[Path], bands: int) -> float:
    """Compute the features of files with the peer; the total duration in seconds."""
    import librosa  # here, since the processes of ours import this module too
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=bands)
    duration, features = 0.0, []
    for file in files:
        samples, rate = librosa.load(file, sr=16_000)
        features.append(extractor(samples, sampling_rate=rate, return_tensors="np"))
        duration += len(samples) / rate
    return duration


def run_stages(folder: Path, seconds: float, bands: int) -> None:
    """Run the stages preprocess and tokenize on the manifest; writes to the folder."""
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
        records = clean.read_labelled(out / f"{name}.parquet", record.Labelling())
        Method(experiment, [], None).encode(
            [records], folder / f"{name}.arrow", label=f"tokenize: {name}"
        )


if __name__ == "__main__":
    benchmarks.run(app)
