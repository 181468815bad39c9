"""Recordings of tones instead of speech: each syllable is a pitch of 0.15 s."""

from pathlib import Path

import numpy as np

from tests.tasks.speech.record.audio.sounds import tone
from wxb.corpora.records import Record
from wxb.tasks.speech.params import Seq2Seq
from wxb.tasks.speech.reading.preparation import write
from wxb.tasks.speech.record.audio.features import RATE

SYLLABLES = {"啊": 300, "哦": 700, "一": 1500, "哎": 3100}
LENGTH = 0.15


def samples(text: str, loudness: float = 0.3):
    """The recording (N,) of a text of SYLLABLES."""
    parts = [tone(seconds=LENGTH, hertz=SYLLABLES[c], loudness=loudness) for c in text]
    return np.concatenate([*parts, np.zeros(RATE // 100, np.float32)])


def record(folder: Path, text: str, index: int, speaker: str = "a") -> Record:
    """A record as of preprocess; writes its recording."""
    path = folder / f"{index:03}.flac"
    write(path, samples(text), RATE)
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


def experiment(**changes) -> Seq2Seq:
    """A very small Whisper, which learns the recordings in seconds."""
    block = {
        "study": "songs",
        "corpus": "songs",
        "task": "speech",
        "method": "seq2seq",
        "backbone": "characters",
        "architecture": "wxb/models/whisper.py",
        "encoding": {"window": 1, "mel_bands": 20, "max_length": 8},
        "model": {
            "shape": {
                "d_model": 32,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "attention_heads": 2,
                "ffn_dim": 64,
            }
        },
        "tuning": {},
        "training": {
            "epochs": 30,
            "batch_size": 8,
            "learning_rate": 5e-3,
            "early_stopping_patience": 30,
        },
        "prediction": {"overlap": 0.3},
    }
    for key, change in changes.items():
        block[key] = {**block[key], **change} if isinstance(change, dict) else change
    return Seq2Seq.model_validate(block)
