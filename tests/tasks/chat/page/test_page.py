from types import SimpleNamespace

from tests.talking import LORA, experiment
from wxb.reporting.charts.parts import Study
from wxb.tasks.chat.metrics import Judged, Scorer
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
        "systems": dict.fromkeys(names),
        "pairs": [
            {"a": a, "b": b, "difference": DIFFERENCE}
            for place, a in enumerate(names)
            for b in names[place + 1 :]
        ],
    }
    found = published.effects(SimpleNamespace(experiments=BLOCKS), comparison)
    assert [(row.choice, row.ours, row.published) for row in found] == [
        (published.LOSS_ON_ALL, "plain", "all"),
        (published.PADDED_NOISE, "noise", "padded"),
    ]


def test_the_first_question_of_each_kind_is_shown():
    rows = [Judged(str(i), f"q{i}", "a", "b", kind, None, True) for i, kind in enumerate("xxy")]
    assert [(row.kind, row.asked) for row in examples({"one": rows})] == [("x", "q0"), ("y", "q2")]
    rows = [row._replace(kind=None) for row in rows]
    assert len(examples({"one": rows})) == 3


def test_systems_may_be_asked_in_other_ways():
    rate = {"exact": 0.5, "format": 1.0, "support": 2}
    prompts = {"one": {"zero-shot": rate}, "other": {"few-shot": rate, "zero-shot": rate}}
    systems = {
        name: {"by_kind": {}, "by_prompt": asked, "support": 2, "tokens": 300}
        for name, asked in prompts.items()
    }
    metrics = {Scorer.METRICS[0].key: Scorer.METRICS[0]._asdict()}
    further = {"wordings": {"systems": systems}}
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
        judged=dict.fromkeys(systems, ()),
        curves={},
        pretraining={},
        pretrained={},
        costs={"evaluate@one": {"predicting": 0.5}},
    )
    found = {part.id: part.html for part in Page().parts(study)}
    assert found["prompts"].count("not asked") == 1
    assert found["prompts"].count("0.50") == 3
    # Two test sets by the models of two seeds.
    assert found["speed"].count("<td>2,400</td>") == found["speed"].count("<td>") == 1


def test_turns_stand_before_a_question_and_what_can_be_checked_is_told():
    turns = [message("system", "Be brief."), message("user", "Spell cat.")]
    row = Judged("0", to_text(turns), "c-a-t", "C-A-T", "spelling", "letters", True)
    rows = {"one": [row], "other": [row._replace(predicted="cat")]}
    (example,) = examples(rows)
    assert example.before == turns[:1]
    assert example.asked == "Spell cat."
    assert example.right == {"one": True, "other": False}


def test_the_worst_kinds_are_named():
    kinds = {"sums": {"exact": 0.1, "support": 9}, "names": {"exact": 1.0, "support": 2}}
    assert "sums (0.10 of 9) and names (1.00 of 2)" in Page().failures(
        {"support": 11, "by_kind": kinds}
    )
    assert Page().failures({"support": 11, "by_kind": {}}) == ""
    assert "compare chrF" in Page().failures({"support": 0, "by_kind": {}})
