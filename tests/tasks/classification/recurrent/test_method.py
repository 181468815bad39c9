from tests.tasks.classification import trained
from wxb.tasks.classification.recurrent.method import Method


def test_the_shape_is_that_of_params(tmp_path):
    _, predictor = trained.train(Method, trained.recurrent(), tmp_path, "words")
    assert predictor.settings["shape"] == trained.recurrent().model.model_dump()
    assert predictor.model.embedding.weight.shape == (len(predictor.tokenizer), 16)
