"""The speech benchmarks, at sizes too small for their results to mean anything."""

import numpy as np
import pytest

from tests.benchmarks.script import FOLDER, script
from tests.tasks.speech.tones import SYLLABLES, samples
from wxb.tasks.speech.record.audio import RATE


@pytest.fixture
def recogniser(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER / "speech")  # for imports of recogniser
    return script("speech/recogniser")


def recordings_of(recogniser, texts):
    return [
        recogniser.Recording(f"{n:02}", text, "a", samples(text)) for n, text in enumerate(texts)
    ]


@pytest.mark.slow
def test_copies_differ_and_depend_on_the_seed_only(recogniser):
    recordings = recordings_of(recogniser, ["啊哦", "一"])
    copies = recogniser.augment(recordings, 8_000, seed=1, copies=3)
    again = recogniser.augment(recordings, 8_000, seed=1, copies=3)
    assert [copy.text for copy in copies] == ["啊哦", "一"] * 3
    assert len({copy.name for copy in copies}) == len({len(copy.samples) for copy in copies}) == 6
    for copy, same in zip(copies, again, strict=True):
        assert np.array_equal(copy.samples, same.samples)
        power = np.abs(np.fft.rfft(copy.samples)) ** 2
        above = np.fft.rfftfreq(len(copy.samples), 1 / RATE) > 4_200
        assert power[above].sum() < 1e-3 * power.sum()


@pytest.mark.slow
def test_the_regression_distinguishes_tones(recogniser):
    digits = script("speech/digits")
    recordings = recordings_of(recogniser, [*SYLLABLES] * 3)
    few = recordings[:4]
    predicted = digits.regression(recordings, digits.mfcc(recordings), few, (1.0, 1.05))
    assert predicted == [recording.text for recording in few]
