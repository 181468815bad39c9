"""spaCy's entity recogniser beside the experiments of a study, on the same records.

How it is trained stands in spacy_peer.py. Its test spans go through the project's own scorer. What
spaCy's tokens cannot express stays in the gold spans, and so counts as missed.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

# First: it holds the libraries that both sides call to one thread.
from spacy_peer import (
    PEER,
    WIDTH,
    Fit,
    judge,
    languages_of,
    misaligned,
    of_language,
    parameters,
    pipeline,
    run,
    train_ner,
)

# isort: split
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from spacy.language import Language

from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import Params, load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import prf
from wxb.tasks.ner.record import Labelling

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    corpus: Annotated[str, typer.Option(help="a corpus of params.yaml")],
    study: Annotated[str, typer.Option(help="the study to show beside spaCy")],
    epochs: Annotated[int, typer.Option(min=1)] = 20,
    seed: Annotated[
        int | None, typer.Option(min=0, help="of spaCy's training; default: that of params.yaml")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="of one pipeline for all records; default: one for each language"),
    ] = None,
    flat: Annotated[
        bool, typer.Option(help="train on train and valid together, keep the last epoch")
    ] = False,
    plain: Annotated[
        bool, typer.Option(help="train without the copies that `augment` of the corpus made")
    ] = False,
) -> None:
    """Train spaCy on a corpus, and print its scores beside those of a study on each test set."""
    params = load()
    params.named("corpora", corpus)
    params.named("studies", study)
    folder = Path("data/clean", corpus)
    splits = {name: _labelled(corpus, name) for name in ("train", "valid", *_tests(folder))}
    # What is missing or does not belong here is told before the long part.
    ours, without = predictions(
        params, study, corpus, {name: splits[name] for name in clean.test_sets(folder)}
    )
    known = metrics.Scorer().known(splits["train"])
    if plain:
        copies = read_json(folder / "profile.json").get("augmented", 0)
        splits["train"] = splits["train"][: len(splits["train"]) - copies]  # they stand last
    if flat:
        splits["train"] += splits.pop("valid")
    everything = [record for members in splits.values() for record in members]
    languages = [language] if language else languages_of(everything)
    fits = {}
    for one in languages:
        members = {name: of_language(splits.get(name, []), one, languages) for name in splits}
        fits[one] = train_ner(
            pipeline(one),
            members["train"],
            members.get("valid", []),
            epochs=epochs,
            seed=params.seed if seed is None else seed,
            label=f"spaCy {one}",
        )
    console = Console(width=WIDTH, highlight=False)
    for test_set in clean.test_sets(folder):
        found = {
            record.id: record
            for one, fit in fits.items()
            for record in judge(fit.nlp, of_language(splits[test_set], one, languages), known)
        }
        comparison = evaluation.compare(
            metrics.Scorer(),
            {
                **{name: [*runs[test_set].values()] for name, runs in ours.items()},
                PEER: [[found[record.id] for record in splits[test_set]]],
            },
            resamples=params.resamples,
            seed=params.seed,
        )
        console.print(table(comparison, [*fits.values()], params, study, title=test_set))
        print(
            f"- {test_set}: {comparison['documents']:,} records in {comparison['groups']:,} groups,"
            f" {comparison['support']:,} spans; strict span F1; intervals from"
            f" {comparison['resamples']:,} bootstrap resamples of groups (seed"
            f" {comparison['seed']}), differences on the same resamples.\n"
        )
    for note in [
        *(_told_of_training(fit, one, epochs) for one, fit in fits.items()),
        *(
            _told_of_misaligned({one: fit.nlp for one, fit in fits.items()}, name, members)
            for name, members in splits.items()
        ),
        *_told_of_seconds(params, ours),
        *(f"{name} is left out: {reason}." for name, reason in without.items()),
    ]:
        print(f"- {note}")


def predictions(
    params: Params, study: str, corpus: str, tests: Mapping[str, Sequence[Record]]
) -> tuple[dict[str, dict[str, dict[str, evaluation.Run]]], dict[str, str]]:
    """What the experiments of a study found in each test set; why others are left out, by name.

    Raises WxbError for predictions on other records: they are older than the splits.
    """
    expected = {
        name: [(record.id, record.input, record.gold or ()) for record in records]
        for name, records in tests.items()
    }
    ours: dict[str, dict[str, dict[str, evaluation.Run]]] = {}
    without: dict[str, str] = {}
    for name in params.studies[study].experiments:
        folder = Path("reports/predictions", study, name)
        if params.experiments[name].corpus != corpus:
            without[name] = f"its corpus is {params.experiments[name].corpus}, not {corpus}"
        elif not folder.exists():
            without[name] = f"it has no predictions yet; run `dvc repro evaluate@{name}`"
        else:
            ours[name] = evaluation.load(metrics.Scorer(), folder)
            judged = {
                test_set: [(record.id, record.input, record.gold) for record in runs[""]]
                for test_set, runs in ours[name].items()
            }
            if judged != expected:
                raise WxbError(
                    f"{folder}: found other records than the test sets of data/clean/{corpus} have;"
                    f" expected the same; run `dvc repro evaluate@{name}`"
                )
    return ours, without


def table(
    comparison: Mapping[str, Any], fits: Sequence[Fit], params: Params, study: str, *, title: str
) -> Table:
    """One row a system, spaCy first; differences and ratios are to spaCy."""
    spent = sum(fit.seconds for fit in fits)
    differences = {
        pair["a"]: pair["difference"] for pair in comparison["pairs"] if pair["b"] == PEER
    }
    shown = Table(box=box.MARKDOWN, title=title)
    shown.add_column("system", no_wrap=True)
    for header in (
        "F1 (95% interval)",
        "minus spaCy (95% interval)",
        "parameters",
        "training",
        "time / spaCy's",
    ):
        shown.add_column(header, justify="right", no_wrap=True)
    systems = comparison["systems"]
    for name in (PEER, *differences):
        f1 = systems[name]["f1"]
        row = [name, f"{f1['value']:.3f} ({f1['low']:.3f}–{f1['high']:.3f})"]
        if name == PEER:
            learnt = sum(parameters(fit.nlp) for fit in fits)
            row += ["", _millions(learnt), f"{spent:.1f} s", "1.00"]
        else:
            difference = differences[name]
            measured = read_json(Path("reports/metrics", study, f"{name}.json"))
            seconds = read_json(Path("reports/cost/train", f"{name}.json"))["seconds"]
            row += [
                f"{difference['value']:+.3f}"
                f" ({difference['low']:+.3f} to {difference['high']:+.3f})",
                _millions(measured["parameters"]),
                f"{seconds:.1f} s",
                f"{seconds / spent:.2f}",
            ]
        shown.add_row(*row)
    return shown


def _labelled(corpus: str, split: str) -> list[Record]:
    path = Path("data/clean", corpus, f"{split}.parquet")
    if not path.exists():
        raise WxbError(f"{path}: not there yet; run `dvc repro preprocess@{corpus}` first")
    return clean.labelled(path, Labelling())


def _tests(folder: Path) -> list[str]:
    """The test sets of a clean corpus; none where it is not made yet, which is told elsewhere."""
    return clean.test_sets(folder) if folder.is_dir() else []


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f} M"


def _told_of_training(fit: Fit, language: str, epochs: int) -> str:
    about = f"{PEER}: spacy.blank({language!r}) and ner, from scratch on one CPU thread"
    if fit.valid_f1 is None:
        return f"{about}, train and valid together; epoch {fit.epoch} of {epochs} is kept."
    return f"{about}; epoch {fit.epoch} of {epochs} is best on valid (F1 {fit.valid_f1:.3f})."


def _told_of_misaligned(
    pipelines: Mapping[str, Language], split: str, records: Sequence[Record]
) -> str:
    """How many gold spans of a split spaCy cannot express, by language, and what that means."""
    lost: Counter[str] = Counter()
    for one, nlp in pipelines.items():
        for record in of_language(records, one, [*pipelines]):
            lost[record.language or "unknown"] += len(misaligned(nlp, record))
    total = sum(len(record.gold or ()) for record in records)
    detail = ", ".join(f"{language} {count:,}" for language, count in sorted(lost.items()) if count)
    shown = f" ({detail})" if len(lost) > 1 and detail else ""
    expressible = total - lost.total()
    best = prf([expressible, total, expressible])[2]
    meaning = f"count as missed, so that F1 can reach {best:.3f} at most"
    return (
        f"{lost.total():,} of {total:,} {split} spans{shown} do not fall on spaCy's token"
        f" boundaries; they {'teach it nothing' if split == 'train' else meaning}."
    )


def _told_of_seconds(params: Params, ours: Iterable[str]) -> Iterable[str]:
    """Where the seconds are from, and what those of ours leave out."""
    devices, pretraining = set(), {}
    for name in ours:
        devices.add(read_json(Path("reports/cost/train", f"{name}.json"))["device"])
        backbone = params.experiments[name].backbone
        pretraining[backbone] = read_json(Path("reports/cost/pretrain", f"{backbone}.json"))
    if not pretraining:
        return
    extra = ", ".join(f"{name} {cost['seconds']:.0f} s" for name, cost in pretraining.items())
    yield (
        f"Seconds of spaCy are of this run ({platform.machine()}, 1 CPU thread), ours of the train"
        f" stage ({'; '.join(sorted(devices))}), without pretraining the backbones ({extra})."
    )


if __name__ == "__main__":
    run(app, "spacy_ner")
