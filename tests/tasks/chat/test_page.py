"""The sections of chat pages."""

from tests.reporting.conftest import study_of
from wxb.corpora.text.templates import message
from wxb.tasks.chat.metrics import PredictionRow, Scorer
from wxb.tasks.chat.page import Page, examples
from wxb.tasks.chat.record.conversation import serialize


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
    row = PredictionRow("0", serialize(turns), "c-a-t", "C-A-T", "spelling", "letters", True)
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


def test_the_sections_have_a_row_a_kind_and_the_diversity_of_replies():
    kinds, replies = Page().sections(study_of(Scorer(), {"one": rows("xy", format="text")}))
    assert [row[0] for row in kinds.blocks[1].rows] == ["x", "y"]
    assert replies.blocks[1].rows == [["one", "0.500", "0.000"]]
