"""The CRF: decoding compared with all tag sequences, and training with CRFsuite's own tagger."""

from itertools import pairwise, product

import numpy as np
import pycrfsuite
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from wxb.tasks.ner.crf import CRF, CrfModel, word_features
from wxb.tasks.ner.models.bio import decode_tags, tag_names


def log_scores(crf, scores):
    """The log-score of each valid sequence of tags."""
    result = {}
    for tags in product(range(len(crf.first)), repeat=len(scores)):
        steps = sum(crf.transitions[pair] for pair in pairwise(tags))
        emitted = sum(row[tag] for row, tag in zip(scores, tags, strict=True))
        total = crf.first[tags[0]] + steps + emitted
        if np.isfinite(total):
            result[tags] = total
    return result


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000), st.integers(1, 4), st.sampled_from([["A"], ["A", "B"]]), st.floats(0.1, 9)
)
def test_decoding_agrees_with_all_sequences(seed, length, types, spread):
    random = np.random.default_rng(seed)
    size = len(tag_names(types))
    features = [f"f{index}" for index in range(4)]
    states = {key: random.normal() for key in np.ndindex(len(features), size)}
    transitions = {key: random.normal() for key in np.ndindex(size, size)}
    crf = CRF.from_weights(features, states, transitions, size)
    scores = random.normal(size=(length, len(crf.first))) * spread
    by_tags = log_scores(crf, scores)
    tags = crf.best_tags(scores)
    assert by_tags[tuple(tags.tolist())] == pytest.approx(max(by_tags.values()))
    spans = [*decode_tags(tags.tolist())]
    total = logsumexp([*by_tags.values()])
    for span, probability in zip(spans, crf.probabilities(scores, tags, spans), strict=True):
        with_span = [value for other, value in by_tags.items() if span in decode_tags(other)]
        assert probability == pytest.approx(np.exp(logsumexp(with_span) - total))


def test_tags_are_valid_and_known():
    names = tag_names(["A", "B"])
    crf = CRF.from_weights(["f"], {(0, 0): 1.0, (0, 1): 1.0, (0, 2): 1.0}, {}, len(names))
    high = np.zeros((3, len(names)))
    high[:, 2] = 9.0  # I-A, which cannot begin a text
    high[:, 3] = 99.0  # B-B, which no training text has
    assert crf.best_tags(high).tolist() == [1, 2, 2]


def test_best_tags_are_those_of_crfsuite(tmp_path):
    """With the tags O and B alone, every tag may follow every other, as in CRFsuite."""
    random = np.random.default_rng(3)
    texts = [[[str(f)] for f in random.integers(0, 6, length)] for length in (3, 8, 5, 1)] * 3
    gold = [[str(random.integers(0, 2)) for _ in text] for text in texts]
    trainer = pycrfsuite.Trainer("lbfgs", {"c1": 0.0, "c2": 0.1}, verbose=False)
    for text, tags in zip(texts, gold, strict=True):
        trainer.append(text, tags)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    with tagger.open(str(tmp_path / "model")):
        fitted = tagger.info()
        states, between = (
            {(int(a), int(b)): weight for (a, b), weight in weights.items()}
            for weights in (fitted.state_features, fitted.transitions)
        )
        crf = CRF.from_weights([str(index) for index in range(6)], states, between, 3)
        for text in texts:
            ours = crf.best_tags(crf.scores(text)).tolist()
            assert ours == [int(tag) for tag in tagger.tag(text)]
            assert len({*ours} - {0, 1}) == 0


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
