import base64
import re
from io import BytesIO

import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.tasks.speech import made
from wxb.core import paths
from wxb.metrics import evaluation
from wxb.reporting.charts.parts import Study
from wxb.tasks.speech import metrics, page
from wxb.tasks.speech.page.recordings import Piece, pieces, spectrogram
from wxb.tasks.speech.predictor import Segment, Transcript


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of systems of which one is right, and the others leave out or put in."""
    monkeypatch.chdir(tmp_path)
    records = made.records(tmp_path, 8)
    systems = {
        "right": lambda text: text,
        "wrong": lambda text: f"{text[:-1]}啦",
        "short": lambda text: text[:-1] if text[0] != "啊" else f"{text}<b>",
    }
    judged = {
        name: [
            metrics.Scorer().judge(one, Transcript((Segment(0, 1, write(one.gold["text"])),)), None)
            for one in records
        ]
        for name, write in systems.items()
    }
    for name, rows in judged.items():
        evaluation.save(metrics.Scorer(), paths.predictions("songs", name), {"test": {"": rows}})
    found = evaluation.compare(
        metrics.Scorer(), {name: [rows] for name, rows in judged.items()}, resamples=50, seed=1
    )
    comparison = {"study": "songs", "title": "?", "seeds": [1], **found, "further": {}}
    costs = {"evaluate@right": {"predicting": 0.36}, "evaluate@wrong": {}}
    return Study(None, comparison, judged, {}, {}, {}, costs)


def test_recordings_are_played_and_errors_marked(study):
    found = {part.id: str(part.html) for part in page.Page().parts(study)}
    assert found.keys() == {"errors", "recordings", "speed"}
    html = found["recordings"]
    sounds = re.findall(r'src="data:audio/flac;base64,([^"]+)"', html)
    assert len(sounds) == len(metrics.chosen(study.judged["right"])) == 6
    first = metrics.chosen(study.judged["right"])[0]
    assert base64.b64decode(sounds[0]) == open(first.input, "rb").read()  # noqa: PTH123, SIM115
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    image = Image.open(BytesIO(base64.b64decode(pictures[0])))
    frames = soundfile.info(first.input).frames
    assert image.size == (frames // 160, 160)
    assert html.count("啦</mark>") == 6
    assert "<b>" not in html  # a rule for punctuation sets it aside
    assert "啦 for" in found["errors"]


def test_the_real_time_factor_is_of_what_was_measured(study):
    seconds = sum(row.seconds for row in study.judged["right"])
    assert study.rates("seconds") == {"right": pytest.approx(seconds / 0.36)}
    speed = next(part.html for part in page.Page().parts(study) if part.id == "speed")
    assert speed.count(f"<td>{0.36 / seconds:.3f}</td>") == 1


def test_failures_name_the_commonest_error(study):
    systems = study.comparison["systems"]
    assert page.Page().failures(systems["right"]) == ""
    assert re.search(
        r"Its commonest error is 啦 for . \(\d times\)\.", page.Page().failures(systems["wrong"])
    )


def test_pieces_are_stretches_of_one_kind(study):
    row = study.judged["right"][0]._replace(reference="甲乙丙丁戊", hypothesis="甲丙丁己戊")
    assert pieces(row) == [
        Piece("甲", ""),
        Piece("乙", "deletions"),
        Piece("丙丁", ""),
        Piece("己", "insertions"),
        Piece("戊", ""),
    ]


def test_a_spectrogram_has_high_sounds_on_top(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, np.sin(2 * np.pi * 6000 * np.arange(16_000) / 16_000), 16_000)
    pixels = np.array(Image.open(BytesIO(spectrogram(path))))
    assert pixels.mean(axis=1).argmax() < len(pixels) / 4
