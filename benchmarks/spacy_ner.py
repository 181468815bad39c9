"""Compare spaCy's entity recognizer with the experiments of a study, on the same records.

spacy_peer.py trains it. Its test spans are scored by the project's scorer. Gold spans that are not
on token boundaries of spaCy count as missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

# First: it limits the libraries of both sides to one thread.
from spacy_peer import (
    PEER,
    Fit,
    languages_of,
    parameter_count,
    pipeline,
    predict,
    select_language,
    train_ner,
)

# isort: split
import typer

from wxb.core import paths
from wxb.core.errors import require_output
from wxb.core.files import read_json
from wxb.core.params import Params, load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.project import benchmarks
from wxb.reporting.pairs import test_sets
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import LABELLING

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    corpus: Annotated[str, typer.Option(help="a corpus of params.yaml")],
    study: Annotated[str, typer.Option(help="a study of that corpus")],
    epochs: Annotated[int, typer.Option(min=1)] = 20,
    seed: Annotated[
        int | None, typer.Option(min=0, help="seed of spaCy; default: that of params.yaml")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Train spaCy on a corpus; print its scores and those of a study on each test set."""
    params = load()
    params.block("corpora", corpus)
    params.block("studies", study)
    folder = Path("data/clean", corpus)
    splits = {name: _labelled(corpus, name) for name in ("train", "valid", *_tests(folder))}
    ours, scorer = evaluations(params, study, corpus), metrics.Scorer()
    vocabulary = scorer.vocabulary(splits["train"])
    languages = languages_of([record for members in splits.values() for record in members])
    fits = {}
    for code in languages:
        members = {name: select_language(splits[name], code, languages) for name in splits}
        fits[code] = train_ner(
            pipeline(code),
            members["train"],
            members["valid"],
            epochs=epochs,
            seed=params.seed if seed is None else seed,
            label=f"spaCy {code}",
        )
    peers = {}
    for test_set in clean.test_sets(folder):
        rows = {
            row.id: row
            for code, fit in fits.items()
            for row in predict(
                fit.nlp, select_language(splits[test_set], code, languages), vocabulary
            )
        }
        in_order = [rows[record.id] for record in splits[test_set]]
        peers[test_set] = evaluation.evaluate(scorer, [in_order])
    compared = evaluation.compare(scorer, {**ours, PEER: peers})
    table = [
        {"test set": test_set, "groups": results["groups"], **row}
        for test_set, results in test_sets({**compared, "question": None}).items()
        for row in table_rows(results, [*fits.values()], params, study)
    ]
    formats = {"minus spaCy": "+.3f", "seconds": ".0f", "times spaCy's": ".2f"}
    benchmarks.report(table, output, formats)


def evaluations(
    params: Params, study: str, corpus: str
) -> dict[str, dict[str, evaluation.Evaluation]]:
    """The results of experiments of this corpus by test set, by name.

    Prints which experiments are left out.
    """
    ours: dict[str, dict[str, evaluation.Evaluation]] = {}
    for name in params.studies[study].experiments:
        folder = Path("reports/predictions", study, name)
        if params.experiments[name].corpus != corpus or not folder.exists():
            print(f"{name} is left out: it has no predictions for {corpus}")
        else:
            ours[name] = evaluation.load(folder)
    return ours


def table_rows(
    comparison: Mapping[str, Any], fits: Sequence[Fit], params: Params, study: str
) -> list[dict[str, Any]]:
    """The systems, spaCy first, with strict span F1 and seconds of training."""
    differences = {
        pair["a"]: pair["difference"] for pair in comparison["pairs"] if pair["b"] == PEER
    }
    spacy_seconds = sum(fit.seconds for fit in fits)
    rows = []
    for name in (PEER, *differences):
        if name == PEER:
            parameters, seconds = sum(parameter_count(fit.nlp) for fit in fits), spacy_seconds
        else:
            parameters = read_json(paths.metrics(study, name))["parameters"]
            seconds = read_json(paths.cost("train", name))["seconds"]
        difference = differences.get(name)
        rows.append(
            {
                "system": name,
                "F1": _ends(comparison["systems"][name]["f1"]),
                "minus spaCy": _ends(difference) if difference else None,
                "parameters": _millions(parameters),
                "seconds": seconds,
                "times spaCy's": seconds / spacy_seconds,
            }
        )
    return rows


def _ends(interval: Mapping[str, float]) -> list[float]:
    return [interval[key] for key in ("value", "low", "high")]


def _labelled(corpus: str, split: str) -> list[Record]:
    path = clean.split_file(Path("data/clean", corpus), split)
    require_output(path, f"preprocess@{corpus}")
    return [*clean.read_labelled(path, LABELLING)]


def _tests(folder: Path) -> list[str]:
    """The test sets of a clean corpus; none if it does not exist, which raises an error later."""
    return clean.test_sets(folder) if folder.is_dir() else []


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f} M"


if __name__ == "__main__":
    benchmarks.run(app)
