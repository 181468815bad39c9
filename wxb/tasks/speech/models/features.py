"""Whisper's features of samples (N,), which are 16 kHz mono with full scale 1."""

from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.fft import rfft

from wxb.tasks.speech.record.audio import HOP, RATE

WIDTH = 400  # samples of a frame: 25 ms
HANN = np.hanning(WIDTH + 1)[:-1]  # periodic
MIN_POWER = 1e-10
DYNAMIC_RANGE = 8.0  # powers of ten below the maximum at which features are clipped


def log_mel(samples: NDArray[np.float32], bands: int, max_frames: int) -> NDArray[np.float32]:
    """The log-mel features (F, bands) of a recording, of `max_frames` at most.

    Log power in mel bands, as in Radford et al. 2022, section 2.2, and transformers'
    `WhisperFeatureExtractor`, with a window of any length. Frames of padding after a shorter
    recording are equal; only the first is returned. `to_window` repeats it.
    """
    count = min(max_frames, (len(samples) + WIDTH // 2) // HOP + 2)
    whole = np.zeros(max_frames * HOP, np.float32)
    whole[: len(samples)] = samples[: max_frames * HOP]
    # Frames at the ends of the window reach beyond it, where samples are reflected.
    padded = np.pad(whole, WIDTH // 2, mode="reflect")[: (count - 1) * HOP + WIDTH]
    frames = sliding_window_view(padded, WIDTH)[::HOP] * HANN
    spectrum = rfft(frames)  # (F, WIDTH / 2 + 1)
    power = spectrum.real**2 + spectrum.imag**2
    logs = np.log10(np.maximum(power @ mel_filters(bands), MIN_POWER))  # (F, bands)
    clipped = np.maximum(logs, logs.max() - DYNAMIC_RANGE)
    return ((clipped + 4) / 4).astype("f4")


@cache
def mel_filters(bands: int) -> NDArray[np.float64]:
    """Slaney's triangular mel filters (WIDTH / 2 + 1, bands), of equal area, up to RATE / 2."""
    import librosa  # slow

    filters = librosa.filters.mel(sr=RATE, n_fft=WIDTH, n_mels=bands)
    return np.ascontiguousarray(filters.T, np.float64)


def to_window(frames: NDArray[Any], length: int) -> NDArray[np.float32]:
    """The features (F, bands) of `log_mel`, padded with silence to (length, bands)."""
    silence = np.repeat(frames[-1:], length - len(frames), axis=0)
    return np.concatenate([frames, silence]).astype(np.float32, copy=False)
