import base64
import re
from io import BytesIO

import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.tasks.speech import tones
from wxb.core import paths
from wxb.metrics import evaluation
from wxb.reporting.charts.parts import Study
from wxb.tasks.speech import metrics, page
from wxb.tasks.speech.page.recordings import Piece, pieces, spectrogram
from wxb.tasks.speech.predictor import Segment, Transcript


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of three systems, of which one makes no errors; chdir to its folder."""
    monkeypatch.chdir(tmp_path)
    records = tones.records(tmp_path, 8)
    systems = {
        "right": lambda text: text,
        "wrong": lambda text: f"{text[:-1]}啦",
        "short": lambda text: text[:-1] if text[0] != "啊" else f"{text}<b>",
    }
    judged = {
        name: [
            metrics.Scorer().row(
                record, Transcript((Segment(0, 1, transcribe(record.gold["text"])),)), None
            )
            for record in records
        ]
        for name, transcribe in systems.items()
    }
    for name, rows in judged.items():
        runs = {"test": {"": rows}}
        evaluation.save(metrics.Scorer(), paths.predictions("songs", name), runs, {})
    scores = evaluation.compare(metrics.Scorer(), {name: [rows] for name, rows in judged.items()})
    comparison = {"study": "songs", "title": "?", "seeds": [1], **scores, "further": {}}
    costs = {"evaluate@right": {"predicting": 0.36}, "evaluate@wrong": {}}
    return Study(None, comparison, judged, {}, {}, {}, costs)


def test_recordings_are_played_and_errors_marked(study):
    parts = {part.id: str(part.html) for part in page.Page().parts(study)}
    assert parts.keys() == {"errors", "recordings", "speed"}
    html = parts["recordings"]
    sounds = re.findall(r'src="data:audio/flac;base64,([^"]+)"', html)
    assert len(sounds) == len(metrics.clip_rows(study.predictions["right"])) == 6
    first = metrics.clip_rows(study.predictions["right"])[0]
    assert base64.b64decode(sounds[0]) == open(first.input, "rb").read()  # noqa: PTH123, SIM115
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    image = Image.open(BytesIO(base64.b64decode(pictures[0])))
    frames = soundfile.info(first.input).frames
    assert image.size == (frames // 160, 160)
    assert html.count("啦</mark>") == 6
    assert "<b>" not in html  # the rule for punctuation removes it
    assert "啦 for" in parts["errors"]


def test_the_real_time_factor_needs_measured_seconds(study):
    seconds = sum(row.seconds for row in study.predictions["right"])
    assert study.rates("seconds") == {"right": pytest.approx(seconds / 0.36)}
    speed = next(part.html for part in page.Page().parts(study) if part.id == "speed")
    assert speed.count(f"<td>{0.36 / seconds:.3f}</td>") == 1


def test_failures_name_the_commonest_error(study):
    systems = study.comparison["systems"]
    assert page.Page().failures(systems["right"]) == ""
    assert re.search(
        r"Its commonest error is 啦 for . \(\d times\)\.", page.Page().failures(systems["wrong"])
    )


def test_pieces_are_runs_of_one_kind(study):
    row = study.predictions["right"][0]._replace(reference="甲乙丙丁戊", hypothesis="甲丙丁己戊")
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
