"""A really trained model: found by its name, loaded, and masking at the command line."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from transformers import set_seed

from tests import tiny
from wxb.batches import collate
from wxb.corpora.records import Record
from wxb.errors import WxbError
from wxb.features import write_columns, write_encoded
from wxb.masking import trained
from wxb.params import Experiment, Head, Training
from wxb.spans import Span
from wxb.tasks import ner_tagging
from wxb.tokenizers import encode, train
from wxb.training import fit
from wxb.windows import over

ROOT = Path(__file__).parents[2]
NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")
SECOND = ("Lee", "Roe", "Fox")
SENTENCES = [(f"Yesterday {a} {b} said hello.", f"{a} {b}") for a in NAMES for b in SECOND]
EXPERIMENT = Experiment(
    study="ner",
    corpus="pii",
    task="ner_tagging",
    backbone="encoder",
    max_length=24,
    stride=8,
    head=Head(projection=16, dropout=0.0),
    generation=None,
    training=Training(epochs=6, batch_size=4, learning_rate=3e-3),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with one trained experiment, ner-encoder, which finds the names it was shown."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "params.yaml", folder)
    texts = [text for text, _ in SENTENCES]
    records = [
        Record(text, text, (Span(text.index(name), text.index(name) + 7, "NAME"),), None, "")
        for text, name in SENTENCES
    ]
    tokenizer = train("wordpiece", 400, texts)
    backbone = tiny.bert(folder / "bert", vocab_size=len(tokenizer))
    encoded = encode(tokenizer, texts)
    windows = over(encoded, tokenizer, max_length=24, stride=8)
    columns, splits, _ = ner_tagging.aligned(encoded, windows, records, ["NAME"], tokenizer)
    write_encoded(folder / "features", encoded)
    write_columns(folder / "targets", columns, splits)
    files = (folder / "features", folder / "targets", tokenizer, texts, EXPERIMENT)
    items = ner_tagging.dataset(*files)
    set_seed(0)
    model = ner_tagging.build(backbone, ["NAME"], EXPERIMENT, tokenizer)
    fit(
        model,
        EXPERIMENT.training,
        train=items,
        valid=items,
        collate=partial(collate, pad=tokenizer.pad_token_id),
        targets=ner_tagging.TARGETS,
        figures=ner_tagging.figures,
        summarize=ner_tagging.summarize,
        best=ner_tagging.BEST,
        seed=1,
        checkpoints=folder / "checkpoints",
        label="test",
    )
    predictor = ner_tagging.Predictor.of(model, tokenizer, ["NAME"], EXPERIMENT, Path("unread"))
    (folder / "models/ner-encoder").mkdir(parents=True)
    predictor.save(folder / "models/ner-encoder", EXPERIMENT)
    return folder


def command(folder, *arguments, given=b""):
    return subprocess.run(
        [sys.executable, "-c", "from wxb.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=given,
        capture_output=True,
        check=False,
    )


def test_a_trained_experiment_masks_and_the_mapping_undoes_it(project):
    content = "".join(f"{json.dumps({'id': 1, 'text': text})}\n" for text, _ in SENTENCES).encode()
    path = project / "in.jsonl"
    path.write_bytes(content)
    options = ("--mapping", "m.json", "--verify", "--report", "report.json")
    told = command(project, "mask", "-e", "ner-encoder", "in.jsonl", *options)
    assert (told.returncode, told.stderr) == (0, b"")
    numbers = {name: f"<NAME_{number}>" for number, (_, name) in enumerate(SENTENCES, 1)}
    assert told.stdout.decode() == "".join(
        json.dumps({"id": 1, "text": text.replace(name, numbers[name])}) + "\n"
        for text, name in SENTENCES
    )
    report = json.loads((project / "report.json").read_text())
    assert (report["masked"], report["left"]) == ({"NAME": 24}, {})
    undone = command(
        project, "unmask", "--mapping", "m.json", "--format", "jsonl", given=told.stdout
    )
    assert undone.stdout == content
    again = command(project, "mask", "-e", "models/ner-encoder", "in.jsonl", "--mapping", "m.json")
    assert again.stdout == told.stdout


def test_it_is_found_by_name_from_anywhere_in_the_project(project, monkeypatch):
    (project / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep/er")
    assert trained.find("ner-encoder") == project / "models/ner-encoder"
    monkeypatch.chdir(project)
    assert trained.load("ner-encoder").types == ["NAME"]


def test_what_is_wrong_with_a_name_is_told(project, monkeypatch, tmp_path):
    monkeypatch.chdir(project)
    with pytest.raises(WxbError, match="did you mean 'ner-encoder'"):
        trained.load("ner-encodr")
    with pytest.raises(WxbError, match=r"not trained yet.*`dvc repro train@ner-decoder` first"):
        trained.load("ner-decoder")
    with pytest.raises(WxbError, match=r"with wxb\.json in it \(it has none\)"):
        trained.load(project / "bert")
    with pytest.raises(WxbError, match="there is no such folder"):
        trained.load("models/none")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WxbError, match="so experiments have no names"):
        trained.load("ner-encoder")


@pytest.mark.parametrize("broken", ["wxb.json", "head.safetensors", "tokenizer.json"])
def test_a_broken_model_is_told(project, tmp_path, broken):
    shutil.copytree(project / "models/ner-encoder", tmp_path / "m")
    (tmp_path / "m" / broken).write_text("{}")
    with pytest.raises(WxbError, match="expected a model that its train stage wrote"):
        trained.load(tmp_path / "m")


def test_looking_for_a_model_is_quick(project):
    """Nothing that takes long is imported before it is known that there is a model."""
    code = (
        "import sys; from wxb.masking.trained import find; find('ner-encoder')\n"
        "assert not {'torch', 'transformers'} & {*sys.modules}"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=project, env=environment, check=True)
