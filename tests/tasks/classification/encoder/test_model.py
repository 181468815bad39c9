import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, pipeline

from tests import tiny
from tests.tasks.classification import trained
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text import tokenizers
from wxb.tasks.classification.encoder.method import Method
from wxb.tasks.classification.encoder.model import Classifier
from wxb.tasks.classification.params import EncoderModel

LABELS = ["fake", "real", "satire"]
IDS = torch.randint(3, 50, (3, 9), generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[1] * 9, [1] * 5 + [0] * 4, [1] + [0] * 8])


def classifier(folder, pooling, tuning=None):
    tiny.bert(folder / "backbone", vocab_size=50)
    torch.manual_seed(0)
    settings = EncoderModel(pooling=pooling, dropout=0.0)
    return Classifier.from_backbone(
        folder / "backbone", tuning or Tuning(), labels=LABELS, settings=settings
    ).eval()


def logits(model):
    with torch.inference_mode():
        return model(IDS, MASK)["logits"]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("lora", [False, True])
def test_a_loaded_model_has_the_same_logits(tmp_path, pooling, lora):
    matrices = LowRank(r=2, alpha=4, target_modules=["query", "value"])
    model = classifier(tmp_path, pooling, Tuning(lora=matrices if lora else None))
    (tmp_path / "model").mkdir()
    model.save_pretrained(tmp_path / "model")
    settings = EncoderModel(pooling=pooling, dropout=0.0)
    loaded = Classifier.from_pretrained(tmp_path / "model", labels=LABELS, settings=settings)
    torch.testing.assert_close(logits(loaded), logits(model))


def test_a_full_bert_with_cls_pooling_loads_in_transformers(tmp_path):
    model = classifier(tmp_path, "cls")
    model.save_pretrained(tmp_path / "model")
    theirs, report = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert type(theirs).__name__ == "BertForSequenceClassification"
    assert not any(report.values()), report
    with torch.inference_mode():
        expected = theirs.eval()(IDS, attention_mask=MASK).logits
    torch.testing.assert_close(logits(model), expected)
    assert theirs.config.id2label == dict(enumerate(LABELS))


def test_cls_pooling_of_a_decoder_is_an_error(tmp_path):
    tokenizers.train("byte-level-bpe", 300, ["a film"]).save_pretrained(tmp_path)
    tokenizer = tokenizers.load(tmp_path)
    with pytest.raises(WxbError, match=r"backbone 'b' puts no \[CLS\] token first; expected mean"):
        Method(trained.encoder("cls"), LABELS, tokenizer).build(tmp_path)


def test_padding_changes_nothing(tmp_path):
    model = classifier(tmp_path, "mean")
    with torch.inference_mode():
        alone = model(IDS[1:2, :5], MASK[1:2, :5])["logits"]
    torch.testing.assert_close(logits(model)[1:2], alone)


def test_plain_transformers_classify_as_we_do(tmp_path):
    _, predictor = trained.train(Method, trained.encoder("cls"), tmp_path)
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
