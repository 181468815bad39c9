"""The defaults of methods and trained models."""

from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn

from tests import checkpoints
from wxb import tasks
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.experiments import Encoding, Prediction, Tuning
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import IGNORED, write_columns
from wxb.corpora.text.windows import text_windows
from wxb.tasks import methods

TEXTS = ["one two three four five six", "two", "", "six five"]
BATCH = 3


class Sum(nn.Module):
    """The sum of the ids of each text, times a factor."""

    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(factor)))
        self.sizes = []

    def forward(self, input_ids, attention_mask):
        self.sizes.append(tuple(input_ids.shape))
        return {"sum": (input_ids * attention_mask).sum(1) * self.factor}

    def save_pretrained(self, folder):
        (folder / "factor").write_text(str(self.factor.item()))


class Adder(methods.Predictor):
    prediction = Prediction(batch_size=BATCH)

    @classmethod
    def load_model(cls, folder, settings, tokenizer):
        assert settings["labels"] == ["a", "b"]
        return Sum((folder / "factor").read_text())

    def predictions(self, inputs, /, *, caption):
        items = methods.inputs(tokenizers.encode(self.tokenizer, inputs), self.tokenizer, 5)
        return self.outputs(items, caption=caption)


class Method(methods.Network):
    PREDICTOR = Adder

    def new_model(self, backbone):
        raise NotImplementedError


class Experiment:
    task, method, encoding, tuning = "adding", "sum", Encoding(max_length=5), Tuning()
    required_weights = None


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizers.train("wordpiece", 300, TEXTS)


@pytest.fixture
def items(tokenizer):
    return methods.inputs(tokenizers.encode(tokenizer, TEXTS), tokenizer, 5)


def test_inputs_have_special_tokens_and_are_truncated(tokenizer, items):
    full = [tokenizer(text)["input_ids"] for text in TEXTS]
    ids = [item["input_ids"].tolist() for item in items]
    assert ids[0] == [*full[0][:4], full[0][-1]]
    assert ids[1:] == full[1:]
    assert len(ids[0]) == 5 < len(full[0])


def test_special_tokens_alone_are_no_input(tokenizer):
    encoded = tokenizers.encode(tokenizer, TEXTS)
    for build in (methods.inputs, partial(text_windows, stride=1)):
        with pytest.raises(WxbError, match="found 2; expected over 2"):
            build(encoded, tokenizer, max_length=2)
        build(encoded, tokenizer, max_length=3)


def test_batches_have_each_item_once_sorted_by_length():
    lengths = [5, 1, 3, 1, 9]
    batches = methods.batches_by_length(lengths, 2)
    assert [[lengths[index] for index in batch] for batch in batches] == [[1, 1], [3, 5], [9]]
    assert sorted(chain(*batches)) == [0, 1, 2, 3, 4]


def test_outputs_are_in_the_order_of_the_items(tokenizer, items):
    model = Sum(2)
    outputs = Adder(model, tokenizer).outputs(items, caption="add")
    assert [float(output["sum"]) for output in outputs] == [
        2 * item["input_ids"].sum() for item in items
    ]
    assert [size[0] for size in model.sizes] == [BATCH, len(TEXTS) - BATCH]
    assert Adder(model, tokenizer).outputs([], caption="add") == []


def test_a_saved_model_is_loaded_with_its_settings(tokenizer, items, tmp_path):
    method = Method(Experiment, ("a", "b"), tokenizer)
    predictor = method.predictor(Sum(3), tmp_path, updates=2, examples=7)
    predictor.save(tmp_path / "model")
    loaded = Adder.load(tmp_path / "model", Prediction(batch_size=1))
    assert loaded.prediction.batch_size == 1
    assert Adder.load(tmp_path / "model").prediction.batch_size == BATCH
    assert loaded.outputs(items, caption="add") == predictor.outputs(items, caption="add")
    assert read_json(tmp_path / "model" / "wxb.json") == {
        "task": "adding",
        "method": "sum",
        "labels": ["a", "b"],
        "max_length": 5,
        "four_bit": False,
        "training": {"updates": 2, "examples": 7},
    }


def test_accuracy_excludes_ignored_labels():
    labels = np.array([1, IGNORED, 0, 2])
    accuracy = Method.compute_metrics(np.array([1, 1, 1, 2]), labels)["accuracy"]
    assert accuracy == pytest.approx(2 / 3)


def test_labels_that_training_lacks_are_lost(tokenizer, tmp_path):
    texts = [TEXTS[0], "two", TEXTS[3]]  # the first has more than 3 tokens
    records = [Record(key, text, key, None, "") for key, text in zip("abc", texts, strict=True)]
    method, files = Method(Experiment, ["a", "c"], tokenizer), [tmp_path / "f", tmp_path / "t"]
    method.encode([records], files[0], caption="encode")
    columns, splits, counts = method.targets(files[0], [records[:2], records[2:]])
    write_columns(files[1], columns, splits)
    assert columns["labels"].tolist() == [0, IGNORED, 1]
    assert splits.tolist() == [0, 1, 2, 3]
    assert counts == {"gold": 3, "kept": 2, "lost": 1, "text_truncated": 1}
    assert [item["labels"] for item in method.items(*files, records)] == [0, IGNORED, 1]


def test_numbers_are_their_own_targets(tokenizer, tmp_path):
    records = [Record(str(n), "a", n, None, "") for n in (0.5, -100.0)]
    method = Method(Experiment, [], tokenizer)
    method.encode([records], tmp_path / "f", caption="encode")
    columns, _, counts = method.targets(tmp_path / "f", [records])
    assert columns["labels"].tolist() == [0.5, -100.0]
    assert counts == {"gold": 2, "kept": 2, "lost": 0, "text_truncated": 0}


def test_items_are_made_on_access():
    made = []
    items = methods.LazyItems(range(3), lambda index: made.append(index) or {"index": index})
    assert (len(items), made) == (3, [])
    assert items[-1] == {"index": 2}
    assert [item["index"] for item in items] == [0, 1, 2]
    assert [item["index"] for item in items[1:]] == [1, 2]
    with pytest.raises(IndexError):
        items[3]


@pytest.mark.parametrize("method", ["ner/generation", "chat/sft"])
def test_a_decoder_needs_an_end_of_text(method):
    experiment = checkpoints.settings(method, "some/name").experiments["e"]
    method_class = tasks.get(experiment.task).method(experiment.method)
    with pytest.raises(WxbError, match="backbone 'b' has no end of text"):
        method_class(experiment, [], checkpoints.tokenizer("[CLS] $A [SEP]"))
