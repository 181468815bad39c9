"""Predict the test records with a trained experiment, and score the predictions."""

import filecmp
from pathlib import Path

import numpy as np

from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.metrics import TEST, evaluation
from wxb.runtime.command import run


def main(params: Params, name: str) -> dict[str, float]:
    """Write metrics and predictions of the experiment `name`, for all seeds and test sets.

    Metrics are means over seeds; those of further test sets begin with the name of the set. A model
    that is the same with each seed, such as a prompt, predicts once. Returns numbers for the cost
    of the stage: the `inputs` that were predicted, and the seconds of `predicting` them.
    """
    experiment = params.block("experiments", name)
    study = params.studies[experiment.study]
    task = tasks.get(experiment.task)
    scorer, labelling = task.metrics, task.record
    predictor_class = task.method(experiment.method).PREDICTOR
    model, corpus = paths.MODELS / name, paths.CLEAN / experiment.corpus
    test_sets = {
        test_set: [*clean.read_labelled(clean.split_file(corpus, test_set), labelling)]
        for test_set in clean.test_sets(corpus)
    }
    training_records = clean.read_labelled(clean.split_file(corpus, "train"), labelling)
    vocabulary = scorer.vocabulary(training_records)
    # By test set and subfolder of a seed: rows, and metrics that need the model.
    runs = {key: dict[str, tuple[evaluation.Run, dict[str, float]]]() for key in test_sets}
    inputs, seconds = 0, 0.0
    for subfolder in map(study.seed_subfolder, study.seeds):
        if subfolder and _is_same_model(model / subfolder, model):
            for by_seed in runs.values():
                by_seed[subfolder] = by_seed[""]
            continue
        predictor = predictor_class.load(model / subfolder, experiment.prediction)
        for test_set, records in test_sets.items():
            caption = " ".join(filter(None, [f"evaluate@{name}: {test_set}", subfolder]))
            rows, own, duration = predictor.test(records, scorer, vocabulary, caption)
            runs[test_set][subfolder] = rows, own
            inputs, seconds = inputs + len(records), seconds + duration
        sizes = predictor.size(), predictor.size(trainable=True)
        del predictor  # else the models of two seeds would be in memory
    facts = clean.test_set_facts(corpus)
    evaluations: dict[str, evaluation.Evaluation] = {}
    metrics: dict[str, float] = {}
    for test_set, by_seed in runs.items():
        rows_by_seed, numbers = zip(*by_seed.values(), strict=True)
        evaluations[test_set] = evaluation.evaluate(scorer, rows_by_seed, numbers, facts[test_set])
        prefix = "" if test_set == TEST else f"{test_set}_"
        scores = evaluation.metrics(scorer, evaluations[test_set])
        metrics |= {f"{prefix}{key}": value for key, value in scores.items()}
    folders = [model / study.seed_subfolder(seed) for seed in study.seeds]
    counts = [read_json(folder / paths.SETTINGS)["training"] for folder in folders]
    metrics |= {key: round(np.mean([each[key] for each in counts])) for key in counts[0]}
    metrics |= {"parameters": sizes[0], "trainable_parameters": sizes[1]}
    outputs = (
        paths.HEADLINES / f"{name}.json",
        paths.metrics(experiment.study, name),
        paths.PREDICTIONS / experiment.study / name,
    )
    with publish(*outputs) as (headline, file, folder):
        key = scorer.headline(evaluations[TEST].groups.total()).key
        write_json(headline, {key: metrics[key]})
        write_json(file, metrics)
        for test_set, by_seed in runs.items():
            for subfolder, (run_rows, _) in by_seed.items():
                parent = folder if test_set == TEST else folder / test_set
                evaluation.save_predictions(scorer, parent / subfolder, run_rows)
        evaluation.save(folder, evaluations)
    return {"inputs": inputs, "predicting": round(seconds, 3)}


def _is_same_model(model: Path, first: Path) -> bool:
    """Whether `first` has all files of `model`, one or more, with the same content."""
    files = [str(file.relative_to(model)) for file in model.rglob("*") if file.is_file()]
    return bool(files) and filecmp.cmpfiles(first, model, files, shallow=False)[0] == files


if __name__ == "__main__":
    run("evaluate", main, __doc__)
