import base64
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.tasks.speech import tones
from wxb.core import paths
from wxb.metrics import evaluation
from wxb.reporting.charts.formatting import Table
from wxb.reporting.charts.parts import Study
from wxb.tasks.speech import metrics, page
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
    errors, recordings = page.Page().sections(study)
    _, *clips = recordings.blocks
    assert len(clips) == len(metrics.clip_rows(study.predictions["right"])) == 6
    first = metrics.clip_rows(study.predictions["right"])[0]
    picture, sound = re.findall('base64,([^"]+)', clips[0].media)
    assert base64.b64decode(sound) == Path(first.input).read_bytes()
    image = Image.open(BytesIO(base64.b64decode(picture)))
    assert image.size == (soundfile.info(first.input).frames // 160, 160)
    lines = [dict(clip.lines) for clip in clips]
    assert all("啦" in line["wrong"] and "<mark" in line["wrong"] for line in lines)
    assert not any("<mark" in line["right"] or "<b>" in line["short"] for line in lines)
    confusions = {block.summary: block.blocks[0].rows for block in errors.blocks[-3:]}
    assert confusions["right"] == []
    assert confusions["wrong"][0][1] == "啦"


def test_the_real_time_factor_needs_measured_seconds(study):
    seconds = sum(row.seconds for row in study.predictions["right"])
    assert study.rates("seconds") == {"right": pytest.approx(seconds / 0.36)}
    errors, _ = page.Page().sections(study)
    speed = next(b for b in errors.blocks if isinstance(b, Table) and b.caption == "Speed")
    assert [row[1] for row in speed.rows] == [f"{0.36 / seconds:.3f}", "–", "–"]


def test_pieces_are_runs_of_one_kind(study):
    row = study.predictions["right"][0]._replace(reference="甲乙丙丁戊", hypothesis="甲丙丁己戊")
    runs = [("甲", ""), ("乙", "deletions"), ("丙丁", ""), ("己", "insertions"), ("戊", "")]
    assert page.pieces(row) == [(text, page.COLOURS.get(kind, ""), kind) for text, kind in runs]


def test_a_spectrogram_has_high_sounds_on_top(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, np.sin(2 * np.pi * 6000 * np.arange(16_000) / 16_000), 16_000)
    pixels = np.array(Image.open(BytesIO(page.spectrogram(path))))
    assert pixels.mean(axis=1).argmax() < len(pixels) / 4
