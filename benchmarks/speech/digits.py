"""Spoken digits of people who were not heard in training, beside two established ways.

The recordings are those of the Free Spoken Digit Dataset (`--data`: a folder with transcripts.csv
and metadata.csv), where they are only read. Each speaker is held out in turn: the systems learn
from the others and are tested on all that this one says, so that every recording is tested once.

- pocketsphinx: its packaged model of American English with a grammar of the ten digits. It learns
  nothing here.
- MFCC and logistic regression: twenty coefficients (librosa), their means over each fifth of a
  recording, standardised (scikit-learn). Once it learns the people's digits as they are, and once
  all that the Whisper learns; then it hears a recording at as many speeds, too.
- Whisper: the method of the task speech. A small one learns digits that eSpeak NG speaks, then all
  of its weights learn copies of the other people's digits. Once it writes letters, and is right
  where they are those of the digit; once it chooses the likeliest of the ten, as the others do.
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
import torch
import typer
from numpy.typing import NDArray
from recogniser import (
    HEARD_AT,
    Recording,
    chosen,
    experiment,
    fit,
    recordings,
    synthesized,
    varied,
    written,
)
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from demos.spoken.espeak import Utterance, voices
from wxb.core.progress import tracked
from wxb.corpora.text.tokenizers import train
from wxb.metrics.bootstrap import by_group, paired
from wxb.tasks.speech.record.audio.cleaning import at_speed
from wxb.tasks.speech.record.audio.features import RATE

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=120)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PARTS, COEFFICIENTS = 5, 20
RECORDED = 8_000  # Hz, of the people's digits
SPOKEN, HELD = 12_000, 500  # digits of eSpeak NG that are learnt first, some held out of them
ACCENTS = ("en-us", "en", "en-gb-scotland", "en-gb-x-rp", "en-029", "en-us-nyc")
COPIES, KEPT = 16, 2_000  # of each digit of a person, and eSpeak's that are learnt with them
ENCODING: dict[str, Any] = {"window": 1, "mel_bands": 40, "max_length": 8}
SHAPE = {"d_model": 96, "encoder_layers": 2, "decoder_layers": 1, "attention_heads": 4}
HIDDEN = {"masks": 1, "bands": 6, "frames": 8}
FIRST: dict[str, Any] = {
    "encoding": ENCODING,
    "model": {
        "shape": {**SHAPE, "ffn_dim": 384, "dropout": 0.1},
        "ctc_weight": 0.3,
        "spec_augment": HIDDEN,
    },
    "training": {
        "epochs": 8,
        "batch_size": 16,
        "learning_rate": 2e-3,
        "early_stopping_patience": 8,
    },
}
# Chosen by learning from two of the three people that a fold learns from, and testing the third.
THEN: dict[str, Any] = {
    "encoding": ENCODING,
    "model": {"spec_augment": HIDDEN},
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
    "the same, with all that the Whisper has",
)
FREE, TEN = "Whisper, writing letters", "Whisper, choosing among ten"


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="the folder of the Free Spoken Digit Dataset")],
    work: Annotated[
        Path | None, typer.Option(help="a folder to keep models in; one that is there is used")
    ] = None,
    seed: int = 1,
    resamples: int = 1000,
) -> None:
    """Test all systems on each speaker in turn, and print a table."""
    torch.set_num_threads(1)
    digits = recordings(data)
    right = {name: np.zeros(len(digits), bool) for name in (SPHINX, PLAIN, SAME, FREE, TEN)}
    with tempfile.TemporaryDirectory() as place:
        folder = work or Path(place)
        folder.mkdir(exist_ok=True)
        right[SPHINX][:] = sphinx(folder, digits)
        spoken = synthesized(utterances(seed), RECORDED, seed)
        coefficients = mfcc(spoken)
        begin(folder, spoken, seed)
        for speaker in sorted({digit.speaker for digit in digits}):
            tested = np.array([digit.speaker == speaker for digit in digits])
            known = [digit for digit in digits if digit.speaker != speaker]
            heard = [digit for digit in digits if digit.speaker == speaker]
            held = random.Random(seed).sample(known, len(known) // 10)
            copies = varied([d for d in known if d not in held], RECORDED, seed, COPIES)
            settings = experiment("spoken", **THEN)
            fit(folder, speaker, copies + spoken[HELD:][:KEPT], held, settings, seed)
            found = {
                PLAIN: regression(known, mfcc(known), heard, (1.0,)),
                SAME: regression(
                    spoken + copies, np.concatenate([coefficients, mfcc(copies)]), heard, HEARD_AT
                ),
                FREE: written(folder, speaker, heard),
                TEN: chosen(folder, speaker, heard, DIGITS),
            }
            for name, texts in found.items():
                right[name][tested] = [t == d.said for t, d in zip(texts, heard, strict=True)]
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
    learnt: Sequence[Recording],
    features: NDArray[np.float32],
    heard: Sequence[Recording],
    speeds: Sequence[float],
) -> list[str]:
    """What a regression on the MFCC of some digits takes others for, heard at some speeds."""
    model: Pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    model.fit(features, [one.said for one in learnt])
    likely = sum(
        model.predict_log_proba(
            mfcc([one._replace(samples=at_speed(one.samples, speed)) for one in heard])
        )
        for speed in speeds
    )
    return [str(model.classes_[place]) for place in likely.argmax(axis=1)]


def mfcc(digits: Sequence[Recording]) -> NDArray[np.float32]:
    """The mean coefficients (N, 100) of each fifth of recordings."""
    rows = []
    for digit in tracked(digits, "MFCC", len(digits)):
        found = librosa.feature.mfcc(y=digit.samples, sr=RATE, n_mfcc=COEFFICIENTS)  # (20, F)
        parts = [part for part in np.array_split(found, PARTS, axis=1) if part.size]
        parts = (parts + parts[-1:] * PARTS)[:PARTS]
        rows.append(np.concatenate([part.mean(axis=1) for part in parts]))
    return np.stack(rows)


def utterances(seed: int) -> list[Utterance]:
    """Digits for eSpeak NG to say, in all of its voices and in accents of English."""
    rng, known = random.Random(seed), voices()
    return [
        Utterance(
            rng.choice(DIGITS),
            rng.choice(ACCENTS),
            rng.choice(known),
            rng.randint(110, 280),
            rng.randint(10, 90),
        )
        for _ in range(SPOKEN)
    ]


def begin(folder: Path, spoken: Sequence[Recording], seed: int) -> None:
    """The Whisper that has heard digits of eSpeak NG alone, in models/spoken."""
    train("byte-level-bpe", 300, DIGITS).save_pretrained(folder / "models/tokens")
    settings = experiment("tokens", **FIRST)
    fit(folder, "spoken", spoken[HELD:], spoken[:HELD], settings, seed)


def show(
    digits: Sequence[Recording], right: dict[str, NDArray[np.bool_]], resamples: int, seed: int
) -> None:
    """Print word accuracy, all together and by speaker, and the difference to the last system."""
    groups = [digit.speaker for digit in digits]
    speakers = sorted({*groups})
    table = Table("", "word accuracy", *speakers, f"{TEN} less this (95%)")
    tables = {
        name: by_group(np.stack([hits, np.ones(len(hits))], axis=1)[:, None], groups)
        for name, hits in right.items()
    }
    for name, hits in right.items():
        shares = [hits[[group == speaker for group in groups]].mean() for speaker in speakers]
        behind = ""
        if name != TEN:
            found = paired(
                tables[TEN],
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
