"""Spoken digits of people who were not heard in training, beside two established ways.

The recordings are those of the Free Spoken Digit Dataset (`--data`: a folder with transcripts.csv
and metadata.csv), where they are only read. Each speaker is held out in turn: the systems learn
from the others and are tested on all that this one says, so that every recording is tested once.

- pocketsphinx: its packaged model of American English with a grammar of the ten digits. It learns
  nothing here.
- MFCC and logistic regression: twenty coefficients (librosa), their means over each fifth of a
  recording, standardised (scikit-learn). It chooses among ten digits, too.
- Whisper: the method of the task speech. A small one first learns sentences of digits that eSpeak
  NG speaks, then all of its weights learn from the other people's digits. It writes letters, and is
  right where they are those of the digit.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import librosa
import numpy as np
import typer
from numpy.typing import NDArray
from recogniser import Recording, experiment, fit, recordings, synthesized, written
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from wxb.metrics.bootstrap import by_group, paired
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.spoken.espeak import Utterance, voices
from wxb.text.tokenizers import train

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PARTS, COEFFICIENTS = 5, 20
RECORDED = 8_000  # Hz, of the people's digits
SPOKEN = 3000  # digits of eSpeak NG that it learns first
ENCODING: dict[str, Any] = {"window": 1, "mel_bands": 40, "max_length": 8}
SPEEDS = [0.8, 0.9, 1.1, 1.2]  # at which it hears people's digits, too
SHAPE = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 1, "attention_heads": 4}
FIRST = {
    "encoding": ENCODING,
    "model": {"shape": {**SHAPE, "ffn_dim": 256}, "ctc_weight": 0.5},
    "training": {"epochs": 6, "batch_size": 4, "learning_rate": 2e-3},
}
HIDDEN = {"masks": 1, "bands": 6, "frames": 8}


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="the folder of the Free Spoken Digit Dataset")],
    epochs: Annotated[int, typer.Option(help="of each held-out speaker's training")] = 12,
    seed: int = 1,
    resamples: int = 1000,
) -> None:
    """Test all systems on each speaker in turn, and print a table."""
    digits = recordings(data)
    names = ("pocketsphinx, grammar of digits", "MFCC and logistic regression", "Whisper")
    right = {name: np.zeros(len(digits), bool) for name in names}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        right[names[0]][:] = sphinx(folder, digits)
        begin(folder, seed)
        for speaker in sorted({digit.speaker for digit in digits}):
            tested = np.array([digit.speaker == speaker for digit in digits])
            learnt = [digit for digit in digits if digit.speaker != speaker]
            heard = [digit for digit in digits if digit.speaker == speaker]
            right[names[1]][tested] = regression(learnt, heard, seed)
            right[names[2]][tested] = whisper(folder, speaker, learnt, heard, epochs, seed)
    show(digits, right, resamples, seed)


def sphinx(folder: Path, digits: Sequence[Recording]) -> list[bool]:
    """Whether pocketsphinx names each digit."""
    from pocketsphinx import Config, Decoder

    grammar = folder / "digits.gram"
    grammar.write_text(f"#JSGF V1.0;\ngrammar digits;\npublic <digit> = {' | '.join(DIGITS)};\n")
    decoder = Decoder(Config(jsgf=str(grammar), loglevel="FATAL"))
    found = []
    for digit in digits:
        quiet = np.zeros(RATE // 5)  # it wants to hear the room before and after a word
        whole = np.concatenate([quiet, digit.samples, quiet])
        decoder.start_utt()
        decoder.process_raw((whole * 2**15).astype(np.int16).tobytes(), full_utt=True)
        decoder.end_utt()
        heard = decoder.hyp()
        found.append(heard is not None and heard.hypstr.strip() == digit.said)
    return found


def regression(
    learnt: Sequence[Recording], heard: Sequence[Recording], seed: int
) -> NDArray[np.bool_]:
    """Whether a regression on the MFCC of some digits names each of others."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed))
    model.fit([_mfcc(digit) for digit in learnt], [digit.said for digit in learnt])
    found: NDArray[np.bool_] = model.predict([_mfcc(digit) for digit in heard]) == [
        digit.said for digit in heard
    ]
    return found


def _mfcc(digit: Recording) -> NDArray[np.float32]:
    found = librosa.feature.mfcc(y=digit.samples, sr=RATE, n_mfcc=COEFFICIENTS)  # (20, F)
    parts = [part for part in np.array_split(found, PARTS, axis=1) if part.size]
    return np.concatenate([part.mean(axis=1) for part in (parts + parts[-1:] * PARTS)[:PARTS]])


def begin(folder: Path, seed: int) -> None:
    """The Whisper that has heard digits of eSpeak NG alone, in models/spoken."""
    rng = random.Random(seed)
    known = voices()
    said = [_utterance(rng, known) for _ in range(SPOKEN)]
    train("byte-level-bpe", 300, DIGITS).save_pretrained(folder / "models/tokens")
    heard = synthesized(said, RECORDED, seed)
    fit(folder, "spoken", heard, experiment("tokens", **FIRST), seed)


def _utterance(rng: random.Random, known: Sequence[str]) -> Utterance:
    speed, pitch = rng.randint(120, 260), rng.randint(20, 80)
    return Utterance(rng.choice(DIGITS), "en", rng.choice(known), speed, pitch)


def whisper(
    folder: Path,
    speaker: str,
    learnt: Sequence[Recording],
    heard: Sequence[Recording],
    epochs: int,
    seed: int,
) -> list[bool]:
    """Whether the Whisper of eSpeak's digits, adapted to some people's, writes those of others."""
    settings = experiment(
        "spoken",
        encoding={**ENCODING, "speeds": SPEEDS},
        model={"spec_augment": HIDDEN},
        training={
            "epochs": epochs,
            "batch_size": 8,
            "learning_rate": 1e-3,
            "early_stopping_patience": epochs,
        },
    )
    fit(folder, speaker, learnt, settings, seed)
    found = written(folder, speaker, heard)
    return [text == one.said for text, one in zip(found, heard, strict=True)]


def show(
    digits: Sequence[Recording], right: dict[str, NDArray[np.bool_]], resamples: int, seed: int
) -> None:
    """Print word accuracy, all together and by speaker, and the difference to the last system."""
    groups = [digit.speaker for digit in digits]
    speakers = sorted({*groups})
    table = Table("", "word accuracy", *speakers, "behind the last (95%)")
    tables = {
        name: by_group(np.stack([hits, np.ones(len(hits))], axis=1)[:, None], groups)
        for name, hits in right.items()
    }
    last = [*right][-1]
    for name, hits in right.items():
        shares = [hits[[group == speaker for group in groups]].mean() for speaker in speakers]
        behind = ""
        if name != last:
            found = paired(
                tables[last],
                tables[name],
                lambda sums: sums[..., 0] / sums[..., 1],
                resamples=resamples,
                seed=seed,
                level=0.95,
            )
            behind = f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
        table.add_row(name, f"{hits.mean():.3f}", *(f"{share:.3f}" for share in shares), behind)
    console.print(table)
    console.print(
        f"{len(digits)} recordings; the speaker of each was not trained on. Speakers are resampled"
        f" whole; with {len(speakers)} of them, intervals are rough. {os.cpu_count()} CPUs."
    )


if __name__ == "__main__":
    app()
