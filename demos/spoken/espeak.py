"""Speech of eSpeak NG, a formant synthesizer, from the package `espeakng-loader`."""

import ctypes
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError

LANGUAGES = {"zh": "cmn"}  # eSpeak NG's names of languages
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


def speak(
    utterances: Iterable[Utterance], variants: Mapping[str, str] | None = None
) -> Iterator[tuple[NDArray[np.int16], int]]:
    """The samples (N,) of each utterance and their rate, in order.

    Starts a new process for all utterances, since the synthesizer keeps state from one utterance to
    the next: only then do the same utterances sound the same. A language is one of LANGUAGES or a
    name of eSpeak NG. `variants` are the voice files of further voices by name. Raises ValueError
    for an unknown language, and for a text without sound.
    """
    with TemporaryDirectory() as folder:
        _write_data(Path(folder), variants or {})
        with ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_initialize, initargs=(folder,)
        ) as pool:
            yield from pool.map(_speak, utterances, chunksize=16)


def _write_data(folder: Path, variants: Mapping[str, str]) -> None:
    """Links to eSpeak NG's data, and copies of its variants beside further ones."""
    for path in _data().iterdir():
        if path.name != "voices":
            (folder / path.name).symlink_to(path)
    files = folder / "voices" / "!v"
    shutil.copytree(_data() / "voices" / "!v", files)
    for name, text in variants.items():
        (files / name).write_text(text, encoding="utf-8")


def voices() -> list[str]:
    """The names of all variants."""
    return sorted(path.name for path in _data().glob("voices/!v/*"))


def _loader() -> Any:
    try:
        import espeakng_loader
    except ModuleNotFoundError:
        raise WxbError(
            "the demo's recordings need the package espeakng-loader (GPL, so it is optional);"
            " install it: make .venv/speech"
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


_library: Any = None  # initialized once per process
_rate = 0  # of its samples, in Hz


def _initialize(folder: str) -> None:
    global _library, _rate
    _library = ctypes.CDLL(_loader().get_library_path())
    _rate = _library.espeak_Initialize(SYNCHRONOUS, 0, folder.encode(), 0)
    _library.espeak_SetSynthCallback(_append_samples)
    _library.espeak_ng_SetRandSeed(ctypes.c_long(SEED))  # for breath and whispering


def _speak(utterance: Utterance) -> tuple[NDArray[np.int16], int]:
    library = _library
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
    return np.concatenate(_samples), _rate
