"""Whatever comes in, as many translations come out; and they are those of the model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.translation.made import LONGEST, SHAPES, SOURCES, experiment, learner, tokenizer
from wxb.tasks.translation.params import Prediction
from wxb.tasks.translation.predictor import special
from wxb.tasks.translation.seq2seq.method import Method

WILD = [
    "",
    " \n\t ",
    "\0",
    "汤姆 said hello 안녕 привет",
    "\uff11\uff12\uff13",  # full-width digits
    "😀👩‍👩‍👧‍👦🏳️‍🌈",
    "书" * 2000,
    "\ud800 half a pair",
    "</s><pad><s>",
    "a\u0301" * 50,
]


def predictor(name="attention", **options):
    made = Method.Predictor(
        learner(name),
        tokenizer(),
        shape=SHAPES[name].model_dump(),
        special=special(tokenizer()),
        longest=8,
        max_length=LONGEST,
    )
    made.prediction = Prediction(**options)
    return made


@pytest.mark.parametrize("name", SHAPES)
def test_the_wild_has_an_answer_for_each_input(name, capfd):
    found = predictor(name, beam=2).predict(WILD)
    assert len(found) == len(WILD)
    assert [one.text for one in found[:2]] == ["", ""]
    assert [one.cut for one in found[6:7]] == [True]
    assert "texts have more than 20 tokens" in capfd.readouterr().err


@given(st.lists(st.text(max_size=30), max_size=5))
@settings(deadline=None, max_examples=15)
def test_as_many_come_out_as_go_in(texts):
    assert len(predictor(beam=1).predict(texts)) == len(texts)


def test_the_size_of_batches_and_their_neighbours_change_nothing():
    texts = SOURCES[:9]
    together = [one.text for one in predictor("transformer", beam=3).predict(texts)]
    made = predictor("transformer", beam=3, batch_size=2)
    assert [one.text for one in made.predict(texts)] == together
    assert [made.predict([text])[0].text for text in texts] == together


def test_of_several_the_best_comes_first_and_all_are_told():
    made = predictor(beam=3, n_best=3)
    (found,) = made.predict(["一二三"])
    scores = [one.score for one in found.hypotheses]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    told = made.describe("一二三", found)
    assert told["translation"] == found.text
    assert [other["score"] for other in told["others"]] == scores[1:]
    assert made.show("一二三", found).count("\n") == 2
    (alone,) = predictor(beam=3).predict(["一二三"])
    assert made.describe("一二三", alone) == {"translation": found.text, "score": scores[0]}


def test_the_same_sentences_are_shown_of_every_system_that_has_attention():
    shown = {
        name: [
            at for at, one in enumerate(predictor(name, maps=3).predict(SOURCES)) if one.attention
        ]
        for name in SHAPES
    }
    assert shown["attention"] == shown["transformer"]
    assert len(shown["attention"]) == 3
    assert shown["seq2seq"] == shown["gpt2"] == []
    (at, *_) = shown["attention"]
    told = predictor(maps=3).predict(SOURCES)[at].attention
    assert len(told["weights"]) == len(told["target"])
    assert {len(row) for row in told["weights"]} == {len(told["source"])}


def test_what_is_saved_translates_alike(tmp_path):
    made = predictor("gpt2", beam=2)
    made.model.float()
    made.save(tmp_path, experiment("gpt2"), updates=3, examples=12)
    again = Method.Predictor.load(tmp_path, Prediction(beam=2))
    assert again.predict(SOURCES[:5]) == made.predict(SOURCES[:5])
    assert again.size() == made.size() > 0
