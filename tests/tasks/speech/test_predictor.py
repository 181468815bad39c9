import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.speech.record.audio.made import noise, write
from wxb.errors import WxbError
from wxb.tasks.speech.predictor import Segment, Transcript, Window, add, parted, read, windows
from wxb.tasks.speech.record.audio.features import RATE

texts = st.text("abcdefgh", max_size=12)
SECONDS, OVERLAP = 2, 0.5


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(RATE // 20, 4 * RATE)), min_size=1, max_size=8)
)
def test_all_that_is_heard_is_in_a_window_of_the_right_length(parts):
    rng = np.random.default_rng(0)
    pieces = [noise(rng, n) if speaks else np.zeros(n, np.float32) for speaks, n in parts]
    samples = np.concatenate(pieces)
    found = windows(samples, SECONDS, OVERLAP)
    covered = np.zeros(len(samples), bool)
    for number, window in enumerate(found):
        assert 0 <= window.start < window.end <= len(samples)
        assert window.end - window.start <= SECONDS * RATE
        if window.joined:
            assert found[number - 1].end - window.start == OVERLAP * RATE
        elif number:
            assert window.start >= found[number - 1].end - RATE // 5  # margins may meet
        covered[window.start : window.end] = True
    assert covered[np.abs(samples) > 1e-3].all()
    assert bool(found) == any(speaks for speaks, _ in parts)


def test_a_short_recording_is_one_window_pauses_and_all():
    rng = np.random.default_rng(0)
    samples = np.concatenate([noise(rng, 8000), np.zeros(8000, np.float32), noise(rng, 8000)])
    assert windows(samples, 2, 0.5) == [(0, 24_000, False)]


def test_silence_has_no_window():
    assert windows(np.zeros(RATE, np.float32), 2, 0.5) == []
    assert windows(np.zeros(0, np.float32), 2, 0.5) == []


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
    with pytest.raises(WxbError, match=r"b\.wav: missing file.*expected a recording"):
        read(str(tmp_path / "b.wav"))
    with pytest.raises(WxbError, match="standard input: not readable"):
        read(b"a text")
