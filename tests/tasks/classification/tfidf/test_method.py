import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from demos.reviews import generate
from tests.copied import ROOT
from tests.tasks.classification import trained
from wxb.core.errors import WxbError
from wxb.corpora.text import tokenizers
from wxb.tasks.classification.tfidf import method
from wxb.tasks.classification.tfidf.method import Method
from wxb.tasks.classification.tfidf.model import Tfidf


def words(texts, tokenizer):
    encoded = tokenizers.encode(tokenizer, texts)
    return [found.ids for found in method.words(encoded, texts, tokenizer)]


def fit(experiment, tokenizer, items):
    """The model, fitted to items and validated on the same, and its history."""
    classifier = Method(experiment, [], tokenizer)
    run = classifier.training_run(items, items, seed=1, checkpoints=None, label="test")
    return classifier.fit(None, run)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    tokenizers.train("words", 5000, TEXTS).save_pretrained(folder)
    return tokenizers.SavedTokenizer(folder)


RECORDS = [*generate(labelled=300, unlabelled=0, languages=["en"], seed=3)]
TEXTS = [record["review"] for record in RECORDS[:200]]
OTHERS = [record["review"] for record in RECORDS[200:]]
OTHERS += ["An unheard-of word, 8½ of them; it's x_y 100% 😀 fine", "", "zzz"]


@pytest.mark.parametrize("ngrams", [1, 2, 3])
@pytest.mark.parametrize("sublinear", [True, False])
def test_features_are_scikit_learns(tokenizer, ngrams, sublinear):
    theirs = TfidfVectorizer(ngram_range=(1, ngrams), min_df=2, sublinear_tf=sublinear).fit(TEXTS)
    ours = Tfidf.of_texts(
        words(TEXTS, tokenizer),
        vocabulary=len(tokenizer),
        ngrams=ngrams,
        min_texts=2,
        sublinear=sublinear,
    )
    assert len(ours.keys) == len(theirs.vocabulary_)
    found = ours.features(words(OTHERS, tokenizer)).toarray()
    expected = theirs.transform(OTHERS).toarray()
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(expected, axis=1), atol=1e-12)
    # Products of texts tell that the same features meet.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_scikit_learns_pipeline(tokenizer, classes, tmp_path):
    gold = np.arange(len(TEXTS)) % classes
    vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit(TEXTS)
    theirs = LogisticRegression(C=10, max_iter=2000, tol=1e-8, class_weight="balanced")
    theirs.fit(vectors.transform(TEXTS), gold)
    items = [
        {"input_ids": ids, "labels": np.int64(label)}
        for ids, label in zip(words(TEXTS, tokenizer), gold, strict=True)
    ]
    experiment = trained.tfidf(C=[10.0], class_weight="balanced", tol=1e-8, max_iter=2000)
    model, history = fit(experiment, tokenizer, items)
    model.save_pretrained(tmp_path / "model")
    logits = Tfidf.from_pretrained(tmp_path / "model").logits(
        model.features(words(OTHERS, tokenizer))
    )
    found = method.calibration.softmax(logits)
    np.testing.assert_allclose(found, theirs.predict_proba(vectors.transform(OTHERS)), atol=1e-4)
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".safetensors"}
    assert history[0]["C"] == 10.0


def test_the_strength_that_validates_best_is_kept_and_the_smaller_of_two(tokenizer):
    texts = ["good film", "bad film", "good play", "bad play"]
    items = [
        {"input_ids": ids, "labels": np.int64(k % 2)}
        for k, ids in enumerate(words(texts, tokenizer))
    ]
    experiment = trained.tfidf(C=[5.0, 1.0])
    shape = experiment.model.model_copy(update={"ngrams": 1, "min_texts": 1})
    experiment = experiment.model_copy(update={"model": shape})
    model, history = fit(experiment, tokenizer, items)
    assert [row["C"] for row in history] == [1.0, 5.0]
    assert [row["valid_accuracy"] for row in history] == [1.0, 1.0]
    again = np.abs(model.coef).max()
    assert again < 1.0  # the weights of C 1, not of C 5


def test_shares_of_words_sum_to_the_logit_but_for_the_intercept(tmp_path):
    _, predictor = trained.train(Method, trained.tfidf(), tmp_path, "words")
    text = "The film yesterday was fine."
    encoded = predictor.read([text])
    logits = predictor.logits(encoded, [text], label="test")
    (told,) = predictor.evidence(encoded, [text], logits)
    best, other = np.argsort(-logits[0])
    intercept = predictor.model._both(predictor.model.intercept)
    expected = logits[0, best] - logits[0, other] - (intercept[best] - intercept[other])
    assert sum(weight for *_, weight in told) == pytest.approx(expected, abs=1e-3)


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 6), max_size=8), min_size=1, max_size=6), st.integers(1, 4))
def test_no_two_ngrams_share_a_feature(texts, ngrams):
    arrays = [np.array(text, np.int32) for text in texts]
    known = {
        tuple(text[k : k + size])
        for text in texts
        for size in range(1, ngrams + 1)
        for k in range(len(text) - size + 1)
    }
    shape = {"vocabulary": 7, "ngrams": ngrams, "min_texts": 1, "sublinear": False}
    if not known:
        with pytest.raises(ValueError, match="found no n-gram"):
            Tfidf.of_texts(arrays, **shape)
        return
    model = Tfidf.of_texts(arrays, **shape)
    assert len(model.keys) == len(known)
    for text, array in zip(texts, arrays, strict=True):
        places, stretches = model.places(array)
        assert (places >= 0).all()
        named = {}
        for place, (first, last) in zip(places.tolist(), stretches.tolist(), strict=True):
            assert named.setdefault(place, text[first : last + 1]) == text[first : last + 1]


def test_texts_that_share_nothing_are_an_error(tokenizer):
    items = [{"input_ids": np.array([k], np.int32), "labels": np.int64(k)} for k in (2, 3)]
    with pytest.raises(WxbError, match=r"no n-gram that stands in 2 of 2 texts; bring more, or"):
        fit(trained.tfidf(), tokenizer, items)


@pytest.mark.slow
def test_neither_training_nor_prediction_loads_torch(tmp_path):
    code = f"""
import sys
from pathlib import Path
import stages.train, stages.evaluate, stages.pretrain, stages.tokenizer
from tests.tasks.classification import trained
from wxb.tasks.classification.tfidf.method import Method
_, predictor = trained.train(Method, trained.tfidf(), Path({str(tmp_path)!r}), "words")
predictor.predict(["The film was fine."])
print(*({{"torch", "transformers"}} & sys.modules.keys()))
"""
    # `trained` has models of torch besides: its own import of them is left out.
    code = code.replace("from tests.tasks", "sys.modules['tests.tiny'] = sys\nfrom tests.tasks", 1)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == ""
