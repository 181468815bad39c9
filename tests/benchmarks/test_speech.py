"""The speech benchmarks, at sizes too small for their results to mean anything."""

import pytest

from tests.benchmarks.script import FOLDER, script
from tests.tasks.speech.tones import SYLLABLES, samples


@pytest.fixture
def recogniser(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER / "speech")  # for imports of recogniser
    return script("speech/recogniser")


def recordings_of(recogniser, texts):
    return [
        recogniser.Recording(f"{n:02}", text, "a", samples(text)) for n, text in enumerate(texts)
    ]


@pytest.mark.slow
def test_the_regression_distinguishes_tones(recogniser):
    digits = script("speech/digits")
    recordings = recordings_of(recogniser, [*SYLLABLES] * 3)
    few = recordings[:4]
    predicted = digits.regression(recordings, digits.mfcc(recordings), few, (1.0, 1.05))
    assert predicted == [recording.text for recording in few]
