"""Train a small Whisper on lists of recordings, and use it: shared code of the speech benchmarks.

The files are those of the stages tokenize, align and train.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import librosa
import numpy as np
import soxr
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from demos.spoken.espeak import Utterance, speak
from demos.spoken.room import simulate_room
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, write_columns
from wxb.corpora.text.tokenizers import SavedTokenizer, load, token_ids
from wxb.tasks.methods import SplitFiles
from wxb.tasks.speech.models.features import log_mel, to_window
from wxb.tasks.speech.params import Audio
from wxb.tasks.speech.record.audio import FRAMES, RATE, change_speed, read, trim, write_flac
from wxb.tasks.speech.seq2seq import Seq2SeqExperiment, WhisperMethod

LIMITS = Audio(top_db=40.0, min_seconds=0.05, max_seconds=10.0)
MAX_CHANGE = 0.2  # of the logarithms of pitch and tempo
NOISE = (5.0, 40.0)  # dB below speech
MAX_GAIN, GAINS = 6.0, 8  # dB of a microphone's gain, up or down, and number of random gains
SPEEDS = (1.0, 0.8, 0.9, 1.1, 1.25)  # for the average of log-probabilities


class Recording(NamedTuple):
    """A trimmed recording at 16 kHz with its transcript."""

    name: str
    text: str
    speaker: str
    samples: NDArray[np.float32]


def read_recordings(data: Path) -> list[Recording]:
    """The recordings of a folder with transcripts.csv, metadata.csv and wavs/."""
    speakers = {row["ID"]: row["speaker"] for row in read_table(data / "metadata.csv")}
    recordings = []
    for row in read_table(data / "transcripts.csv"):
        samples = read(data / "wavs" / f"{row['ID']}.wav")
        kept, _ = trim(samples, LIMITS)
        recordings.append(Recording(row["ID"], row["sentence"], speakers[row["ID"]], kept))
    return recordings


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def synthesize(utterances: Sequence[Utterance], rate: int, seed: int) -> list[Recording]:
    """Utterances spoken by eSpeak NG, and changed by `augment`.

    `rate` should be that of the recordings for fine-tuning, which lack higher frequencies.
    """
    recordings = []
    speech = zip(utterances, speak(utterances), strict=True)
    for index, (utterance, (samples, samples_rate)) in enumerate(speech):
        sound = soxr.resample(samples.astype(np.float32) / 2**15, samples_rate, RATE)
        name = f"spoken-{index:05}"
        recordings.append(Recording(name, utterance.text, utterance.voice, sound))
    return augment(recordings, rate, seed)


def augment(
    recordings: Sequence[Recording], rate: int, seed: int, copies: int = 1
) -> list[Recording]:
    """Copies of recordings with random changes, as by other speakers in other rooms.

    Changes pitch with formants, tempo, the gains of a microphone, echo and noise. All copies have
    the frequencies of a sampling rate of `rate` Hz.
    """
    rng, changed = np.random.default_rng(seed), []
    for copy in range(copies):
        for recording in recordings:
            pitch, tempo = np.exp(rng.uniform(-MAX_CHANGE, MAX_CHANGE, 2))
            sound = change_speed(recording.samples, pitch)
            sound = librosa.effects.time_stretch(sound, rate=tempo, n_fft=512)
            sound = _equalize(np.pad(sound, rng.integers(0, RATE // 10, 2)), rng)
            echo, snr = rng.uniform(0, 0.3), rng.uniform(*NOISE)
            sound = simulate_room(sound, RATE, echo=echo, snr=snr, rng=rng).astype(np.float32)
            if rate < RATE:
                sound = soxr.resample(soxr.resample(sound, RATE, rate), rate, RATE)
            kept, _ = trim(sound, LIMITS)
            changed.append(recording._replace(name=f"{recording.name}-{copy}", samples=kept))
    return changed


def _equalize(sound: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float64]:
    """Apply random gains, interpolated over frequencies."""
    spectrum = np.fft.rfft(sound)
    positions = np.linspace(0, GAINS - 1, len(spectrum))
    gains = np.interp(positions, range(GAINS), rng.uniform(-MAX_GAIN, MAX_GAIN, GAINS))
    return np.fft.irfft(spectrum * 10 ** (gains / 20), len(sound))


def write_records(folder: Path, recordings: Sequence[Recording]) -> list[Record]:
    """Write recordings to `folder`/audio; their records, as of preprocess."""
    (folder / "audio").mkdir(exist_ok=True)
    records = []
    for recording in recordings:
        path = folder / "audio" / f"{recording.name}.flac"
        write_flac(path, recording.samples)
        gold = {"text": recording.text, "seconds": len(recording.samples) / RATE}
        records.append(Record(recording.name, str(path), gold, "", recording.speaker))
    return records


def experiment(backbone: str, **groups: Mapping[str, Any]) -> Seq2SeqExperiment:
    """An experiment on models/<backbone> with groups of settings."""
    block = {
        "study": "s",
        "corpus": "c",
        "task": "speech",
        "method": "seq2seq",
        "backbone": backbone,
        "model": {},
        "tuning": {},
        "prediction": {},
        **groups,
    }
    return Seq2SeqExperiment.model_validate(block)


class Recogniser(WhisperMethod):
    """A Whisper of which the epoch with the lowest validation loss is kept."""

    METRIC = "loss"


def fit(
    folder: Path,
    name: str,
    train: Sequence[Recording],
    valid: Sequence[Recording],
    settings: Seq2SeqExperiment,
    seed: int,
) -> None:
    """Train a model and save it in `folder`/models/<name>; skipped if it exists.

    Keeps the epoch with the lowest validation loss.
    """
    if (folder / "models" / name).is_dir():
        return
    base, work = folder / "models" / settings.backbone, folder / "features" / name
    shutil.rmtree(work, ignore_errors=True)  # of a command that was stopped
    work.mkdir(parents=True)
    encoding = WhisperMethod(settings, [], SavedTokenizer(base))
    method = Recogniser(settings, [], load(base))
    splits = []
    for split, recordings in (("train", train), ("valid", valid)):
        features, targets = work / f"{split}.arrow", work / split
        records = write_records(folder, recordings)
        encoding.encode([records], features, caption=f"tokenize: {name}")
        columns, row_splits, _ = encoding.targets(features, [records])
        write_columns(targets, columns, row_splits)
        splits.append(SplitFiles(features, targets, partial(list, records)))
    caption, checkpoints = f"train: {name}", folder / f"{name}-checkpoints"
    predictor, _ = method.train_predictor(
        base, *splits, seed=seed, checkpoints=checkpoints, caption=caption
    )
    predictor.save(folder / "models" / name)


def transcribe(folder: Path, name: str, recordings: Sequence[Recording]) -> list[str]:
    """The transcripts of recordings by the model in `folder`/models/<name>."""
    predictor = WhisperMethod.PREDICTOR.load(folder / "models" / name)
    inputs = [record.input for record in write_records(folder, recordings)]
    return [transcript.text.strip() for transcript in predictor.predict(inputs, caption=name)]


@torch.inference_mode()
def classify(
    folder: Path, name: str, recordings: Sequence[Recording], texts: Sequence[str]
) -> list[str]:
    """The most likely of some texts for each recording, by the model in `folder`/models/<name>.

    Sums log-probabilities over SPEEDS, since voices are higher or lower than those in training.
    """
    predictor = WhisperMethod.PREDICTOR.load(folder / "models" / name)
    bands, window = predictor.settings["mel_bands"], predictor.settings["window"] * FRAMES
    end = predictor.tokenizer.eos_token_id
    ids = [torch.tensor([*row, end]) for row in token_ids(predictor.tokenizer, texts)]
    labels = pad_sequence(ids, batch_first=True, padding_value=IGNORED)  # (K, T)
    likeliest = []
    for recording in recordings:
        scores = torch.zeros(len(texts))
        for speed in SPEEDS:
            frames = log_mel(change_speed(recording.samples, speed), bands, window)
            features = torch.from_numpy(to_window(frames, window)).expand(len(texts), -1, -1)
            logs = predictor.model(features, labels)["logits"].log_softmax(dim=2)  # (K, T, V)
            of_labels = logs.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
            scores += (of_labels * (labels != IGNORED)).sum(dim=1).log_softmax(dim=0)
        likeliest.append(texts[int(scores.argmax())])
    return likeliest
