"""Generates recordings: short sentences, spoken by eSpeak NG in simulated rooms with noise.

eSpeak NG is a formant synthesizer. A model that transcribes it well may fail on people.
"""

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
from demos.spoken.voices import Range, random_voice

PITCH = 50  # of eSpeak NG, from 0 to 99: the middle of a voice's range


def generate(
    *,
    labelled: int,
    unlabelled: int,
    languages: Sequence[str],
    sentence_share: Range,
    voices: int,
    formants: Range,
    pitch: Range,
    speed: Range,
    snr: Range,
    echo: Range,
    seed: int,
    folder: Path,
) -> Iterator[dict[str, Any]]:
    """Write recordings to a folder; yields `labelled` records, then `unlabelled` ones.

    Unlabelled records have no sentence. Voices are drawn once, then one of them for each recording.
    Raises ValueError for an unknown language, and if there are too few sentences.
    """
    if [*languages] != [*espeak.LANGUAGES]:
        raise ValueError(f"found languages {[*languages]}; expected {[*espeak.LANGUAGES]}")
    # Corpora of other sentences have other voices.
    rng = random.Random(f"{seed} {sentence_share}")
    speakers = {
        f"voice-{index:03}": random_voice(formants=formants, pitch=pitch, speed=speed, rng=rng)
        for index in range(voices)
    }
    lines = [
        (text, kind, rng.choice([*speakers]))
        for text, kind in islice(sentences(sentence_share), labelled + unlabelled)
    ]
    rooms = np.random.default_rng(seed)
    (folder / "audio").mkdir()
    utterances = (
        espeak.Utterance(text, languages[0], speaker, speakers[speaker].speed, PITCH)
        for text, _, speaker in lines
    )
    speech = espeak.speak(utterances, {name: v.variant for name, v in speakers.items()})
    for index, ((text, kind, speaker), (samples, rate)) in enumerate(
        zip(lines, speech, strict=True)
    ):
        noise, tail = float(rooms.uniform(*snr)), float(rooms.uniform(*echo))
        sound = simulate_room(samples / 2**15, rate, echo=tail, snr=noise, rng=rooms)
        name = f"{index:06}.flac"
        file = BytesIO()  # libsndfile waits for the disk after each write to a file
        soundfile.write(file, sound, rate, format="FLAC", subtype="PCM_16")
        (folder / "audio" / name).write_bytes(file.getvalue())
        record = {
            "ID": f"{index:06}",
            "path": f"audio/{name}",
            "sentence": text,
            "speaker": speaker,
            "language": languages[0],
            "kind": kind,
        }
        yield record if index < labelled else {**record, "sentence": None}
