import tracemalloc

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.speech.record.audio.made import FORMATS, noise, write
from wxb.core.errors import WxbError
from wxb.tasks.speech.predictor import (
    Recogniser,
    Segment,
    Transcript,
    Window,
    add,
    parted,
    read,
    stretches,
    windows,
)
from wxb.tasks.speech.record.audio.cleaning import loudness, loudness_of
from wxb.tasks.speech.record.audio.features import RATE

texts = st.text("abcdefgh", max_size=12)
SECONDS, OVERLAP, PAUSE = 2, 0.5, 0.2


def cut(samples, pause=PAUSE):
    return windows(*loudness_of([samples]), SECONDS, overlap=OVERLAP, pause=pause)


def babble(rng, samples):
    """Noise (N,) that swells and fades four times a second, as syllables do."""
    swell = np.sin(4 * np.pi * np.arange(samples) / RATE) ** 2
    return (0.02 + swell).astype(np.float32) * noise(rng, samples)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(RATE // 4, 4 * RATE)), min_size=1, max_size=8))
def test_all_that_is_heard_is_in_a_window_of_the_right_length(parts):
    rng = np.random.default_rng(0)
    pieces = [babble(rng, n) if speaks else np.zeros(n, np.float32) for speaks, n in parts]
    samples = np.concatenate(pieces)
    found = cut(samples)
    covered = np.zeros(len(samples), bool)
    for number, window in enumerate(found):
        assert 0 <= window.start < window.end <= len(samples)
        assert window.end - window.start <= SECONDS * RATE
        if window.joined:
            assert found[number - 1].end - window.start == OVERLAP * RATE
        elif number:
            assert window.start >= found[number - 1].end
        covered[window.start : window.end] = True
    assert covered[np.abs(samples) > 0.05].all()
    assert bool(found) == any(speaks for speaks, _ in parts)


@pytest.mark.parametrize("loudness", [0.0, 0.003, 0.01])
@pytest.mark.parametrize("apart", [0.3, 0.8, 12])
def test_utterances_in_a_room_with_noise_have_a_window_each(loudness, apart):
    rng = np.random.default_rng(0)
    gap, length = round(apart * RATE), RATE
    said = np.zeros(3 * gap + 2 * length, np.float32)
    starts = np.array([gap, 2 * gap + length])
    for start in starts:
        said[start : start + length] = 1
    found = cut(said * noise(rng, len(said)) + noise(rng, len(said), loudness))
    assert [window.start for window in found] == pytest.approx(starts, abs=RATE // 20)
    assert [window.end for window in found] == pytest.approx(starts + length, abs=RATE // 20)


def test_a_window_may_hold_what_is_said_between_long_pauses():
    rng = np.random.default_rng(0)
    parts = [(True, 0.5), (False, 0.3), (True, 0.5), (False, 0.9), (True, 0.5)]
    pieces = [babble(rng, int(s * RATE)) * said for said, s in parts]
    assert [len(cut(np.concatenate(pieces), pause)) for pause in (0.2, 0.5, 2)] == [3, 2, 2]


def test_a_steady_hum_is_nobody():
    assert cut(noise(np.random.default_rng(0), 30 * RATE)) == []


@given(st.lists(st.integers(0, 5000), max_size=9), st.data())
def test_windows_are_cut_from_samples_that_come_some_at_a_time(sizes, data):
    samples = np.arange(sum(sizes), dtype=np.float32)
    blocks = np.split(samples, np.cumsum(sizes)[:-1]) if sizes else []
    levels, count = loudness_of(blocks)
    assert count == len(samples)
    assert np.array_equal(levels, loudness(samples))
    places = st.integers(0, len(samples))
    found = [Window(*sorted(data.draw(st.tuples(places, places)))) for _ in range(4)]
    found.sort()
    for window, stretch in zip(found, stretches(blocks, found), strict=True):
        assert np.array_equal(stretch, samples[window.start : window.end])


def test_a_short_recording_is_one_window_pauses_and_all():
    rng = np.random.default_rng(0)
    samples = np.concatenate([noise(rng, 8000), np.zeros(8000, np.float32), noise(rng, 8000)])
    assert cut(samples) == [(0, 24_000, False)]


def test_silence_has_no_window():
    assert cut(np.zeros(RATE, np.float32)) == []
    assert cut(np.zeros(0, np.float32)) == []


@given(texts, st.text("uvwxyz", min_size=2, max_size=6), texts)
def test_what_both_windows_have_is_written_once(before, shared, after):
    first, second = before + shared, shared + after
    kept, rest = parted(first, second, len(shared) / len(first))
    assert kept + rest == before + shared + after


@given(texts, texts)
def test_nothing_is_lost_where_nothing_is_shared(first, second):
    second = second.upper()
    assert parted(first, second, 0.5) == (first, second)


def test_segments_meet_in_the_middle_of_what_windows_share():
    segments = []
    add(segments, Window(0, 2 * RATE), "今天早上七点")
    add(segments, Window(RATE, 3 * RATE, joined=True), "上七点叫我")
    add(segments, Window(5 * RATE, 6 * RATE), "ok then")
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
def test_words_of_letters_stay_apart(parts, whole):
    assert Transcript(tuple(Segment(0, 1, part) for part in parts)).text == whole


def test_a_recording_that_cannot_be_read_is_named(tmp_path):
    path = write(tmp_path / "a.wav")
    assert len(read(str(path))) == len(read(path.read_bytes()))
    with pytest.raises(WxbError, match=r"b\.wav: missing file: found no"):
        read(str(tmp_path / "b.wav"))
    with pytest.raises(WxbError, match=r"standard input: not readable:.* Expected one of.*WAV"):
        read(b"a text")


class Counting(Recogniser):
    """Writes how many of its frames are louder than silence: it needs no model."""

    load_model = None

    def ready(self, model):
        return model

    def write(self, features):
        return [f"{int((one > one.min()).any(axis=1).sum())} " for one in features]


def counting():
    return Counting(None, None, window=SECONDS, mel_bands=20)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_is_transcribed(tmp_path, suffix):
    path = write(tmp_path / f"錄音 {suffix}", suffix=suffix)
    given = [str(path), path.read_bytes()]
    assert [len(found.segments) for found in counting().predict(given)] == [1, 1]


def test_hours_are_not_held_in_memory(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "long.flac"
    said = np.concatenate([babble(rng, 8000), np.zeros(8000, np.float32)])
    with soundfile.SoundFile(path, "w", 8000, 1, "PCM_16") as file:
        for _ in range(10):  # minutes
            file.write(np.tile(said, 30))
    tracemalloc.start()
    (found,) = counting().predict([str(path)])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.segments) == 300
    assert most < 600 * RATE * 4 / 2
