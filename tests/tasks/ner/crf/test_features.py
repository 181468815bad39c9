from wxb.tasks.ner.crf.features import word_features
from wxb.tasks.ner.params import CrfModel


def test_features_of_a_word():
    first, second = word_features(["Dr.", "Who"], CrfModel(window=1, affixes=2))
    assert set(first) == {
        "bias",
        *("word-1=", "word0=dr.", "word1=who"),
        *("shape-1=", "shape0=Xx.", "shape1=Xxx"),
        *("pair-1= dr.", "pair0=dr. who"),
        *("prefix=d", "prefix=dr", "suffix=.", "suffix=r."),
    }
    assert {"word-1=dr.", "word0=who", "word1=", "pair-1=dr. who", "pair0=who "} <= {*second}
