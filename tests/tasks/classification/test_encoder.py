import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from transformers import pipeline

from tests import tiny
from tests.tasks.classification import trained
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text import tokenizers
from wxb.tasks.classification.encoder import EncoderMethod
from wxb.tasks.classification.models.encoder import Classifier
from wxb.tasks.classification.models.regression import fit_regression
from wxb.tasks.classification.params import EncoderModel, Regression, Words
from wxb.tasks.methods import inputs

LABELS = ["fake", "real", "satire"]
IDS = torch.randint(3, 50, (4, 9), generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[1] * 9, [1] * 5 + [0] * 4, [1] + [0] * 8, [0] * 9])  # the last is empty


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_loaded_adapter_has_the_same_logits(tmp_path, pooling):
    tiny.bert(tmp_path / "backbone", vocab_size=50)
    tuning = Tuning(lora=LowRank(r=2, alpha=4, target_modules=["query", "value"]))
    options = {"labels": LABELS, "settings": EncoderModel(pooling=pooling, dropout=0.0)}
    model = Classifier.from_backbone(tmp_path / "backbone", tuning, **options).eval()
    (tmp_path / "model").mkdir()
    model.save_pretrained(tmp_path / "model")
    loaded = Classifier.from_pretrained(tmp_path / "model", **options)
    with torch.inference_mode():
        expected, logits = (classifier(IDS, MASK)["logits"] for classifier in (model, loaded))
    torch.testing.assert_close(logits, expected)


def test_cls_pooling_of_a_decoder_is_an_error(tmp_path):
    tokenizers.train("byte-level-bpe", 300, ["a film"]).save_pretrained(tmp_path)
    tokenizer = tokenizers.load(tmp_path)
    with pytest.raises(WxbError, match=r"backbone 'b' puts no \[CLS\] token first; expected mean"):
        EncoderMethod(trained.encoder("cls"), LABELS, tokenizer).new_model(tmp_path)


def test_plain_transformers_classify_as_we_do(tmp_path):
    _, predictor = trained.train(trained.encoder("cls"), tmp_path)
    classify = pipeline("text-classification", str(tmp_path / "model"))
    texts = [text for text, _ in trained.TEXTS[:6]] + ["The film was fine. " * 40]
    ours = predictor.predict(texts)
    for text, prediction in zip(texts, ours, strict=True):
        theirs = {row["label"]: row["score"] for row in classify(text, truncation=True, top_k=None)}
        assert max(theirs, key=lambda name: theirs[name]) == prediction.label
        logs = {name: np.log(p) for name, p in theirs.items()}
        temperature = predictor.settings["temperature"]
        powers = {name: np.exp(log / temperature) for name, log in logs.items()}
        for name, p in prediction.probabilities.items():
            assert powers[name] / sum(powers.values()) == pytest.approx(p, abs=1e-3)
    assert read_json(tmp_path / "model/config.json")["id2label"] == {"0": "bad", "1": "good"}


@pytest.mark.parametrize("folds", [None, 3])
def test_a_regression_is_scikit_learns_on_the_means_of_a_frozen_backbone(tmp_path, folds):
    experiment = trained.regression(C=[10.0], folds=folds)
    predictor, loaded = trained.train(experiment, tmp_path)
    texts = [text for text, _ in trained.TEXTS]
    encoded = tokenizers.encode(predictor.tokenizer, texts)
    head, predictor.model.head = predictor.model.head, torch.nn.Identity()
    items = inputs(encoded, predictor.tokenizer, 24)
    means = np.array([row["logits"] for row in predictor.outputs(items, caption="test")])
    predictor.model.head = head
    features = means / np.linalg.norm(means, axis=1).mean()
    gold = [label for _, label in trained.TEXTS]
    theirs = LogisticRegression(C=10, class_weight="balanced", max_iter=1000, tol=1e-6)
    expected = theirs.fit(features, gold).predict_log_proba(features)
    ours = predictor.logits(texts, caption="test")
    np.testing.assert_allclose(np.log(softmax(ours, axis=1)), expected, atol=1e-3)
    for one, other in zip(loaded.predict(texts), predictor.predict(texts), strict=True):
        assert one.probabilities == other.probabilities
    assert read_json(tmp_path / "model/wxb.json")["shape"] == {"pooling": "mean", "dropout": 0.1}
    backbone = load_file(tmp_path / "backbone/model.safetensors")
    state = predictor.model.backbone.state_dict()
    assert all(torch.equal(state[name], backbone[name]) for name in state.keys() & backbone.keys())


def regression(features, labels, **options):
    """The fit to some records, validated on the same ones."""
    splits = [dict.fromkeys(("train", "valid"), values) for values in (features, labels)]
    return fit_regression(*splits, Regression(**{"C": [1.0], **options}), seed=1, caption="test")


def test_cross_validation_chooses_c_without_validation_records(tmp_path):
    """On the training records themselves the largest C is the best."""
    noise = np.random.default_rng(1)
    features = noise.standard_normal((60, 40))
    labels = (features[:, 0] + noise.standard_normal(60) > 0).astype(np.int64)
    chosen = {}
    for folds in (None, 5):
        fit = regression(features, labels, C=[0.01, 1000.0], folds=folds)
        chosen[folds] = np.abs(fit.coef).max()
        assert ("folds_accuracy" in fit.history[0]) == bool(folds)
    assert chosen[5] < chosen[None]


def test_a_regression_on_words_and_states_sums_both_logits(tmp_path):
    """On more than the 24 tokens of the encoder, n-grams of all of them count."""
    experiment = trained.regression(folds=3)
    shape = experiment.model.model_copy(update={"words": Words(states=[0.3, 1.0])})
    experiment = experiment.model_copy(update={"model": shape})
    predictor, loaded = trained.train(experiment, tmp_path)
    texts = [text for text, _ in trained.TEXTS] + [f"{'The play ' * 30}was lovely."]
    predictions = predictor.predict(texts)
    assert [p.label for p in predictions] == [*(label for _, label in trained.TEXTS), "good"]
    for one, other in zip(loaded.predict(texts), predictions, strict=True):
        assert one.probabilities == other.probabilities
    ngrams = predictor.model.words.vectorizer.get_feature_names_out()
    assert ngrams[predictor.model.words.coef[1].argmax()] in trained.GOOD
    assert loaded.size(trainable=True) == 2 * (64 + 1 + len(ngrams))


def test_states_with_the_factor_0_do_not_count(tmp_path):
    experiment = trained.regression(folds=3)
    shape = experiment.model.model_copy(update={"words": Words(states=[0.0])})
    predictor, _ = trained.train(experiment.model_copy(update={"model": shape}), tmp_path)
    assert not predictor.model.head.weight.any()
    assert predictor.model.words.coef.any()


@pytest.mark.filterwarnings("error")
def test_a_class_with_one_record_has_no_warnings():
    features = np.random.default_rng(0).standard_normal((8, 4))
    fit = regression(features, np.array([0] * 7 + [1]), folds=5)
    assert (fit.coef.shape, fit.intercept.shape) == ((2, 4), (2,))
