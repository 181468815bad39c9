"""A Whisper that first learns what eSpeak NG says, then what people say: for small benchmarks.

The files are those that the stages tokenize, align and train write; here for one list of
recordings after another.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import librosa
import numpy as np
import soxr
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from demos.spoken.espeak import Utterance, spoken
from demos.spoken.room import recorded
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, write_columns
from wxb.corpora.text.tokenizers import SavedTokenizer, ids_of, load
from wxb.metrics import Metric
from wxb.tasks.speech.params import Seq2Seq
from wxb.tasks.speech.reading.writing import write
from wxb.tasks.speech.record.audio import cleaning, reading
from wxb.tasks.speech.record.audio.features import FRAMES, RATE, log_mel, to_window
from wxb.tasks.speech.seq2seq.method import Method

LIMITS = {"top_db": 40.0, "shortest": 0.05, "longest": 10.0}
EPOCH = Metric("loss", "loss", lower_is_better=True)  # of what is held out, picks the epoch
SIZE = 0.2  # of the logarithms of size and tempo, by which voices are changed at most
NOISE = (5.0, 40.0)  # dB below speech
COLOUR, POINTS = 6.0, 8  # dB that a microphone adds or takes, and at how many frequencies
HEARD_AT = (1.0, 0.8, 0.9, 1.1, 1.25)  # speeds


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
        samples = reading.read(data / "wavs" / f"{row['ID']}.wav")
        kept, _ = cleaning.trimmed(samples, **LIMITS)
        found.append(Recording(row["ID"], row["sentence"], speakers[row["ID"]], kept))
    return found


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def synthesized(said: Sequence[Utterance], heard: int, seed: int) -> list[Recording]:
    """What eSpeak NG says, each in a room of its own, recorded at a rate in Hz.

    It should be that of the recordings that are learnt next: higher sounds are absent from those.
    """
    found = []
    for number, (utterance, (samples, rate)) in enumerate(zip(said, spoken(said), strict=True)):
        sound = soxr.resample(samples.astype(np.float32) / 2**15, rate, RATE)
        name = f"spoken-{number:05}"
        found.append(Recording(name, utterance.text, utterance.voice, sound))
    return varied(found, heard, seed)


def varied(given: Sequence[Recording], heard: int, seed: int, copies: int = 1) -> list[Recording]:
    """Copies of recordings, each as another person might say it in another place.

    Pitch and formants are moved together, then the tempo by itself; the microphone favours some
    frequencies; there is a room, and noise. All are recorded at a rate of `heard` Hz.
    """
    rng, found = np.random.default_rng(seed), []
    for number in range(copies):
        for one in given:
            size, tempo = np.exp(rng.uniform(-SIZE, SIZE, 2))
            sound = cleaning.at_speed(one.samples, size)
            sound = librosa.effects.time_stretch(sound, rate=tempo, n_fft=512)
            sound = _coloured(np.pad(sound, rng.integers(0, RATE // 10, 2)), rng)
            echo, snr = rng.uniform(0, 0.3), rng.uniform(*NOISE)
            sound = recorded(sound, RATE, echo=echo, snr=snr, rng=rng).astype(np.float32)
            if heard < RATE:
                sound = soxr.resample(soxr.resample(sound, RATE, heard), heard, RATE)
            kept, _ = cleaning.trimmed(sound, **LIMITS)
            found.append(one._replace(name=f"{one.name}-{number}", samples=kept))
    return found


def _coloured(sound: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float64]:
    spectrum = np.fft.rfft(sound)
    places = np.linspace(0, POINTS - 1, len(spectrum))
    gains = np.interp(places, range(POINTS), rng.uniform(-COLOUR, COLOUR, POINTS))
    return np.fft.irfft(spectrum * 10 ** (gains / 20), len(sound))


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
        "model": {},
        "tuning": {},
        "prediction": {"overlap": 0.2},
        **groups,
    }
    return Seq2Seq.model_validate(block)


def fit(
    folder: Path,
    name: str,
    given: Sequence[Recording],
    held: Sequence[Recording],
    settings: Seq2Seq,
    seed: int,
) -> None:
    """What the stages tokenize, align and train make of recordings, in `folder`/models/<name>.

    The epoch is kept that finds what was said in others, those `held` out, likeliest. A model that
    is there already is left as it is.
    """
    if (folder / "models" / name).is_dir():
        return
    base, work = folder / "models" / settings.backbone, folder / "features" / name
    work.mkdir(parents=True)
    encoding = Method.with_vocabulary(settings, [], SavedTokenizer(base))
    method = Method.with_vocabulary(settings, [], load(base))
    items = {}
    for part, some in (("train", given), ("valid", held)):
        features, targets, learnt = work / f"{part}.arrow", work / part, records(folder, some)
        encoding.encode(learnt, features, label=f"tokenize: {name}")
        columns, splits, _ = encoding.align(features, [learnt])
        write_columns(targets, columns, splits)
        items[part] = method.dataset(features, targets, learnt)
    run = method.training_run(
        **items, seed=seed, checkpoints=folder / f"{name}-checkpoints", label=f"train: {name}"
    )
    model, history = method.fit(base, replace(run, best=EPOCH))
    predictor = Method.Predictor.from_training(model, method, work / "train")
    updates = int(history[-1]["step"])
    predictor.save(
        folder / "models" / name, settings, updates=updates, examples=len(items["train"])
    )


def written(folder: Path, name: str, heard: Sequence[Recording]) -> list[str]:
    """What the model in `folder`/models/<name> writes for recordings."""
    predictor = Method.Predictor.load(folder / "models" / name)
    inputs = [record.input for record in records(folder, heard)]
    return [found.text.strip() for found in predictor.predict(inputs, label=name)]


@torch.inference_mode()
def chosen(folder: Path, name: str, heard: Sequence[Recording], texts: Sequence[str]) -> list[str]:
    """Which of some texts the model in `folder`/models/<name> finds likeliest for recordings.

    Each is heard at several speeds, of which the logarithms of the likelihoods are added: a voice
    is higher or lower than those that were learnt.
    """
    predictor = Method.Predictor.load(folder / "models" / name)
    bands, window = predictor.settings["mel_bands"], predictor.settings["window"] * FRAMES
    end = predictor.tokenizer.eos_token_id
    ids = [torch.tensor([*found, end]) for found in ids_of(predictor.tokenizer, texts)]
    labels = pad_sequence(ids, batch_first=True, padding_value=IGNORED)  # (K, T)
    found = []
    for one in heard:
        likely = torch.zeros(len(texts))
        for speed in HEARD_AT:
            frames = log_mel(cleaning.at_speed(one.samples, speed), bands, window)
            features = torch.from_numpy(to_window(frames, window)).expand(len(texts), -1, -1)
            logs = predictor.model(features, labels)["logits"].log_softmax(dim=2)  # (K, T, V)
            told = logs.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
            likely += (told * (labels != IGNORED)).sum(dim=1).log_softmax(dim=0)
        found.append(texts[int(likely.argmax())])
    return found
