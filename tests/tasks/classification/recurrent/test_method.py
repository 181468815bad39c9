import numpy as np
import torch

from tests.tasks.classification import trained
from wxb.tasks.classification.recurrent.method import Method
from wxb.tasks.classification.recurrent.model import Recurrent
from wxb.training.batches import collate


def test_padding_is_not_read():
    torch.manual_seed(0)
    model = Recurrent(30, 2, embedding_size=8, hidden_size=8, num_layers=2).eval()
    short, long = np.array([3, 4, 5], np.int32), np.arange(3, 20, dtype=np.int32)
    with torch.inference_mode():
        together = model(**collate([{"input_ids": short}, {"input_ids": long}], 0))["logits"]
        alone = model(**collate([{"input_ids": short}], 0))["logits"]
    torch.testing.assert_close(together[:1], alone)


def test_the_shape_is_that_of_params(tmp_path):
    _, predictor = trained.train(Method, trained.recurrent(), tmp_path, "words")
    assert predictor.settings["shape"] == trained.recurrent().model.model_dump()
    assert predictor.model.embedding.weight.shape == (len(predictor.tokenizer), 16)
