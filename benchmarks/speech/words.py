"""Mandarin words of one person, a fifth of which were never heard: the CER as it comes.

The recordings are those of a folder with transcripts.csv and metadata.csv (`--data`), one of each
word. A small Whisper first learns the words to train on, and made-up ones of their characters, as
eSpeak NG speaks them; then all of its weights learn copies of the person's recordings. Every word
of the test is new to it; of some, characters are, too, and those it cannot write.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from recogniser import Recording, experiment, fit, recordings, synthesized, varied, written
from rich.console import Console
from rich.table import Table

from demos.spoken.espeak import Utterance, voices
from wxb.corpora.text.tokenizers import train
from wxb.metrics.bootstrap import intervals
from wxb.tasks.speech import metrics
from wxb.tasks.speech.record.audio.features import RATE

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)
TEST = 5  # one word of so many
SPOKEN, HELD = 8_000, 200  # words of eSpeak NG that are learnt first, some held out of them
COPIES, KEPT = 8, 1_000  # of each recording of the person, and eSpeak's that are learnt with them
ENCODING: dict[str, Any] = {"window": 2, "mel_bands": 40, "max_length": 24}
SHAPE = {"d_model": 96, "encoder_layers": 2, "decoder_layers": 2, "attention_heads": 4}
FIRST: dict[str, Any] = {
    "encoding": ENCODING,
    "model": {"shape": {**SHAPE, "ffn_dim": 384}, "ctc_weight": 0.3},
    "training": {"epochs": 6, "batch_size": 16, "learning_rate": 2e-3},
}
THEN: dict[str, Any] = {
    "encoding": ENCODING,
    "training": {"epochs": 4, "batch_size": 16, "learning_rate": 1e-3},
}


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="the folder of the recordings")],
    work: Annotated[
        Path | None, typer.Option(help="a folder to keep models in; one that is there is used")
    ] = None,
    seed: int = 1,
    resamples: int = 1000,
) -> None:
    """Train on four of five words, transcribe the others, and print a table."""
    torch.set_num_threads(1)
    words = recordings(data)
    random.Random(seed).shuffle(words)
    tested, known = words[: len(words) // TEST], words[len(words) // TEST :]
    held, learnt = known[: len(known) // 10], known[len(known) // 10 :]
    with tempfile.TemporaryDirectory() as place:
        folder = work or Path(place)
        folder.mkdir(exist_ok=True)
        texts = [word.said for word in known]
        # Of single characters, lest words become tokens that no other word could be written with.
        train("byte-level-bpe", 1500, sorted({*"".join(texts)})).save_pretrained(
            folder / "models/tokens"
        )
        spoken = synthesized(utterances(texts, seed), RATE, seed)
        fit(folder, "spoken", spoken[HELD:], spoken[:HELD], experiment("tokens", **FIRST), seed)
        copies = varied(learnt, RATE, seed, COPIES) + spoken[HELD:][:KEPT]
        fit(folder, "adapted", copies, held, experiment("spoken", **THEN), seed)
        table = Table("", "words", "CER (95%)", "words right")
        characters = {*"".join(texts)}
        for name, title in (("spoken", "eSpeak NG alone"), ("adapted", "and the person")):
            found = written(folder, name, tested)
            show(table, f"{title}: all", tested, found, resamples, seed)
            old = [at for at, word in enumerate(tested) if {*word.said} <= characters]
            heard, texts = [tested[at] for at in old], [found[at] for at in old]
            show(table, f"{title}: no character is new", heard, texts, resamples, seed)
    console.print(table)
    console.print(
        f"{len(known)} words were learnt, {len(tested)} others tested, none of which was heard in"
        " training; one speaker."
    )


def utterances(words: Sequence[str], seed: int) -> list[Utterance]:
    """Words for eSpeak NG to say, and as many made-up ones of the same characters."""
    rng, known = random.Random(seed), voices()
    characters, said = sorted({*"".join(words)}), []
    for number in range(SPOKEN):
        made = "".join(rng.choices(characters, k=rng.randint(1, 4)))
        text = rng.choice(words) if number % 2 else made
        speed, pitch = rng.randint(140, 240), rng.randint(30, 80)
        said.append(Utterance(text, "zh", rng.choice(known), speed, pitch))
    return said


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
    counts = metrics.Scorer().statistics(judged)
    found = intervals(counts, metrics.Scorer().scores, resamples=resamples, seed=seed)["cer"]
    right = np.mean([one.reference == one.hypothesis for one in judged])
    cer = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    table.add_row(name, str(len(heard)), cer, f"{right:.3f}")


if __name__ == "__main__":
    app()
