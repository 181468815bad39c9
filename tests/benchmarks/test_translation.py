"""The benchmarks of translation: a search of learning rates, and a reference in the prompt."""

import torch

from tests.benchmarks.script import script
from tests.tasks.translation.translators import SOURCES, TARGETS, experiment, tokenizer
from wxb.corpora.records import Record
from wxb.tasks.translation.models.predictor import Translator, special_ids
from wxb.tasks.translation.models.seq2seq import Seq2SeqModel, build_network

learning_rates, prompted = script("translation/learning_rates"), script("translation/prompted")


def test_without_context_the_first_state_is_all_that_decoding_has():
    ids, mask = torch.tensor([[5, 6], [7, 8]]), torch.ones(2, 2)
    method = learning_rates.WithoutContext(experiment("seq2seq"), [], tokenizer())
    network = method.model(None).model.eval()
    state = network.encode(ids, mask)
    assert state.hidden.any()
    assert not state.source.any()


def test_a_prompted_decoder_is_scored_with_and_without_the_reference(monkeypatch):
    shape = experiment("gpt2").model.model_dump()
    sizes = {"special": special_ids(tokenizer()), "max_length": 100}
    network = build_network(shape, *sizes.values())
    model = Seq2SeqModel(network, tokenizer(), longest=8, shape=shape)
    translator = Translator(model, tokenizer(), shape=shape, longest=8, **sizes)
    monkeypatch.setattr(prompted, "LONGEST", 4)
    records = [
        Record(str(i), source, [target], None, str(i))
        for i, (source, target) in enumerate(zip(SOURCES[:4], TARGETS, strict=False))
    ]
    rows = prompted.prompts(translator, records)
    assert len(rows) == 6
    assert all(0 <= row["BLEU (95% interval)"].value <= 100 for row in rows)
