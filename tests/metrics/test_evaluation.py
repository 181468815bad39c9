"""Scores of entity recognisers: kept whole, equal to the span scorer's, compared fairly."""

import csv
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import Judged, outcomes
from wxb.tasks.ner.record.spans import Span

OPTIONS = {"resamples": 40, "seed": 1}


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
    return Judged(
        id=draw(st.text(st.characters(codec="utf-8"), max_size=4)),
        input=draw(st.text(st.characters(codec="utf-8"), max_size=8)),
        gold=gold,
        predicted=predicted,
        scores=tuple(draw(score) for _ in predicted),
        group=draw(st.sampled_from(["", "a", "b"])),
        seen=tuple(draw(st.booleans()) for _ in gold),
    )


systems = st.lists(records(), min_size=1, max_size=6)


def columns(judged):
    return [record.gold for record in judged], [record.predicted for record in judged]


@settings(deadline=None, max_examples=40)
@given(systems)
def test_reading_gives_what_was_written(judged):
    with tempfile.TemporaryDirectory() as parent:
        evaluation.write(metrics.Scorer(), Path(parent, "new", "folder"), judged)
        assert evaluation.read(metrics.Scorer(), Path(parent, "new", "folder")) == judged


def test_line_separators_of_unicode_survive(tmp_path):
    judged = [Judged("\u2028", "a\u2028b\u0085c\r\nd", (Span(0, 1, "AGE"),), (), ())]
    evaluation.write(metrics.Scorer(), tmp_path / "out", judged)
    assert evaluation.read(metrics.Scorer(), tmp_path / "out") == judged


@settings(deadline=None, max_examples=40)
@given(systems)
def test_tables_beside_the_predictions_are_the_scorers(judged):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "out")
        evaluation.write(metrics.Scorer(), folder, judged)
        assert read_json(folder / metrics.ERRORS) == outcomes.breakdown(*columns(judged))
        with (folder / metrics.BY_TYPE).open(encoding="utf-8", newline="") as file:
            rows = {row.pop("type"): row for row in csv.DictReader(file)}
    tables = metrics.by_type(*columns(judged))
    assert list(rows) == sorted(tables)
    for name, table in tables.items():
        assert int(rows[name]["support"]) == table[:, metrics.GOLD].sum()
        assert int(rows[name]["predicted"]) == table[:, metrics.PREDICTED].sum()
        scores = [float(rows[name][key]) for key in ("precision", "recall", "f1")]
        assert scores == pytest.approx(metrics.prf(table.sum(axis=0)), abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(systems)
def test_metrics_are_flat_and_the_scorers(judged):
    found = evaluation.metrics(metrics.Scorer(), [judged], **OPTIONS)
    table = metrics.counts(*columns(judged)).sum(axis=0)
    scores = [found[name] for name in ("precision", "recall", "f1")]
    assert scores == pytest.approx(metrics.prf(table), abs=1e-6)
    assert (found["support"], found["predicted"]) == (table[metrics.GOLD], table[metrics.PREDICTED])
    assert found["f1_low"] <= found["f1_high"]
    assert all(type(value) in (int, float) for value in found.values())
    usual = {"precision", "recall", "f1", "f1_low", "f1_high", "support", "predicted", "correct"}
    assert found.keys() - {"recall_seen", "recall_unseen", "support_seen"} == usual
    assert evaluation.metrics(metrics.Scorer(), [judged], **OPTIONS) == found


@settings(deadline=None, max_examples=20)
@given(systems)
def test_comparison_repeats_the_metrics_of_each_system(judged):
    silent = [record._replace(predicted=(), scores=()) for record in judged]
    found = evaluation.compare(
        metrics.Scorer(), {"a": [judged], "b": [silent], "c": [judged]}, **OPTIONS
    )
    for name, records in (("a", judged), ("b", silent), ("c", judged)):
        flat, told = (
            evaluation.metrics(metrics.Scorer(), [records], **OPTIONS),
            found["systems"][name],
        )
        for score in ("precision", "recall", "f1"):
            assert told[score]["value"] == flat[score]
        assert (told["f1"]["low"], told["f1"]["high"]) == (flat["f1_low"], flat["f1_high"])
        assert told["predicted"] == flat["predicted"]
        assert told["correct"] == metrics.counts(*columns(records))[:, metrics.CORRECT].sum()
        assert told["errors"] == outcomes.breakdown(*columns(records))
        assert told["f1_by_run"] == [flat["f1"]]
        tables = metrics.by_type(*columns(records))
        assert list(told["by_type"]) == list(tables)
        for row, table in zip(told["by_type"].values(), tables.values(), strict=True):
            sums = table.sum(axis=0)
            scores = [row[score] for score in ("precision", "recall", "f1")]
            assert scores == [round(score, 6) for score in metrics.prf(sums)]
            assert (row["support"], row["predicted"]) == (
                sums[metrics.GOLD],
                sums[metrics.PREDICTED],
            )
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    differences = [pair["difference"]["value"] for pair in found["pairs"]]
    assert differences[1] == 0
    assert differences[0] == pytest.approx(found["systems"]["a"]["f1"]["value"], abs=1e-6)
    assert found["documents"] == len(judged)
    assert found["support"] == sum(len(record.gold) for record in judged)


RECORD = Judged("1", "Ann is 9", (Span(0, 3, "NAME"),), (Span(7, 8, "AGE"),), (0.5,))


@pytest.mark.parametrize(
    "other",
    [
        [],
        [RECORD, RECORD],
        [RECORD._replace(id="2")],
        [RECORD._replace(input="Eve is 9")],
        [RECORD._replace(gold=())],
    ],
)
def test_systems_judged_on_different_records_are_not_compared(other):
    with pytest.raises(WxbError, match="different records"):
        evaluation.compare(metrics.Scorer(), {"a": [[RECORD]], "b": [other]}, **OPTIONS)


def test_different_predictions_on_the_same_records_are_compared():
    other = RECORD._replace(predicted=RECORD.gold, scores=(0.9,))
    found = evaluation.compare(metrics.Scorer(), {"a": [[RECORD]], "b": [[other]]}, **OPTIONS)
    assert found["pairs"][0]["difference"]["value"] == -1


# Mentions, groups and runs

ANN, BONN, NINE = (Span(0, 3, "NAME"), Span(7, 11, "CITY"), Span(12, 13, "AGE"))
TEXT = "Ann in Bonn 9"


def test_recall_is_told_by_whether_training_has_the_mention():
    train = [Record("0", "Ann 9", (Span(0, 3, "NAME"), Span(4, 5, "ROOM")), None, "g")]
    known = metrics.Scorer().known(train)
    assert known == {("Ann", "NAME"), ("9", "ROOM")}
    record = Record("1", TEXT, (ANN, BONN, NINE), None, "g")
    judged = metrics.Scorer().judge(record, [(ANN, 0.9), (NINE, 0.8)], known)
    assert judged == Judged(
        "1", TEXT, (ANN, BONN, NINE), (ANN, NINE), (0.9, 0.8), "g", (True, False, False)
    )
    found = evaluation.metrics(metrics.Scorer(), [[judged]], **OPTIONS)
    assert (found["recall_seen"], found["recall_unseen"], found["support_seen"]) == (1.0, 0.5, 1)
    told = evaluation.compare(metrics.Scorer(), {"a": [[judged]]}, **OPTIONS)["systems"]["a"]
    assert (told["recall_seen"], told["recall_unseen"]) == (1.0, 0.5)


def test_a_text_that_is_its_own_group_is_not_told_twice():
    assert metrics.Scorer().judge(Record("1", TEXT, (), None, TEXT), [], set()).group == ""


def record_of(number, right, group):
    return Judged(str(number), TEXT, (ANN,), (ANN,) if right else (), (1.0,) * right, group)


def test_records_of_one_group_are_resampled_together():
    alone = [record_of(n, n % 20 < 10, "") for n in range(200)]
    together = [record_of(n, n % 20 < 10, str(n % 20)) for n in range(200)]
    wide, narrow = (
        evaluation.metrics(metrics.Scorer(), [run], resamples=300, seed=1)
        for run in (together, alone)
    )
    assert wide["f1"] == narrow["f1"]
    assert wide["f1_high"] - wide["f1_low"] > 2 * (narrow["f1_high"] - narrow["f1_low"])
    assert [
        evaluation.compare(metrics.Scorer(), {"a": [r]}, **OPTIONS)["groups"]
        for r in (together, alone)
    ] == [
        20,
        200,
    ]


def test_several_seeds_give_a_mean_and_a_deviation():
    runs = [[record_of(n, n < right, "") for n in range(10)] for right in (10, 5)]
    found = evaluation.metrics(metrics.Scorer(), runs, **OPTIONS)
    scores = [1.0, 10 / 15]
    assert found["f1"] == pytest.approx(sum(scores) / 2, abs=1e-6)
    assert found["f1_sd"] == pytest.approx(stdev(scores), abs=1e-6)
    assert (found["support"], found["predicted"]) == (10, 8)
    told = evaluation.compare(metrics.Scorer(), {"a": runs}, **OPTIONS)["systems"]["a"]
    assert told["f1_by_run"] == pytest.approx(scores, abs=1e-6)
    assert told["errors"]["missed"] == 0  # of the first run


def test_runs_of_every_test_set_are_kept_and_read_again(tmp_path):
    runs = {
        test_set: {
            place: [record_of(n, 1, "")] for n, place in enumerate(["", "seed-10", "seed-2"], first)
        }
        for first, test_set in ((0, "test"), (3, "new"))
    }
    evaluation.save(metrics.Scorer(), tmp_path / "out", runs)
    assert evaluation.load(metrics.Scorer(), tmp_path / "out") == runs
