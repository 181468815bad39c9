"""One translation per input, whatever the input."""

import pytest

from tests.tasks.translation.translators import LONGEST, SHAPES, SOURCES, random_model, tokenizer
from wxb.tasks.translation.models.predictor import special_ids_and_size
from wxb.tasks.translation.params import Prediction
from wxb.tasks.translation.seq2seq import Seq2SeqMethod

UNUSUAL = [
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
    translator = Seq2SeqMethod.PREDICTOR(
        random_model(name),
        tokenizer(),
        task="translation",
        method="seq2seq",
        shape=SHAPES[name].model_dump(),
        special=special_ids_and_size(tokenizer()),
        longest=8,
        max_length=LONGEST,
    )
    translator.prediction = Prediction(**options)
    return translator


@pytest.mark.parametrize("name", SHAPES)
def test_unusual_inputs_have_translations(name, capfd):
    translations = predictor(name, beam=2).predict(UNUSUAL)
    assert len(translations) == len(UNUSUAL)
    assert [translation.text for translation in translations[:2]] == ["", ""]
    assert translations[6].truncated
    assert "texts have more than 20 tokens" in capfd.readouterr().err
    assert predictor(name).predict([]) == []


def test_attention_maps_are_of_the_same_sentences_for_all_systems_with_attention():
    mapped = {
        name: [
            index
            for index, translation in enumerate(predictor(name, maps=3).predict(SOURCES))
            if translation.attention
        ]
        for name in SHAPES
    }
    assert mapped["attention"] == mapped["transformer"]
    assert len(mapped["attention"]) == 3
    assert mapped["seq2seq"] == mapped["gpt2"] == []
    (index, *_) = mapped["attention"]
    attention = predictor(maps=3).predict(SOURCES)[index].attention
    assert len(attention["weights"]) == len(attention["target"])
    assert {len(row) for row in attention["weights"]} == {len(attention["source"])}


def test_a_loaded_translator_translates_the_same(tmp_path):
    translator = predictor("gpt2", beam=2)
    translator.model.float()
    translator.save(tmp_path)
    loaded = Seq2SeqMethod.PREDICTOR.load(tmp_path, Prediction(beam=2))
    assert loaded.predict(SOURCES[:5]) == translator.predict(SOURCES[:5])
    assert loaded.size() == translator.size() > 0
