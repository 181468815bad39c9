from itertools import combinations
from types import SimpleNamespace

from tests.chat_models import LORA, experiment
from wxb.reporting.charts.parts import Study
from wxb.tasks.chat.metrics import PredictionRow, Scorer
from wxb.tasks.chat.page import Page, examples, published
from wxb.tasks.chat.record.conversation import message, to_text

NEFTUNE = {**LORA, "neftune_alpha": 5.0}
BLOCKS = {
    "plain": experiment(),
    "all": experiment(loss="all"),
    "noise": experiment(NEFTUNE),
    "padded": experiment({**NEFTUNE, "neftune_padded": True}),
}
DIFFERENCE = {"value": 0.1, "low": 0.0, "high": 0.2, "p_value": 0.05}


def test_published_choices_are_found_by_settings():
    names = [*BLOCKS]
    comparison = {
        "systems": {name: {} for name in names},
        "pairs": [{"a": a, "b": b, "difference": DIFFERENCE} for a, b in combinations(names, 2)],
    }
    effects = published.effects(SimpleNamespace(experiments=BLOCKS), comparison)
    assert [(row.choice, row.ours, row.published) for row in effects] == [
        (published.LOSS_ON_ALL, "plain", "all"),
        (published.PADDED_NOISE, "noise", "padded"),
    ]


def test_the_first_question_of_each_kind_is_shown():
    rows = [
        PredictionRow(str(i), f"q{i}", "a", "b", kind, None, True) for i, kind in enumerate("xxy")
    ]
    shown = examples({"plain": rows})
    assert [(example.kind, example.question) for example in shown] == [("x", "q0"), ("y", "q2")]
    rows = [row._replace(kind=None) for row in rows]
    assert len(examples({"plain": rows})) == 3


def test_the_speed_is_over_all_test_sets_and_seeds():
    systems = {name: {"by_kind": {}, "support": 2, "tokens": 300} for name in ("one", "other")}
    metrics = {Scorer.METRICS[0].key: Scorer.METRICS[0]._asdict()}
    further = {"combinations": {"systems": systems}}
    study = Study(
        params=SimpleNamespace(experiments=dict.fromkeys(systems, experiment())),
        comparison={
            "systems": systems,
            "pairs": [],
            "metrics": metrics,
            "headline": "exact",
            "further": further,
            "seeds": [1, 2],
        },
        predictions=dict.fromkeys(systems, ()),
        curves={},
        pretraining={},
        pretrained={},
        costs={"evaluate@one": {"predicting": 0.5}},
    )
    parts = {part.id: part.html for part in Page().parts(study)}
    # Two test sets by the models of two seeds.
    assert parts["speed"].count("<td>2,400</td>") == parts["speed"].count("<td>") == 1


def test_an_example_has_its_history_and_whether_replies_are_correct():
    turns = [message("system", "Be brief."), message("user", "Spell cat.")]
    row = PredictionRow("0", to_text(turns), "c-a-t", "C-A-T", "spelling", "letters", True)
    rows = {"one": [row], "other": [row._replace(predicted="cat")]}
    (example,) = examples(rows)
    assert example.history == turns[:1]
    assert example.question == "Spell cat."
    assert example.is_correct == {"one": True, "other": False}


def test_the_worst_kinds_are_named():
    kinds = {"sums": {"exact": 0.1, "support": 9}, "names": {"exact": 1.0, "support": 2}}
    assert "sums (0.10 of 9) and names (1.00 of 2)" in Page().failures(
        {"support": 11, "by_kind": kinds}
    )
    assert Page().failures({"support": 11, "by_kind": {}}) == ""
    assert "compare chrF" in Page().failures({"support": 0, "by_kind": {}})
