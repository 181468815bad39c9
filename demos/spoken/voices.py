"""Random voices: variants of eSpeak NG's voice, each with its own vocal tract, pitch and speed."""

import random
from typing import NamedTuple

Range = tuple[float, float]  # the bounds of a uniform distribution
FORMANTS = 9  # of eSpeak NG


class Voice(NamedTuple):
    """A voice: its variant file and its speed in words per minute."""

    variant: str
    speed: int


def random_voice(*, formants: Range, pitch: Range, speed: Range, rng: random.Random) -> Voice:
    """A voice with values drawn from ranges.

    `formants` is the frequency of its formants in % of eSpeak NG's: a long vocal tract has low
    ones. `pitch` is the lowest in Hz; the highest is half as much again.
    """
    size, low = rng.uniform(*formants), rng.uniform(*pitch)
    lines = ["language variant", f"pitch {low:.0f} {1.5 * low:.0f}"]
    for number in range(FORMANTS):
        frequency, height, width = size * rng.uniform(0.95, 1.05), *_draw(rng, (70, 120), (80, 140))
        lines.append(f"formant {number} {frequency:.0f} {height} {width}")
    voicing, roughness, flutter, breath = _draw(rng, (60, 130), (0, 4), (0, 10), (0, 5))
    lines += [f"voicing {voicing}", f"roughness {roughness}", f"flutter {flutter}"]
    lines.append(" ".join(["breath", "0", *(7 * [f"{breath}"])]))
    return Voice("\n".join([*lines, ""]), *_draw(rng, speed))


def _draw(rng: random.Random, *ranges: Range) -> list[int]:
    return [round(rng.uniform(*bounds)) for bounds in ranges]
