"""What a room and its noise make of clean speech."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.signal import fftconvolve

CORNER = 0.03  # of the rate: above it, noise falls off with frequency, as that of rooms does


def recorded(
    speech: NDArray[np.float64], rate: int, *, echo: float, snr: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Speech (N,) as a microphone has it: with an echo and with noise, peak below 1.

    `echo` is the time in seconds in which sound falls by 60 dB in the room, 0 for none; `snr` the
    ratio of speech to noise in dB.
    """
    times = np.arange(1, 1 + int(echo * rate)) / rate
    if len(times):
        tail = rng.normal(size=len(times)) * 10 ** (-3 * times / echo)
        tail *= 0.5 / np.sqrt(np.sum(tail**2))  # a quarter of the energy comes back
        speech = fftconvolve(speech, np.concatenate([[1], tail]))[: len(speech) + len(times) // 2]
    length = next_fast_len(len(speech), real=True)
    spectrum = np.fft.rfft(rng.normal(size=length))
    spectrum /= 1 + np.fft.rfftfreq(length) / CORNER
    noise = np.fft.irfft(spectrum, length)[: len(speech)]
    noise *= np.sqrt(np.mean(speech**2) / np.mean(noise**2)) * 10 ** (-snr / 20)
    mixed: NDArray[np.float64] = speech + noise
    mixed *= rng.uniform(0.2, 0.9) / np.abs(mixed).max()
    return mixed
