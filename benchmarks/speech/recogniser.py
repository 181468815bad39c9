"""A Whisper that first learns what eSpeak NG says, then what people say: for small benchmarks.

The files are those that the stages tokenize, align and train write; here for one list of
recordings after another.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.tasks.speech.params import Seq2Seq
from wxb.tasks.speech.reading.writing import write
from wxb.tasks.speech.record.audio import cleaning, reading
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.seq2seq import method
from wxb.tasks.speech.spoken.espeak import Utterance, spoken
from wxb.tasks.speech.spoken.room import recorded
from wxb.text.encoded import write_columns
from wxb.text.tokenizers import SavedTokenizer, load

LIMITS = {"top_db": 40.0, "shortest": 0.05, "longest": 10.0}


class Recording(NamedTuple):
    """What was said by whom: 16 kHz mono, cut to what is heard in it."""

    name: str
    said: str
    speaker: str
    samples: NDArray[np.float32]


def recordings(data: Path) -> list[Recording]:
    """All of a folder with transcripts.csv, metadata.csv and wavs/."""
    speakers = {row["ID"]: row["speaker"] for row in rows(data / "metadata.csv")}
    found = []
    for row in rows(data / "transcripts.csv"):
        samples = reading.read(data / "wavs" / f"{row['ID']}.wav").samples
        kept, _ = cleaning.trimmed(samples, **LIMITS)
        found.append(Recording(row["ID"], row["sentence"], speakers[row["ID"]], kept))
    return found


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def synthesized(said: Sequence[Utterance], heard: int, seed: int) -> list[Recording]:
    """What eSpeak NG says, each in a room with noise of its own, recorded at a rate in Hz.

    It should be that of the recordings that are learnt next: higher sounds are absent from those.
    """
    rooms, found = np.random.default_rng(seed), []
    for number, (utterance, (samples, rate)) in enumerate(zip(said, spoken(said), strict=True)):
        echo, snr = rooms.uniform(0, 0.2), rooms.uniform(10, 40)
        sound = recorded(samples / 2**15, rate, echo=echo, snr=snr, rng=rooms)
        for other in (heard, RATE):
            sound, rate = soxr.resample(sound.astype(np.float32), rate, other), other
        kept, _ = cleaning.trimmed(sound, **LIMITS)
        found.append(Recording(f"spoken-{number:05}", utterance.text, utterance.voice, kept))
    return found


def records(folder: Path, given: Sequence[Recording]) -> list[Record]:
    """Recordings as preprocess leaves them, their files in `folder`/audio."""
    (folder / "audio").mkdir(exist_ok=True)
    found = []
    for one in given:
        path = folder / "audio" / f"{one.name}.flac"
        write(path, one.samples, RATE)
        gold = {"text": one.said, "seconds": len(one.samples) / RATE}
        found.append(Record(one.name, str(path), gold, "", one.speaker))
    return found


def experiment(backbone: str, **groups: Mapping[str, Any]) -> Seq2Seq:
    """An experiment that starts from models/<backbone>; groups of its settings by name."""
    block = {
        "study": "s",
        "corpus": "c",
        "task": "speech",
        "method": "seq2seq",
        "backbone": backbone,
        "architecture": "wxb/models/whisper.py",
        "tuning": {},
        "prediction": {"overlap": 0.2},
        **groups,
    }
    return Seq2Seq.model_validate(block)


def fit(folder: Path, name: str, given: Sequence[Recording], settings: Seq2Seq, seed: int) -> None:
    """What the stages tokenize, align and train make of recordings, in `folder`/models/<name>.

    No recording is held out: the epoch is kept that does best on some of those that it learns from.
    """
    base, work = folder / "models" / settings.backbone, folder / "features" / name
    work.mkdir(parents=True)
    features, targets, learnt = work / "train.arrow", work / "targets.arrow", records(folder, given)
    tokenizer = method.vocabulary(SavedTokenizer(base), [], settings)
    method.encode(learnt, tokenizer, settings, features, label=f"tokenize: {name}")
    columns, splits, _ = method.aligned(features, [learnt], [], tokenizer, settings)
    write_columns(targets, columns, splits)
    whole = method.vocabulary(load(base), [], settings)
    items = method.dataset(features, targets, whole, learnt, settings)
    model, history = method.fit(
        partial(method.build, base, [], settings, whole),
        settings.training,
        train=items,
        valid=[items[place] for place in range(min(32, len(items)))],
        collate=method.collator(whole),
        targets=method.TARGETS,
        compute_metrics=method.compute_metrics,
        summarize=method.summarize,
        best=method.BEST,
        seed=seed,
        checkpoints=folder / f"{name}-checkpoints",
        label=f"train: {name}",
    )
    predictor = method.Predictor.of(model, whole, [], settings, targets)
    updates = int(history[-1]["step"])
    predictor.save(folder / "models" / name, settings, updates=updates, examples=len(items))


def written(folder: Path, name: str, heard: Sequence[Recording]) -> list[str]:
    """What the model in `folder`/models/<name> writes for recordings."""
    predictor = method.Predictor.load(folder / "models" / name)
    inputs = [record.input for record in records(folder, heard)]
    return [found.text.strip() for found in predictor.predict(inputs, label=name)]
