import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.speech.tones import noise, write
from wxb.core.errors import WxbError
from wxb.tasks.speech import predictor
from wxb.tasks.speech.predictor import (
    Recogniser,
    Segment,
    Transcript,
    Window,
    append_window,
    read,
    without_repetition,
)
from wxb.tasks.speech.record.audio import RATE

texts = st.text("abcdefgh", max_size=12)
SECONDS, OVERLAP, PAUSE = 2, 0.5, 0.2


def split(samples, pause=PAUSE):
    return predictor.windows(samples, SECONDS, overlap=OVERLAP, pause=pause)


def babble(rng, samples):
    """Noise (N,) that swells and fades four times a second, as syllables do."""
    swell = np.sin(4 * np.pi * np.arange(samples) / RATE) ** 2
    return (0.02 + swell).astype(np.float32) * noise(rng, samples)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(RATE // 4, 4 * RATE)), min_size=1, max_size=8))
def test_all_speech_is_in_a_window_of_the_right_length(parts):
    rng = np.random.default_rng(0)
    pieces = [babble(rng, n) if speaks else np.zeros(n, np.float32) for speaks, n in parts]
    samples = np.concatenate(pieces)
    ranges = split(samples)
    covered = np.zeros(len(samples), bool)
    for index, window in enumerate(ranges):
        assert 0 <= window.start < window.end <= len(samples)
        assert window.end - window.start <= SECONDS * RATE
        if window.overlaps:
            assert ranges[index - 1].end - window.start == OVERLAP * RATE
        elif index:
            assert window.start >= ranges[index - 1].end
        covered[window.start : window.end] = True
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
    ranges = split(speech * noise(rng, len(speech)) + noise(rng, len(speech), loudness))
    assert [window.start for window in ranges] == pytest.approx(starts, abs=RATE // 20)
    assert [window.end for window in ranges] == pytest.approx(starts + length, abs=RATE // 20)


def test_a_window_may_have_utterances_with_short_pauses():
    rng = np.random.default_rng(0)
    parts = [(True, 0.5), (False, 0.3), (True, 0.5), (False, 0.9), (True, 0.5)]
    pieces = [babble(rng, int(s * RATE)) * speaks for speaks, s in parts]
    assert [len(split(np.concatenate(pieces), pause)) for pause in (0.2, 0.5, 2)] == [3, 2, 2]


@pytest.mark.parametrize(
    ("samples", "windows"),
    [
        (noise(np.random.default_rng(0), 30 * RATE), []),  # steady noise is no speech
        (np.zeros(RATE, np.float32), []),
        (np.zeros(0, np.float32), []),
        (
            np.repeat([1, 0, 1], 8000) * noise(np.random.default_rng(0), 24_000),
            [(0, 24_000, False)],
        ),
    ],
)
def test_windows_of_noise_silence_and_a_short_recording(samples, windows):
    assert split(samples.astype(np.float32)) == windows


@given(texts, st.text("uvwxyz", min_size=2, max_size=6), texts)
def test_text_of_both_windows_is_kept_once(before, shared, after):
    first, second = before + shared, shared + after
    kept, rest = without_repetition(first, second, len(shared) / len(first))
    assert kept + rest == before + shared + after


@given(texts, texts)
def test_transcripts_without_common_text_are_unchanged(first, second):
    second = second.upper()
    assert without_repetition(first, second, 0.5) == (first, second)


def test_segments_meet_in_the_middle_of_an_overlap():
    segments = []
    append_window(segments, Window(0, 2 * RATE), "今天早上七点")
    append_window(segments, Window(RATE, 3 * RATE, overlaps=True), "上七点叫我")
    append_window(segments, Window(5 * RATE, 6 * RATE), "ok then")
    assert segments == [
        Segment(0.0, 1.5, "今天早上七点"),
        Segment(1.5, 3.0, "叫我"),
        Segment(5.0, 6.0, "ok then"),
    ]
    assert Transcript(tuple(segments)).text == "今天早上七点叫我ok then"


@pytest.mark.parametrize(
    ("parts", "whole"),
    [(["turn on", "the light"], "turn on the light"), (["打开", "灯"], "打开灯"), ([], "")],
)
def test_ascii_words_are_joined_with_a_space(parts, whole):
    assert Transcript(tuple(Segment(0, 1, part) for part in parts)).text == whole


def test_an_unreadable_recording_is_named(tmp_path):
    path = write(tmp_path / "a.wav")
    assert len(read(str(path))) == len(read(path.read_bytes()))
    with pytest.raises(WxbError, match=r"b\.wav: missing file: found no"):
        read(str(tmp_path / "b.wav"))
    with pytest.raises(WxbError, match="standard input: not readable: "):
        read(b"a text")


class Counting(Recogniser):
    """Returns the number of frames louder than silence; needs no model."""

    load_model = None

    def ready(self, model):
        return model

    def transcribe(self, features):
        return [f"{int((window > window.min()).any(axis=1).sum())} " for window in features]


def counting():
    return Counting(None, None, window=SECONDS, mel_bands=20)


def test_recordings_are_transcribed_by_window(tmp_path):
    rng = np.random.default_rng(0)
    second = np.concatenate([babble(rng, RATE // 2), np.zeros(RATE // 2, np.float32)])
    path = write(tmp_path / "long.flac", np.tile(second, 40), suffix="flac")
    short = write(tmp_path / "short.wav")
    silent = write(tmp_path / "silent.wav", np.zeros(RATE))
    transcripts = counting().predict([str(path), short.read_bytes(), str(silent)])
    assert [len(transcript.segments) for transcript in transcripts] == [40, 1, 0]
    (segment,) = transcripts[1].segments
    assert int(segment.text) == pytest.approx(1.2 * 100, abs=15)  # frames of 10 ms
