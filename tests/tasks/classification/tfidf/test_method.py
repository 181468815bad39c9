import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from demos.reviews import generate
from tests.project_copy import ROOT
from tests.tasks.classification import trained
from wxb.core.errors import WxbError
from wxb.corpora.text import tokenizers
from wxb.corpora.text.saved import SavedTokenizer
from wxb.tasks.classification.predictor import by_class
from wxb.tasks.classification.record.ngrams import Tfidf
from wxb.tasks.classification.tfidf import method
from wxb.tasks.classification.tfidf.method import Method


def words(texts, tokenizer):
    encoded = tokenizers.encode(tokenizer, texts)
    return [text.ids for text in method.select_words(encoded, texts, tokenizer)]


def fit(experiment, tokenizer, items):
    """The model, fitted to items and validated on the same ones, and its history."""
    classifier = Method(experiment, [], tokenizer)
    run = classifier.training_run(items, items, seed=1, checkpoints=None, label="test")
    return classifier.fit(None, run)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    tokenizers.train("words", 5000, TEXTS).save_pretrained(folder)
    return SavedTokenizer(folder)


RECORDS = [*generate(labelled=300, unlabelled=0, languages=["en"], seed=3)]
TEXTS = [record["review"] for record in RECORDS[:200]]
OTHERS = [record["review"] for record in RECORDS[200:]]
OTHERS += ["An unheard-of word, 8½ of them; it's x_y 100% 😀 fine", "", "zzz"]


@pytest.mark.parametrize("ngrams", [1, 2, 3])
@pytest.mark.parametrize("sublinear", [True, False])
def test_features_are_scikit_learns(tokenizer, ngrams, sublinear):
    theirs = TfidfVectorizer(ngram_range=(1, ngrams), min_df=2, sublinear_tf=sublinear).fit(TEXTS)
    ours = Tfidf.from_texts(
        words(TEXTS, tokenizer),
        vocabulary=len(tokenizer),
        ngrams=ngrams,
        min_texts=2,
        sublinear=sublinear,
    )
    assert len(ours.keys) == len(theirs.vocabulary_)
    features = ours.features(words(OTHERS, tokenizer)).toarray()
    expected = theirs.transform(OTHERS).toarray()
    np.testing.assert_allclose(np.sort(features, axis=1), np.sort(expected, axis=1), atol=1e-12)
    # Products of texts do not depend on the order of features.
    np.testing.assert_allclose(features @ features.T, expected @ expected.T, atol=1e-12)


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
    ours = softmax(logits, axis=1)
    np.testing.assert_allclose(ours, theirs.predict_proba(vectors.transform(OTHERS)), atol=1e-4)
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".safetensors"}
    assert history[0]["C"] == 10.0


def test_the_smaller_of_two_equally_good_strengths_is_kept(tokenizer):
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
    assert np.abs(model.coef).max() < 1.0  # the weights of C 1, not of C 5


def test_contributions_sum_to_the_logit_without_the_intercept(tmp_path):
    _, predictor = trained.train(Method, trained.tfidf(), tmp_path, "words")
    text = "The film yesterday was fine."
    encoded = predictor.read([text])
    logits = predictor.logits(encoded, [text], label="test")
    (spans,) = predictor.weighted_spans(encoded, [text], logits)
    best, other = np.argsort(-logits[0])
    intercept = by_class(predictor.model.intercept)
    expected = logits[0, best] - logits[0, other] - (intercept[best] - intercept[other])
    assert sum(weight for *_, weight in spans) == pytest.approx(expected, abs=1e-3)


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
        with pytest.raises(WxbError, match="no n-gram occurs"):
            Tfidf.from_texts(arrays, **shape)
        return
    model = Tfidf.from_texts(arrays, **shape)
    assert len(model.keys) == len(known)
    for text, array in zip(texts, arrays, strict=True):
        features, ends = model.ngram_features(array)
        assert (features >= 0).all()
        ngrams_by_feature = {}
        for feature, (first, last) in zip(features.tolist(), ends.tolist(), strict=True):
            ngram = text[first : last + 1]
            assert ngrams_by_feature.setdefault(feature, ngram) == ngram


def test_texts_without_a_common_word_are_an_error(tokenizer):
    items = [{"input_ids": np.array([k], np.int32), "labels": np.int64(k)} for k in (2, 3)]
    with pytest.raises(WxbError, match="no n-gram occurs in 2 of 2 texts; add texts, or lower"):
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
    # `trained` also imports `tests.tiny`, which imports torch.
    code = code.replace("from tests.tasks", "sys.modules['tests.tiny'] = sys\nfrom tests.tasks", 1)
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.splitlines()[-1] == ""
