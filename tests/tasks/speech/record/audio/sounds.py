"""Synthetic sounds, and audio files of them in common formats."""

import numpy as np
import soundfile

SECONDS = 1.2
FORMATS = {  # by suffix: soundfile's names of format and encoding
    "wav": ("WAV", "PCM_16"),
    "8.wav": ("WAV", "PCM_U8"),
    "24.wav": ("WAV", "PCM_24"),
    "float.wav": ("WAV", "FLOAT"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "aiff": ("AIFF", "PCM_16"),
}


def tone(rate=16_000, seconds=SECONDS, hertz=440.0, loudness=0.3):
    """A tone (N,) that swells and fades, so that each moment differs."""
    times = np.arange(round(rate * seconds)) / rate
    swell = np.sin(np.pi * times / seconds) ** 2
    return (loudness * swell * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def noise(rng, samples, loudness=0.1):
    """White noise (N,)."""
    return (loudness * rng.normal(size=samples)).astype(np.float32)


def write(path, samples=None, rate=16_000, suffix="wav"):
    """Write a file in a format, by default of `tone`; returns its path."""
    kind, encoding = FORMATS[suffix]
    soundfile.write(path, tone(rate) if samples is None else samples, rate, encoding, format=kind)
    return path
