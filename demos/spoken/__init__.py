"""The demo's recordings: short sentences of our own, spoken by eSpeak NG in rooms with noise.

It is a program of 1995 in its kind: no person was recorded, and what reads it well need not
understand one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from demos.spoken import espeak
from demos.spoken.room import recorded
from demos.spoken.sentences import sentences
from wxb.core.errors import choices

Range = tuple[float, float]  # the least and the most


def generate(
    *,
    labelled: int,
    unlabelled: int,
    languages: Sequence[str],
    sentence_share: Range,
    voices: Sequence[str],
    speed: Range,
    pitch: Range,
    snr: Range,
    echo: Range,
    seed: int,
    folder: Path,
) -> Iterator[dict[str, Any]]:
    """Write recordings into a folder and give their records, `unlabelled` ones last, without text.

    Voices, and what is given as a range, are drawn evenly for each. Raises ValueError for a
    language or a voice that there is not, and where there are too few sentences.
    """
    if unknown := sorted({*languages} - espeak.LANGUAGES.keys()):
        raise ValueError(f"found languages {unknown}; expected some of {[*espeak.LANGUAGES]}")
    for voice in voices:
        if voice not in (known := espeak.voices()):
            raise ValueError(f"eSpeak NG has no voice {voice!r}{choices(voice, known)}")
    rng = random.Random(seed)
    said = islice(sentences(languages, sentence_share, rng), labelled + unlabelled)
    plans = [
        (
            espeak.Utterance(text, language, rng.choice(voices), _in(speed, rng), _in(pitch, rng)),
            kind,
        )
        for text, language, kind in said
    ]
    rooms = np.random.default_rng(seed)
    (folder / "audio").mkdir()
    heard = espeak.spoken(utterance for utterance, _ in plans)
    for number, ((utterance, kind), (samples, rate)) in enumerate(zip(plans, heard, strict=True)):
        loudness, reverberation = float(rooms.uniform(*snr)), float(rooms.uniform(*echo))
        sound = recorded(samples / 2**15, rate, echo=reverberation, snr=loudness, rng=rooms)
        name = f"{number:06}.flac"
        file = BytesIO()  # into a file, libsndfile waits for the disk each time
        soundfile.write(file, sound, rate, format="FLAC", subtype="PCM_16")
        (folder / "audio" / name).write_bytes(file.getvalue())
        record = {
            "ID": f"{number:06}",
            "path": f"audio/{name}",
            "sentence": utterance.text,
            "speaker": utterance.voice,
            "language": utterance.language,
            "kind": kind,
        }
        yield record if number < labelled else {**record, "sentence": None}


def _in(ends: Range, rng: random.Random) -> int:
    return round(rng.uniform(*ends))
