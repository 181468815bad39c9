"""Simulated rooms: echo and noise for clean speech."""

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.signal import fftconvolve

CORNER = 0.03  # of the sampling rate; noise falls off above it, as in real rooms


def simulate_room(
    speech: NDArray[np.float64], rate: int, *, echo: float, snr: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Speech (N,) with echo and noise, and a random peak below 1.

    `echo` is the reverberation time in seconds (decay by 60 dB), 0 for none. `snr` is the
    signal-to-noise ratio in dB.
    """
    times = np.arange(1, 1 + int(echo * rate)) / rate
    if len(times):
        tail = rng.normal(size=len(times)) * 10 ** (-3 * times / echo)
        tail *= 0.5 / np.sqrt(np.sum(tail**2))  # the echo has a quarter of the energy
        speech = fftconvolve(speech, np.concatenate([[1], tail]))[: len(speech) + len(times) // 2]
    length = next_fast_len(len(speech), real=True)
    spectrum = np.fft.rfft(rng.normal(size=length))
    spectrum /= 1 + np.fft.rfftfreq(length) / CORNER
    noise = np.fft.irfft(spectrum, length)[: len(speech)]
    noise *= np.sqrt(np.mean(speech**2) / np.mean(noise**2)) * 10 ** (-snr / 20)
    mixed: NDArray[np.float64] = speech + noise
    mixed *= rng.uniform(0.2, 0.9) / np.abs(mixed).max()
    return mixed
