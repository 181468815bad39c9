import base64
import re
from pathlib import Path

import pytest

from tests.reporting.conftest import study_of
from tests.tasks.speech import tones
from wxb.core import paths
from wxb.metrics import evaluation
from wxb.tasks.speech import metrics, page
from wxb.tasks.speech.models.predictor import Segment, Transcript


@pytest.fixture
def study(cwd):
    """A study of three systems, of which one makes no errors; chdir to its folder."""
    records = tones.records(cwd, 8)
    systems = {
        "right": lambda text: text,
        "wrong": lambda text: f"{text[:-1]}啦",
        "short": lambda text: text[:-1] if text[0] != "啊" else f"{text}<b>",
    }
    texts, judged = [record.gold["text"] for record in records], {}
    for name, transcribe in systems.items():
        transcripts = [Transcript((Segment(0, 1, transcribe(text)),)) for text in texts]
        judged[name] = metrics.Scorer().rows(records, transcripts)
    for name, rows in judged.items():
        evaluation.save_predictions(metrics.Scorer(), paths.PREDICTIONS / "songs" / name, rows)
    return study_of(metrics.Scorer(), judged, "songs")


def test_recordings_are_played_and_errors_marked(study):
    errors, recordings = page.Page().sections(study)
    _, *clips = recordings.blocks
    assert len(clips) == len(metrics.select_clips(study.predictions["right"])) == 6
    first = metrics.select_clips(study.predictions["right"])[0]
    (sound,) = re.findall('base64,([^"]+)', clips[0].media)
    assert base64.b64decode(sound) == Path(first.input).read_bytes()
    lines = [dict(clip.lines) for clip in clips]
    assert all("啦" in line["wrong"] and "<mark" in line["wrong"] for line in lines)
    assert not any("<mark" in line["right"] or "<b>" in line["short"] for line in lines)
    confusions = {block.summary: block.blocks[0].rows for block in errors.blocks[-3:]}
    assert confusions["right"] == []
    assert confusions["wrong"][0][1] == "啦"


def test_pieces_are_runs_of_one_kind(study):
    row = study.predictions["right"][0]._replace(reference="甲乙丙丁戊", hypothesis="甲丙丁己戊")
    runs = [("甲", ""), ("乙", "deletions"), ("丙丁", ""), ("己", "insertions"), ("戊", "")]
    assert page.pieces(row) == [(text, page.COLOURS.get(kind, ""), kind) for text, kind in runs]
