from hypothesis import given
from hypothesis import strategies as st

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


@given(st.lists(st.text(min_size=1), max_size=6), st.integers(0, 3), st.integers(0, 4))
def test_each_word_has_features_that_do_not_repeat(words, window, affixes):
    rows = word_features(words, CrfModel(window=window, affixes=affixes))
    assert len(rows) == len(words)
    for row in rows:
        assert len(row) == len({*row})
        assert 2 + 4 * window + 1 <= len(row) <= 2 + 6 * window + 1 + 2 * affixes
