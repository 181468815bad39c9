import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.speech.record.audio.sounds import noise, tone
from wxb.tasks.speech.record.audio.cleaning import MARGIN, change_speed, loudness, trim
from wxb.tasks.speech.record.audio.features import HOP, RATE
from wxb.tasks.speech.record.audio.reading import AudioError

LIMITS = {"top_db": 40.0, "shortest": 0.1, "longest": 10.0}


@settings(deadline=None, max_examples=40)
@given(st.integers(0, RATE), st.integers(0, RATE), st.integers(RATE // 5, RATE))
def test_silence_at_the_ends_is_removed_once(before, after, length):
    speech = noise(np.random.default_rng(length), length)
    samples = np.concatenate([np.zeros(before), speech, np.zeros(after)]).astype(np.float32)
    kept, measures = trim(samples, **LIMITS)
    room = (MARGIN + 1) * HOP
    assert length - HOP <= len(kept) <= length + 2 * room
    assert measures.seconds * RATE == pytest.approx(len(kept))
    assert (measures.seconds + measures.trimmed) * RATE == pytest.approx(len(samples))
    again, _ = trim(kept, **LIMITS)
    assert len(again) >= len(kept) - HOP


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (np.zeros(RATE, np.float32), "silent"),
        (np.zeros(0, np.float32), "silent"),
        (noise(np.random.default_rng(0), RATE, 1e-5), "silent"),
        (noise(np.random.default_rng(0), RATE // 20), "too short"),
        (noise(np.random.default_rng(0), 11 * RATE), "too long"),
    ],
)
def test_unusable_samples_are_rejected_with_a_reason(samples, reason):
    with pytest.raises(AudioError) as caught:
        trim(samples, **LIMITS)
    assert caught.value.reason == reason


def test_measures():
    rng = np.random.default_rng(0)
    speech = noise(rng, 2 * RATE)
    speech[:RATE] *= 0.01  # 40 dB below
    _, measures = trim(speech, **{**LIMITS, "top_db": 60.0})
    assert measures.snr == pytest.approx(40, abs=1.5)
    assert measures.loudness == pytest.approx(20 * np.log10(0.1) - 3, abs=0.3)
    assert measures.clipped == 0
    loud = np.clip(20 * tone(), -1, 1)
    assert 0.3 < trim(loud, **LIMITS)[1].clipped < 1


def test_loudness_is_of_full_scale():
    assert loudness(np.ones(RATE + 7, np.float32)) == pytest.approx(np.zeros(101), abs=1e-6)


def test_a_higher_speed_is_shorter_and_higher():
    samples = tone(hertz=500)
    faster = change_speed(samples, 1.25)
    assert len(faster) == pytest.approx(len(samples) / 1.25, abs=2)
    spectrum = np.abs(np.fft.rfft(faster))
    assert np.fft.rfftfreq(len(faster), 1 / RATE)[spectrum.argmax()] == pytest.approx(625, abs=2)
