"""The first study of each task, copies of experiments and sweeps, as content of params.yaml."""

import pytest

from tests import demo
from tests.corpora.records import record
from tests.project_copy import ROOT
from tests.repository import write
from wxb.cli.new import studies
from wxb.cli.new.studies import add_or_extend_study, add_sweep, parse_grid
from wxb.core.errors import WxbError
from wxb.core.params import ParamsError, check
from wxb.core.params.corpora import Corpus
from wxb.corpora.reading import Contents
from wxb.tasks import recognition

SHARES = {"test": 0.2, "valid": 0.1}
FILES = {"files": {name: [f"{name}.csv"] for name in ("train", "valid", "test")}}


@pytest.fixture
def content(cwd):
    return demo.content()


@pytest.mark.parametrize("task", recognition.supported_tasks())
@pytest.mark.parametrize("language", ["en", None])
def test_a_first_study_of_each_task_is_valid(content, task, language):
    content["corpora"]["mine"] = {"task": task, "path": "mine.csv", "split": SHARES}
    add_or_extend_study(content, "new", "mine", language=language)
    changed = check(content)
    names = changed.studies["new"].experiments
    members = [changed.experiments[name] for name in names]
    assert {member.task for member in members} == {task}
    checkpoints = {changed.backbones[member.backbone].checkpoint for member in members}
    assert checkpoints <= ({None, "minilm", "whisper-base"} if language else {None})
    rows = studies.first_study(task, "new", "mine")["rows"]
    assert all(rows[name]["seconds"] for name in names)


@pytest.mark.parametrize("records", [100, 2000, 9000])
def test_few_records_need_many_epochs(content, records):
    content["corpora"]["mine"] = {"task": "ner", "path": "mine.csv", "split": SHARES}
    add_or_extend_study(content, "new", "mine", records=records)
    row = studies.first_study("ner", "new", "mine")["rows"]["new-encoder"]
    examples, least, most = row["epochs"]
    epochs = content["experiments"]["new-encoder"]["training"]["epochs"]
    assert epochs == {100: most, 2000: examples // 2000, 9000: least}[records]
    assert least < examples // 2000 < most


@pytest.mark.parametrize(
    ("split", "splits", "count"),
    [(SHARES, {None: 100}, 70), (FILES, {"train": 60, "valid": 20, "test": 20}, 60)],
)
def test_training_records_are_counted(cwd, split, splits, count):
    members = [name for name, number in splits.items() for _ in range(number)]
    trial = Contents([record(n, split=name) for n, name in enumerate(members)], [], {})
    corpus = Corpus(task="chat", path="x", split=split)
    assert studies.count_training_records("unused", corpus, trial) == count
    assert studies.count_training_records("unused", corpus, None) is None
    write("data/clean/unused/profile.json", {"splits": {"train": {"labelled": 500}}})
    assert studies.count_training_records("unused", corpus, None) == 500


@pytest.mark.parametrize(
    ("task", "language", "records", "installed", "expected"),
    [
        ("ner", "en", [], True, "en"),
        ("ner", None, ["en-GB", "English"], True, "en"),
        ("ner", None, ["en", "fr"], True, None),
        ("ner", "fr", ["en"], True, None),
        ("ner", None, [None], True, None),
        ("ner", "en", [], False, None),
        ("chat", "en", [], True, None),
        ("speech", None, ["zh-TW"], True, "zh"),
        ("speech", None, ["zh", "en"], True, None),
    ],
)
def test_the_language_of_weights_is_stated_never_guessed(
    monkeypatch, task, language, records, installed, expected
):
    monkeypatch.setattr(studies, "is_installed", lambda checkpoint: installed)
    trial = Contents([record(n, language=name) for n, name in enumerate(records)], [], {})
    corpus = Corpus(task=task, path="x", split=SHARES)
    assert studies.pretrained_language("mine", corpus, language, trial)[0] == expected


def test_every_combination_is_an_experiment(content, monkeypatch):
    monkeypatch.chdir(ROOT)  # has scores of other studies
    rates = ("training.learning_rate=0.001", "training.learning_rate=2.0e-3")
    grid = parse_grid([*rates, "tuning.lora.r=4,8"])
    add_sweep(content, "rates", "ner-decoder-lora", grid, (1, 2, 3), "Which?")
    params = check(content)
    study = params.studies["rates"]
    assert study.seeds == [1, 2, 3]
    names = [f"rates-{rate}-{rank}" for rate in ("0_001", "0_002") for rank in (4, 8)]
    assert study.experiments == names
    last, copied = params.experiments[names[-1]], params.experiments["ner-decoder-lora"]
    assert (last.training.learning_rate, last.tuning.lora.r) == (0.002, 8)
    assert last.tuning.lora.target_modules == copied.tuning.lora.target_modules
    assert copied == demo.params().experiments["ner-decoder-lora"]
    for name, fault in (("ner", r"studies\.ner already exists"), ("reviews", "our own study")):
        with pytest.raises(WxbError, match=fault):
            add_sweep(content, name, "ner-encoder", grid, (1,), "Which?")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (["training.learning_rate"], WxbError, "expected a key of an experiment and its values"),
        (["tuning.lora.r=4,4"], WxbError, r"tuning.lora.r: .* twice in \[4, 4\]"),
        (["training.learning_rat=1"], ParamsError, "did you mean 'learning_rate'"),
        (["study.name=1"], ParamsError, r"rates-1\.study: found {'name': 1}"),
        (["model.head={"], ParamsError, "^--set model.head: not readable as YAML"),
    ],
)
def test_invalid_settings_are_errors(content, settings, error, message):
    def add():
        add_sweep(content, "rates", "ner-encoder", parse_grid(settings), (1,), "Which?")
        check(content)

    with pytest.raises(error, match=message):
        add()
