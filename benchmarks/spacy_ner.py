"""Compare spaCy's entity recognizer with the experiments of a study, on the same records.

spacy_peer.py trains it. Its test spans are scored by the project's scorer. Gold spans that are not
on token boundaries of spaCy count as missed.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

# First: it limits the libraries of both sides to one thread.
from spacy_peer import (
    PEER,
    Fit,
    languages_of,
    misaligned,
    parameter_count,
    pipeline,
    predict,
    select_language,
    train_ner,
)

# isort: split
import typer
from spacy.language import Language

from wxb.core import paths
from wxb.core.errors import WxbError, require_output
from wxb.core.files import read_json
from wxb.core.params import Params, load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.project.reproduction import benchmarks
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import prf
from wxb.tasks.ner.record import Labelling

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    corpus: Annotated[str, typer.Option(help="a corpus of params.yaml")],
    study: Annotated[str, typer.Option(help="a study of that corpus")],
    epochs: Annotated[int, typer.Option(min=1)] = 20,
    seed: Annotated[
        int | None, typer.Option(min=0, help="seed of spaCy; default: that of params.yaml")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="language of a single pipeline; default: a pipeline for each language"),
    ] = None,
    flat: Annotated[
        bool, typer.Option(help="train on train and valid; keep the last epoch")
    ] = False,
    plain: Annotated[
        bool, typer.Option(help="train without the copies that `augment` of the corpus added")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Train spaCy on a corpus; print its scores and those of a study on each test set."""
    params = load()
    params.block("corpora", corpus)
    params.block("studies", study)
    folder = Path("data/clean", corpus)
    splits = {name: _labelled(corpus, name) for name in ("train", "valid", *_tests(folder))}
    # Raises errors before training.
    ours, without = predictions(
        params, study, corpus, {name: splits[name] for name in clean.test_sets(folder)}
    )
    vocabulary = metrics.Scorer().vocabulary(splits["train"])
    if plain:
        copies = read_json(folder / "profile.json").get("augmented", 0)
        splits["train"] = splits["train"][: len(splits["train"]) - copies]  # they are last
    if flat:
        splits["train"] += splits.pop("valid")
    everything = [record for members in splits.values() for record in members]
    languages = [language] if language else languages_of(everything)
    fits = {}
    for code in languages:
        members = {name: select_language(splits.get(name, []), code, languages) for name in splits}
        fits[code] = train_ner(
            pipeline(code),
            members["train"],
            members.get("valid", []),
            epochs=epochs,
            seed=params.seed if seed is None else seed,
            label=f"spaCy {code}",
        )
    table = []
    for test_set in clean.test_sets(folder):
        rows = {
            row.id: row
            for code, fit in fits.items()
            for row in predict(
                fit.nlp, select_language(splits[test_set], code, languages), vocabulary
            )
        }
        comparison = evaluation.compare(
            metrics.Scorer(),
            {
                **{name: [*runs[test_set].values()] for name, runs in ours.items()},
                PEER: [[rows[record.id] for record in splits[test_set]]],
            },
        )
        size = {"test set": test_set, "groups": comparison["groups"]}
        table += [
            {**size, **row} for row in table_rows(comparison, [*fits.values()], params, study)
        ]
    formats = {"minus spaCy": "+.3f", "seconds": ".0f", "times spaCy's": ".2f"}
    benchmarks.report(table, output, formats)
    for note in [
        *(_training_note(fit, code, epochs) for code, fit in fits.items()),
        *(
            _misaligned_note({code: fit.nlp for code, fit in fits.items()}, name, members)
            for name, members in splits.items()
        ),
        *_seconds_notes(params, ours),
        *(f"{name} is left out: {reason}." for name, reason in without.items()),
    ]:
        print(f"- {note}")


def predictions(
    params: Params, study: str, corpus: str, tests: Mapping[str, Sequence[Record]]
) -> tuple[dict[str, dict[str, dict[str, evaluation.Run]]], dict[str, str]]:
    """The predictions of experiments for each test set, and why others are left out, by name.

    Raises WxbError for predictions of other records, which are older than the splits.
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
            actual = {
                test_set: [(record.id, record.input, record.gold) for record in runs[""]]
                for test_set, runs in ours[name].items()
            }
            if actual != expected:
                raise WxbError(
                    f"{folder}: found other records than in the test sets of data/clean/{corpus};"
                    f" run `dvc repro evaluate@{name}`"
                )
    return ours, without


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
    path = Path("data/clean", corpus, f"{split}.parquet")
    require_output(path, f"preprocess@{corpus}")
    return clean.read_labelled(path, Labelling())


def _tests(folder: Path) -> list[str]:
    """The test sets of a clean corpus; none if it does not exist, which raises an error later."""
    return clean.test_sets(folder) if folder.is_dir() else []


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f} M"


def _training_note(fit: Fit, language: str, epochs: int) -> str:
    about = f"{PEER}: spacy.blank({language!r}) and ner, from scratch on one CPU thread"
    if fit.valid_f1 is None:
        return f"{about}, train and valid together; epoch {fit.epoch} of {epochs} is kept."
    return f"{about}; epoch {fit.epoch} of {epochs} is best on valid (F1 {fit.valid_f1:.3f})."


def _misaligned_note(
    pipelines: Mapping[str, Language], split: str, records: Sequence[Record]
) -> str:
    """The number of gold spans of a split that spaCy cannot predict, by language."""
    lost: Counter[str] = Counter()
    for code, nlp in pipelines.items():
        for record in select_language(records, code, [*pipelines]):
            lost[record.language or "unknown"] += len(misaligned(nlp, record))
    total = sum(len(record.gold or ()) for record in records)
    detail = ", ".join(f"{language} {count:,}" for language, count in sorted(lost.items()) if count)
    by_language = f" ({detail})" if len(lost) > 1 and detail else ""
    expressible = total - lost.total()
    best = prf([expressible, total, expressible])[2]
    effect = "have no target" if split == "train" else f"are missed: F1 is at most {best:.3f}"
    return (
        f"{lost.total():,} of {total:,} {split} spans{by_language} are not on token boundaries"
        f" of spaCy; they {effect}."
    )


def _seconds_notes(params: Params, ours: Iterable[str]) -> Iterable[str]:
    """A note on the machines of the seconds, and on pretraining; none without experiments."""
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
    benchmarks.run(app)
