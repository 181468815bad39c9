"""Keyword spotting of tones: each word is a pitch."""

import warnings
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests import training_steps
from tests.tasks.speech import tones
from tests.tasks.speech.record.audio.sounds import noise
from wxb.core.errors import WxbError
from wxb.corpora.text import tokenizers
from wxb.tasks import baselines
from wxb.tasks.speech.keywords.method import KeywordRecogniser, Method
from wxb.tasks.speech.params import Keywords
from wxb.tasks.speech.record.audio.features import COEFFICIENTS, PARTS, mean_mfcc

BLOCK = {
    "study": "songs",
    "corpus": "songs",
    "task": "speech",
    "method": "keywords",
    "backbone": "characters",
    "architecture": "wxb/models/__init__.py",
    "encoding": {"window": 1},
    "model": {},
    "tuning": {},
    "training": {"C": [1.0, 0.1]},
    "prediction": {},
}


def train(folder, words, copies=3):
    """Train as the stages do; returns records, history, and the predictor as saved and loaded."""
    pairs = product(range(copies), words)
    records = [tones.record(folder, word, index) for index, (_, word) in enumerate(pairs)]
    experiment = Keywords.model_validate(BLOCK)
    method = Method.with_vocabulary(experiment, [], tokenizers.train("words", 100, ["some words"]))
    predictor, history, counts = training_steps.train(method, folder, records, folder)
    assert counts == {"gold": len(records), "kept": len(records)}
    loaded = training_steps.saved_and_loaded(predictor, experiment, folder / "model")
    assert {path.suffix for path in (folder / "model").iterdir()} == {".json"}
    return records, history, loaded


@pytest.mark.parametrize("words", [["啊", "哦啊"], [*tones.SYLLABLES, "一一哎"]], ids=len)
def test_recordings_get_their_transcript(tmp_path, words):
    records, history, predictor = train(tmp_path, words)
    predictions = predictor.predict([record.input for record in records])
    assert [p.text for p in predictions] == [record.gold["text"] for record in records]
    assert predictor.size() == len(words) * (PARTS * COEFFICIENTS + 1)
    assert [(row["C"], row["valid_accuracy"]) for row in history] == [(0.1, 1.0), (1.0, 1.0)]
    softer = tmp_path / "softer.flac"
    tones.write(softer, tones.samples(words[1], 0.2), tones.RATE)
    assert predictor.predict([softer.read_bytes()])[0].text == words[1]
    empty = tmp_path / "silent.flac"
    tones.write(empty, np.zeros(tones.RATE, np.float32), tones.RATE)
    assert predictor.predict([str(empty)])[0].text == ""


def test_one_transcript_is_an_error(tmp_path):
    with pytest.raises(WxbError, match="recordings have one transcript; add recordings of others"):
        train(tmp_path, ["啊"])


@pytest.mark.parametrize("count", [2, 3])
def test_transcripts_are_those_of_scikit_learns_pipeline(count):
    rng = np.random.default_rng(1)
    texts = [f"word {n % count}" for n in range(60)]
    features = rng.normal(5, 3, (60, 8)) + np.arange(60)[:, None] % count
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=2000))
    expected = pipeline.fit(features[:40], texts[:40]).predict(features)
    method = Method(Keywords.model_validate(BLOCK), [], None)
    items = [*zip(features[:40], texts[:40], strict=True)]
    predictor = KeywordRecogniser(baselines.Model(method.values(items, 0.3)), None)
    assert predictor.transcribe(features) == expected.tolist()


def test_the_model_is_fitted_to_validation_recordings_too():
    rng = np.random.default_rng(1)
    items = [(rng.normal(n % 3, 0.1, 8), f"word {n % 3}") for n in range(30)]
    train = [item for item in items if item[1] != "word 2"]
    settings = Keywords.model_validate(BLOCK).training
    run = SimpleNamespace(train=train, valid=items, settings=settings)
    model, history = Method(Keywords.model_validate(BLOCK), [], None).fit(Path(), run)
    assert model.values["transcripts"] == ["word 0", "word 1", "word 2"]
    # The history has the accuracy without them: word 2 is unknown.
    assert [round(row["valid_accuracy"], 3) for row in history] == [0.667, 0.667]


@pytest.mark.parametrize("samples", [100, 1600, 2100, 16_000])
def test_the_shortest_recording_has_features(samples):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vector = mean_mfcc(noise(np.random.default_rng(1), samples))
    assert vector.shape == (PARTS * COEFFICIENTS,)
    assert np.isfinite(vector).all()


@pytest.mark.parametrize(
    "changes", [{"tuning": {"frozen": True}}, {"encoding": {"window": 1, "mel_bands": 40}}], ids=str
)
def test_settings_of_a_network_are_refused(changes):
    with pytest.raises(ValidationError, match=r"leave `tuning` empty|mel_bands"):
        Keywords.model_validate(BLOCK | changes)
