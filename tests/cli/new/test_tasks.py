"""`wxb new` for files of any task: the guessed task, and its first study."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from ruamel.yaml import YAML

from tests.corpora.records import to_letters
from wxb.cli.new import corpus, studies
from wxb.core.errors import WxbError
from wxb.core.params import PARAMS, check, read_yaml
from wxb.project.params_file import add_block, to_yaml
from wxb.tasks import guessing

ROOT = Path(__file__).parents[3]
DATA = ROOT / "../shared/data"
WORDS = [to_letters(number) for number in range(40)]
SHARES = {"test": 0.2, "valid": 0.1}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table(path, *columns):
    """A CSV file with a row for each of WORDS; a column is a name and a function for its cells."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([name for name, _ in columns])
        rows.writerows([make(n) for _, make in columns] for n in range(len(WORDS)))
    return Path(path)


def text(number):
    return f"It is {WORDS[number]} that was named here."


def one_of_two(number):
    return ("good", "bad")[number % 2]


def block(path, task=None):
    text = corpus.guess_corpus(Path(path), None, task).block
    ((_, content),) = YAML(typ="safe").load(text).items()
    return content


def fields(path, task=None):
    """The guessed task and fields of a file."""
    content = block(path, task)
    return content["task"], {k: v for k, v in content["fields"].items() if v is not None}


def test_a_text_and_its_class():
    path = table("a.csv", ("Review_Text", text), ("review", text), ("sentiment", one_of_two))
    assert fields(path) == ("classification", {"input": "review", "label": "sentiment"})
    assert block(path)["split"] == {"by": None, **SHARES}


def test_files_that_are_classes():
    for name in ("Spam.csv", "ham[1].csv"):
        table(f"mail/{name}", ("text", lambda n, name=name: f"{text(n)} {name}"))
    content = block("mail")
    assert content["task"] == "classification"
    assert content["classes"] == {"Spam.csv": "spam", "ham[[]1].csv": "ham[1]"}
    assert corpus.guess_corpus(Path("mail"), None).trial.counts["classes"] == {
        "spam": 40,
        "ham[1]": 40,
    }


def test_files_of_published_splits_are_no_classes():
    for name in ("train", "dev", "test"):
        table(f"mail/{name}.csv", ("text", lambda n, name=name: f"{text(n)} {name}"))
    with pytest.raises(WxbError, match=r"found fields 'text': text; expected one of"):
        block("mail")


def test_texts_in_two_languages():
    path = table("a.csv", ("id", int), ("English", text), ("chinese", lambda n: f"第{n}句話。"))
    expected = {"input": "English", "target": "chinese", "id": "id"}
    assert fields(path) == ("translation", expected)
    assert block(path)["split"] == SHARES


def test_source_and_target():
    path = table("a.csv", ("tgt", lambda n: f"我說{WORDS[n]}。"), ("src", text))
    assert fields(path) == ("translation", {"input": "src", "target": "tgt"})


def test_lines_with_tabs_are_pairs():
    lines = (f"{text(n)}\tDas ist {WORDS[n]} von hier.\tCC-BY {n}\n" for n in range(40))
    Path("deu.txt").write_text("".join(lines))
    content = block("deu.txt")
    assert (content["task"], content["columns"]) == (
        "translation",
        ["source", "target", "column 3"],
    )
    assert corpus.guess_corpus(Path("deu.txt"), None).trial.counts["references"] == 40


def test_lines_with_a_class_are_no_pairs():
    Path("sms.txt").write_text("".join(f"{one_of_two(n)}\t{text(n)}\n" for n in range(40)))
    with pytest.raises(WxbError, match="found lines such as 'good"):
        block("sms.txt", "translation")
    assert block("sms.txt")["columns"] == ["label", "text"]


def test_questions_and_answers():
    # A column with the whole prompt, as Alpaca has it, is not what pretraining alone may read.
    path = table("a.csv", ("Question", text), ("answer", one_of_two), ("text", text))
    content = block(path)
    assert content["task"] == "chat"
    assert content["fields"]["instruction"] == "Question"
    assert content["fields"]["text"] is None
    trial = corpus.guess_corpus(path, None).trial
    assert (trial.kept, trial.unlabelled) == (40, 0)


def conversation(number, role="role", content="content"):
    question = {role: "user", content: text(number)}
    return {"conversations": [question, {role: "assistant", content: WORDS[number]}]}


def test_messages():
    Path("a.jsonl").write_text("".join(f"{json.dumps(conversation(n))}\n" for n in range(40)))
    assert fields("a.jsonl") == ("chat", {"messages": "conversations"})


def test_messages_with_other_keys_are_an_error():
    rows = [conversation(n, "by", "words") for n in range(40)]
    Path("a.json").write_text(json.dumps(rows))
    with pytest.raises(WxbError, match=r"with by, words; expected the keys `role`"):
        block("a.json")


def recordings(where, *columns):
    """A folder of short recordings, and a table of them."""
    noise = np.random.default_rng(1)
    for number in range(len(WORDS)):
        path = Path(where, "clips", f"{number}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, 0.3 * noise.standard_normal(4000), 16_000)
    return table(f"{where}/transcripts.csv", *columns)


def test_recordings_with_transcripts():
    recordings(
        "own",
        ("file_name", lambda n: f"clips/{n}.wav"),
        ("text", text),
        ("client_id", lambda n: f"speaker {n % 10}"),
    )
    expected = {"input": "file_name", "sentence": "text", "speaker": "client_id"}
    assert fields("own") == ("speech", expected)
    guess = corpus.guess_corpus(Path("own"), None)
    assert block("own")["split"]["by"] == "client_id"
    assert (guess.trial.kept, guess.trial.groups) == (40, 10)


def test_a_further_table_of_recordings():
    recordings("own", ("ID", int), ("sentence", text))
    table("own/about.csv", ("ID", int), ("speaker", one_of_two))
    content = block("own")
    assert content["manifest"] == ["transcripts.csv", "about.csv"]
    assert content["fields"]["speaker"] == "speaker"


def test_a_table_without_its_recordings_is_an_error():
    path = table("own/transcripts.csv", ("path", lambda n: f"{n}.mp3"), ("sentence", text))
    with pytest.raises(WxbError, match=r"the table and the recordings: wxb new corpus own"):
        block(path)


def test_files_that_fit_several_tasks_need_an_option():
    path = table(
        "a.csv", ("text", text), ("label", one_of_two), ("question", text), ("answer", text)
    )
    with pytest.raises(WxbError, match="fit chat and classification; choose with --task"):
        block(path)
    assert fields(path, "classification")[1] == {"input": "text", "label": "label"}


def test_a_task_that_does_not_fit_is_an_error_with_the_expected_records():
    path = table("a.csv", ("text", text), ("label", one_of_two))
    with pytest.raises(
        WxbError, match=r"(?s)'label': text, 2 values; expected.* translation: a text"
    ):
        block(path, "translation")
    with pytest.raises(WxbError, match=r"--task: found 'classify'; did you mean 'classification'"):
        block(path, "classify")


@pytest.mark.parametrize("task", guessing.tasks())
@pytest.mark.parametrize("pretrained", [True, False])
def test_a_first_study_of_each_task_is_valid(task, pretrained):
    shared = to_yaml({"mine": {"task": task, "path": "mine.csv", "split": SHARES}})
    added = add_block((ROOT / PARAMS).read_text(encoding="utf-8"), "corpora", shared)
    text = studies.add_study(added, "new", "mine", task, None, pretrained=pretrained)
    Path(PARAMS).write_text(text, encoding="utf-8")
    params = check(read_yaml(PARAMS))
    members = [params.experiments[name] for name in params.studies["new"].experiments]
    assert members
    assert {member.task for member in members} == {task}
    checkpoints = {params.backbones[member.backbone].checkpoint for member in members}
    assert checkpoints <= {None, "minilm"}
    assert pretrained or checkpoints == {None}


@pytest.mark.parametrize(
    ("path", "task", "kept"),
    [
        ("translation/cmn.txt", "translation", 25754),
        ("chat/ruozhiba_qa2449_gpt4t.json", "chat", 2449),
        ("speech/fsdd", "speech", 300),
    ],
)
def test_real_files(path, task, kept):
    if not (DATA / path).exists():
        pytest.skip(f"{path} is not in ../shared/data")
    guess = corpus.guess_corpus(DATA / path, None)
    assert f"task: {task}" in guess.block
    assert guess.trial.kept == kept
