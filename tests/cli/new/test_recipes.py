from wxb.cli.new import recipes
from wxb.cli.new.recipes import Advice, Epochs, Recipe, Row, Size
from wxb.cli.new.trial import Trial
from wxb.core.params.corpora import Corpus


def corpus(**split):
    return Corpus(task="chat", path="x", split=split)


def test_few_records_need_many_epochs():
    epochs = Epochs(examples=3000, least=3, most=20)
    assert [epochs.number(n) for n in (0, 100, 300, 1000, 5000)] == [20, 20, 10, 3, 3]


def test_a_size_counts_words_and_the_records_of_the_training_split():
    trial = Trial(texts=["Ann left.", "王小明来了。"], counts={"hours": 2.0})
    trial.splits.update({None: 100})
    size = recipes.measure("unused", corpus(test=0.2, valid=0.1), trial)
    assert (size.train, size.valid, size.words) == (70, 10, 4.5)
    assert size.counts == {"records": 70, "hours": 1.4}
    trial.splits = type(trial.splits)({"train": 60, "valid": 20, "test": 20})
    files = {name: [f"{name}.csv"] for name in ("train", "valid", "test")}
    size = recipes.measure("unused", corpus(files=files), trial)
    assert (size.train, size.valid) == (60, 20)
    assert recipes.measure("unused", corpus(test=0.2, valid=0.1), None) is None
    trial.transcripts = 12
    size = recipes.measure("unused", corpus(files=files), trial)
    assert size.counts == {"records": 60, "transcripts": 12, "repetitions": 5.0, "hours": 1.2}


def test_a_row_is_for_corpora_within_its_bounds():
    row = Row(purpose="", at_most={"transcripts": 50}, at_least={"repetitions": 5})
    assert row.suits({"transcripts": 50, "repetitions": 5})
    assert not row.suits({"transcripts": 51, "repetitions": 5})
    assert not row.suits({"transcripts": 50, "repetitions": 4.9})
    assert not row.suits({})
    assert Row(purpose="").suits({})


def test_advice_is_for_small_corpora_only():
    advice = Advice(count="hours", below=1, text="set a checkpoint")
    recipe = Recipe(rows={}, advice=[advice])
    (text,) = recipe.advise(Size(10, 2, {"records": 10, "hours": 0.25}, 3.0))
    assert text == "only 0.25 hours to train on: set a checkpoint"
    assert not [*recipe.advise(Size(10, 2, {"records": 10, "hours": 1.0}, 3.0))]
    assert not [*recipe.advise(Size(10, 2, {"records": 10}, 3.0))]


def test_advice_to_name_a_checkpoint_is_not_for_studies_that_have_one():
    advice = Advice(count="records", below=100, text="name one", only_without_checkpoint=True)
    recipe, size = Recipe(rows={}, advice=[advice]), Size(10, 2, {"records": 10}, 3.0)
    assert [*recipe.advise(size)] == ["only 10 records to train on: name one"]
    assert not [*recipe.advise(size, has_checkpoint=True)]
