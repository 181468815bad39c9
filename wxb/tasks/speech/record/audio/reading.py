"""Read audio files of any format, rate and number of channels in libsndfile, as 16 kHz mono.

Files are decoded and resampled in blocks, to save memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from wxb.tasks.speech.record.audio.features import RATE

FORMATS = ", ".join(soundfile.available_formats())
SUFFIXES = tuple(f".{name.lower()}" for name in (*soundfile.available_formats(), "opus", "m4a"))
UNRECOGNISED = 1  # libsndfile's error SF_ERR_UNRECOGNISED_FORMAT
# Other headers would unpack a small file to gigabytes.
RATES, MAX_CHANNELS = range(1_000, 768_001), 64
BLOCK = 1 << 18  # samples per channel
SILENT_CHANNEL = 1e-3  # of the loudest channel's amplitude; quieter channels are ignored
# A line of libsndfile's log: the number of bytes by the header, and the actual number.
SIZE = re.compile(r"^ *(?:data|SSND) : (\d+) \(should be (\d+)\)", re.MULTILINE)
UNKNOWN_SIZE = 2**31 - 2**16  # bytes: streams write this much or more into the header
MP4 = b"ftyp"  # at byte 4 of .m4a, .mp4, .mov
# A page of Ogg (RFC 3533) begins with PAGE and has at most LONGEST_PAGE bytes. The byte at FLAGS
# has the bit LAST on the last page. The byte before LENGTHS is the number of segments, and LENGTHS
# the place of their lengths, one byte each.
PAGE, LONGEST_PAGE, FLAGS, LAST, LENGTHS = b"OggS", 65_307, 5, 4, 27


class AudioError(Exception):
    """A recording cannot be used: a short reason, which is counted, and the details."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def read(source: Path | bytes, *, longest: float | None = None) -> NDArray[np.float32]:
    """All samples (N,) of `blocks`."""
    return np.concatenate([*blocks(source, longest=longest)])


def blocks(source: Path | bytes, *, longest: float | None = None) -> Iterator[NDArray[np.float32]]:
    """The samples of an audio file, or of its bytes, in blocks (n,): 16 kHz, full scale 1.

    Averages the channels, without silent ones. Raises AudioError for a file that is missing,
    unreadable or truncated, or has more than `longest` seconds.
    """
    with _opened(source) as sound:
        if not (sound.samplerate in RATES and sound.channels <= MAX_CHANNELS):
            raise AudioError(
                "unusual format",
                f"{sound.samplerate} Hz and {sound.channels} channels; expected {RATES.start} to"
                f" {RATES.stop - 1} Hz and at most {MAX_CHANNELS}",
            )
        seconds = sound.frames / sound.samplerate
        if longest is not None and seconds > longest:
            raise AudioError("too long", f"{seconds:.1f} s, at most {longest:g} s")
        if not sound.frames:
            raise AudioError("no samples", f"a header of {sound.format} and nothing behind it")
        _check_size(sound)
        for block in _resampled(_mixed(sound, _shares(sound)), sound.samplerate):
            if not np.isfinite(block).all():
                raise AudioError("not finite", "found samples that are no numbers or infinite")
            yield block


@contextmanager
def _opened(source: Path | bytes) -> Iterator[Any]:
    """Open a file with soundfile. Raises AudioError for errors in the block, too."""
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb", 0) as file:
            _check_kind(file)
            try:
                # A descriptor has no name: soundfile treats names such as a.raw differently.
                handle = file if isinstance(file, BytesIO) else file.fileno()
                with soundfile.SoundFile(handle, closefd=False) as sound:
                    yield sound
            except soundfile.LibsndfileError as error:
                expected = f" Expected one of: {FORMATS}" if error.code == UNRECOGNISED else ""
                raise AudioError("not readable", f"{error.error_string}{expected}") from None
    except FileNotFoundError:
        raise AudioError("missing file", f"found no {source!s}") from None
    except OSError as error:
        raise AudioError("not readable", str(error)) from None


def _check_kind(file: IO[bytes]) -> None:
    """Raise AudioError for an empty file, and for one whose first bytes are not of audio."""
    start = file.read(12)
    file.seek(0)
    if not start:
        raise AudioError("empty file", "0 bytes")
    if start.startswith(PAGE):
        _check_pages(file)
    if start[4:8] == MP4:
        raise AudioError(
            "not readable", "an MP4 (.m4a); convert it, as with: ffmpeg -i in.m4a out.flac"
        )


def _check_pages(file: IO[bytes]) -> None:
    """Raise AudioError if the last page is missing or incomplete; libsndfile ignores that."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_PAGE))
    tail = file.read()
    file.seek(0)
    page = tail[max(0, tail.rfind(PAGE)) :]
    lengths = page[LENGTHS : LENGTHS + page[LENGTHS - 1]] if len(page) >= LENGTHS else b""
    is_cut = not lengths or len(page) < LENGTHS + len(lengths) + sum(lengths)
    if is_cut or not page[FLAGS] & LAST:
        raise AudioError("truncated", "the last page of an Ogg file is lacking or cut")


def _check_size(sound: Any) -> None:
    """Raise AudioError if a file has fewer bytes of audio than its header states."""
    size = SIZE.search(sound.extra_info)
    if size and int(size[2]) < int(size[1]) < UNKNOWN_SIZE:
        raise AudioError("truncated", f"{size[2]} bytes of audio, of {size[1]}")


def _shares(sound: Any) -> NDArray[np.float32]:
    """The weight of each channel in the average (channels,): 0 for a silent one.

    Reads all samples if there are several channels.
    """
    if sound.channels == 1:
        return np.ones(1, np.float32)
    squares = np.sum([(block**2).sum(axis=0) for block in _decoded(sound)], axis=0)
    audible = squares >= squares.max() * SILENT_CHANNEL**2
    shares: NDArray[np.float32] = (audible / audible.sum()).astype(np.float32)
    return shares


def _decoded(sound: Any) -> Iterator[NDArray[np.float32]]:
    """All samples from the start, in blocks (n, channels). Raises AudioError if truncated."""
    sound.seek(0)
    done = 0
    while len(block := sound.read(BLOCK, dtype="float32", always_2d=True)):
        done += len(block)
        yield block
    if done < sound.frames:
        raise AudioError("truncated", f"{done} samples, of {sound.frames}")


def _mixed(sound: Any, shares: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    for block in _decoded(sound):
        yield block @ shares


def _resampled(blocks: Iterator[NDArray[np.float32]], rate: int) -> Iterator[NDArray[np.float32]]:
    if rate == RATE:
        yield from blocks
        return
    stream = soxr.ResampleStream(rate, RATE, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
