"""Find the entities in the test records with one trained experiment, and score them."""

from pathlib import Path

from stages import run
from wxb import tasks
from wxb.corpora import clean
from wxb.files import publish, write_json
from wxb.metrics import ner
from wxb.models.size import parameters
from wxb.params import Params


def main(params: Params, name: str) -> None:
    """Evaluate the experiment `name` of params.yaml."""
    experiment = params.named("experiments", name)
    task = tasks.module(experiment.task)
    predictor = task.Predictor.load(Path("models", name))
    records = clean.labelled(Path("data/clean", experiment.corpus, "test.parquet"))
    found = predictor.predict([record.text for record in records], label=f"evaluate@{name}")
    judged = [
        ner.Judged(
            id=record.id,
            text=record.text,
            gold=record.spans or (),
            predicted=tuple(scored.span for scored in spans),
            scores=tuple(scored.score for scored in spans),
        )
        for record, spans in zip(records, found, strict=True)
    ]
    metrics = ner.metrics(judged, resamples=params.resamples, seed=params.seed)
    columns = zip(*((record.text, record.gold, record.predicted) for record in judged), strict=True)
    if (token_f1 := predictor.token_f1(*columns)) is not None:
        metrics["seqeval_f1"] = round(token_f1, ner.DIGITS)
    metrics["parameters"] = parameters(predictor.model)
    metrics["trainable_parameters"] = parameters(predictor.model, trainable=True)
    study = experiment.study
    with publish(f"reports/metrics/{study}/{name}.json", f"reports/predictions/{study}/{name}") as (
        measured,
        folder,
    ):
        write_json(measured, metrics)
        ner.write(folder, judged)


if __name__ == "__main__":
    run("evaluate", main, __doc__)
