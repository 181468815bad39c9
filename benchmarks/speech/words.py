"""Benchmarks a small Whisper on Mandarin words of one speaker that are not in training.

`--data` is a folder with transcripts.csv, metadata.csv and one recording of each word. A small
Whisper is pretrained on eSpeak NG's speech of the training words and of random words of their
characters. All weights are then fine-tuned on changed copies of the speaker's recordings. No test
word is in training. Some test words have new characters, which the model cannot transcribe.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from recogniser import (
    Recording,
    augment,
    experiment,
    fit,
    read_recordings,
    synthesize,
    transcribe,
)

from demos.spoken.espeak import Utterance, voices
from wxb.corpora.text.tokenizers import train
from wxb.metrics.intervals import Groups, intervals
from wxb.project.reproduction import benchmarks
from wxb.tasks.speech import metrics
from wxb.tasks.speech.record.audio.features import RATE

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
TEST = 5  # one in so many words is a test word
SYNTHETIC, VALID = 8_000, 200  # words of eSpeak NG, and those of them for validation
COPIES, KEPT = 8, 1_000  # for fine-tuning: of each recording, and words of eSpeak NG
ENCODING: dict[str, Any] = {"window": 2, "mel_bands": 40, "max_length": 24}
SHAPE = {"d_model": 96, "encoder_layers": 2, "decoder_layers": 2, "attention_heads": 4}
PRETRAINING: dict[str, Any] = {
    "encoding": ENCODING,
    "model": {"shape": {**SHAPE, "ffn_dim": 384}, "ctc_weight": 0.3},
    "training": {"epochs": 6, "batch_size": 16, "learning_rate": 2e-3},
}
FINE_TUNING: dict[str, Any] = {
    "encoding": ENCODING,
    "training": {"epochs": 4, "batch_size": 16, "learning_rate": 1e-3},
}


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="the folder of the recordings")],
    work: Annotated[
        Path | None, typer.Option(help="a folder for models; existing ones are used")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    seed: int = 1,
) -> None:
    """Train on four of five words, transcribe the others, and print a table of CER."""
    torch.set_num_threads(1)
    words = read_recordings(data)
    random.Random(seed).shuffle(words)
    test, others = words[: len(words) // TEST], words[len(words) // TEST :]
    valid, training = others[: len(others) // 10], others[len(others) // 10 :]
    with tempfile.TemporaryDirectory() as temporary:
        folder = work or Path(temporary)
        folder.mkdir(exist_ok=True)
        texts = [word.text for word in others]
        # Trained on single characters, so that no token is a word.
        train("byte-level-bpe", 1500, sorted({*"".join(texts)})).save_pretrained(
            folder / "models/tokens"
        )
        synthetic = synthesize(utterances(texts, seed), RATE, seed)
        pretraining = experiment("tokens", **PRETRAINING)
        fit(folder, "spoken", synthetic[VALID:], synthetic[:VALID], pretraining, seed)
        copies = augment(training, RATE, seed, COPIES) + synthetic[VALID:][:KEPT]
        fit(folder, "adapted", copies, valid, experiment("spoken", **FINE_TUNING), seed)
        rows = []
        characters = {*"".join(texts)}
        for name, title in (("spoken", "eSpeak NG alone"), ("adapted", "and the speaker")):
            pairs = [*zip(test, transcribe(folder, name, test), strict=True)]
            rows.append(table_row(f"{title}: all", pairs))
            known = [pair for pair in pairs if {*pair[0].text} <= characters]
            rows.append(table_row(f"{title}: no new character", known))
    benchmarks.report(rows, output)


def utterances(words: Sequence[str], seed: int) -> list[Utterance]:
    """Random utterances: half are words, half random sequences of their characters."""
    rng, names = random.Random(seed), voices()
    characters, chosen = sorted({*"".join(words)}), []
    for index in range(SYNTHETIC):
        sequence = "".join(rng.choices(characters, k=rng.randint(1, 4)))
        text = rng.choice(words) if index % 2 else sequence
        speed, pitch = rng.randint(140, 240), rng.randint(30, 80)
        chosen.append(Utterance(text, "zh", rng.choice(names), speed, pitch))
    return chosen


def table_row(title: str, pairs: Sequence[tuple[Recording, str]]) -> dict[str, Any]:
    """The CER of transcripts, with an interval over words, and the correct ones."""
    rows = [
        metrics.PredictionRow(
            word.name, "", word.text, text, word.text, text, len(word.samples) / RATE, 0.0
        )
        for word, text in pairs
    ]
    scorer = metrics.Scorer()
    groups = Groups.from_records(scorer.statistics(rows))
    return {
        "trained on": title,
        "words": len(pairs),
        "CER": intervals(groups, scorer.scores, scorer.METRICS)["cer"],
        "correct": sum(row.reference == row.hypothesis for row in rows),
    }


if __name__ == "__main__":
    benchmarks.run(app)
