"""Speech of eSpeak NG, a formant synthesizer, from the package `espeakng-loader`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError

LANGUAGES = {"zh": "cmn", "en": "en-us"}  # eSpeak NG's names of languages
# From its header speak_lib.h.
SYNCHRONOUS, UTF8, SPEED, PITCH = 2, 1, 1, 3
SEED = 1


class Utterance(NamedTuple):
    """A text to speak, by a voice (a variant such as `f2`)."""

    text: str
    language: str
    voice: str
    speed: int  # words per minute
    pitch: int  # 0 to 99


def speak(utterances: Iterable[Utterance]) -> Iterator[tuple[NDArray[np.int16], int]]:
    """The samples (N,) of each utterance and their rate, in order.

    Starts a new process for all utterances, since the synthesizer keeps state from one utterance to
    the next: only then do the same utterances sound the same. A language is one of LANGUAGES or a
    name of eSpeak NG. Raises ValueError for an unknown language, and for a text without sound.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_speak, utterances, chunksize=16)


def voices() -> list[str]:
    """The names of all variants."""
    return sorted(path.name for path in _data().glob("voices/!v/*"))


def _loader() -> Any:
    try:
        import espeakng_loader
    except ModuleNotFoundError:
        raise WxbError(
            "the demo's recordings need the package espeakng-loader (GPL, so it is optional);"
            " install it: pip install --editable '.[speech]'"
        ) from None
    return espeakng_loader


def _data() -> Path:
    return Path(_loader().get_data_path())


_samples: list[NDArray[np.int16]] = []  # of the current utterance, in chunks


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
def _append_samples(samples: Any, count: int, _: Any) -> int:
    if samples and count > 0:
        _samples.append(np.ctypeslib.as_array(samples, (count,)).copy())
    return 0  # continue


@cache
def _library() -> tuple[Any, int]:
    """The library, initialized once per process, and the rate of its samples."""
    library = ctypes.CDLL(_loader().get_library_path())
    rate = library.espeak_Initialize(SYNCHRONOUS, 0, str(_data()).encode(), 0)
    library.espeak_SetSynthCallback(_append_samples)
    library.espeak_ng_SetRandSeed(ctypes.c_long(SEED))  # for breath and whispering
    return library, rate


def _speak(utterance: Utterance) -> tuple[NDArray[np.int16], int]:
    library, rate = _library()
    language = LANGUAGES.get(utterance.language, utterance.language)
    name = f"{language}+{utterance.voice}"
    if library.espeak_SetVoiceByName(name.encode()):  # on an error, it keeps the last voice
        raise ValueError(f"eSpeak NG has no language {language!r}")
    library.espeak_SetParameter(SPEED, utterance.speed, 0)
    library.espeak_SetParameter(PITCH, utterance.pitch, 0)
    text = utterance.text.encode() + b"\0"
    _samples.clear()
    library.espeak_Synth(text, ctypes.c_size_t(len(text)), 0, 1, 0, UTF8, None, None)
    if not _samples:
        raise ValueError(f"eSpeak NG has no sound for {utterance.text!r}")
    return np.concatenate(_samples), rate
