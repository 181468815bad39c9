import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from demos.reviews import generate
from tests.tasks.classification import trained
from wxb.core.errors import WxbError
from wxb.tasks.classification.models.tfidf import Tfidf
from wxb.tasks.classification.params import TfidfModel
from wxb.tasks.classification.tfidf import TfidfMethod

TEXTS = [r["review"] for r in generate(labelled=300, unlabelled=0, languages=["en"], seed=3)]


def fit(experiment, texts, labels):
    """The model, fitted to texts and validated on the same ones, and its history."""
    items = [*zip(texts, labels, strict=True)]
    options = {"seed": 1, "checkpoints": None, "caption": "test"}
    return TfidfMethod(experiment, [], None).train(None, items, items, **options)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_saved_model_has_the_probabilities_of_scikit_learns_pipeline(classes, tmp_path):
    gold = np.arange(200) % classes
    vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit(TEXTS[:200])
    theirs = LogisticRegression(C=10, max_iter=2000, tol=1e-8, class_weight="balanced")
    theirs.fit(vectors.transform(TEXTS[:200]), gold)
    experiment = trained.tfidf(C=[10.0], class_weight="balanced", tol=1e-8, max_iter=2000)
    model, history = fit(experiment, TEXTS[:200], gold)
    model.save_pretrained(tmp_path / "model")
    others = [*TEXTS[200:], "An unheard-of word; it's x_y 100% 😀 fine", "", "zzz"]
    ours = softmax(Tfidf.from_pretrained(tmp_path / "model").logits(others), axis=1)
    # Their sums of features have another order, as an n-gram may have another index: 1e-8 is far
    # above rounding (200 terms of float64), and far below a difference of models.
    np.testing.assert_allclose(ours, theirs.predict_proba(vectors.transform(others)), atol=1e-8)
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".safetensors", ".json"}
    assert history[0]["C"] == 10.0


@pytest.mark.parametrize(
    "change", [lambda arrays: arrays.pop("coef"), lambda arrays: arrays["idf"].fill(np.nan)]
)
def test_missing_and_non_finite_weights_are_an_error(tmp_path, change):
    Tfidf.from_texts(TEXTS, TfidfModel()).save_pretrained(tmp_path)
    arrays = load_file(tmp_path / "model.safetensors")
    change(arrays)
    save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(WxbError, match=r"model\.safetensors.*(coef|idf)"):
        Tfidf.from_pretrained(tmp_path)


def test_a_chinese_character_is_a_word_and_hindi_words_have_vowels():
    model = Tfidf.from_texts(["李明住在北京", "दिन"], TfidfModel(min_texts=1))
    assert {"李", "李 明", "北 京", "दिन"} <= {*model.vectorizer.get_feature_names_out()}


def test_the_smaller_of_two_equally_good_strengths_is_kept():
    experiment = trained.tfidf(C=[5.0, 1.0])
    shape = experiment.model.model_copy(update={"ngrams": 1, "min_texts": 1})
    experiment = experiment.model_copy(update={"model": shape})
    texts = ["good film", "bad film", "good play", "bad play"]
    model, history = fit(experiment, texts, [0, 1, 0, 1])
    assert [row["C"] for row in history] == [1.0, 5.0]
    assert [row["valid_accuracy"] for row in history] == [1.0, 1.0]
    assert np.abs(model.coef).max() < 1.0  # the weights of C 1, not of C 5


def test_texts_without_a_common_word_are_an_error():
    with pytest.raises(WxbError, match="no n-gram occurs in 2 of 2 texts"):
        fit(trained.tfidf(), ["one", "two"], [0, 1])
