"""Predict the test records with one trained experiment, and score the predictions."""

import time
from collections.abc import Mapping, Sequence
from statistics import fmean

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.metrics import DIGITS, TEST, evaluation
from wxb.runtime.command import run


def main(params: Params, name: str) -> dict[str, float]:
    """Evaluate the experiment `name` of params.yaml: the model of each seed on each test set.

    Gives the number of inputs and the seconds that predicting them took.
    """
    experiment = params.named("experiments", name)
    study = params.studies[experiment.study]
    task = tasks.get(experiment.task)
    scorer, labelling = task.metrics, task.record
    trained = task.method(experiment.method).Predictor
    model, corpus = paths.model(name), paths.clean(experiment.corpus)
    sets = {
        test_set: clean.labelled(corpus / f"{test_set}.parquet", labelling)
        for test_set in clean.test_sets(corpus)
    }
    known = scorer.known(clean.labelled(corpus / "train.parquet", labelling))
    judged: dict[str, dict[str, evaluation.Run]] = {test_set: {} for test_set in sets}
    further: dict[str, list[Mapping[str, float]]] = {test_set: [] for test_set in sets}
    seconds = 0.0
    for place in map(study.folder, study.seeds):
        predictor = trained.load(model / place, experiment.prediction)
        for test_set, records in sets.items():
            label = " ".join(filter(None, [f"evaluate@{name}: {test_set}", place]))
            began = time.monotonic()
            predictions = predictor.predict([record.input for record in records], label=label)
            seconds += time.monotonic() - began
            judged[test_set][place] = [
                scorer.judge(record, prediction, known)
                for record, prediction in zip(records, predictions, strict=True)
            ]
            further[test_set].append(predictor.further_metrics(records, predictions))
    metrics: dict[str, float] = {}
    for test_set, runs in judged.items():
        scores = evaluation.metrics(
            scorer, [*runs.values()], resamples=params.resamples, seed=params.seed
        )
        scores |= _means(further[test_set])
        prefix = "" if test_set == TEST else f"{test_set}_"
        metrics |= {f"{prefix}{key}": value for key, value in scores.items()}
    metrics |= {
        **read_json(model / paths.SETTINGS)["training"],
        "parameters": predictor.size(),
        "trainable_parameters": predictor.size(trainable=True),
    }
    outputs = paths.metrics(experiment.study, name), paths.predictions(experiment.study, name)
    with publish(*outputs) as (measured, folder):
        write_json(measured, metrics)
        evaluation.save(scorer, folder, judged)
    inputs = len(study.seeds) * sum(map(len, sets.values()))
    return {"inputs": inputs, "predicting": round(seconds, 3)}


def _means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score over runs."""
    return {key: round(fmean(row[key] for row in scores), DIGITS) for key in scores[0]}


if __name__ == "__main__":
    run("evaluate", main, __doc__)
