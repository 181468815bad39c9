"""The commands `wxb new`: from a file to a study that the schema accepts."""

import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from tests.repository import write
from wxb.cli.app import app
from wxb.cli.new import studies
from wxb.core.params import load

TEXT = "{} is to be with us at {}, and that was all of it."
NAMES = ["Ann", "Bob", "Eve", "Joe", "Kim", "Max", "Sue", "Tim", "Una", "Vic"]
ROWS = ["crf", "encoder", "decoder-bidirectional", "mentions"]


@pytest.fixture(autouse=True)
def params(params, monkeypatch):
    """A project with only parameters, and files of records."""
    monkeypatch.setattr(studies, "is_installed", lambda checkpoint: True)
    rows = [
        {"text": TEXT.format(name, n), "spans": [{"start": 0, "end": 3, "label": "NAME"}]}
        for n, name in enumerate(NAMES * 3)
    ]
    write("post.json", rows)
    write("mails.csv", "text,label\n" + "".join(f"{x} left.,{x}\n" for x in NAMES * 3))
    return params


def wxb(*arguments):
    return CliRunner().invoke(app, ["new", *arguments], terminal_width=200)


def test_a_study_with_committed_scores_is_not_suggested(params):
    write("reports/studies/post.json", "")
    assert "wxb new study my-post --corpus post" in wxb("corpus", "post.json").output


def test_from_a_file_to_a_study(params):
    before = params.read_text()
    result = wxb("corpus", "post.json")
    assert result.exit_code == 0
    assert "wxb new study post --corpus post" in result.output
    title = ("--title", 'Who: "is" #1?')
    result = wxb("study", "letters", "--corpus", "post", *title, "--language", "en")
    assert result.exit_code == 0
    assert "snakemake --cores 2 letters" in result.output
    added = load()
    study = added.studies["letters"]
    assert study.title == title[1]
    assert study.experiments == [f"letters-{row}" for row in ("pretrained", *ROWS)]
    blocks = [added.experiments[name] for name in study.experiments]
    assert {block.corpus for block in blocks} == {"post"}
    backbones = [added.backbones[block.backbone] for block in blocks]
    assert [backbone.checkpoint for backbone in backbones] == ["minilm", *[None] * 4]
    assert {backbone.corpus for backbone in backbones} == {"post"}
    # With few records the first validation scores are 0, and training must not stop.
    trained = [block.training for block in blocks if hasattr(block.training, "epochs")]
    assert all(training.early_stopping_patience >= training.epochs for training in trained)
    rest = iter(params.read_text().splitlines())
    assert all(line in rest for line in before.splitlines())  # in this order


def test_a_study_gets_the_experiments_that_it_lacks():
    wxb("corpus", "post.json")
    output = wxb("study", "post", "--corpus", "post").output
    assert "Left out: post-pretrained: post states no language" in output
    before = load().experiments
    assert load().studies["post"].experiments == [f"post-{row}" for row in ROWS]
    result = wxb("study", "post", "--language", "en")
    assert "added backbones.post-minilm, experiments.post-pretrained\n" in result.output
    assert load().studies["post"].experiments == [f"post-{row}" for row in (*ROWS, "pretrained")]
    assert before.items() <= load().experiments.items()
    wxb("corpus", "post.json", "--name", "other")
    for again in (wxb("study", "post"), wxb("study", "post", "--corpus", "other")):
        assert "the study 'post' already" in str(again.exception)


def test_a_study_has_a_forecast_and_as_many_epochs_as_its_records_need():
    wxb("corpus", "post.json")
    result = wxb("study", "post", "--corpus", "post", "--language", "en")
    rows = dict(re.findall(r"^(post-\S+) +(< 1 min|\d+ min) ", result.output, re.MULTILINE))
    assert [*rows] == load().studies["post"].experiments
    # 21 of 30 records are for training.
    epochs = {"post-pretrained": 15, "post-encoder": 15, "post-decoder-bidirectional": 10}
    assert {name: load().experiments[name].training.epochs for name in epochs} == epochs


def test_whisper_reads_the_longest_recording_whole():
    Path("talks").mkdir()
    for n, name in enumerate(NAMES):  # of 6.8 seconds at most
        soundfile.write(f"talks/{name}.wav", np.sin(np.arange(400 * (8 + n))), 1000)
    write("talks/texts.csv", "path,sentence\n" + "".join(f"{x}.wav,{x}\n" for x in NAMES))
    wxb("corpus", "talks")
    wxb("study", "talks", "--corpus", "talks", "--language", "en")
    blocks = [load().experiments[name].encoding for name in load().studies["talks"].experiments]
    assert [(block.window, block.max_length) for block in blocks] == [(7, 91)] * 3


def test_an_experiment_joins_its_study():
    wxb("corpus", "post.json")
    wxb("study", "post", "--corpus", "post")
    assert wxb("experiment", "more", "--study", "post").exit_code == 0
    assert wxb("experiment", "own", "--study", "post", "--backbone", "post-llama").exit_code == 0
    experiments = load().experiments
    assert experiments["more"] == experiments["post-crf"]
    assert experiments["own"].backbone == "post-llama"
    assert experiments["own"].training == experiments["post-encoder"].training
    assert load().studies["post"].experiments[-2:] == ["more", "own"]
    wxb("corpus", "mails.csv")
    wxb("study", "mails", "--corpus", "mails")  # without a language, no model of its own
    assert wxb("experiment", "hub", "--study", "mails", "--backbone", "post-bert").exit_code == 0
    hub = load().experiments["hub"]
    assert (hub.method, hub.backbone, hub.tuning.frozen) == ("encoder", "post-bert", False)
    assert hub.training.learning_rate == 1e-4
    assert wxb("experiment", "slow", "--study", "ner", "--like", "ner-decoder-lora").exit_code == 0
    assert load().experiments["slow"] == experiments["ner-decoder-lora"]
    like = ("--study", "ner", "--like", "ner-decoder-lora")
    assert wxb("experiment", "written", *like, "--method", "generation").exit_code == 0
    assert load().experiments["written"].method == "generation"
    untuned = ("--study", "ner", "--like", "ner-encoder", "--method", "crf")
    assert wxb("experiment", "crf", *untuned).exit_code == 0  # without epochs
    assert load().experiments["crf"].method == "crf"
    result = wxb("experiment", "pooled", "--study", "mails", "--method", "encoder")
    assert "pooled.encoding.max_length: missing" in str(result.exception)
    pretrained = ("--study", "mails", "--backbone", "post-bert")
    assert wxb("experiment", "pooled", *pretrained, "--method", "encoder").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["corpus", "post.json"],
        ["study", "letters", "--corpus", "pii"],
        ["experiment", "more", "--study", "ner"],
        ["sweep", "more", "--like", "ner-encoder", "--set", "training.epochs=1,2"],
    ],
)
def test_a_dry_run_shows_the_blocks_and_writes_nothing(params, arguments):
    before = params.read_text()
    result = CliRunner().invoke(app, ["new", *arguments, "--dry-run"])
    assert result.exit_code == 0
    assert "task: ner" in result.stdout
    assert params.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus", "post.json", "--name", "pii"], "corpora.pii already exists"),
        (["corpus", "post.json", "--name", "my post"], "ASCII letters"),
        (["study", "ner", "--corpus", "pii"], "the study 'ner' already"),
        (["study", "gates", "--corpus", "pii"], "lessons.gates: writes the files of studies.gates"),
        (["study", "new", "--corpus", "pij"], "did you mean 'pii'"),
        (["experiment", "ner-encoder", "--study", "ner"], "experiments.ner-encoder already exists"),
        (["experiment", "x", "--study", "nerr"], "did you mean 'ner'"),
        (["experiment", "x", "--study", "ner", "--like", "n"], "experiments has no 'n'"),
        (["experiment", "x", "--study", "ner", "--backbone", "b"], "backbones has no 'b'"),
    ],
)
def test_errors_write_nothing(params, arguments, message):
    before = params.read_text()
    failed = wxb(*arguments)
    assert failed.exit_code == 1
    assert message in str(failed.exception)
    assert params.read_text() == before


def test_what_is_not_recognized_is_asked_for(params):
    before = params.read_text()
    rows = [{"frase": TEXT.format(name, n), "tono": "ab"[n % 2]} for n, name in enumerate(NAMES)]
    write("mail.json", rows)
    asked = wxb("corpus", "mail.json")
    assert asked.exit_code == 2
    assert all(word in asked.stderr for word in ("frase", "tono", "--task", "--input", "--gold"))
    assert params.read_text() == before
    named = ("--task", "classification", "--input", "frase", "--gold", "tono")
    assert wxb("corpus", "mail.json", *named).exit_code == 0
    fields = load().corpora["mail"].fields
    assert (fields.input, fields.label) == ("frase", "tono")
    assert wxb("study", "mine").exit_code == wxb("corpus").exit_code == 2
