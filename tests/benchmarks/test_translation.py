"""The benchmarks of translation: a search of learning rates, and a reference in the prompt."""

import json

import pytest
import torch
from typer.testing import CliRunner

from stages import align, download, preprocess, pretrain, tokenize
from stages import tokenizer as tokenizer_stage
from tests.benchmarks.script import script
from tests.tasks.translation.translators import (
    PAIRS,
    SOURCES,
    TARGETS,
    experiment,
    tokenizer,
)
from wxb.core.files import read_json
from wxb.core.params import check
from wxb.corpora.records import Record
from wxb.tasks.translation.predictor import Translator, special_ids
from wxb.tasks.translation.seq2seq.model import Seq2SeqModel, build_network

learning_rates, prompted = script("translation/learning_rates"), script("translation/prompted")


@pytest.fixture
def params(tmp_path, monkeypatch):
    """The parameters of a project with one experiment, `small`, on a few pairs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    block = experiment("seq2seq").model_dump() | {"corpus": "c", "backbone": "b", "study": "s"}
    block["training"] |= {"epochs": 9, "batch_size": 8}
    block["encoding"]["max_length"] = 100
    fields = {"input": "chinese", "target": "english", "language": None}
    corpus = {"task": "translation", "path": "pairs.jsonl", "fields": fields}
    backbone = {"corpus": "c", "objective": "none"}
    backbone["tokenizer"] = {
        "kind": "byte-level-bpe",
        "vocabulary": 400,
        "texts": ["input", "gold"],
    }
    study = {"task": "translation", "title": "t", "seed": 1, "experiments": ["small"]}
    blocks = {
        "corpora": {"c": {**corpus, "split": {"test": 0.1, "valid": 0.1}}},
        "backbones": {"b": backbone},
        "experiments": {"small": block},
        "studies": {learning_rates.STUDY: study},
    }
    blocks["experiments"]["small"]["study"] = learning_rates.STUDY
    options = {"seed": 1, "threads": 1, "portable": False, "lessons": {}}
    params = check({**options, **blocks})
    monkeypatch.setattr(learning_rates, "load", lambda: params)
    return params


@pytest.mark.parametrize("name", ["small", "small, without context"])
def test_a_training_with_another_learning_rate_has_a_validation_score(monkeypatch, params, name):
    for stage, block in (
        *((stage, "c") for stage in (download, preprocess)),
        *((stage, "b") for stage in (tokenizer_stage, pretrain)),
        *((stage, "small") for stage in (tokenize, align)),
    ):
        stage.main(params, block)
    monkeypatch.setattr(learning_rates, "WITHOUT_CONTEXT", "small, without context")
    training = learning_rates.train(name, 0.01, 2)
    assert training[:2] == (name, 0.01)
    assert training.updates > 0
    assert 0 <= training.bleu <= 100


def test_without_context_the_first_state_is_all_that_decoding_has():
    ids, mask = torch.tensor([[5, 6], [7, 8]]), torch.ones(2, 2)
    method = learning_rates.WithoutContext(experiment("seq2seq"), [], tokenizer())
    network = method.build(None).model.eval()
    state = network.encode(ids, mask)
    assert state.hidden.any()
    assert not state.source.any()


def test_the_search_keeps_scores_with_their_machine(tmp_path, monkeypatch, params):
    def search(names, rates, *, epochs, processes):
        return [
            learning_rates.Training(name, rate, 100 * epochs, 50.0)
            for name in names
            for rate in rates
        ]

    monkeypatch.setattr(learning_rates, "search", search)
    output = tmp_path / "rates.json"
    result = CliRunner().invoke(learning_rates.app, ["0.1", "0.2", "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert "| 500 | 50.0 | 50.0 |" in result.output
    content = read_json(output)
    assert [row["experiment"] for row in content["rows"]] == [
        "small",
        learning_rates.WITHOUT_CONTEXT,
    ]
    assert content["made"]["machines"][0]["torch"] == torch.__version__


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
