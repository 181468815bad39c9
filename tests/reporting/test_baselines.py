"""Baselines in tables, claims and pages: scores without tests."""

import json
from pathlib import Path

import pytest

from tests.reporting.conftest import CER, F1, comparison, write_page
from wxb.core.params import ParamsError, check, read_yaml
from wxb.reporting import tables
from wxb.reporting.charts.baselines import behind_baseline, trained, without_baselines
from wxb.reporting.charts.pairs import claim, leaders, matrix
from wxb.reporting.lead import lead
from wxb.tasks.classification.metrics import PredictionRow
from wxb.tasks.ner.page import Page


def with_baselines(scores, baselines, metric=F1):
    """A comparison with systems that are in no pair."""
    made = comparison(scores | baselines, metric=metric)
    made["pairs"] = [p for p in made["pairs"] if not {p["a"], p["b"]} & {*baselines}]
    for name in baselines:
        made["systems"][name] |= {"baseline": True, "trainable_parameters": 0}
    return made


def test_a_baseline_is_never_a_leader():
    made = with_baselines({"a": 0.9, "b": 0.5}, {"copy": 0.95})
    assert trained(made) == ["a", "b"]
    assert leaders(made) == ["a"]
    assert [*matrix(made)] == ["a", "b"]
    assert [*without_baselines(made)["systems"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("scores", "baselines", "metric", "sentence"),
    [
        ({"a": 0.9, "b": 0.5}, {"copy": 0.4}, F1, ""),
        ({"a": 0.9, "b": 0.5}, {}, F1, ""),
        (
            {"a": 0.9, "b": 0.5},
            {"copy": 0.4, "near": 0.6},
            F1,
            "b is not ahead of the baseline near (F1 0.600).",
        ),
        (
            {"a": 0.9, "b": 0.5},
            {"near": 0.9},
            F1,
            "a and b are not ahead of the baseline near (F1 0.900).",
        ),
        (
            {"a": 0.9, "b": 0.5},
            {"near": 0.7},
            CER,
            "a is not ahead of the baseline near (CER 0.700).",
        ),
        (
            dict(zip("abcd", (0.1, 0.2, 0.3, 0.4), strict=True)),
            {"near": 0.7},
            F1,
            "All four experiments are not ahead of the baseline near (F1 0.700).",
        ),
    ],
)
def test_the_claim_names_experiments_that_are_no_better(scores, baselines, metric, sentence):
    made = with_baselines(scores, baselines, metric)
    assert behind_baseline(made) == sentence
    assert claim(made).endswith(sentence)
    assert bool(sentence) == ("baseline" in claim(made))


def test_the_lead_of_a_page_counts_trained_experiments():
    made = with_baselines({"a": 0.9}, {"copy": 0.3})
    made["further"] = {"other": with_baselines({"a": 0.4}, {"copy": 0.6})}
    text = lead(made, {}, Page())
    assert text.claim == "a reaches F1 0.900."
    assert lead(with_baselines({"a": 0.3}, {"copy": 0.9}), {}, Page()).baseline
    assert "a has F1 0.400" in text.further
    assert text.further.endswith("a is not ahead of the baseline copy (F1 0.600).")
    assert "copy" not in text.cost


def test_tables_mark_baselines():
    made = with_baselines({"a": 0.9, "b": 0.5}, {"copy": 0.4})
    assert "| copy (baseline) |  | 0.400" in tables.score_table(made)
    assert "| a | a | 0.900" in tables.score_table(made)
    assert "copy" not in tables.summary(made) + tables.over_seeds(made)
    rows, _ = tables.score_columns(made)
    assert [row[0] for row in rows] == ["experiment", "a", "b", "copy (baseline)"]


def test_a_study_of_baselines_alone_is_refused():
    content = read_yaml(Path(__file__).parents[2] / "params.yaml")
    content["studies"]["ner"]["experiments"] = ["ner-mentions"]
    content["experiments"] = {"ner-mentions": content["experiments"]["ner-mentions"]}
    with pytest.raises(ParamsError, match="lists only baselines"):
        check(content)


def test_the_page_greys_baselines_and_lists_them_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right, wrong = (
        [
            PredictionRow(
                str(n), "text", "fake", label, {"fake": 0.5, "real": 0.5}, group=str(n % 5)
            )
            for n in range(20)
        ]
        for label in ("fake", "real")
    )
    write_page("news", [wrong, wrong, wrong, right, wrong])
    study = json.loads(Path("reports/studies/news.json").read_text())
    baselines = ["news-majority", "news-nearest"]
    assert [*study["systems"]][-2:] == baselines
    assert [name for name, row in study["systems"].items() if "baseline" in row] == baselines
    for each in (study, *study["further"].values()):
        assert not {name for p in each["pairs"] for name in (p["a"], p["b"])} & {*baselines}
    page = Path("reports/news.html").read_text(encoding="utf-8")
    results = page[page.index('id="results"') : page.index('id="noise"')]
    table = results[results.index("<tbody") : results.index("</tbody")]
    rows = table.split("<tr")[1:]
    assert [row.startswith(' class="baseline"') for row in rows] == [False] * 3 + [True] * 2
    assert all(f"</span>{name}<" in row for name, row in zip(baselines, rows[-2:], strict=True))
    assert "are not ahead of the baseline news-majority" in page
    settings = page[page.index("Settings that differ") : page.index("<footer")]
    assert "news-majority" not in settings  # a baseline lacks most settings
