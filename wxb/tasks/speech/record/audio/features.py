"""What Whisper hears: the logarithm of the power in mel bands, a frame every 10 ms.

As in Radford et al. 2022, section 2.2, and in transformers' `WhisperFeatureExtractor`, of a window
of any length. librosa is imported where its filters are needed, so that what only reads recordings
starts at once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.fft import rfft

RATE = 16_000  # samples a second, of all that models hear
HOP = 160  # samples from frame to frame: 10 ms
WIDTH = 400  # samples of a frame: 25 ms
FRAMES = RATE // HOP  # a second
LOWEST = 1e-10  # power below which there is silence
SHAPE = np.hanning(WIDTH + 1)[:-1]  # of a frame: Hann's, periodic
RANGE = 8.0  # powers of ten below the loudest, beyond which nothing is told apart


def log_mel(samples: NDArray[np.float32], bands: int, window: int) -> NDArray[np.float32]:
    """The frames (F, bands) of a recording (N,) at 16 kHz, cut to a window of so many frames.

    A shorter one is followed by silence, where all frames are alike: no more than the first of them
    is given here, with which `to_window` fills the rest.
    """
    spoken = min(window, (len(samples) + WIDTH // 2) // HOP + 2)
    whole = np.zeros(window * HOP, np.float32)
    whole[: len(samples)] = samples[: window * HOP]
    # The last frames alone reach beyond the end of a window, where the sound is mirrored.
    heard = np.pad(whole, WIDTH // 2, mode="reflect")[: (spoken - 1) * HOP + WIDTH]
    frames = sliding_window_view(heard, WIDTH)[::HOP] * SHAPE
    spectrum = rfft(frames)  # (F, WIDTH / 2 + 1)
    power = spectrum.real**2 + spectrum.imag**2
    logs = np.log10(np.maximum(power @ _filters(bands), LOWEST))  # (F, bands)
    scaled: NDArray[np.float32] = ((np.maximum(logs, logs.max() - RANGE) + 4) / 4).astype("f4")
    return scaled


def to_window(frames: NDArray[Any], window: int) -> NDArray[np.float32]:
    """What `log_mel` gave (F, bands), followed by silence up to the window (window, bands)."""
    silence = np.repeat(frames[-1:], window - len(frames), axis=0)
    return np.concatenate([frames, silence]).astype(np.float32, copy=False)


@cache
def _filters(bands: int) -> NDArray[np.float64]:
    """Slaney's triangles (WIDTH / 2 + 1, bands), of equal area, from 0 Hz to half the rate."""
    import librosa

    filters = librosa.filters.mel(sr=RATE, n_fft=WIDTH, n_mels=bands)
    return np.ascontiguousarray(filters.T, np.float64)
