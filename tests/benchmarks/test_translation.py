"""The benchmarks of translation: valid recipes, an equal peer, and a search of learning rates."""

import json

import pytest
import torch
from typer.testing import CliRunner

from stages import align, download, preprocess, pretrain, tokenize
from stages import tokenizer as tokenizer_stage
from tests.benchmarks.script import script
from tests.tasks.translation.translators import (
    PAIRS,
    SHAPES,
    SOURCES,
    TARGETS,
    experiment,
    random_model,
    tokenizer,
)
from wxb.core.files import read_json
from wxb.core.params import read_yaml
from wxb.corpora.records import Record
from wxb.tasks.translation.predictor import Translator, special_ids
from wxb.tasks.translation.seq2seq.model import Seq2SeqModel, build_network

pairs, plain = script("translation/pairs"), script("translation/plain")
learning_rates, prompted = script("translation/learning_rates"), script("translation/prompted")


def test_the_recipes_are_blocks_of_one_study(tmp_path):
    params = pairs.project(read_yaml(pairs.RECIPES), tmp_path)
    assert params.studies[pairs.STUDY].experiments == [*params.experiments]
    assert {e.model.kind for e in params.experiments.values()} == {
        "recurrent",
        "transformer",
        "gpt2",
    }


def test_one_command_trains_systems_and_writes_their_table(tmp_path, monkeypatch):
    (tmp_path / "cmn.txt").write_text(
        "".join(f"{pair['english']}\t{pair['chinese']}\tCC-BY\n" for pair in PAIRS)
    )
    recipe = read_yaml(pairs.RECIPES)
    recipe["corpus"]["path"] = "cmn.txt"
    recipe["backbone"]["tokenizer"]["vocabulary"] = 400
    training = {"epochs": 1, "batch_size": 8, "learning_rate": 0.01}
    shape = SHAPES["attention"].model_dump()
    recipe["systems"] = {"small": {"model": shape, "training": training}}
    (tmp_path / "recipes.yaml").write_text(json.dumps(recipe))
    options = {
        "data": tmp_path,
        "folder": tmp_path / "work",
        "recipes": tmp_path / "recipes.yaml",
        "output": tmp_path / "pairs.json",
    }
    arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    result = CliRunner().invoke(pairs.app, arguments)
    assert result.exit_code == 0, result.output
    content = read_json(options["output"])
    (row,) = content["rows"]
    assert (row["system"], row["updates"]) == ("small", 6)
    assert content["made"]["machines"]
    assert f"| {row['updates']} | 0 |  |" in result.output
    monkeypatch.setattr(pairs, "train", None)  # a second run trains nothing
    assert CliRunner().invoke(pairs.app, arguments).exit_code == 0
    assert read_json(options["output"])["rows"] == [row]


def test_scores_by_minutes_end_with_the_training():
    curve = [(1.5, 10.0), (3.0, 30.0), (4.5, 20.0)]
    assert [pairs.latest(curve, at) for at in (1, 2, 4, 4.5, 5)] == [None, 10, 30, 20, None]


def test_the_plain_transformer_has_the_loss_of_ours():
    ours = random_model("transformer").model
    theirs = plain.PlainTransformer(ours).double().eval()
    theirs.transformer.load_state_dict(ours.transformer.state_dict(), strict=True)
    theirs.source.load_state_dict(ours.source_embedding.state_dict())
    theirs.target.load_state_dict(ours.target_embedding.state_dict())
    ids = torch.tensor([[5, 6, 7], [8, 9, special_ids(tokenizer())["pad"]]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    labels = torch.tensor([[9, 8, 2], [7, 2, 0]])
    assert torch.allclose(theirs.loss(ids, mask, labels), ours.loss(ids, mask, labels))


@pytest.fixture
def small_study(tmp_path, monkeypatch):
    """A study of one small experiment on a few phrases, after the stage align."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    recipe = read_yaml(pairs.RECIPES)
    recipe["corpus"] |= {
        "path": "pairs.jsonl",
        "columns": None,
        "fields": {"input": "chinese", "target": "english", "language": None},
    }
    recipe["backbone"]["tokenizer"]["vocabulary"] = 400
    training = {"epochs": 9, "batch_size": 8, "learning_rate": 1.0}
    shape = SHAPES["seq2seq"].model_dump()
    recipe["systems"] = {"small": {"model": shape, "training": training}}
    params = pairs.project(recipe, tmp_path)
    for stage, name in (
        (download, pairs.CORPUS),
        (preprocess, pairs.CORPUS),
        (tokenizer_stage, pairs.BACKBONE),
        (pretrain, pairs.BACKBONE),
        (tokenize, "small"),
        (align, "small"),
    ):
        stage.main(params, name)
    monkeypatch.setattr(learning_rates, "load", lambda: params)


@pytest.mark.usefixtures("small_study")
@pytest.mark.parametrize("name", ["small", "small, without context"])
def test_a_training_with_another_learning_rate_has_a_validation_score(monkeypatch, name):
    monkeypatch.setattr(learning_rates, "WITHOUT_CONTEXT", "small, without context")
    training = learning_rates.train(name, 0.01, 2)
    assert training[:3] == (name, 0.01, 2 * -(-48 // 8))
    assert 0 <= training.bleu <= 100


def test_without_context_the_first_state_is_all_that_decoding_has():
    ids, mask = torch.tensor([[5, 6], [7, 8]]), torch.ones(2, 2)
    method = learning_rates.WithoutContext(experiment("seq2seq"), [], tokenizer())
    network = method.build(None).model.eval()
    state = network.encode(ids, mask)
    assert state.hidden.any()
    assert not state.source.any()


def test_the_search_keeps_scores_with_their_machine(tmp_path, monkeypatch):
    def search(names, rates, *, epochs, processes):
        return [
            learning_rates.Training(name, rate, 100 * epochs, 50.0)
            for name in names
            for rate in rates
        ]

    recipe = pairs.project(read_yaml(pairs.RECIPES), tmp_path)
    monkeypatch.setattr(learning_rates, "load", lambda: recipe)
    monkeypatch.setattr(learning_rates, "search", search)
    output = tmp_path / "rates.json"
    result = CliRunner().invoke(learning_rates.app, ["0.1", "0.2", "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert "| 500 | 50.0 | 50.0 |" in result.output
    content = read_json(output)
    assert len(content["rows"]) == len(recipe.experiments) + 1
    assert content["made"]["machines"][0]["torch"] == torch.__version__


def test_a_prompted_decoder_is_timed_and_scored_with_and_without_the_reference(
    tmp_path, monkeypatch
):
    settings = experiment("gpt2")
    shape = settings.model.model_dump()
    sizes = {"special": special_ids(tokenizer()), "max_length": 100}
    network = build_network(shape, *sizes.values())
    model = Seq2SeqModel(network, tokenizer(), longest=8, shape=shape)
    translator = Translator(model, tokenizer(), shape=shape, longest=8, **sizes)
    folder = tmp_path / "models/gpt2"
    folder.mkdir(parents=True)
    translator.save(folder, settings, updates=1, examples=1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prompted, "LONGEST", 4)
    speeds = prompted.speeds(translator, SOURCES[:2], 1, "gpt2")
    assert speeds.row_count == 6
    records = [
        Record(str(i), source, [target], None, str(i))
        for i, (source, target) in enumerate(zip(SOURCES[:4], TARGETS, strict=False))
    ]
    rows = prompted.prompts(translator, records)
    assert len(rows) == 6
    assert all(0 <= row["BLEU (95% interval)"].value <= 100 for row in rows)
