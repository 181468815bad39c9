"""Recordings trimmed and measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from wxb.tasks.speech.record.audio.features import HOP, RATE
from wxb.tasks.speech.record.audio.reading import AudioError

SILENT = -70.0  # dB below full scale: the loudest moment of a recording in which nothing is heard
CLIPPED = 0.999  # of full scale
SPOKEN, PAUSED = 95, 5  # percentiles of loudness of what is said and of the noise behind it
MARGIN = 5  # frames of 10 ms that are kept on either side of what is heard


class Measures(NamedTuple):
    """What a recording sounds like."""

    seconds: float  # after trimming
    trimmed: float  # seconds taken away
    loudness: float  # root mean square in dB below full scale, of what is left
    clipped: float  # the share of samples at full scale
    snr: float  # dB between its loud and its quiet moments, before trimming


def trimmed(
    samples: NDArray[np.float32], *, top_db: float, shortest: float, longest: float
) -> tuple[NDArray[np.float32], Measures]:
    """Samples without the silence at their ends, and their measures.

    Silence is what is `top_db` below the loudest moment. Raises AudioError where nothing is heard,
    and where less than `shortest` or more than `longest` seconds are left.
    """
    levels = loudness(samples)
    if levels.max(initial=-np.inf) < SILENT:
        raise AudioError("silent", f"nothing above {SILENT:g} dB of full scale")
    start, end = heard(levels, top_db)
    kept = samples[start:end]
    seconds = len(kept) / RATE
    if seconds < shortest:
        raise AudioError("too short", f"{seconds:.2f} s, at least {shortest:g} s")
    if seconds > longest:
        raise AudioError("too long", f"{seconds:.1f} s, at most {longest:g} s")
    loud, quiet = np.percentile(levels, [SPOKEN, PAUSED])
    measures = Measures(
        seconds=seconds,
        trimmed=(len(samples) - len(kept)) / RATE,
        loudness=float(_decibels(np.mean(kept.astype(np.float64) ** 2))),
        clipped=float(np.mean(np.abs(samples) >= CLIPPED)),
        snr=float(loud - quiet),
    )
    return kept, measures


def heard(levels: NDArray[np.float64], top_db: float) -> tuple[int, int]:
    """The samples from the first to the last of some frames that is not silence, and a margin."""
    loud = np.flatnonzero(levels >= levels.max() - top_db)
    start, end = int(loud[0]) - MARGIN, int(loud[-1]) + 1 + MARGIN
    return max(0, start) * HOP, end * HOP


def loudness(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """The root mean square of every 10 ms (F,) in dB below full scale; the last may be shorter."""
    whole = len(samples) // HOP * HOP
    power = np.square(samples[:whole]).reshape(-1, HOP).mean(axis=1, dtype=np.float64)
    if rest := samples[whole:].size:
        power = np.append(power, np.square(samples[whole:]).sum(dtype=np.float64) / rest)
    return _decibels(power)


def loudness_of(blocks: Iterable[NDArray[np.float32]]) -> tuple[NDArray[np.float64], int]:
    """The loudness of samples that come some at a time, and how many there are."""
    levels, rest, count = [], np.zeros(0, np.float32), 0
    for block in blocks:
        count += len(block)
        whole = np.concatenate([rest, block])
        end = len(whole) // HOP * HOP
        levels.append(loudness(whole[:end]))
        rest = whole[end:]
    return np.concatenate([*levels, loudness(rest)]), count


def at_speed(samples: NDArray[np.float32], speed: float) -> NDArray[np.float32]:
    """Samples played so many times faster, and higher with it (Ko et al. 2015)."""
    faster: NDArray[np.float32] = soxr.resample(samples, RATE * speed, RATE, quality="HQ")
    return faster


def _decibels(power: NDArray[np.float64] | np.floating) -> NDArray[np.float64]:
    decibels: NDArray[np.float64] = 10 * np.log10(np.maximum(power, 1e-12))
    return decibels
