"""The search of learning rates for translation."""

import torch

from tests.benchmarks.script import script
from tests.tasks.translation.translators import experiment, tokenizer

learning_rates = script("translation/learning_rates")


def test_without_context_the_first_state_is_all_that_decoding_has():
    ids, mask = torch.tensor([[5, 6], [7, 8]]), torch.ones(2, 2)
    method = learning_rates.WithoutContext(experiment("seq2seq"), [], tokenizer())
    network = method.new_model(None).model.eval()
    state = network.encode(ids, mask)
    assert state.hidden.any()
    assert not state.source.any()
