import pytest

from wxb.core.params import ParamsError, check, read_yaml
from wxb.project.profiles import switch


@pytest.fixture
def params(params):
    """The blocks of params.yaml with the profile `reviews`."""
    switch("reviews")
    return read_yaml(params)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("corpora.reviews.clases", {}, "did you mean 'classes'"),
        ("experiments.reviews-tfidf.method", "tf-idf", "did you mean 'tfidf'"),
        ("experiments.reviews-tfidf.training.epochs", 3, "unknown key"),
        ("experiments.reviews-tfidf.tuning.neftune_alpha", 5, "has no backbone to tune"),
        ("experiments.reviews-bilstm.tuning.neftune_alpha", 5, "has no backbone to tune"),
        ("experiments.reviews-bert.model.pooling", "max", "should be 'cls' or 'mean'"),
        ("experiments.reviews-bert.training", {"C": [1]}, "expected `tuning: {frozen: true}`"),
        ("experiments.reviews-bert.training", {"C": [0]}, r"training\.C\.0: found 0"),
        ("backbones.reviews-words.architecture", {"model_type": "bert"}, "missing"),
        ("backbones.reviews-initial.tokenizer.kind", "words", "without `architecture`"),
    ],
)
def test_an_error_names_the_expected_values(params, key, value, message):
    *parents, last = key.split(".")
    block = params
    for parent in parents:
        block = block[parent]
    block[last] = value
    with pytest.raises(ParamsError, match=message):
        check(params)
