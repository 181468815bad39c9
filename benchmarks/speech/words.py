"""Mandarin words of one person, a fifth of which were never heard: the CER as it comes.

The recordings are those of a folder with transcripts.csv and metadata.csv (`--data`), one of each
word. A small Whisper first learns the words to train on, and made-up ones of their characters, as
eSpeak NG speaks them; then all of its weights learn the person's recordings. Every word of the test
is new to it; of some, characters are, too, and those it cannot write.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from recogniser import Recording, experiment, fit, recordings, synthesized, written
from rich.console import Console
from rich.table import Table

from wxb.metrics.bootstrap import intervals
from wxb.tasks.speech import metrics
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.spoken.espeak import Utterance, voices
from wxb.text.tokenizers import train

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)
TEST = 5  # one word of so many
SPOKEN = 4000  # words of eSpeak NG
ENCODING: dict[str, Any] = {"window": 3, "mel_bands": 40, "max_length": 24}
SHAPE = {"d_model": 96, "encoder_layers": 2, "decoder_layers": 2, "attention_heads": 4}


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="the folder of the recordings")],
    epochs: Annotated[int, typer.Option(help="of the training on the person's words")] = 12,
    seed: int = 1,
    resamples: int = 1000,
) -> None:
    """Train on four of five words, transcribe the others, and print a table."""
    words = recordings(data)
    random.Random(seed).shuffle(words)
    tested, learnt = words[: len(words) // TEST], words[len(words) // TEST :]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        begin(folder, [word.said for word in learnt], seed)
        settings = experiment(
            "spoken",
            encoding={**ENCODING, "speeds": [0.9, 1.1]},
            model={},
            training={"epochs": epochs, "batch_size": 4, "learning_rate": 1e-3},
        )
        fit(folder, "adapted", learnt, settings, seed)
        table = Table("", "words", "CER (95%)", "words right")
        known = {character for word in learnt for character in word.said}
        for name, title in (("spoken", "eSpeak NG alone"), ("adapted", "and the person")):
            found = written(folder, name, tested)
            show(table, f"{title}: all", tested, found, resamples, seed)
            old = [at for at, word in enumerate(tested) if {*word.said} <= known]
            heard, texts = [tested[at] for at in old], [found[at] for at in old]
            show(table, f"{title}: no character is new", heard, texts, resamples, seed)
    console.print(table)
    console.print(f"{len(learnt)} words were learnt, {len(tested)} others tested; one speaker.")


def begin(folder: Path, words: Sequence[str], seed: int) -> None:
    """The Whisper that has heard words of eSpeak NG alone, in models/spoken."""
    rng, known = random.Random(seed), voices()
    characters = sorted({*"".join(words)})
    said = []
    for number in range(SPOKEN):
        made = "".join(rng.choices(characters, k=rng.randint(1, 4)))
        text = rng.choice(words) if number % 2 else made
        speed, pitch = rng.randint(160, 240), rng.randint(30, 80)
        said.append(Utterance(text, "zh", rng.choice(known), speed, pitch))
    train("byte-level-bpe", 1200, words).save_pretrained(folder / "models/tokens")
    settings = experiment(
        "tokens",
        encoding=ENCODING,
        model={"shape": {**SHAPE, "ffn_dim": 384}, "ctc_weight": 0.3},
        training={"epochs": 8, "batch_size": 4, "learning_rate": 2e-3},
    )
    fit(folder, "spoken", synthesized(said, RATE, seed), settings, seed)


def show(
    table: Table,
    name: str,
    heard: Sequence[Recording],
    texts: Sequence[str],
    resamples: int,
    seed: int,
) -> None:
    """Add the CER of some words to a table, with an interval over words."""
    judged = [
        metrics.Judged(one.name, "", one.said, text, one.said, text, len(one.samples) / RATE, 0.0)
        for one, text in zip(heard, texts, strict=True)
    ]
    counts = metrics.statistics(judged)
    found = intervals(counts, metrics.scores, resamples=resamples, seed=seed)["cer"]
    right = np.mean([one.reference == one.hypothesis for one in judged])
    cer = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    table.add_row(name, str(len(heard)), cer, f"{right:.3f}")


if __name__ == "__main__":
    app()
