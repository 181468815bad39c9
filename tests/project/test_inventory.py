"""`wxb list` and `wxb show` in a project with fake outputs that DVC takes for real ones."""

import io
import json
import os
import re
import shutil
from contextlib import chdir

import pytest
from dvc.repo import Repo
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.commands import sleeping_process, wxb
from tests.project_copy import Project as Folder
from tests.repository import edit
from wxb.cli import listing
from wxb.core.files import write_json
from wxb.core.params import load, read_yaml
from wxb.corpora import clean
from wxb.corpora.profile import profile
from wxb.corpora.records import Record, Reject
from wxb.project.inventory import Inventory
from wxb.project.status import Change, Staleness, staleness, steps
from wxb.runtime.locks import running_stages
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Span

F1 = {"precision": 0.5, "recall": 0.4, "f1": 0.444, "f1_low": 0.4, "f1_high": 0.5}
SIZE = {"parameters": 1_418_155, "trainable_parameters": 108_100}


def make(folder):
    """Write fake outputs of all stages and commit them to DVC."""
    dag = read_yaml(folder / "dvc.yaml")["stages"]
    blocks = read_yaml(folder / "params.yaml")
    for verb, stage in dag.items():
        content = stage.get("do", stage)
        for name, block in blocks.get(stage.get("foreach", "").strip("${}"), {"": {}}).items():
            outs = [o for kind in ("outs", "metrics", "plots") for o in content.get(kind, [])]
            for out in outs:
                path = out if isinstance(out, str) else next(iter(out))
                path = path.replace("${key}", name).replace("${item.study}", block.get("study", ""))
                write(folder / path, verb)
    for name in blocks["backbones"]:  # as `check` does if no checkpoint is local
        (folder / ".wxb/backbones" / name).touch()
    with chdir(folder), Repo() as repo:
        repo.commit(force=True)


def write(path, verb):
    if path.suffix == ".json":
        metrics = {"perplexity": 148.9, **SIZE} if verb == "pretrain" else {**F1, **SIZE}
        write_json(path, metrics)
    elif path.suffix:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    else:
        path.mkdir(parents=True)
        (path / "file").touch()
        if verb == "preprocess":
            spans = (Span(0, 3, "NAME"), Span(4, 5, "AGE"))
            rejects = [Reject("b", "empty text", "", "b")]
            texts = {"train": "is here", "valid": "is", "test": "is there", "tweets": "was not in"}
            splits = {
                name: [Record(name, f"Ann 7 {text}", spans, "en", "")]
                for name, text in texts.items()
            }
            write_json(path / "profile.json", profile(splits, rejects, Reading()))
            write_json(path / "training/labels.json", ["AGE", "NAME"])
        if verb == "align":
            statuses = {"gold": 9, "kept": 5, "repaired": 1, "split": 2, "lost": 1}
            write_json(path / "alignment.json", dict.fromkeys(clean.TRAINING_SPLITS, statuses))


@pytest.fixture(scope="module")
def new_project(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("inventory") / "new_project").folder
    shutil.rmtree(folder / "tests")
    return folder


@pytest.fixture(scope="module")
def built_project(new_project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inventory") / "done"
    shutil.copytree(new_project, folder)
    make(folder)
    return folder


@pytest.fixture
def project(built_project, tmp_path, monkeypatch):
    """The working folder: a project that is up to date."""
    folder = tmp_path / "project"
    shutil.copytree(built_project, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def inventory(stale=None):
    """The inventory of the working folder; reading its staleness from DVC takes a second."""
    return Inventory(load(), stale or staleness(), [*running_stages()])


def shown(name, stale=None):
    """The output of `wxb show` for a name; nothing is stale by default."""
    console = Console(file=io.StringIO(), width=80)
    for section, facts in inventory(stale or Staleness()).details(name).items():
        console.print(*listing.details(name, section, facts, ""), sep="\n")
    return console.file.getvalue()


def states():
    """The displayed state of every block, by name."""
    return {
        name: listing.state(facts)
        for section in inventory().overview().values()
        for name, facts in section.items()
    }


def test_no_block_has_outputs_at_first(new_project, monkeypatch):
    monkeypatch.chdir(new_project)
    sections = inventory().overview()
    blocks = [facts for section in sections.values() for facts in section.values()]
    assert {listing.state(facts) for facts in blocks} == {"not run"}
    assert {facts["stale"] for facts in blocks} == {False}
    assert sections["experiments"]["ner-decoder-qlora"]["tuning"] == "QLoRA r 4, word features"
    assert sections["experiments"]["ner-generative-neftune"]["tuning"] == "NEFTune 5"


def test_all_blocks_are_up_to_date_after_a_run(project):
    assert set(states().values()) == {"up to date"}
    facts = inventory().overview()["experiments"]["ner-encoder"]
    assert (facts["trained"], facts["scored"], facts["stale"]) == (True, True, False)
    assert facts["metrics"] == {**F1, **SIZE}


def test_a_clone_has_metrics_without_models_that_are_not_stale(project):
    for folder in ("models", "data", "reports/cost", "reports/predictions", ".dvc/cache"):
        shutil.rmtree(project / folder)
    for page in project.glob("reports/*.html"):
        page.unlink()
    state = states()
    assert state["ner-encoder"] == state["encoder"] == "no model"
    assert state["pii"] == "not run"
    assert state["ner"] == "no page"


def test_a_changed_setting_makes_its_experiment_stale(project):
    edit("params.yaml", "learning_rate: 2.0e-3", "learning_rate: 3.0e-3")
    stale = {name for name, state in states().items() if state == "stale"}
    assert stale == {"ner-encoder", "ner", "attention"}
    changes = inventory().details("ner-encoder")["experiments"]["changes"]
    assert changes == [
        {
            "stage": "train@ner-encoder",
            "what": "experiments.ner-encoder.training.learning_rate",
            "how": "0.002 -> 0.003",
        }
    ]
    # The page shows the setting.
    assert inventory().staleness.changes["report@ner"] == [
        Change("experiments.ner-encoder.training.learning_rate", "0.002 -> 0.003")
    ]
    # Without scores, the state is that of training.
    (project / "reports/metrics/ner/ner-encoder.json").unlink()
    assert states()["ner-encoder"] == "not scored, stale"


def test_running_stages_are_shown(project):
    locks = project / ".wxb/locks"
    locks.mkdir(parents=True)
    (locks / "evaluate@ner-encoder.lock").write_text(str(os.getpid()))  # not a stage
    (locks / "train@ner-decoder.lock").touch()
    with sleeping_process("stages.train", "ner-encoder") as pid:
        (locks / "train@ner-encoder.lock").write_text(str(pid))
        assert [*running_stages()] == ["train@ner-encoder"]
        assert states()["ner-encoder"] == "running: train"


def test_all_stages_depend_on_the_check_of_parameters(project):
    assert [step.name for step in steps() if not step.upstream] == ["check"]


def test_list_fits_a_pipe(project):
    edit("params.yaml", "learning_rate: 2.0e-3", "learning_rate: 3.0e-3")
    process = wxb("list")
    assert process.returncode == 0, process.stderr
    assert "\x1b" not in process.stdout
    assert max(map(len, process.stdout.splitlines())) <= 80
    lines = {line.split()[0]: line for line in process.stdout.splitlines() if line[:1].strip()}
    for name, block in load().experiments.items():
        assert "0.444 (0.400–0.500)" in lines[name], "a name is broken"
        assert f"  {block.method} on {block.backbone}" in process.stdout
    assert "stale" in lines["ner-encoder"]
    assert "up to date" in lines["ner-decoder"]
    assert "train 1, valid 1, test 1" in lines["pii"]
    assert "perplexity 148.9" in lines["decoder"]


def test_list_as_json(project):
    content = json.loads(wxb("list", "--json").stdout)
    assert list(content["experiments"]) == list(load().experiments)
    assert content["experiments"]["ner-encoder"]["metrics"]["f1"] == 0.444
    assert content["corpora"]["pii"]["labels"] == ["AGE", "NAME"]
    assert content["unknown"] == ""


def test_show_prints_all_facts_on_an_experiment(project):
    edit("params.yaml", "learning_rate: 2.0e-3", "learning_rate: 3.0e-3")
    process = wxb("show", "ner-encoder")
    assert process.returncode == 0, process.stderr
    assert max(map(len, process.stdout.splitlines())) <= 80
    rows = {tuple(line.split()) for line in process.stdout.splitlines()}
    for row in (
        "f1 0.444 (0.400–0.500), 95% interval",
        "trainable parameters 108.1 k",
        "valid 9 5 1 2 1",
        "training.batch_size 8",
        "model.word_features.rows 4000",
    ):
        assert tuple(row.split()) in rows, row
    assert "training.learning_rate: 0.002 -> 0.003" in " ".join(process.stdout.split())


def test_show_prints_corpora_backbones_and_studies(project):
    corpus, backbone, study = map(shown, ("pii", "encoder", "ner"))
    assert "5 raw records, 2 labels" in corpus
    assert "empty text  1" in corpus
    assert re.search(r"\ntweets +1 +0 +2 ", corpus)
    assert re.search(r"split +sentences +five words\n", corpus)
    assert "used by encoder, decoder, words, ner-encoder" in corpus
    assert "pretraining.steps" in backbone
    own, _, defaults = shown("ner-decoder").partition("\nDefaults, ")
    keys = ("training.epochs ", "training.weight_decay ")
    assert [(key in own, key in defaults) for key in keys] == [(True, False), (False, True)]
    assert "0.444 (0.400–0.500)" in study


@given(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["modified", "deleted", "1 -> 2"])),
    st.sampled_from("abcd"),
)
def test_a_stage_is_stale_if_it_or_one_upstream_has_changed(changes, stage):
    stages = "abcd"  # in a line
    stale = Staleness(
        {name: [Change("file", how)] for name, how in changes.items()},
        {name: list(stages[:index]) for index, name in enumerate(stages)},
    )
    chain = stages[: stages.index(stage) + 1]
    expected = [name for name in chain if changes.get(name, "deleted") != "deleted"]
    assert [name for name, _ in stale.reasons(stage)] == expected
    assert stale.is_stale(stage) == bool(expected)
