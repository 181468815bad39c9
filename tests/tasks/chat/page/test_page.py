"""The sections of chat pages."""

from tests.reporting.conftest import study_of
from wxb.tasks.chat.metrics import PredictionRow, Scorer
from wxb.tasks.chat.page import Page, examples
from wxb.tasks.chat.record.conversation import message, to_text


def rows(kinds, **changes):
    row = PredictionRow("0", "q", "a", "b", None, None, True)
    return [
        row._replace(id=str(i), input=f"q{i}", kind=kind, **changes) for i, kind in enumerate(kinds)
    ]


def test_the_first_question_of_each_kind_is_shown():
    assert [fold.summary for fold in examples({"plain": rows("xxy")})] == ["x: q0", "y: q2"]
    assert len([*examples({"plain": rows([None] * 3)})]) == 3


def test_an_example_has_its_history_and_whether_replies_are_correct():
    turns = [message("system", "Be brief."), message("user", "Spell cat.")]
    row = PredictionRow("0", to_text(turns), "c-a-t", "C-A-T", "spelling", "letters", True)
    other = row._replace(predicted="cat", ended=False)
    (fold,) = examples({"one": [row], "other": [other], "open": [row._replace(format=None)]})
    assert fold.summary == "spelling: Spell cat."
    history, table = fold.blocks
    assert history == "system: Be brief."
    assert table.rows == [
        ["answer", "", "c-a-t"],
        ["one", "yes", "C-A-T"],
        ["other", "no", "cat …"],
        ["open", "", "C-A-T"],
    ]


def test_tokens_a_second_are_over_all_test_sets_and_seeds():
    study = study_of(Scorer(), {"one": rows("xy", format="text"), "two": rows("xy", format="text")})
    study.comparison["seeds"] = [1, 2]
    study.comparison["further"] = {"combinations": {"systems": study.comparison["systems"]}}
    for system in study.comparison["systems"].values():
        system["tokens"] = 300
    kinds, replies = Page().sections(study._replace(costs={"evaluate@one": {"predicting": 0.5}}))
    assert [row[0] for row in kinds.blocks[0].rows] == ["x", "y"]
    assert [row[-1] for row in replies.blocks[1].rows] == ["2,400", "–"]
