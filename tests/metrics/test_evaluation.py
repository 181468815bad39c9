"""Scoring, storing and comparing the predictions of systems, whatever the metrics of their task."""

import json
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.metrics import Metric, evaluation, scorer
from wxb.metrics.scorer import PredictionRow


class Scorer(scorer.Scorer):
    """Accuracy of labels, and the correlation of two answers that are 1 or -1."""

    METRICS = (Metric("accuracy", "accuracy"), Metric("correlation", "correlation", low=-1.0))
    SIGNATURE, COUNTS = "accuracy", {"correct": "correct"}

    def statistics(self, rows):
        is_correct = np.array([row.gold == row.predicted for row in rows], int)
        return {"correct": is_correct, "answers": np.ones((len(rows), 2), int)}

    def scores(self, sums):
        share = scorer.ratio(sums["correct"], sums["answers"][..., 0])
        return {"accuracy": share, "correlation": 2 * share - 1}

    def details(self, rows):
        correct = sum(row.gold == row.predicted for row in rows)
        numbers = {"correct": correct, "wrong": 1 - correct / len(rows)}
        return {**super().details(rows), **numbers, "first": {"id": rows[0].id}}


def row(index, is_correct, group=""):
    return PredictionRow(str(index), f"text {index}", "a", "a" if is_correct else "b", group)


def evaluate(*runs, **options):
    return evaluation.evaluate(Scorer(), runs, **options)


answers = st.lists(st.booleans(), min_size=1, max_size=12)


@settings(deadline=None, max_examples=40)
@given(st.lists(answers, min_size=1, max_size=3).filter(lambda runs: len({*map(len, runs)}) == 1))
def test_scores_are_means_over_runs_and_metrics_repeat_them(runs):
    made = evaluate(*([row(n, right) for n, right in enumerate(run)] for run in runs))
    shares = [fmean(run) for run in runs]
    assert made.scores["accuracy_by_run"] == pytest.approx(shares, abs=1e-6)
    assert made.scores["accuracy"]["value"] == pytest.approx(fmean(shares), abs=1e-6)
    assert made.scores["correct"] == round(fmean(map(sum, runs)))
    assert made.scores["wrong"] == pytest.approx(1 - fmean(shares), abs=1e-6)
    assert made.scores["first"] == {"id": "0"}
    flat = evaluation.metrics(Scorer(), made)
    assert all(type(value) in (int, float) for value in flat.values())
    for metric in Scorer.METRICS:
        low, value, high = (made.scores[metric.key][end] for end in ("low", "value", "high"))
        assert metric.low <= low <= value <= high <= metric.high
        assert flat[metric.key] == value
    assert flat["accuracy_low"] == made.scores["accuracy"]["low"]
    assert (flat["support"], flat["correct"]) == (len(runs[0]), made.scores["correct"])
    if len(runs) > 1:
        assert flat["accuracy_sd"] == pytest.approx(stdev(shares), abs=1e-6)


def test_metrics_of_the_model_are_means_and_published_like_those_of_the_scorer():
    runs, extra = [[row(0, 1)], [row(0, 1)]], [{"loss": 1.0, "n": 3}, {"loss": 2.0, "n": 5}]
    made = evaluate(*runs, model_metrics=extra)
    assert (made.scores["loss"], made.scores["n"]) == (1.5, 4)
    assert evaluation.metrics(Scorer(), made)["loss"] == 1.5


@settings(deadline=None, max_examples=20)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=2, max_size=4))
def test_saved_results_are_compared_as_new_ones(tmp_path_factory, runs):
    facts = {"grouped_by": "author"}
    systems = {
        f"s{index}": evaluate([row(n, right, "abcd"[n]) for n, right in enumerate(run)])
        for index, run in enumerate(runs)
    }
    folder = tmp_path_factory.mktemp("evaluation")
    loaded = {}
    for name, made in systems.items():
        evaluation.save(folder / name, {"test": made._replace(facts=facts), "new": made})
        loaded[name] = evaluation.load(folder / name)
    assert {*map(tuple, loaded.values())} == {("test", "new")}
    fresh = evaluation.compare(
        Scorer(), {n: {"test": made, "new": made} for n, made in systems.items()}, ["s1"]
    )
    again = evaluation.compare(Scorer(), loaded, ["s1"])
    assert again["further"] == fresh["further"]
    assert again == {**fresh, **facts}
    if differences := [pair["difference"] for pair in fresh["pairs"]]:
        least = min(differences, key=lambda d: d["p_value"])  # corrected for two test sets
        expected = min(1, 2 * len(differences) * least["p_value"])
        assert least["corrected"] == pytest.approx(expected, abs=1e-5)
    assert (fresh["documents"], fresh["groups"], fresh["support"]) == (4, 4, 4)
    names = [name for name in systems if name != "s1"]
    pairs = [(pair["a"], pair["b"]) for pair in fresh["pairs"]]
    assert pairs == [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    assert [n for n, system in fresh["systems"].items() if "baseline" in system] == ["s1"]
    for pair in fresh["pairs"]:
        values = [fresh["systems"][pair[side]]["accuracy"]["value"] for side in "ab"]
        assert pair["difference"]["value"] == values[0] - values[1]  # quarters are exact


RECORD = row(1, True)
OTHERS = [RECORD._replace(**{field: "other"}) for field in ("id", "input", "gold")]


@pytest.mark.parametrize("rows", [[RECORD, RECORD], *([other] for other in OTHERS)])
def test_runs_with_different_records_are_not_compared(rows):
    with pytest.raises(WxbError, match="different records"):
        evaluation.compare(
            Scorer(), {"a": {"test": evaluate([RECORD])}, "b": {"test": evaluate(rows)}}
        )


def test_a_comparison_has_a_hash_of_its_records():
    studies = [{"a": {"test": evaluate([each])}} for each in (RECORD, RECORD, *OTHERS)]
    hashes = [evaluation.compare(Scorer(), study)["records_sha256"] for study in studies]
    assert hashes[0] == hashes[1]
    assert len({*hashes}) == 1 + len(OTHERS)


def test_records_of_one_group_are_resampled_together():
    alone, together = (
        evaluate([row(n, n % 20 < 10, group and str(n % 20)) for n in range(200)])
        for group in ("", "yes")
    )
    wide, narrow = (made.scores["accuracy"] for made in (together, alone))
    assert wide["value"] == narrow["value"]
    assert wide["high"] - wide["low"] > 2 * (narrow["high"] - narrow["low"])
    assert [len(made.groups.sizes) for made in (together, alone)] == [20, 200]


def test_a_row_is_that_of_its_record_and_read_from_its_json(tmp_path):
    record = Record("1", "Guten Tag", "de", None, "letters")
    (judged,) = Scorer().rows([record], ["en"], Scorer().vocabulary([record]))
    assert judged == PredictionRow("1", "Guten Tag", "de", "en", "letters")
    evaluation.save_predictions(Scorer(), tmp_path / "new" / "folder", [judged])
    assert evaluation.load_predictions(Scorer(), tmp_path / "new" / "folder") == [judged]
    lines = Path(tmp_path, "new", "folder", evaluation.PREDICTIONS).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [judged._asdict()]
    alone = Record("1", "Guten Tag", "de", None, "Guten Tag")  # its own group
    assert Scorer().rows([alone], ["en"])[0].group == ""
