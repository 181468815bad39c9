"""Synthetic sounds, audio files of them, and records of tones instead of speech."""

from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from tests import training_steps
from wxb.corpora.records import Record
from wxb.tasks.speech.record import audio
from wxb.tasks.speech.record.audio import RATE

SYLLABLES = {"啊": 300, "哦": 700, "一": 1500, "哎": 3100}  # Hz
LENGTH = 0.15  # seconds of a syllable
SECONDS = 1.2
FORMATS = {  # by suffix: soundfile's names of format and encoding
    "wav": ("WAV", "PCM_16"),
    "8.wav": ("WAV", "PCM_U8"),
    "24.wav": ("WAV", "PCM_24"),
    "float.wav": ("WAV", "FLOAT"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "aiff": ("AIFF", "PCM_16"),
}


def tone(rate=16_000, seconds=SECONDS, hertz=440.0, loudness=0.3):
    """A tone (N,) that swells and fades, so that each moment differs."""
    times = np.arange(round(rate * seconds)) / rate
    swell = np.sin(np.pi * times / seconds) ** 2
    return (loudness * swell * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def noise(rng, samples, loudness=0.1):
    """White noise (N,)."""
    return (loudness * rng.normal(size=samples)).astype(np.float32)


def write(path, samples=None, rate=16_000, suffix="wav"):
    """Write a file in a format, by default of `tone`; returns its path."""
    kind, encoding = FORMATS[suffix]
    soundfile.write(path, tone(rate) if samples is None else samples, rate, encoding, format=kind)
    return path


def samples(text: str, loudness: float = 0.3):
    """The recording (N,) of a text of SYLLABLES."""
    parts = [tone(seconds=LENGTH, hertz=SYLLABLES[c], loudness=loudness) for c in text]
    return np.concatenate([*parts, np.zeros(RATE // 100, np.float32)])


def record(folder: Path, text: str, index: int, speaker: str = "a") -> Record:
    """A record as of preprocess; writes its recording."""
    path = folder / f"{index:03}.flac"
    audio.write_flac(path, samples(text))
    gold = {
        "text": text,
        "speaker": speaker,
        "rules": "width case punctuation",
        "seconds": LENGTH * len(text),
        "trimmed": 0.0,
        "loudness": -20.0,
        "clipped": 0.0,
        "snr": 30.0,
    }
    return Record(f"{index:03}", str(path), gold, "zh", text)


def records(folder: Path, count: int) -> list[Record]:
    """`count` records of three syllables each, by two speakers; writes their recordings."""
    rng = np.random.default_rng(3)
    texts = ["".join(rng.choice([*SYLLABLES], 3)) for _ in range(count)]
    return [record(folder, text, n, "ab"[n % 2]) for n, text in enumerate(texts)]


def experiment(backbone: str = "characters", **changes) -> Any:
    """A very small Whisper, which learns the recordings in seconds."""
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    training = {"epochs": 30, "batch_size": 8, "learning_rate": 5e-3}
    settings = {
        "encoding": {"window": 1, "mel_bands": 20, "max_length": 8},
        "model": {"shape": {"d_model": 32, **layers, "attention_heads": 2, "ffn_dim": 64}},
        "training": {**training, "early_stopping_patience": 30},
    }
    for key, change in changes.items():
        settings[key] = {**settings.get(key, {}), **change}
    return training_steps.experiment("speech", "seq2seq", backbone=backbone, **settings)
