import sys

import numpy as np
import pytest
import soundfile

from tests.tasks.speech.record.audio.sounds import FORMATS, SECONDS, tone, write
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.record.audio.reading import AudioError, read


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_is_read_whatever_its_name(tmp_path, suffix):
    rate = 48_000 if suffix == "opus" else 22_050
    path = write(tmp_path / f"名字 mit Lücken.{suffix}", tone(rate), rate, suffix)
    samples = read(path)
    assert len(samples) == pytest.approx(SECONDS * RATE, abs=1200)
    assert np.abs(samples).max() == pytest.approx(0.3, abs=0.05)
    for other in ("a.wav", "a.raw", "a.txt", "a"):
        copy = tmp_path / other
        copy.write_bytes(path.read_bytes())
        assert np.array_equal(read(copy), samples)
    assert np.array_equal(read(path.read_bytes()), samples)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 44_100, 48_000, 96_000])
def test_every_rate_becomes_16_khz(tmp_path, rate):
    samples = read(write(tmp_path / "a.wav", tone(rate, hertz=300), rate))
    assert samples == pytest.approx(tone(hertz=300), abs=2e-3)


def test_blocks_leave_no_seam(tmp_path, monkeypatch):
    path = write(tmp_path / "a.flac", tone(44_100), 44_100, "flac")
    whole = read(path)
    monkeypatch.setattr("wxb.tasks.speech.record.audio.reading.BLOCK", 1000)
    assert read(path) == pytest.approx(whole, abs=1e-4)


def test_a_silent_channel_is_ignored(tmp_path):
    sound = tone()
    both = write(tmp_path / "both.wav", np.stack([sound, sound], axis=1))
    single = write(tmp_path / "single.wav", np.stack([sound, 1e-5 * sound], axis=1))
    assert read(both) == pytest.approx(sound, abs=1e-4)
    assert read(single) == pytest.approx(sound, abs=1e-4)


WHOLE = tone()


@pytest.mark.parametrize("seconds", [1.2, 20])
@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if suffix != "8.wav"])
def test_a_truncated_file_is_refused(tmp_path, suffix, seconds):
    path = write(tmp_path / f"a.{suffix}", tone(seconds=seconds), suffix=suffix)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(AudioError) as caught:
        read(path)
    assert caught.value.reason in ("truncated", "not readable")


def test_a_stream_of_unknown_length_is_read_to_its_end(tmp_path):
    path = write(tmp_path / "a.wav")
    content = bytearray(path.read_bytes())
    for offset in (4, 40):  # the sizes of file and data, which a pipe cannot go back to
        content[offset : offset + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert len(read(path)) == len(WHOLE)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"this is a text, not a recording\n" * 20, "not readable"),
        (b"\0\0\0\x20ftypM4A \0\0\0\0M4A mp42isom" + bytes(500), "not readable"),
        (b"RIFF", "not readable"),
        (None, "missing file"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path, content, reason):
    path = tmp_path / "a.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AudioError) as caught:
        read(path)
    assert caught.value.reason == reason
    assert caught.value.detail


def test_a_header_alone_a_folder_and_nan_are_refused(tmp_path):
    path = write(tmp_path / "a.wav")
    path.write_bytes(path.read_bytes()[:44])
    with pytest.raises(AudioError, match="no samples"):
        read(path)
    with pytest.raises(AudioError, match="not readable"):
        read(tmp_path)
    broken = tone()
    broken[7] = np.nan
    with pytest.raises(AudioError, match="not finite"):
        read(write(tmp_path / "b.wav", broken, suffix="float.wav"))


def test_a_long_recording_is_refused_before_it_is_decoded(tmp_path):
    path = tmp_path / "a.flac"
    with soundfile.SoundFile(path, "w", 8_000, 1, "PCM_16") as file:
        for _ in range(120):  # minutes
            file.write(np.zeros(60 * 8_000, np.int16))
    with pytest.raises(AudioError, match=r"too long.*7200\.0 s, at most 60 s"):
        read(path, longest=60)
    assert sys.getsizeof(read(path)) < 1.1 * 2 * 3600 * RATE * 4


@pytest.mark.parametrize(("rate", "channels"), [(1, 1), (2_000_000_000, 1), (16_000, 1000)])
def test_a_header_that_would_unpack_to_gigabytes_is_refused(tmp_path, rate, channels):
    file = tmp_path / "a.wav"
    soundfile.write(file, np.zeros((30, channels), np.float32), rate)
    with pytest.raises(AudioError) as raised:
        read(file)
    assert raised.value.reason == "unusual format"
