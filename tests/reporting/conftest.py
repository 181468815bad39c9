import csv
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from stages import compare, report
from tests import demo
from wxb import tasks
from wxb.core.files import write_json
from wxb.core.params import Params, check
from wxb.metrics import Metric, evaluation
from wxb.metrics.intervals import holm
from wxb.reporting.parts import Study
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import Span

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
NEEDED = pytest.mark.skipif(
    CHROMIUM is None, reason=f"needs a Chromium on the PATH, one of {', '.join(NAMES)}"
)

RECORDS = [
    ("en-1", "Ann Lee was born on 3 May 1990 in Bonn.", [(0, 3, "GIVENNAME"), (4, 7, "SURNAME")]),
    ("de-2", "Frau Kahl, 41, wohnt in Ulm.", [(5, 9, "SURNAME"), (24, 27, "CITY")]),
    ("zh-3", "王芳住在北京。", [(0, 1, "SURNAME"), (4, 6, "CITY")]),
    ("fr-4", "Appelez le 06 12 34 56 78.", [(11, 25, "TELEPHONENUM")]),
]
MADE = {"finished": "2030-01-02T03:04:05+00:00", "device": "some machine"}
Records = list[tuple[str, str, list[tuple[int, int, str]]]]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


NEARNESS = {"records": 3, "within_one_word": 0.25, "within_two_words": 0.5}


class Tree:
    """The reports of a study with as many experiments as members, written to the working folder."""

    def __init__(
        self,
        members: list[str],
        records: Records = RECORDS,
        title: str = "Which is better?",
        further: Sequence[str] = (),
    ) -> None:
        content = demo.content()
        block = content["experiments"]["ner-encoder"]
        backbones = dict.fromkeys(members, "decoder") | {members[0]: "encoder"}
        content["experiments"] = {m: {**block, "backbone": b} for m, b in backbones.items()}
        content["studies"] = {
            "ner": {"task": "ner", "title": title, "seed": 1, "experiments": members}
        }
        self.params: Params = check(content)
        self.members, self.further = members, further
        for skill, member in enumerate(members):
            self._evaluate(member, skill, records)
            curve("ner", member, "loss", [(10, 2.5), (20, 1.25)])
            curve("ner", member, "valid_loss", [(20, 1.5)])
            curve("ner", member, "valid_f1", [(20, 0.25)])
            cost("train", member, 100)
            cost("evaluate", member, 5)
        for backbone in dict.fromkeys(backbones.values()):
            curve("pretrain", backbone, "loss", [(1, 7.0), (2, float("nan"))])
            cost("pretrain", backbone, 3600)
            write_json(
                Path("reports/metrics/pretrain", f"{backbone}.json"),
                {"loss": 2.5, "parameters": 2_000_000, "trainable_parameters": 2_100_000},
            )
        compare.main(self.params, "ner")

    def _evaluate(self, member: str, skill: int, records: Records) -> None:
        rows = []
        for key, text, spans in records:
            gold = tuple(Span(*span) for span in spans)
            # Spans after the first `skill` end one character late.
            predicted = tuple(s._replace(end=s.end + (i >= skill)) for i, s in enumerate(gold))
            if key == "fr-4":  # so that precision, recall and F1 differ
                predicted = ()
            seen = tuple(span.type == "SURNAME" for span in gold)
            scores = (1.0,) * len(predicted)
            rows.append(metrics.PredictionRow(key, text, gold, predicted, scores, key[:1], seen))
        sets = {"test": {"": rows}, **{name: {"": rows[:3]} for name in self.further}}
        write_evaluation(metrics.Scorer(), "ner", member, sets)

    @property
    def comparison(self) -> dict:
        return json.loads(Path("reports/studies/ner.json").read_text(encoding="utf-8"))


def write_evaluation(
    scorer: Any, study: str, member: str, sets: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write predictions and metrics of one system, as the stage evaluate does."""
    facts = {"grouped_by": "article", "nearness": NEARNESS, "warnings": ["2 of 9 rejected"]}
    folder = Path("reports/predictions", study, member)
    made = {
        name: evaluation.evaluate(scorer, [*runs.values()], facts=facts)
        for name, runs in sets.items()
    }
    for name, runs in sets.items():
        for seed, rows in runs.items():
            parent = folder if name == "test" else folder / name
            evaluation.save_predictions(scorer, parent / seed, rows)
    evaluation.save(folder, made)
    scores = evaluation.metrics(scorer, made["test"])
    sizes = {"parameters": 2_345_678, "trainable_parameters": 1_234_567}
    sizes |= {"updates": 1_500, "examples": 12_000}
    write_json(Path("reports/metrics", study, f"{member}.json"), {**scores, **sizes})


def write_page(profile: str, rows: Sequence[Sequence[Any]]) -> None:
    """Write the page of a profile's study, in which experiments predict `rows` in turn."""
    params = check(demo.content(profile))
    study = params.studies[profile]
    for index, member in enumerate(study.experiments):
        tests = params.corpora[params.experiments[member].corpus].split.test_sets
        sets = {name: {"": rows[index % len(rows)]} for name in tests}
        write_evaluation(tasks.get(study.task).metrics, profile, member, sets)
        curve(profile, member, "loss", [(10, 2.5), (20, 1.25)])
        cost("train", member, 100)
        cost("evaluate", member, 5)
    compare.main(params, profile)
    report.main(params, profile)


def curve(group: str, name: str, metric: str, points: list[tuple[int, float]]) -> None:
    path = Path("reports/training", group, name, f"{metric}.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("step", metric), *points])


def cost(verb: str, name: str, seconds: float) -> None:
    content = {"seconds": seconds, "peak_memory_mib": 1234, **MADE}
    write_json(Path("reports/cost", verb, f"{name}.json"), content)


@pytest.fixture
def tree(cwd: Path) -> Callable[..., Tree]:
    """The class Tree, in an empty working folder."""
    return Tree


F1 = Metric("f1", "F1")
CER = Metric("cer", "CER", lower_is_better=True, high=None)
BLEU = Metric("bleu", "BLEU", high=100.0, decimals=1)


def comparison(
    scores: dict[str, float],
    *,
    noise: float = 0.01,
    groups: int = 20,
    p_value: float = 0.0001,
    metric: Metric = F1,
) -> dict:
    """A comparison by headline scores alone, where differences above `noise` have `p_value`."""
    pairs = []
    for a, b in combinations(scores, 2):
        value = round(scores[a] - scores[b], 6)
        p = max(p_value, 2.0 ** (1 - groups)) if abs(value) > noise else 0.5  # groups limit p
        interval = {"low": value - noise, "high": value + noise}
        pairs.append({"a": a, "b": b, "difference": {"value": value, **interval, "p_value": p}})
    for pair, p in zip(pairs, holm([p["difference"]["p_value"] for p in pairs]), strict=True):
        pair["difference"]["corrected"] = p
    kinds = ["correct", "wrong_type", "wrong_boundary", "wrong_both", "missed", "spurious"]
    systems = {
        name: {
            metric.key: {"value": value, "low": value - noise, "high": value + noise},
            f"{metric.key}_by_run": [value],
            "errors": dict.fromkeys(kinds, 0),
            "by_type": {},
            "parameters": 2_000_000,
            "trainable_parameters": 1_000_000,
            "updates": 100,
            "examples": 800,
        }
        for name, value in scores.items()
    }
    return {
        "study": "ner",
        "title": "Which is better?",
        "question": None,
        "metrics": {metric.key: metric._asdict()},
        "headline": metric.key,
        "signature": f"made-up {metric.title}",
        "unit": "records",
        **{key: {} for key in ("counts", "shares", "further")},
        **dict.fromkeys(("documents", "groups", "support"), groups),
        "seeds": [1],
        "systems": systems,
        "pairs": pairs,
        "level": 0.95,
        "nearness": NEARNESS,
    }


def with_baselines(scores, baselines, metric=F1):
    """A comparison with systems that are in no pair."""
    made = comparison(scores | baselines, metric=metric)
    made["pairs"] = [p for p in made["pairs"] if not {p["a"], p["b"]} & {*baselines}]
    for name in baselines:
        made["systems"][name] |= {"baseline": True, "trainable_parameters": 0}
    return made


def study_of(scorer: Any, predictions: Mapping[str, Any], name: str = "own") -> Study:
    """A study of systems with these predictions on `test`."""
    systems = {
        key: {"test": evaluation.evaluate(scorer, [rows])} for key, rows in predictions.items()
    }
    made = evaluation.compare(scorer, systems)
    content = {"study": name, "title": "?", "question": None, "seeds": [1], **made}
    return Study(None, scorer, content, predictions, {}, {}, {}, {})


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
