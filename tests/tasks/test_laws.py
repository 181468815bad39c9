"""What holds for every task: each baseline finds the gold of its own training records."""

import json
import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.tasks import test_baselines as baselines
from tests.tasks.speech import tones
from wxb import tasks


class Trained(NamedTuple):
    """A predictor of a task, the same after saving and loading, its records and their rows."""

    task: str
    predictor: object
    loaded: object
    records: list
    predictions: list

    @property
    def inputs(self):
        return [record.input for record in self.records]

    def rows(self, predictions):
        scorer = tasks.get(self.task).metrics
        vocabulary = scorer.vocabulary(self.records)
        pairs = zip(self.records, predictions, strict=True)
        return [scorer.prediction_row(*pair, vocabulary) for pair in pairs]


def records_of(case, folder):
    if case.task == "speech":
        texts = ("啊哦", "一一", "哎啊", "哦")
        return [tones.record(folder, text, index) for index, text in enumerate(texts)]
    if case.task == "chat":  # answers without a format are not scored
        return baselines.as_records({k: {**v, "format": "text"} for k, v in case.gold.items()})
    return baselines.as_records(case.gold)


@pytest.fixture(
    scope="module",
    params=[*baselines.TEXTS, baselines.Case("speech", "nearest", {}, None)],
    ids=lambda case: case.task,
)
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("laws")
    records = records_of(request.param, folder)
    predictor, loaded = baselines.train(folder, request.param, records)
    predictions = predictor.predict([record.input for record in records])
    return Trained(request.param.task, predictor, loaded, records, predictions)


def test_the_gold_scores_perfect(trained):
    scorer = tasks.get(trained.task).metrics
    sums = scorer.sums(trained.rows(trained.predictions))
    metric = scorer.headline(sums)
    best = 0 if metric.lower_is_better else metric.high
    assert scorer.scores(sums)[metric.key] == pytest.approx(best)


def test_batches_and_order_do_not_matter(trained):
    inputs, predictor = trained.inputs, trained.predictor
    assert [predictor.predict([input_])[0] for input_ in inputs] == trained.predictions
    order = random.Random(1).sample(range(len(inputs)), len(inputs))
    shuffled = predictor.predict([inputs[index] for index in order])
    assert shuffled == [trained.predictions[index] for index in order]
    assert predictor.predict(inputs * 2) == trained.predictions * 2
    assert predictor.predict([]) == []


def test_a_saved_and_loaded_predictor_predicts_the_same(trained):
    assert trained.loaded.predict(trained.inputs) == trained.predictions
    for input_, prediction in zip(trained.inputs, trained.predictions, strict=True):
        assert trained.predictor.output_fields(input_, prediction)
        assert trained.predictor.as_text(input_, prediction)


@given(order=st.randoms(use_true_random=False))
def test_a_score_is_that_of_the_rows_in_any_order_and_rows_are_read_as_written(trained, order):
    predictions = [order.choice(trained.predictions) for _ in trained.records]
    scorer, rows = tasks.get(trained.task).metrics, trained.rows(predictions)
    shuffled = order.sample(rows, len(rows))
    scores, others = (scorer.scores(scorer.sums(each)) for each in (rows, shuffled))
    assert {**others} == {k: pytest.approx(v, nan_ok=True) for k, v in scores.items()}
    lines = [json.loads(json.dumps(row._asdict())) for row in rows]
    assert [TypeAdapter(scorer.ROW).validate_python(line) for line in lines] == rows
