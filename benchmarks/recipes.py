"""Choose a recipe for each method by validation F1, among as many for each, and compare them.

Each study is a trained sweep of `wxb new sweep`. The others are compared with the last. Scores on
test sets choose nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from wxb import tasks
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params, load
from wxb.corpora import clean
from wxb.metrics import evaluation
from wxb.metrics.evaluation import Evaluation
from wxb.metrics.intervals import paired_difference
from wxb.project import benchmarks, trained

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    studies: Annotated[list[str], typer.Argument(help="studies of one corpus, such as sweeps")],
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Print the scores of all experiments; compare the best of each study with the last one's."""
    params = load()
    tables = [
        {name: scores(params, name) for name in params.studies[study].experiments}
        for study in studies
    ]
    scorer = tasks.get(params.studies[studies[0]].task).metrics
    key = scorer.HEADLINE
    valid = [
        {interval(sets["valid"], key): name for name, sets in table.items()} for table in tables
    ]
    best = [by_score[max(by_score)] for by_score in valid]
    reference = tables[-1][best[-1]]
    rows = []
    for table, chosen in zip(tables, best, strict=True):
        for name, sets in table.items():
            row: dict[str, Any] = {"experiment": name, "chosen": "yes" if name == chosen else ""}
            row |= {f"{key}, {each}": interval(sets[each], key) for each in sets}
            for each in [each for each in sets if each != "valid"]:
                pair = sets[each].groups, reference[each].groups
                headline = scorer.headline(pair[0].total())
                is_compared = name == chosen and table is not tables[-1]
                difference = paired_difference(*pair, scorer.scores, headline)
                row[f"minus {best[-1]}, {each}"] = difference[:3] if is_compared else None
            row["training, s"] = round(read_json(paths.cost("train", name))["seconds"])
            rows.append(row)
    benchmarks.report(rows, output, {heading: "+.3f" for heading in row if "minus" in heading})


def scores(params: Params, name: str) -> Mapping[str, Evaluation]:
    """The results of a trained experiment on `valid`, and on its test sets."""
    experiment = params.experiments[name]
    task, corpus = tasks.get(experiment.task), paths.CLEAN / experiment.corpus
    records = [*clean.read_labelled(clean.split_file(corpus, "valid"), task.record)]
    predictions = trained.load(name).predict([record.input for record in records], caption=name)
    train = clean.read_labelled(clean.split_file(corpus, "train"), task.record)
    vocabulary = task.metrics.vocabulary(train)
    run = task.metrics.rows(records, predictions, vocabulary)
    tests = evaluation.load(paths.PREDICTIONS / experiment.study / name)
    return {"valid": evaluation.evaluate(task.metrics, [run]), **tests}


def interval(result: Evaluation, key: str) -> tuple[float, float, float]:
    """A score with the ends of its interval."""
    score = result.scores[key]
    return score["value"], score["low"], score["high"]


if __name__ == "__main__":
    benchmarks.run(app)
