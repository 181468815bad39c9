"""Generates recordings: short sentences, spoken by eSpeak NG in simulated rooms with noise.

eSpeak NG is a formant synthesizer. A model that transcribes it well may fail on people.
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
from demos.spoken.room import simulate_room
from demos.spoken.sentences import sentences
from wxb.core.errors import choices

Range = tuple[float, float]  # the bounds of a uniform distribution


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
    """Write recordings to a folder; yields `labelled` records, then `unlabelled` ones.

    Unlabelled records have no sentence. Voices and values of ranges are drawn for each recording.
    Raises ValueError for an unknown language or voice, and if there are too few sentences.
    """
    if unknown := sorted({*languages} - espeak.LANGUAGES.keys()):
        raise ValueError(f"found languages {unknown}; expected some of {[*espeak.LANGUAGES]}")
    for voice in voices:
        if voice not in (known := espeak.voices()):
            raise ValueError(f"eSpeak NG has no voice {voice!r}{choices(voice, known)}")
    rng = random.Random(seed)
    texts = islice(sentences(languages, sentence_share, rng), labelled + unlabelled)
    plans = []
    for text, language, kind in texts:
        voice, words_per_minute, height = rng.choice(voices), _draw(speed, rng), _draw(pitch, rng)
        plans.append((espeak.Utterance(text, language, voice, words_per_minute, height), kind))
    rooms = np.random.default_rng(seed)
    (folder / "audio").mkdir()
    speech = espeak.speak(utterance for utterance, _ in plans)
    for index, ((utterance, kind), (samples, rate)) in enumerate(zip(plans, speech, strict=True)):
        noise, tail = float(rooms.uniform(*snr)), float(rooms.uniform(*echo))
        sound = simulate_room(samples / 2**15, rate, echo=tail, snr=noise, rng=rooms)
        name = f"{index:06}.flac"
        file = BytesIO()  # libsndfile waits for the disk after each write to a file
        soundfile.write(file, sound, rate, format="FLAC", subtype="PCM_16")
        (folder / "audio" / name).write_bytes(file.getvalue())
        record = {
            "ID": f"{index:06}",
            "path": f"audio/{name}",
            "sentence": utterance.text,
            "speaker": utterance.voice,
            "language": utterance.language,
            "kind": kind,
        }
        yield record if index < labelled else {**record, "sentence": None}


def _draw(bounds: Range, rng: random.Random) -> int:
    return round(rng.uniform(*bounds))
