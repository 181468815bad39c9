import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.speech.tones import noise, write
from wxb.core.errors import WxbError
from wxb.tasks.speech.models.predictor import Recogniser, Segment, Transcript, read, windows
from wxb.tasks.speech.record.audio import HOP, RATE

SECONDS, PAUSE = 2, 0.2


def babble(rng, samples):
    """Noise (N,) that swells and fades four times a second, as syllables do."""
    swell = np.sin(4 * np.pi * np.arange(samples) / RATE) ** 2
    return (0.02 + swell).astype(np.float32) * noise(rng, samples)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(RATE // 4, 4 * RATE)), min_size=1, max_size=8))
def test_all_speech_is_in_one_window_of_the_right_length(parts):
    rng = np.random.default_rng(0)
    pieces = [babble(rng, n) if speaks else np.zeros(n, np.float32) for speaks, n in parts]
    samples = np.concatenate(pieces)
    ranges = windows(samples, SECONDS, pause=PAUSE)
    covered = np.zeros(len(samples), bool)
    previous_end = 0
    for start, end in ranges:
        assert previous_end <= start < end <= start + SECONDS * RATE
        covered[start:end], previous_end = True, end
    assert previous_end <= len(samples)
    assert covered[np.abs(samples) > 0.05].all()
    assert bool(ranges) == any(speaks for speaks, _ in parts)


@pytest.mark.parametrize("loudness", [0.0, 0.003, 0.01])
@pytest.mark.parametrize("apart", [0.3, 0.8, 12])
def test_utterances_in_a_room_with_noise_have_a_window_each(loudness, apart):
    rng = np.random.default_rng(0)
    gap, length = round(apart * RATE), RATE
    speech = np.zeros(3 * gap + 2 * length, np.float32)
    starts = np.array([gap, 2 * gap + length])
    for start in starts:
        speech[start : start + length] = 1
    samples = speech * noise(rng, len(speech)) + noise(rng, len(speech), loudness)
    expected = np.stack([starts, starts + length], axis=1)
    assert np.array(windows(samples, SECONDS, pause=PAUSE)) == pytest.approx(
        expected, abs=RATE // 20
    )


def test_a_window_may_have_utterances_with_short_pauses():
    rng = np.random.default_rng(0)
    parts = [(True, 0.5), (False, 0.3), (True, 0.5), (False, 0.9), (True, 0.5)]
    samples = np.concatenate([babble(rng, int(s * RATE)) * speaks for speaks, s in parts])
    counts = [len(windows(samples, SECONDS, pause=pause)) for pause in (0.2, 0.5, 2)]
    assert counts == [3, 2, 2]


def test_long_speech_is_cut_at_the_quietest_moment_of_the_second_half():
    samples = noise(np.random.default_rng(0), 3 * RATE)
    for moment, loudness in ((0.5, 0.1), (1.6, 0.2), (1.2, 0.3)):  # the first is too early
        start = round(moment * RATE)
        samples[start : start + RATE // 10] *= loudness
    (_, cut), (start, end) = windows(samples, SECONDS, pause=PAUSE)
    assert cut == start == pytest.approx(1.65 * RATE, abs=5 * HOP)
    assert end == len(samples)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (noise(np.random.default_rng(0), 30 * RATE), []),  # steady noise is no speech
        (np.zeros(RATE), []),
        (np.zeros(0), []),
        (np.repeat([1, 0, 1], 8000) * noise(np.random.default_rng(0), 24_000), [(0, 24_000)]),
    ],
)
def test_windows_of_noise_silence_and_a_short_recording(samples, expected):
    assert windows(samples.astype(np.float32), SECONDS, pause=PAUSE) == expected


@pytest.mark.parametrize(
    ("parts", "whole"),
    [(["café", "über", "да"], "café über да"), (["打开", "灯。", "OK"], "打开灯。OK"), ([], "")],
)
def test_words_are_joined_with_a_space_if_their_script_has_spaces(parts, whole):
    assert Transcript(tuple(Segment(0, 1, part) for part in parts)).text == whole


def test_an_unreadable_recording_is_named(tmp_path):
    for source, match in ((str(tmp_path / "b.wav"), r"b\.wav"), (b"a text", "standard input")):
        with pytest.raises(WxbError, match=match):
            read(source)


class Counting(Recogniser):
    """Returns the number of frames louder than silence; needs no model."""

    load_model = None

    def transcribe(self, features):
        return [f"{int((window > window.min()).any(axis=1).sum())} " for window in features]


def test_recordings_are_transcribed_by_window(tmp_path):
    rng = np.random.default_rng(0)
    second = np.concatenate([babble(rng, RATE // 2), np.zeros(RATE // 2, np.float32)])
    path = write(tmp_path / "long.flac", np.tile(second, 40), suffix="flac")
    short = write(tmp_path / "short.wav")
    silent = write(tmp_path / "silent.wav", np.zeros(RATE))
    recogniser = Counting(None, None, window=SECONDS, mel_bands=20)
    transcripts = recogniser.predict([str(path), short.read_bytes(), str(silent)])
    assert [len(transcript.segments) for transcript in transcripts] == [40, 1, 0]
    (segment,) = transcripts[1].segments
    assert int(segment.text) == pytest.approx(1.2 * 100, abs=15)  # frames of 10 ms
