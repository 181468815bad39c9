"""What holds for every task: each baseline finds the gold of its own training records."""

import json
import random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.tasks import test_baselines as baselines
from tests.tasks.speech import tones
from wxb import tasks
from wxb.core.params.tasks import experiment_class, methods

SPEECH = baselines.Case("speech", "nearest", {}, None)
CASES = {case.task: case for case in (*baselines.TEXTS, SPEECH)}
GOLD = {pa.string(): ["a", "b", "c"], pa.float64(): [1.0, 2.5, 4.0], pa.int64(): [1, 2, 4]}
TEXTS = ("one red house", "two green trees | far away", "三只猫")


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
        return scorer.rows(self.records, predictions, scorer.vocabulary(self.records))


def records_of(case, folder):
    if case.task == "speech":
        texts = ("啊哦", "一一", "哎啊", "哦")
        return [tones.record(folder, text, index) for index, text in enumerate(texts)]
    if case.task == "chat":  # answers without a format are not scored
        return baselines.as_records({k: {**v, "format": "text"} for k, v in case.gold.items()})
    return baselines.as_records(case.gold)


def plain_case(task):
    """A case of a new task, if its gold is a text or a number."""
    gold = GOLD.get(tasks.get(task).record.stored) or pytest.skip("add a Case to test_baselines.py")
    labels = tuple(value for value in gold if isinstance(value, str))
    return baselines.Case(task, "nearest", dict(zip(TEXTS, gold, strict=True)), None, labels)


@pytest.fixture(scope="module", params=tasks.names())
def scored(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("laws")
    case = CASES.get(request.param) or plain_case(request.param)
    records = records_of(case, folder)
    has_baseline = "baseline" in methods(case.task)
    schema = experiment_class(case.task, "baseline").model_json_schema() if has_baseline else {}
    if case.kind not in str(schema):
        return Trained(case.task, None, None, records, [record.gold for record in records])
    predictor, loaded = baselines.train(folder, case, records)
    inputs = [record.input for record in records]
    return Trained(case.task, predictor, loaded, records, predictor.predict(inputs))


@pytest.fixture
def trained(scored):
    return scored if scored.predictor else pytest.skip("the task has no baseline `nearest`")


def test_the_gold_scores_perfect(scored):
    scorer = tasks.get(scored.task).metrics
    sums = scorer.sums(scored.rows(scored.predictions))
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
def test_a_score_is_that_of_the_rows_in_any_order_and_rows_are_read_as_written(scored, order):
    predictions = [order.choice(scored.predictions) for _ in scored.records]
    scorer, rows = tasks.get(scored.task).metrics, scored.rows(predictions)
    shuffled = order.sample(rows, len(rows))
    scores, others = (scorer.scores(scorer.sums(each)) for each in (rows, shuffled))
    assert {**others} == {k: pytest.approx(v, nan_ok=True) for k, v in scores.items()}
    lines = [json.loads(json.dumps(row._asdict())) for row in rows]
    assert [TypeAdapter(scorer.ROW).validate_python(line) for line in lines] == rows


def test_many_sums_at_once_have_the_scores_of_each(scored):
    scorer, rows = tasks.get(scored.task).metrics, scored.rows(scored.predictions)
    weights = np.random.default_rng(0).integers(1, 4, (5, len(rows)))
    many = {name: np.tensordot(weights, v, 1) for name, v in scorer.statistics(rows).items()}
    scores = scorer.scores(many)
    assert {*scores} == {metric.key for metric in scorer.METRICS}
    for index in range(5):
        one = scorer.scores({name: sums[index] for name, sums in many.items()})
        assert {k: pytest.approx(v[index], nan_ok=True) for k, v in scores.items()} == {**one}
