import os

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import WhisperFeatureExtractor

from tests.project_copy import ROOT
from tests.tasks.speech.tones import FORMATS, SECONDS, noise, tone, write
from wxb.corpora.records import RecordError
from wxb.tasks.speech.models.features import log_mel, to_window
from wxb.tasks.speech.params import Audio
from wxb.tasks.speech.record import audio
from wxb.tasks.speech.record.audio import FRAMES, HOP, MARGIN, RATE, frame_levels, read, trim

LIMITS = Audio(top_db=40.0, min_seconds=0.1, max_seconds=10.0)
WINDOW = 3  # seconds
U = 2.0**-24  # unit roundoff of float32


def reason(function, *args, **options):
    with pytest.raises(RecordError) as caught:
        function(*args, **options)
    assert caught.value.detail
    assert " at 0x" not in caught.value.detail  # the same in each run
    return caught.value.reason


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_is_read_whatever_its_name(tmp_path, suffix):
    rate = 48_000 if suffix == "opus" else 22_050
    path = write(tmp_path / f"名字 mit Lücken.{suffix}", tone(rate), rate, suffix)
    samples = read(path)
    assert len(samples) == pytest.approx(SECONDS * RATE, abs=1200)
    assert np.abs(samples).max() == pytest.approx(0.3, abs=0.05)
    for other in ("a.wav", "a.raw", "a"):
        copy = tmp_path / other
        copy.write_bytes(path.read_bytes())
        assert np.array_equal(read(copy), samples)
    assert np.array_equal(read(path.read_bytes()), samples)


def test_channels_are_averaged(tmp_path):
    path = write(tmp_path / "a.wav", np.stack([tone(), 0.5 * tone()], axis=1))
    assert read(path) == pytest.approx(0.75 * tone(), abs=1e-4)  # 16 bits: 2**-15 / 2


@pytest.mark.parametrize("suffix", ["wav", "24.wav", "float.wav", "aiff", "flac", "mp3"])
def test_a_truncated_file_is_refused(tmp_path, suffix):
    content = write(tmp_path / f"a.{suffix}", tone(seconds=20), suffix=suffix).read_bytes()
    assert reason(read, content[: len(content) // 2]) in ("truncated", "not readable")


def test_a_stream_of_unknown_length_is_read_to_its_end(tmp_path):
    content = bytearray(write(tmp_path / "a.wav").read_bytes())
    for offset in (4, 40):  # the sizes of file and data, which a pipe cannot go back to
        content[offset : offset + 4] = b"\xff\xff\xff\xff"
    assert len(read(bytes(content))) == len(tone())


def test_unusable_files_are_refused(tmp_path):
    m4a = b"\0\0\0\x20ftypM4A \0\0\0\0M4A mp42isom" + bytes(500)
    for content in (b"", b"RIFF", b"this is a text, not a recording\n" * 20, m4a):
        assert reason(read, content) == "not readable"
    assert reason(read, tmp_path) == "not readable"
    assert reason(read, tmp_path / "none.wav") == "missing file"
    assert reason(read, write(tmp_path / "a.wav").read_bytes()[:44]) == "no samples"
    broken = tone()
    broken[7] = np.nan
    assert reason(read, write(tmp_path / "b.wav", broken, suffix="float.wav")) == "not finite"


def test_samples_beyond_full_scale_are_scaled_or_refused(tmp_path):
    loud = tone() * 1.5 / np.abs(tone()).max()
    samples = read(write(tmp_path / "a.wav", loud, suffix="float.wav"))
    assert samples == pytest.approx(loud / 1.5, abs=1e-6)  # not clipped
    integers = write(tmp_path / "b.wav", tone() * 2**15, suffix="float.wav")
    assert reason(read, integers) == "wrong scale"


def test_a_long_recording_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    path = write(tmp_path / "a.flac", suffix="flac")
    assert len(read(path, longest=SECONDS)) == len(tone())
    monkeypatch.setattr(soundfile.SoundFile, "read", None)
    assert reason(read, path, longest=SECONDS - 0.01) == "too long"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, RATE), st.integers(0, RATE), st.integers(RATE // 5, RATE))
def test_silence_at_the_ends_is_removed_once(before, after, length):
    speech = noise(np.random.default_rng(length), length)
    samples = np.concatenate([np.zeros(before), speech, np.zeros(after)]).astype(np.float32)
    kept, measures = trim(samples, LIMITS)
    room = (MARGIN + 1) * HOP
    assert length - HOP <= len(kept) <= length + 2 * room
    assert measures.seconds == len(kept) / RATE
    assert measures.trimmed == (len(samples) - len(kept)) / RATE
    again, _ = trim(kept, LIMITS)
    assert len(again) >= len(kept) - HOP


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.zeros(RATE, np.float32), "silent"),
        (np.zeros(0, np.float32), "silent"),
        (noise(np.random.default_rng(0), RATE, 1e-5), "silent"),
        (noise(np.random.default_rng(0), RATE // 20), "too short"),
        (noise(np.random.default_rng(0), 11 * RATE), "too long"),
    ],
)
def test_unusable_samples_are_refused(samples, expected):
    assert reason(trim, samples, LIMITS) == expected


def test_measures():
    speech = noise(np.random.default_rng(0), 2 * RATE)
    speech[:RATE] *= 0.01  # 40 dB below
    _, measures = trim(speech, LIMITS.model_copy(update={"top_db": 60.0}))
    assert measures.snr == pytest.approx(40, abs=1.5)
    assert measures.loudness == pytest.approx(20 * np.log10(0.1) - 3, abs=0.3)
    assert measures.clipped == 0
    assert 0.3 < trim(np.clip(20 * tone(), -1, 1), LIMITS)[1].clipped < 1
    assert frame_levels(np.ones(RATE + 7, np.float32)) == pytest.approx(np.zeros(101), abs=1e-6)


def test_a_higher_speed_is_shorter_and_higher():
    samples = tone(hertz=500)
    faster = audio.change_speed(samples, 1.25)
    assert len(faster) == pytest.approx(len(samples) / 1.25, abs=2)
    spectrum = np.abs(np.fft.rfft(faster))
    assert np.fft.rfftfreq(len(faster), 1 / RATE)[spectrum.argmax()] == pytest.approx(625, abs=2)


@pytest.mark.parametrize("bands", [40, 80, 128])
@settings(deadline=None, max_examples=15)
@given(
    samples=st.one_of(
        st.integers(201, 3 * RATE + 500), st.sampled_from([271, 3 * RATE, 3 * RATE - 1])
    ),
    silent=st.floats(0, 0.9),
    seed=st.integers(0, 9),
)
def test_features_are_those_of_transformers(bands, samples, silent, seed):
    recording = noise(np.random.default_rng(seed), samples)
    recording[: int(silent * samples)] = 0
    theirs = WhisperFeatureExtractor(feature_size=bands, chunk_length=WINDOW)
    frames = log_mel(recording, bands, WINDOW * FRAMES)
    assert len(frames) <= samples // HOP + 4  # no padding
    ours = to_window(frames, WINDOW * FRAMES)
    whole = np.pad(recording, (0, WINDOW * RATE))[: WINDOW * RATE]
    precise = theirs._np_extract_fbank_features(whole[None], "cpu")[0].T
    assert ours.shape == precise.shape == (300, bands)
    # It rounds the spectrum to float32 before squares, and logarithms of up to 10 after; ours has
    # filters in float32: 4 U of an energy, twice 8 U of a logarithm (its own, and the maximum), and
    # three last roundings of features of up to 2.
    assert np.abs(ours - precise).max() <= (4 / np.log(10) + 2 * 8) * U / 4 + 3 * 2 * U


def test_the_window_may_be_of_any_length():
    recording = noise(np.random.default_rng(1), RATE)
    short, long = (log_mel(recording, 80, seconds * FRAMES) for seconds in (2, 30))
    assert np.array_equal(short, long)
    assert to_window(long, 30 * FRAMES).shape == (3000, 80)


def squared(value):
    return value * value, os.getpid()


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.slow
def test_many_jobs_are_done_in_order_by_other_processes(monkeypatch, count):
    for name, number in (("MAX_SERIAL", 10), ("CHUNK", 4)):
        monkeypatch.setattr(audio, name, number)
    monkeypatch.syspath_prepend(ROOT)  # new processes look for `squared` there
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    results = [*audio.map_parallel(squared, range(count), "test")]
    assert [value for value, _ in results] == [n * n for n in range(count)]
    assert (os.getpid() in {process for _, process in results}) == (count == 3)
