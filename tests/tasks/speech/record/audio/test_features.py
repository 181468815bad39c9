import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import WhisperFeatureExtractor

from tests.tasks.speech.record.audio.sounds import noise
from wxb.tasks.speech.record.audio.features import FRAMES, HOP, RATE, log_mel, to_window

SECONDS = 3


# In narrow bands, float32 features of torch differ that much from float64 features of NumPy.
@pytest.mark.parametrize(("bands", "tolerance"), [(40, 1e-5), (80, 1e-5), (128, 5e-5)])
@settings(deadline=None, max_examples=15)
@given(
    samples=st.one_of(st.integers(201, 3 * RATE + 500), st.sampled_from([3 * RATE, 3 * RATE - 1])),
    silent=st.floats(0, 0.9),
    seed=st.integers(0, 9),
)
def test_features_are_those_of_transformers(bands, tolerance, samples, silent, seed):
    recording = noise(np.random.default_rng(seed), samples)
    recording[: int(silent * samples)] = 0
    theirs = WhisperFeatureExtractor(feature_size=bands, chunk_length=SECONDS)
    expected = theirs(recording, sampling_rate=RATE, return_tensors="np")["input_features"][0].T
    frames = log_mel(recording, bands, SECONDS * FRAMES)
    ours = to_window(frames, SECONDS * FRAMES)
    assert ours.shape == expected.shape == (300, bands)
    assert np.abs(ours - expected).max() < tolerance
    padded = np.pad(recording, (0, SECONDS * RATE))[: SECONDS * RATE]
    precise = theirs._np_extract_fbank_features(padded[None], "cpu")[0].T
    assert np.abs(ours - precise).max() < 1e-5
    assert len(frames) <= samples // HOP + 4  # no padding


def test_the_window_may_be_of_any_length():
    recording = noise(np.random.default_rng(1), RATE)
    short, long = (log_mel(recording, 80, seconds * FRAMES) for seconds in (2, 30))
    assert np.array_equal(short, long)
    assert to_window(long, 30 * FRAMES).shape == (3000, 80)
