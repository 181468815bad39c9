"""The benchmarks of speech, at sizes that tell nothing of speed or of words."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.benchmarks.script import FOLDER, script
from tests.tasks.speech.made import SYLLABLES, experiment, sung
from wxb.corpora.text.tokenizers import train
from wxb.tasks.speech.record.audio.features import RATE

benchmark = script("speech/preparation")


@pytest.fixture
def recogniser(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER / "speech")  # where the scripts beside it find it
    return script("speech/recogniser")


def songs(recogniser, texts):
    return [recogniser.Recording(f"{n:02}", text, "a", sung(text)) for n, text in enumerate(texts)]


@pytest.mark.slow
def test_copies_are_others_of_the_same_word_and_the_same_each_time(recogniser):
    given = songs(recogniser, ["啊哦", "一"])
    found = recogniser.varied(given, 8_000, seed=1, copies=3)
    assert [one.said for one in found] == ["啊哦", "一"] * 3
    assert len({one.name for one in found}) == len({len(one.samples) for one in found}) == 6
    for one, again in zip(found, recogniser.varied(given, 8_000, seed=1, copies=3), strict=True):
        assert np.array_equal(one.samples, again.samples)
        power = np.abs(np.fft.rfft(one.samples)) ** 2
        above = np.fft.rfftfreq(len(one.samples), 1 / RATE) > 4_200
        assert power[above].sum() < 1e-3 * power.sum()


@pytest.mark.slow
def test_the_likeliest_of_some_texts_is_chosen_where_another_is_written(recogniser, tmp_path):
    given = songs(recogniser, [*SYLLABLES] * 8)
    train("byte-level-bpe", 270, [*SYLLABLES]).save_pretrained(tmp_path / "models/tokens")
    settings = experiment(backbone="tokens", training={"epochs": 20, "learning_rate": 2e-2})
    recogniser.fit(tmp_path, "songs", given, given[:4], settings, 1)
    said = [one.said for one in given[:4]]
    assert recogniser.written(tmp_path, "songs", given[:4]) == said
    assert recogniser.chosen(tmp_path, "songs", given[:4], [*SYLLABLES]) == said
    first = said[0]
    assert recogniser.chosen(tmp_path, "songs", given[:4], [first]) == [first] * 4


def test_the_regression_tells_tones_apart(recogniser):
    digits = script("speech/digits")
    given = songs(recogniser, [*SYLLABLES] * 3)
    found = digits.regression(given, digits.mfcc(given), given[:4], (1.0, 1.05))
    assert found == [one.said for one in given[:4]]


def test_both_ways_prepare_the_same_recordings(tmp_path):
    files = benchmark.made(tmp_path / "raw", 12, 1.0, seed=1)
    heard = benchmark.one_by_one(files, 40)
    assert 6 < heard < 18
    benchmark.prepared(tmp_path, 1.0, 40)
    split = [path.stem for path in tmp_path.glob("*.arrow")]
    assert sorted(split) == ["test", "train", "valid"]
    assert (tmp_path / "clean/rejects.jsonl").read_text() == ""


def test_the_table_names_both(tmp_path):
    asked = ["--hours", "0.005", "--seconds", "1", "--peer", "3", "--bands", "40"]
    done = CliRunner().invoke(benchmark.app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "librosa.load and WhisperFeatureExtractor" in done.output
    assert "18 recordings" in done.output
