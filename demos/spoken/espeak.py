"""eSpeak NG, a formant synthesizer, through the package `espeakng-loader`, which brings it."""

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

LANGUAGES = {"zh": "cmn", "en": "en-us"}  # ours, and what eSpeak NG calls them; others as it does
# Of its header speak_lib.h.
SYNCHRONOUS, UTF8, SPEED, PITCH = 2, 1, 1, 3
SEED = 1


class Utterance(NamedTuple):
    """What is to be said: by a voice (a variant such as `f2`), how fast and how high."""

    text: str
    language: str
    voice: str
    speed: int  # words a minute
    pitch: int  # 0 to 99


def spoken(utterances: Iterable[Utterance]) -> Iterator[tuple[NDArray[np.int16], int]]:
    """The samples (N,) of each utterance and their rate, in order.

    The synthesizer goes on from where it stopped, and does not forget: the same utterances sound
    the same in a process of their own alone, where nothing was said before. Raises ValueError for
    a language that is neither of LANGUAGES nor one of eSpeak NG's own names, and for a text of
    which nothing is to be heard.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_say, utterances, chunksize=16)


def voices() -> list[str]:
    """The names of the variants that there are."""
    return sorted(path.name for path in _data().glob("voices/!v/*"))


def _loader() -> Any:
    try:
        import espeakng_loader
    except ModuleNotFoundError:
        raise WxbError(
            "found no package espeakng-loader, which speaks the demo's sentences (it is GPL, so"
            " nothing else needs it); install it: pip install --editable '.[speech]'"
        ) from None
    return espeakng_loader


def _data() -> Path:
    return Path(_loader().get_data_path())


_heard: list[NDArray[np.int16]] = []


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
def _hear(samples: Any, count: int, _: Any) -> int:
    if samples and count > 0:
        _heard.append(np.ctypeslib.as_array(samples, (count,)).copy())
    return 0  # go on


@cache
def _started() -> tuple[Any, int]:
    """The library, and the rate of its samples."""
    library = ctypes.CDLL(_loader().get_library_path())
    rate = library.espeak_Initialize(SYNCHRONOUS, 0, str(_data()).encode(), 0)
    library.espeak_SetSynthCallback(_hear)
    library.espeak_ng_SetRandSeed(ctypes.c_long(SEED))  # of breath and whispering
    return library, rate


def _say(utterance: Utterance) -> tuple[NDArray[np.int16], int]:
    library, rate = _started()
    language = LANGUAGES.get(utterance.language, utterance.language)
    name = f"{language}+{utterance.voice}"
    if library.espeak_SetVoiceByName(name.encode()):  # else the voice before goes on
        raise ValueError(f"eSpeak NG knows no language {language!r}")
    library.espeak_SetParameter(SPEED, utterance.speed, 0)
    library.espeak_SetParameter(PITCH, utterance.pitch, 0)
    text = utterance.text.encode() + b"\0"
    _heard.clear()
    library.espeak_Synth(text, ctypes.c_size_t(len(text)), 0, 1, 0, UTF8, None, None)
    if not _heard:
        raise ValueError(f"eSpeak NG says nothing for {utterance.text!r}")
    return np.concatenate(_heard), rate
