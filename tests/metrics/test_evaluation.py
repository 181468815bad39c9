"""Storing, scoring and comparing the predictions of NER systems."""

import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import PredictionRow, outcomes
from wxb.tasks.ner.record.spans import Span


@st.composite
def span_tuples(draw, longest=20):
    edges = sorted(draw(st.sets(st.integers(0, longest), max_size=8)))
    types = st.sampled_from(["AGE", "NAME"])
    return tuple(Span(a, b, draw(types)) for a, b in pairwise(edges) if draw(st.booleans()))


@st.composite
def records(draw):
    predicted = draw(span_tuples())
    score = st.integers(0, 10_000).map(lambda n: n / 10_000)
    gold = draw(span_tuples())
    return PredictionRow(
        id=draw(st.text(st.characters(codec="utf-8"), max_size=4)),
        input=draw(st.text(st.characters(codec="utf-8"), max_size=8)),
        gold=gold,
        predicted=predicted,
        scores=tuple(draw(score) for _ in predicted),
        group=draw(st.sampled_from(["", "a", "b"])),
        seen=tuple(draw(st.booleans()) for _ in gold),
    )


systems = st.lists(records(), min_size=1, max_size=6)


def columns(rows):
    return [record.gold for record in rows], [record.predicted for record in rows]


@settings(deadline=None, max_examples=40)
@given(systems)
def test_written_rows_are_read_unchanged(rows):
    with tempfile.TemporaryDirectory() as parent:
        evaluation.write(metrics.Scorer(), Path(parent, "new", "folder"), rows)
        assert evaluation.read(metrics.Scorer(), Path(parent, "new", "folder")) == rows


@settings(deadline=None, max_examples=40)
@given(systems)
def test_metrics_are_flat_and_equal_those_of_the_task(rows):
    result = evaluation.metrics(metrics.Scorer(), [rows])
    table = metrics.counts(*columns(rows)).sum(axis=0)
    scores = [result[name] for name in ("precision", "recall", "f1")]
    assert scores == pytest.approx(metrics.prf(table), abs=1e-6)
    assert (result["support"], result["predicted"]) == (
        table[metrics.GOLD],
        table[metrics.PREDICTED],
    )
    assert result["f1_low"] <= result["f1_high"]
    assert all(type(value) in (int, float) for value in result.values())
    keys = {"precision", "recall", "f1", "f1_low", "f1_high", "support", "predicted", "correct"}
    assert result.keys() - {"recall_seen", "recall_unseen", "support_seen"} == keys
    assert evaluation.metrics(metrics.Scorer(), [rows]) == result


@settings(deadline=None, max_examples=20)
@given(systems)
def test_comparison_repeats_the_metrics_of_each_system(rows):
    silent = [record._replace(predicted=(), scores=()) for record in rows]
    result = evaluation.compare(metrics.Scorer(), {"a": [rows], "b": [silent], "c": [rows]})
    for name, records in (("a", rows), ("b", silent), ("c", rows)):
        flat = evaluation.metrics(metrics.Scorer(), [records])
        system = result["systems"][name]
        for score in ("precision", "recall", "f1"):
            assert system[score]["value"] == flat[score]
        assert (system["f1"]["low"], system["f1"]["high"]) == (flat["f1_low"], flat["f1_high"])
        assert system["predicted"] == flat["predicted"]
        assert system["correct"] == metrics.counts(*columns(records))[:, metrics.CORRECT].sum()
        assert system["errors"] == outcomes.count_outcomes(*columns(records))
        assert system["f1_by_run"] == [flat["f1"]]
        tables = metrics.by_type(*columns(records))
        assert list(system["by_type"]) == list(tables)
        for row, table in zip(system["by_type"].values(), tables.values(), strict=True):
            sums = table.sum(axis=0)
            scores = [row[score] for score in ("precision", "recall", "f1")]
            assert scores == [round(score, 6) for score in metrics.prf(sums)]
            assert (row["support"], row["predicted"]) == (
                sums[metrics.GOLD],
                sums[metrics.PREDICTED],
            )
    assert [(pair["a"], pair["b"]) for pair in result["pairs"]] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    differences = [pair["difference"]["value"] for pair in result["pairs"]]
    assert differences[1] == 0
    assert differences[0] == pytest.approx(result["systems"]["a"]["f1"]["value"], abs=1e-6)
    assert result["documents"] == len(rows)
    assert result["support"] == sum(len(record.gold) for record in rows)


RECORD = PredictionRow("1", "Ann is 9", (Span(0, 3, "NAME"),), (Span(7, 8, "AGE"),), (0.5,))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [RECORD, RECORD],
        [RECORD._replace(id="2")],
        [RECORD._replace(input="Eve is 9")],
        [RECORD._replace(gold=())],
    ],
)
def test_runs_with_different_records_are_not_compared(rows):
    with pytest.raises(WxbError, match="different records"):
        evaluation.compare(metrics.Scorer(), {"a": [[RECORD]], "b": [rows]})


# Mentions, groups and runs

ANN, BONN, NINE = (Span(0, 3, "NAME"), Span(7, 11, "CITY"), Span(12, 13, "AGE"))
TEXT = "Ann in Bonn 9"


def test_recall_of_mentions_with_and_without_training_examples():
    train = [Record("0", "Ann 9", (Span(0, 3, "NAME"), Span(4, 5, "ROOM")), None, "g")]
    vocabulary = metrics.Scorer().vocabulary(train)
    assert vocabulary == {("Ann", "NAME"), ("9", "ROOM")}
    record = Record("1", TEXT, (ANN, BONN, NINE), None, "g")
    row = metrics.Scorer().row(record, [(ANN, 0.9), (NINE, 0.8)], vocabulary)
    assert row == PredictionRow(
        "1", TEXT, (ANN, BONN, NINE), (ANN, NINE), (0.9, 0.8), "g", (True, False, False)
    )
    result = evaluation.metrics(metrics.Scorer(), [[row]])
    assert (result["recall_seen"], result["recall_unseen"], result["support_seen"]) == (1.0, 0.5, 1)
    system = evaluation.compare(metrics.Scorer(), {"a": [[row]]})["systems"]["a"]
    assert (system["recall_seen"], system["recall_unseen"]) == (1.0, 0.5)


def record_of(index, right, group):
    return PredictionRow(str(index), TEXT, (ANN,), (ANN,) if right else (), (1.0,) * right, group)


def test_records_of_one_group_are_resampled_together():
    alone = [record_of(n, n % 20 < 10, "") for n in range(200)]
    together = [record_of(n, n % 20 < 10, str(n % 20)) for n in range(200)]
    wide, narrow = (evaluation.metrics(metrics.Scorer(), [run]) for run in (together, alone))
    assert wide["f1"] == narrow["f1"]
    assert wide["f1_high"] - wide["f1_low"] > 2 * (narrow["f1_high"] - narrow["f1_low"])
    assert [
        evaluation.compare(metrics.Scorer(), {"a": [r]})["groups"] for r in (together, alone)
    ] == [
        20,
        200,
    ]


def test_metrics_of_several_seeds_have_a_mean_and_a_deviation():
    runs = [[record_of(n, n < right, "") for n in range(10)] for right in (10, 5)]
    result = evaluation.metrics(metrics.Scorer(), runs)
    scores = [1.0, 10 / 15]
    assert result["f1"] == pytest.approx(sum(scores) / 2, abs=1e-6)
    assert result["f1_sd"] == pytest.approx(stdev(scores), abs=1e-6)
    assert (result["support"], result["predicted"]) == (10, 8)
    system = evaluation.compare(metrics.Scorer(), {"a": runs})["systems"]["a"]
    assert system["f1_by_run"] == pytest.approx(scores, abs=1e-6)
    assert system["errors"]["missed"] == 0  # of the first run


def test_runs_of_every_test_set_are_saved_and_loaded(tmp_path):
    runs = {
        test_set: {
            seed: [record_of(n, 1, "")] for n, seed in enumerate(["", "seed-10", "seed-2"], first)
        }
        for first, test_set in ((0, "test"), (3, "new"))
    }
    facts = {"test": {"grouped_by": "author"}, "new": {"grouped_by": None}}
    evaluation.save(metrics.Scorer(), tmp_path / "out", runs, facts)
    loaded = evaluation.load(metrics.Scorer(), tmp_path / "out")
    lists = {name: {seed: [*run] for seed, run in sets.items()} for name, sets in loaded.items()}
    assert lists == runs
    assert evaluation.load_facts(tmp_path / "out") == facts
