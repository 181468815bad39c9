"""Find the entities in the test records with one trained experiment, and score them."""

from pathlib import Path
from statistics import fmean

from stages import run
from wxb import tasks
from wxb.backbones.size import parameters
from wxb.corpora import clean
from wxb.files import publish, read_json, write_json
from wxb.metrics import TEST
from wxb.params import Params
from wxb.tasks.ner import evaluation
from wxb.tasks.ner.predictor import SETTINGS


def main(params: Params, name: str) -> None:
    """Evaluate the experiment `name` of params.yaml: the model of each seed on each test set."""
    experiment = params.named("experiments", name)
    study = params.studies[experiment.study]
    model, corpus = Path("models", name), Path("data/clean", experiment.corpus)
    sets = {
        test_set: clean.labelled(corpus / f"{test_set}.parquet")
        for test_set in clean.test_sets(corpus)
    }
    known = evaluation.mentions(clean.labelled(corpus / "train.parquet"))
    judged: dict[str, dict[str, evaluation.Run]] = {test_set: {} for test_set in sets}
    seqeval: dict[str, list[float]] = {test_set: [] for test_set in sets}
    for place in map(study.folder, study.seeds):
        predictor = tasks.module(experiment.task, experiment.method).Predictor.load(model / place)
        for test_set, records in sets.items():
            label = " ".join(filter(None, [f"evaluate@{name}: {test_set}", place]))
            texts = [record.text for record in records]
            found = predictor.predict(texts, label=label)
            judged[test_set][place] = [
                evaluation.judge(record, spans, known)
                for record, spans in zip(records, found, strict=True)
            ]
            gold = [record.spans or () for record in records]
            predicted = [[scored.span for scored in spans] for spans in found]
            score = predictor.token_f1(texts, gold, predicted)
            seqeval[test_set] += [] if score is None else [score]
    metrics: dict[str, float] = {}
    for test_set, runs in judged.items():
        figures = evaluation.metrics([*runs.values()], resamples=params.resamples, seed=params.seed)
        if seqeval[test_set]:
            figures["seqeval_f1"] = round(fmean(seqeval[test_set]), evaluation.DIGITS)
        prefix = "" if test_set == TEST else f"{test_set}_"
        metrics |= {f"{prefix}{key}": value for key, value in figures.items()}
    metrics |= {
        **read_json(model / SETTINGS)["training"],
        "parameters": parameters(predictor.model),
        "trainable_parameters": parameters(predictor.model, trainable=True),
    }
    outputs = (
        Path("reports/metrics", experiment.study, f"{name}.json"),
        Path("reports/predictions", experiment.study, name),
    )
    with publish(*outputs) as (measured, folder):
        write_json(measured, metrics)
        evaluation.save(folder, judged)


if __name__ == "__main__":
    run("evaluate", main, __doc__)
