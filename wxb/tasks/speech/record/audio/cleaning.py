"""Trim recordings and measure them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from wxb.tasks.speech.record.audio.features import HOP, RATE
from wxb.tasks.speech.record.audio.reading import AudioError

SILENT = -70.0  # dB of full scale; a recording that is never louder is silent
CLIPPED = 0.999  # of full scale
SPEECH, NOISE = 95, 5  # percentiles of loudness that estimate speech and noise
MARGIN = 5  # frames of 10 ms that are kept on both sides of the audible part


class Measures(NamedTuple):
    """Measures of a recording."""

    seconds: float  # after trimming
    trimmed: float  # seconds of silence removed
    loudness: float  # root mean square in dB of full scale, after trimming
    clipped: float  # share of samples at full scale
    snr: float  # dB between loud and quiet moments, before trimming


def trim(
    samples: NDArray[np.float32], *, top_db: float, shortest: float, longest: float
) -> tuple[NDArray[np.float32], Measures]:
    """The samples without the silence at their ends, and their measures.

    Silence is `top_db` below the loudest moment. Raises AudioError for a silent recording, and if
    less than `shortest` or more than `longest` seconds are left.
    """
    levels = loudness(samples)
    if levels.max(initial=-np.inf) < SILENT:
        raise AudioError("silent", f"nothing above {SILENT:g} dB of full scale")
    start, end = audible_range(levels, top_db)
    kept = samples[start:end]
    seconds = len(kept) / RATE
    if seconds < shortest:
        raise AudioError("too short", f"{seconds:.2f} s, at least {shortest:g} s")
    if seconds > longest:
        raise AudioError("too long", f"{seconds:.1f} s, at most {longest:g} s")
    loud, quiet = np.percentile(levels, [SPEECH, NOISE])
    measures = Measures(
        seconds=seconds,
        trimmed=(len(samples) - len(kept)) / RATE,
        loudness=float(_decibels(np.mean(kept.astype(np.float64) ** 2))),
        clipped=float(np.mean(np.abs(samples) >= CLIPPED)),
        snr=float(loud - quiet),
    )
    return kept, measures


def audible_range(levels: NDArray[np.float64], top_db: float) -> tuple[int, int]:
    """Start and end, in samples, of the part between silent ends, with a margin.

    `levels` (F,) is the loudness of each 10 ms. The end may be beyond the last sample.
    """
    loud = np.flatnonzero(levels >= levels.max() - top_db)
    start, end = int(loud[0]) - MARGIN, int(loud[-1]) + 1 + MARGIN
    return max(0, start) * HOP, end * HOP


def loudness(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """The root mean square of every 10 ms (F,) in dB of full scale; the last may be shorter."""
    whole = len(samples) // HOP * HOP
    power = np.square(samples[:whole]).reshape(-1, HOP).mean(axis=1, dtype=np.float64)
    if rest := samples[whole:].size:
        power = np.append(power, np.square(samples[whole:]).sum(dtype=np.float64) / rest)
    return _decibels(power)


def block_loudness(blocks: Iterable[NDArray[np.float32]]) -> tuple[NDArray[np.float64], int]:
    """The `loudness` of samples that come in blocks, and the number of samples."""
    levels, rest, count = [], np.zeros(0, np.float32), 0
    for block in blocks:
        count += len(block)
        whole = np.concatenate([rest, block])
        end = len(whole) // HOP * HOP
        levels.append(loudness(whole[:end]))
        rest = whole[end:]
    return np.concatenate([*levels, loudness(rest)]), count


def change_speed(samples: NDArray[np.float32], speed: float) -> NDArray[np.float32]:
    """Resample so that playback is `speed` times as fast and higher in pitch (Ko et al. 2015)."""
    faster: NDArray[np.float32] = soxr.resample(samples, RATE * speed, RATE, quality="HQ")
    return faster


def _decibels(power: NDArray[np.float64] | np.floating) -> NDArray[np.float64]:
    decibels: NDArray[np.float64] = 10 * np.log10(np.maximum(power, 1e-12))
    return decibels
