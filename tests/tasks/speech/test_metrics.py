import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.speech import tones
from wxb.tasks.speech import metrics
from wxb.tasks.speech.metrics import PredictionRow, alignment, confusions
from wxb.tasks.speech.models.predictor import Segment, Transcript

texts = st.text("ab 一二", max_size=8).map(lambda text: " ".join(text.split()))


def row(reference, hypothesis, **changes):
    values = {"seconds": 1.0, "snr": 20.0, "group": "", **changes}
    return PredictionRow(
        reference, "a.flac", reference, hypothesis, reference, hypothesis, **values
    )


@settings(deadline=None)
@given(texts.filter(bool), texts)
def test_edits_are_those_of_jiwer_and_of_the_alignment(reference, hypothesis):
    scorer = metrics.Scorer()
    sums = scorer.sums([row(reference, hypothesis)])
    edits = [sums[edit] for edit in metrics.EDITS]
    assert sums["characters"] == len(reference)
    theirs = jiwer.process_characters(reference, hypothesis)
    assert [theirs.substitutions, theirs.deletions, theirs.insertions] == edits
    assert scorer.scores(sums)["cer"] == pytest.approx(theirs.cer)
    pieces = alignment(row(reference, hypothesis))
    assert "".join(piece for _, piece, _ in pieces) == reference
    assert "".join(piece for _, _, piece in pieces) == hypothesis
    assert all((a == b) == (not kind) for kind, a, b in pieces)
    assert sum(count for _, count in confusions([row(reference, hypothesis)])) == sum(edits)
    assert scorer.scores(sums)["wer"] >= 0


def test_scores_are_of_sums_and_a_chinese_character_is_a_word():
    rows = [row("打开灯", "打开"), row("turn on", "turn it on")]
    scorer = metrics.Scorer()
    assert scorer.scores(scorer.sums(rows)) == {"cer": (1 + 3) / 10, "wer": (1 + 1) / 5}
    counts = {"substitutions": 0, "deletions": 1, "insertions": 3, "support": 10}
    assert {key: scorer.details(rows)[key] for key in counts} == counts


def test_a_prediction_is_judged_by_the_rules_of_the_corpus(tmp_path):
    record = tones.record(tmp_path, "啊哦", 1, speaker="ann")
    transcript = Transcript((Segment(0, 1, "啊，"), Segment(1, 2, "哦！")))
    (judged,) = metrics.Scorer().rows([record], [transcript])
    assert (judged.predicted, judged.hypothesis, judged.reference) == ("啊，哦！", "啊哦", "啊哦")
    assert (judged.seconds, judged.snr) == (0.3, 30.0)


def test_confusions_and_bins():
    rows = [
        row("一一七", "七一七", seconds=0.5, snr=5),
        row("一", "七", seconds=3, snr=35),
        row("七", "", seconds=3, snr=35),
    ]
    assert confusions(rows) == [(("一", "七"), 2), (("七", ""), 1)]
    details = metrics.Scorer().details(rows)
    assert details["seconds"] == 6.5
    assert details["confusions"] == [["一", "七", 2], ["七", "", 1]]
    assert details["by_seconds"] == [
        {"from": None, "to": 1.0, "records": 1, "cer": pytest.approx(1 / 3, abs=1e-6)},
        {"from": 2.0, "to": 4.0, "records": 2, "cer": 1.0},
    ]
    assert [row["from"] for row in details["by_snr"]] == [None, 30.0]


def test_clips_are_kept_with_the_predictions(tmp_path):
    records = tones.records(tmp_path, 13)
    rows = metrics.Scorer().rows(records, [Transcript(())] * len(records))
    metrics.Scorer().copy_files(tmp_path, rows)
    kept = sorted(path.name for path in tmp_path.glob("clip-*"))
    assert kept == [f"clip-{n:03}.flac" for n in range(0, 12, 2)]
