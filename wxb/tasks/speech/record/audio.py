"""Read, write, trim and measure recordings: samples (N,) of 16 kHz mono, full scale 1."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from wxb.core.progress import track
from wxb.corpora.records import RecordError
from wxb.tasks.speech.params import Audio
from wxb.tasks.speech.record import Measures

RATE = 16_000  # samples per second
HOP = 160  # samples between the starts of frames: 10 ms
FRAMES = RATE // HOP  # per second

SUFFIXES = tuple(f".{name.lower()}" for name in (*soundfile.available_formats(), "opus", "m4a"))
# A line of libsndfile's log: the number of bytes by the header, and the actual number.
SIZE = re.compile(r"^ *(?:data|SSND) : (\d+) \(should be (\d+)\)", re.MULTILINE)
UNKNOWN_SIZE = 2**31 - 2**16  # bytes: streams write this much or more into the header

SILENT = -70.0  # dB of full scale; a recording that is never louder is silent
CLIPPED = 0.999  # of full scale
SPEECH, NOISE = 95, 5  # percentiles of loudness that estimate speech and noise
MARGIN = 5  # frames that are kept on both sides of the audible part

TIME_FRAGMENT = "#t="  # before the seconds of a recording at the end of its path
SECONDS = re.compile(r"\.?\d[\d.]*")
LOUDEST = 8.0  # largest sample, where full scale is 1
OPPOSITE = 1e-3  # share of a channel's power below which the mean of channels has lost the sound

MAX_SERIAL = 200  # jobs, for which starting processes takes longer
CHUNK = 16  # jobs that a process gets at a time

J = TypeVar("J")
R = TypeVar("R")


def read(source: Path | bytes, *, longest: float | None = None) -> NDArray[np.float32]:
    """The samples of an audio file, or of its bytes, in any format that libsndfile reads.

    A path such as a.wav#t=2,4.5 is that of the seconds from 2 to 4.5 (W3C media fragments).
    Averages the channels, or keeps the louder one if they cancel out; scales peaks above 1 to 1.
    Raises RecordError for a file that is missing, unreadable, empty, truncated, or longer than
    `longest` seconds, without these seconds, or with samples above LOUDEST or infinite.
    """
    name, _, part = (str(source) if isinstance(source, Path) else "").partition(TIME_FRAGMENT)
    try:
        content = source if isinstance(source, bytes) else Path(name).read_bytes()
        if not content:
            raise RecordError("not readable", "found 0 bytes; copy the recording again")
        with soundfile.SoundFile(BytesIO(content)) as sound:
            count, rate, size = sound.frames, sound.samplerate, SIZE.search(sound.extra_info)
            if part:
                ends = [round(float(x) * rate) for x in part.split(",") if SECONDS.fullmatch(x)]
                if len(ends) != 2 or not ends[0] < ends[1] <= count + rate / 10:
                    detail = f"found {part} of {count / rate:.2f} s; expected a range in it"
                    raise RecordError("wrong seconds", detail)
                sound.seek(ends[0])
                count, size = min(ends[1], count) - ends[0], None
            if longest is not None and count / rate > longest:
                raise RecordError("too long", f"{count / rate:.1f} s, at most {longest:g} s")
            channels = sound.read(count, dtype="float32", always_2d=True)  # (n, channels)
    except FileNotFoundError:
        raise RecordError("missing file", f"found no {source!s}") from None
    except (OSError, soundfile.LibsndfileError) as error:
        # Without the address of BytesIO.
        problem = str(getattr(error, "error_string", error)).rstrip(".")
        advice = "convert the recording, as with: ffmpeg -i in.m4a out.flac"
        raise RecordError("not readable", f"{problem}; {advice}") from None
    if not count:
        raise RecordError("no samples", "the header says that the recording is empty")
    if len(channels) < count:
        raise RecordError("truncated", f"{len(channels)} samples, of {count}")
    if size and int(size[2]) < int(size[1]) < UNKNOWN_SIZE:
        raise RecordError("truncated", f"{size[2]} bytes of audio, of {size[1]}")
    if not np.isfinite(channels).all():
        raise RecordError("not finite", "found samples that are no numbers or infinite")
    if (peak := float(np.abs(channels).max())) > LOUDEST:
        raise RecordError("wrong scale", f"a peak of {peak:,.0f}, not 1; divide integers by 2**15")
    channels /= max(1.0, peak)  # a decoder may exceed full scale, and `write_flac` would clip
    mono: NDArray[np.float32] = channels.mean(axis=1)
    power = np.square(channels).mean(axis=0)
    if np.square(mono).mean() < OPPOSITE * power.max():
        mono = channels[:, power.argmax()]
    return mono if rate == RATE else soxr.resample(mono, rate, RATE, quality="HQ")


def write_flac(path: Path, samples: NDArray[np.floating[Any]]) -> str:
    """Write samples (N,), clipped to 1, as FLAC; returns the SHA-256 of their 16-bit integers.

    FLAC is lossless, half the size of WAV, and played by every browser.
    """
    whole = (np.clip(samples, -1, 1) * (2**15 - 1)).round().astype(np.int16)
    file = BytesIO()  # libsndfile waits for the disk after each write to a file
    soundfile.write(file, whole, RATE, format="FLAC", subtype="PCM_16")
    path.write_bytes(file.getvalue())
    return hashlib.sha256(whole.tobytes()).hexdigest()


def change_speed(samples: NDArray[np.float32], speed: float) -> NDArray[np.float32]:
    """Resample so that playback is `speed` times as fast and higher in pitch (Ko et al. 2015)."""
    return soxr.resample(samples, RATE * speed, RATE, quality="HQ")


def trim(samples: NDArray[np.float32], limits: Audio) -> tuple[NDArray[np.float32], Measures]:
    """The samples without the silence at their ends, and their measures.

    Silence is `top_db` below the loudest moment. Raises RecordError for a silent recording, and if
    less than `min_seconds` or more than `max_seconds` are left.
    """
    levels = frame_levels(samples)
    if levels.max(initial=-np.inf) < SILENT:
        raise RecordError("silent", f"nothing above {SILENT:g} dB of full scale")
    start, end = audible_range(levels, limits.top_db)
    kept = samples[start:end]
    seconds = len(kept) / RATE
    if seconds < limits.min_seconds:
        raise RecordError("too short", f"{seconds:.2f} s, at least {limits.min_seconds:g} s")
    if seconds > limits.max_seconds:
        raise RecordError("too long", f"{seconds:.1f} s, at most {limits.max_seconds:g} s")
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


def frame_levels(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """The root mean square of every 10 ms (F,) in dB of full scale; the last may be shorter."""
    whole = len(samples) // HOP * HOP
    power = np.square(samples[:whole]).reshape(-1, HOP).mean(axis=1, dtype=np.float64)
    if rest := samples[whole:].size:
        power = np.append(power, np.square(samples[whole:]).sum(dtype=np.float64) / rest)
    return _decibels(power)


def _decibels(power: NDArray[np.float64] | np.floating) -> NDArray[np.float64]:
    return 10 * np.log10(np.maximum(power, 1e-12))


def map_parallel(work: Callable[[J], R], jobs: Sequence[J], caption: str) -> Iterator[R]:
    """The result of `work` for each job, in order, on all CPUs of this process; shows progress.

    Up to MAX_SERIAL jobs run in this process; of more, `work` and jobs must be picklable.
    """
    processes = len(os.sched_getaffinity(0))
    if processes == 1 or len(jobs) <= MAX_SERIAL:
        yield from track(map(work, jobs), caption, len(jobs), unit="file")
        return
    # A forked process could inherit a lock that a thread of this process holds.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        results = pool.map(work, jobs, chunksize=CHUNK)
        yield from track(results, caption, len(jobs), unit="file")
