"""A study with several seeds: each trains as it would alone, and one table has all scores."""

import json
import shutil
import weakref
from itertools import product
from pathlib import Path

import pytest

from stages import align, compare, evaluate, pretrain, tokenize, tokenizer, train
from tests import demo
from tests.ner_project import RECORDS, SENTENCES, write_corpus
from wxb.core.errors import WxbError
from wxb.core.files import read_json, sha256, write_json
from wxb.core.params import check
from wxb.metrics import evaluation
from wxb.tasks import methods
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.record import Span
from wxb.tasks.ner.tagging import TaggingRecognizer

SETTINGS = {
    "encoding": {"max_length": 24, "stride": 8},
    "model": {"head": {"projection": 16, "dropout": 0.0}},
    "training": {"epochs": 2, "batch_size": 4, "learning_rate": 3e-3},
}
BACKBONE = {
    "corpus": "pii",
    "objective": "none",
    "tokenizer": {"kind": "wordpiece", "vocabulary": 400},
    "architecture": {
        "model_type": "bert",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    },
}
DECODER = {
    **BACKBONE,
    "tokenizer": {"kind": "byte-level-bpe", "vocabulary": 400},
    "architecture": {**BACKBONE["architecture"], "model_type": "llama"},
}


def params_of(seed, **changes):
    content = demo.content()
    experiment = {**content["experiments"]["ner-encoder"], **SETTINGS, **changes}
    study = {"task": "ner", "title": "?", "seed": seed, "experiments": ["ner-encoder"]}
    content |= {"experiments": {"ner-encoder": experiment}, "studies": {"ner": study}}
    content |= {"backbones": {"encoder": BACKBONE, "decoder": DECODER}}
    return check(content)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that was trained with the seeds 3 and 5, but not evaluated."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        splits = {"train": RECORDS[:16], "valid": RECORDS[16:], "test": RECORDS, "new": RECORDS[:5]}
        write_corpus(Path("data/clean/pii"), splits)
        params = params_of([3, 5])
        for stage, name in product((tokenizer, pretrain), ("encoder", "decoder")):
            stage.main(params, name)
        for stage in (tokenize, align, train):
            stage.main(params, "ner-encoder")
        accounts = read_json(Path("data/targets/ner-encoder/alignment.json"))
        assert {name: row["gold"] for name, row in accounts.items()} == {"train": 16, "valid": 8}
    return folder


def weights(folder):
    return {path.name: sha256(path) for path in folder.glob("*.safetensors")}


@pytest.mark.slow
def test_each_seed_trains_as_it_would_alone(project, monkeypatch):
    monkeypatch.chdir(project)
    models, curves = Path("models/ner-encoder"), Path("reports/training/ner/ner-encoder")
    first, second = weights(models), weights(models / "seed-5")
    losses = [(folder / "loss.csv").read_bytes() for folder in (curves, curves / "seed-5")]
    assert first != second
    assert losses[0] != losses[1]
    assert not list(Path(".wxb/checkpoints").iterdir())
    for seed, alone in ((5, second), (3, first)):
        train.main(params_of(seed), "ner-encoder")
        assert weights(models) == alone
        assert not (models / "seed-5").exists()
    train.main(params_of([3, 5]), "ner-encoder")
    assert (weights(models), weights(models / "seed-5")) == (first, second)


def test_scores_of_all_seeds_are_in_one_study(project, monkeypatch):
    monkeypatch.chdir(project)
    params, models, load = params_of([3, 5]), weakref.WeakSet(), TaggingRecognizer.load_model

    def load_alone(*arguments):
        assert not models, "the model of the last seed is still in memory"
        models.add(model := load(*arguments))
        return model

    monkeypatch.setattr(TaggingRecognizer, "load_model", load_alone)
    evaluate.main(params, "ner-encoder")
    compare.main(params, "ner")
    folder = Path("reports/predictions/ner/ner-encoder")
    for test_set, made in evaluation.load(folder).items():
        for seed in ("", "seed-5"):
            parent = folder if test_set == "test" else folder / test_set
            run = evaluation.load_predictions(scorer.Scorer(), parent / seed)
            assert len(run) == made.groups.sizes.sum() == {"new": 5}.get(test_set, len(SENTENCES))
    metrics = read_json(Path("reports/metrics/ner/ner-encoder.json"))
    study = read_json(Path("reports/studies/ner.json"))
    system = study["systems"]["ner-encoder"]
    assert study["seeds"] == [3, 5]
    assert len(system["f1_by_run"]) == 2
    assert metrics["f1"] == system["f1"]["value"]
    assert read_json(Path("reports/headlines/ner-encoder.json")) == {"f1": metrics["f1"]}
    assert metrics["new_f1"] == study["further"]["new"]["systems"]["ner-encoder"]["f1"]["value"]
    assert {"f1_sd", "new_f1_sd", "recall_seen", "seqeval_f1", "new_seqeval_f1"} <= metrics.keys()
    assert (system["updates"], system["examples"]) == (8, 32)
    assert "mean ± SD of 2 seeds" in Path("reports/studies/ner.md").read_text()


def test_a_frozen_model_is_the_same_with_each_seed(project, monkeypatch):
    monkeypatch.chdir(project)
    prompt = {"method": "generation", "backbone": "decoder", "model": {}}
    params = params_of([3, 5], **prompt, tuning={"frozen": True})
    model, seeds = Path("models/ner-encoder"), []
    fit = methods.Network.train

    def record(*arguments, **named):
        return seeds.append(named["seed"]) or fit(*arguments, **named)

    monkeypatch.setattr(methods.Network, "train", record)
    for stage in (tokenize, align, train):
        stage.main(params, "ner-encoder")
    assert seeds == [3]
    counts = evaluate.main(params, "ner-encoder")
    assert counts["inputs"] == len(RECORDS) + 5
    for made in evaluation.load(Path("reports/predictions/ner/ner-encoder")).values():
        first, second = made.scores["f1_by_run"]
        assert first == second
    # One other byte, and both models predict.
    (model / "seed-5/wxb.json").write_text((model / "wxb.json").read_text() + " ")
    assert evaluate.main(params, "ner-encoder")["inputs"] == 2 * (len(RECORDS) + 5)


def run(correct):
    """A run with this number of correct records, out of four."""
    gold = (Span(0, 3, "NAME"),)
    wrong = scorer.PredictionRow("", "Ann", gold, (), ())
    hit = scorer.PredictionRow("", "Ann", gold, gold, (1.0,))
    return [(hit if n < correct else wrong)._replace(id=str(n)) for n in range(4)]


def test_a_study_has_its_own_experiments_and_seeds_only(cwd):
    folder = Path("reports/predictions/ner/ner-encoder")
    nearness = {"within_one_word": 0.5, "within_two_words": 0.5}
    facts = {"grouped_by": "author", "nearness": nearness}
    runs = {"": run(4), "seed-2": run(0), "seed-10": run(2)}
    for seed, rows in runs.items():
        evaluation.save_predictions(scorer.Scorer(), folder / seed, rows)
    made = evaluation.evaluate(scorer.Scorer(), [*runs.values()], facts=facts)
    evaluation.save(folder, {"test": made})
    sizes = dict.fromkeys(("parameters", "trainable_parameters", "updates", "examples"), 1)
    write_json(Path("reports/metrics/ner/ner-encoder.json"), sizes)
    compare.main(params_of([3, 2, 10]), "ner")
    system = read_json(Path("reports/studies/ner.json"))["systems"]["ner-encoder"]
    assert system["f1_by_run"] == pytest.approx([1, 0, 2 / 3], abs=1e-6)
    study = Path("reports/studies/ner.json").read_bytes()
    assert json.loads(study)["grouped_by"] == "author"
    shutil.copytree(folder, folder.with_name("removed"))  # of an experiment that was removed
    compare.main(params_of([3, 2, 10]), "ner")
    assert Path("reports/studies/ner.json").read_bytes() == study
    with pytest.raises(WxbError, match=r"not with the seeds \[3, 2, 4\]; run `dvc repro evaluate@"):
        compare.main(params_of([3, 2, 4]), "ner")


def test_an_absent_model_is_not_that_of_the_first_seed(tmp_path):
    """Otherwise its scores would be those of the first seed."""
    assert not evaluate._is_same_model(tmp_path / "seed-2", tmp_path)
