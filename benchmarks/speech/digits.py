"""Benchmarks a small Whisper on spoken digits of unseen speakers, with two peers.

`--data` is a folder of the Free Spoken Digit Dataset with transcripts.csv and metadata.csv; it is
only read. Each speaker is held out in turn: systems are trained on the others and tested on all
recordings of this one.

- pocketsphinx: its packaged model of American English with a grammar of the ten digits. It is not
  trained here.
- MFCC and logistic regression: the means of twenty coefficients (librosa) over each fifth of a
  recording, standardized (scikit-learn). It is trained on the speakers' digits, and, in a second
  row, on all training data of the Whisper; it then uses as many speeds as the Whisper.
- Whisper: the method of the task speech. A small one is pretrained on digits of eSpeak NG, then all
  weights are fine-tuned on changed copies of the other speakers' digits. It transcribes freely. In
  a second row, it chooses the most likely of the ten digits, as the peers do.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import librosa
import numpy as np
import torch
import typer
from numpy.typing import NDArray
from recogniser import (
    SPEEDS,
    Recording,
    augment,
    classify,
    experiment,
    fit,
    read_recordings,
    synthesize,
    transcribe,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from demos.spoken.espeak import Utterance, voices
from wxb.core.progress import track
from wxb.corpora.text.tokenizers import train
from wxb.metrics import Metric
from wxb.metrics.intervals import Groups, paired_difference
from wxb.project import benchmarks
from wxb.tasks.speech.record.audio import RATE, change_speed

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SAMPLING_RATE = 8_000  # Hz, of the speakers' digits
PARTS, COEFFICIENTS = 5, 20  # of a recording for MFCCs, and of each part
MFCC_WIDTH = 2048  # samples of a frame in librosa
SYNTHETIC, VALID = 12_000, 500  # digits of eSpeak NG, and those of them for validation
ACCENTS = ("en-us", "en", "en-gb-scotland", "en-gb-x-rp", "en-029", "en-us-nyc")
COPIES, KEPT = 16, 2_000  # for fine-tuning: of each digit of a speaker, and digits of eSpeak NG
ENCODING: dict[str, Any] = {"window": 1, "mel_bands": 40, "max_length": 8}
SHAPE = {"d_model": 96, "encoder_layers": 2, "decoder_layers": 1, "attention_heads": 4}
MASKS = {"masks": 1, "bands": 6, "frames": 8}
PRETRAINING: dict[str, Any] = {
    "encoding": ENCODING,
    "model": {
        "shape": {**SHAPE, "ffn_dim": 384, "dropout": 0.1},
        "ctc_weight": 0.3,
        "spec_augment": MASKS,
    },
    "training": {
        "epochs": 8,
        "batch_size": 16,
        "learning_rate": 2e-3,
        "early_stopping_patience": 8,
    },
}
# Chosen by training on two of the three training speakers of a fold, and testing the third.
FINE_TUNING: dict[str, Any] = {
    "encoding": ENCODING,
    "model": {"spec_augment": MASKS},
    "training": {
        "epochs": 4,
        "batch_size": 16,
        "learning_rate": 5e-4,
        "early_stopping_patience": 4,
    },
}
SPHINX, PLAIN, SAME = (
    "pocketsphinx, grammar of digits",
    "MFCC and logistic regression",
    "the same, on all training data of the Whisper",
)
FREE, TEN = "Whisper, free transcription", "Whisper, choosing among ten"


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="the folder of the Free Spoken Digit Dataset")],
    work: Annotated[
        Path | None, typer.Option(help="a folder for models; existing ones are used")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    seed: int = 1,
) -> None:
    """Test all systems on each speaker in turn, and print a table of word accuracy."""
    torch.set_num_threads(1)
    digits = read_recordings(data)
    correct = {name: np.zeros(len(digits), bool) for name in (SPHINX, PLAIN, SAME, FREE, TEN)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = work or Path(temporary)
        folder.mkdir(exist_ok=True)
        correct[SPHINX][:] = sphinx(folder, digits)
        synthetic = synthesize(utterances(seed), SAMPLING_RATE, seed)
        coefficients = mfcc(synthetic)
        pretrain(folder, synthetic, seed)
        for speaker in sorted({digit.speaker for digit in digits}):
            is_test = np.array([digit.speaker == speaker for digit in digits])
            others = [digit for digit in digits if digit.speaker != speaker]
            test = [digit for digit in digits if digit.speaker == speaker]
            valid = random.Random(seed).sample(others, len(others) // 10)
            copies = augment([d for d in others if d not in valid], SAMPLING_RATE, seed, COPIES)
            settings = experiment("spoken", **FINE_TUNING)
            fit(folder, speaker, copies + synthetic[VALID:][:KEPT], valid, settings, seed)
            features = np.concatenate([coefficients, mfcc(copies)])
            predictions = {
                PLAIN: regression(others, mfcc(others), test, (1.0,)),
                SAME: regression(synthetic + copies, features, test, SPEEDS),
                FREE: transcribe(folder, speaker, test),
                TEN: classify(folder, speaker, test, DIGITS),
            }
            for name, texts in predictions.items():
                correct[name][is_test] = [t == d.text for t, d in zip(texts, test, strict=True)]
    rows = table_rows(digits, correct)
    benchmarks.report(rows, output, {f"{TEN} minus this": "+.3f"})


def sphinx(folder: Path, digits: Sequence[Recording]) -> list[bool]:
    """Whether pocketsphinx recognizes each digit."""
    from pocketsphinx import Config, Decoder

    grammar = folder / "digits.gram"
    grammar.write_text(f"#JSGF V1.0;\ngrammar digits;\npublic <digit> = {' | '.join(DIGITS)};\n")
    decoder = Decoder(Config(jsgf=str(grammar), loglevel="FATAL"))
    correct = []
    for digit in digits:
        silence = np.zeros(RATE // 5)  # needed before and after a word
        samples = np.concatenate([silence, digit.samples, silence])
        decoder.start_utt()
        decoder.process_raw((samples * 2**15).astype(np.int16).tobytes(), full_utt=True)
        decoder.end_utt()
        hypothesis = decoder.hyp()
        correct.append(hypothesis is not None and hypothesis.hypstr.strip() == digit.text)
    return correct


def regression(
    train: Sequence[Recording],
    features: NDArray[np.float32],
    test: Sequence[Recording],
    speeds: Sequence[float],
) -> list[str]:
    """Test digits predicted by a regression on the MFCC `features` of training digits.

    Sums log-probabilities over speeds.
    """
    model: Pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    model.fit(features, [digit.text for digit in train])
    scores = sum(
        model.predict_log_proba(
            mfcc([digit._replace(samples=change_speed(digit.samples, speed)) for digit in test])
        )
        for speed in speeds
    )
    return [str(model.classes_[index]) for index in scores.argmax(axis=1)]


def mfcc(digits: Sequence[Recording]) -> NDArray[np.float32]:
    """The mean coefficients (N, 100) of each fifth of recordings."""
    return np.stack([_mean_mfcc(digit.samples) for digit in track(digits, "MFCC", len(digits))])


def _mean_mfcc(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean MFCCs (PARTS * COEFFICIENTS,) of each fifth of a recording (N,) at 16 kHz."""
    padded = np.pad(samples, (0, max(0, MFCC_WIDTH - len(samples))))
    frames = librosa.feature.mfcc(y=padded, sr=RATE, n_mfcc=COEFFICIENTS)  # (COEFFICIENTS, F)
    frames = np.pad(frames, ((0, 0), (0, max(0, PARTS - frames.shape[1]))), mode="edge")
    return np.concatenate([part.mean(axis=1) for part in np.array_split(frames, PARTS, axis=1)])


def utterances(seed: int) -> list[Utterance]:
    """Random digits in all voices of eSpeak NG and several accents of English."""
    rng, names = random.Random(seed), voices()
    return [
        Utterance(
            rng.choice(DIGITS),
            rng.choice(ACCENTS),
            rng.choice(names),
            rng.randint(110, 280),
            rng.randint(10, 90),
        )
        for _ in range(SYNTHETIC)
    ]


def pretrain(folder: Path, synthetic: Sequence[Recording], seed: int) -> None:
    """Train a Whisper on digits of eSpeak NG, and save it in models/spoken."""
    train("byte-level-bpe", 300, DIGITS).save_pretrained(folder / "models/tokens")
    settings = experiment("tokens", **PRETRAINING)
    fit(folder, "spoken", synthetic[VALID:], synthetic[:VALID], settings, seed)


def table_rows(
    digits: Sequence[Recording], correct: dict[str, NDArray[np.bool_]]
) -> list[dict[str, Any]]:
    """Word accuracy in total and by speaker, and the difference from TEN, over speakers."""
    groups = [digit.speaker for digit in digits]
    tables = {
        name: Groups.from_records([{"correct": hits * 1, "words": np.ones(len(hits))}], groups)
        for name, hits in correct.items()
    }
    rows = []
    for name, hits in correct.items():
        difference = paired_difference(
            tables[TEN],
            tables[name],
            lambda sums: {"accuracy": sums["correct"] / sums["words"]},
            Metric("accuracy", "word accuracy"),
        )
        by_speaker = {
            speaker: float(hits[[group == speaker for group in groups]].mean())
            for speaker in sorted({*groups})
        }
        rows.append(
            {
                "system": name,
                "word accuracy": float(hits.mean()),
                **by_speaker,
                f"{TEN} minus this": None if name == TEN else difference[:3],
            }
        )
    return rows


if __name__ == "__main__":
    benchmarks.run(app)
