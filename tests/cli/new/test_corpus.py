"""`wxb new corpus`: names that it knows, and names that it asks for."""

import csv
import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from stages.preprocess import preprocess
from tests.corpora.records import to_letters
from wxb import tasks
from wxb.cli.new import corpus
from wxb.cli.new.corpus import new_corpus
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.tasks import corpora
from wxb.tasks.recognition import FlagError

DATA = Path(__file__).parents[3] / "../shared/data"
SHARES = {"test": 0.2, "valid": 0.1}
BY_DOCUMENT = {"by": None, **SHARES}
FIELDS = {
    **{"input": "body", "spans": "marks", "start": "begin", "end": "stop", "type": "tag"},
    **{"value": "mention", "language": None, "id": None},
}
WORDS = [to_letters(number) for number in range(40)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def record(number, *, shift=0):
    """A text with two spans, whose ends are shifted."""
    name, city = f"Ann{to_letters(number)}", f"Rome{to_letters(number)}"
    text = f"{name} lives in {city}, said {to_letters(number)}."
    spans = [
        {"begin": (i := text.index(v)), "stop": i + len(v) + shift, "tag": tag, "mention": v}
        for v, tag in ((name, "NAME"), (city, "CITY"))
    ]
    return {"body": text, "marks": spans}


def records(count=60, **kind):
    return [record(number, **kind) for number in range(count)]


def write(path, content):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


def table(path, /, **columns):
    """A CSV file with a row for each of WORDS; a column is a function from row to cell."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows([make(n) for make in columns.values()] for n in range(len(WORDS)))
    return Path(path)


def text(number):
    return f"It is {WORDS[number]} that was named here."


def one_of_two(number):
    return ("good", "bad")[number % 2]


def block(path, task=None, **flags):
    """The block as it reads back, without its name."""
    flags = {name.replace("_", "-"): value for name, value in flags.items()}
    added = new_corpus(Path(path), None, task, flags).block
    ((_, content),) = YAML(typ="safe").load(added).items()
    return content


def fields(path, task=None, **flags):
    """The task and the fields that are not null."""
    content = block(path, task, **flags)
    return content["task"], {k: v for k, v in content["fields"].items() if v is not None}


def cleaned(path, content):
    """The profile that the stage `preprocess` writes for a block."""
    if Path(path).is_dir():
        shutil.copytree(path, "raw")
    else:
        Path("raw").mkdir()
        shutil.copy(path, "raw")
    task, params = tasks.get(content["task"]), corpora()[content["task"]].model_validate(content)
    preprocess(Path("raw"), params, task.reading, task.record, seed=1, label="p", out=Path("clean"))
    return read_json(Path("clean/profile.json"))


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv", "semicolons.csv", "tsv", "parquet"])
def test_spans_are_known_by_their_keys_in_every_format(suffix):
    path = Path(f"post.{suffix}")
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(records()), path)
    elif suffix.startswith("json"):
        lines = "".join(json.dumps(r) + "\n" for r in records())
        write(path, lines if suffix == "jsonl" else records())
    else:
        delimiter = {"csv": ",", "tsv": "\t"}.get(suffix, ";")
        with path.open("w", newline="") as file:
            rows = csv.DictWriter(file, ["body", "marks"], delimiter=delimiter)
            rows.writeheader()
            rows.writerows({**r, "marks": json.dumps(r["marks"])} for r in records())
            rows.writerow({"body": "Nobody labelled this.", "marks": ""})
    content = block(path)
    assert content == {"task": "ner", "path": path.name, "fields": FIELDS, "split": BY_DOCUMENT}
    assert new_corpus(path, None).trial.unlabelled == suffix.endswith("sv")


def test_unknown_names_are_asked_for_and_given():
    rows = [{"words": r["body"], "found": [{"a": s["begin"], "b": s["stop"], "c": s["tag"]}
             for s in r["marks"]]} for r in records()]  # fmt: skip
    path = write("post.json", rows)
    with pytest.raises(FlagError, match=r"(?s)'words': 'Ann.*--input, --gold.*--start, --end"):
        block(path)
    with pytest.raises(FlagError, match=r"--start and --end and --tag: .* a, b, c in 'found'"):
        block(path, input="words", gold="found")
    given_names = {"input": "words", "gold": "found", "start": "a", "end": "b", "tag": "c"}
    expected = {"input": "words", "spans": "found", "start": "a", "end": "b", "type": "c"}
    assert fields(path, **given_names) == ("ner", expected)
    rows = [{"frase": text(n), "tono": one_of_two(n)} for n in range(40)]
    path = write("post.json", rows)
    with pytest.raises(FlagError, match="choose with --task"):
        block(path, input="frase", gold="tono")
    found = fields(path, "classification", input="frase", gold="tono")
    assert found == ("classification", {"input": "frase", "label": "tono"})


@pytest.mark.parametrize(
    ("extra", "flag", "name"),
    [
        ({"full_text": "To [NAME], as a number on the list"}, "input", "body"),
        ({"more": [{"start": 0, "end": 3, "label": "NAME"}]}, "gold", "marks"),
        ({"author": "Ann", "doc_id": 7}, "group", "-"),
    ],
)
def test_two_names_that_fit_are_a_question(extra, flag, name):
    path = write("post.json", [{**row, **extra} for row in records()])
    with pytest.raises(FlagError, match=f"--{flag}"):
        block(path)
    content = block(path, **{flag: name})
    assert {key: content["fields"][key] for key in FIELDS} == FIELDS
    assert content["split"] == BY_DOCUMENT


def test_wrong_offsets_are_rejected_and_repaired_on_request():
    path = write("post.json", [*records(40, shift=1), *records(60)[40:]])
    added = new_corpus(path, None)
    assert added.trial.rejects == {"value differs": 40}
    assert "repair: by-value" in added.notes[0]
    repaired = new_corpus(path, None, None, {"repair": ""})
    assert repaired.trial.repaired == {"span found by value": 80}
    write("post.json", records(shift=1))
    with pytest.raises(WxbError, match=r"(?s)first of 60 .*value differs.*repair: by-value"):
        block(path)


def test_language_id_and_group():
    rows = [{"uid": n, "lang": "en", "template_id": n % 12, **record(n)} for n in range(60)]
    content = block(write("post.json", rows))
    assert [content["fields"][key] for key in ("language", "id")] == ["lang", "uid"]
    assert content["split"]["by"] == "template_id"
    assert cleaned("post.json", content)["splits"]["test"]["groups"] > 1
    assert block("post.json", group="lang")["split"]["by"] == "lang"
    rows = [{**row, "uid": n % 50} for n, row in enumerate(rows)]
    del rows[0]["template_id"]
    content = block(write("post.json", rows))
    assert (content["fields"]["id"], content["split"]["by"]) == (None, None)


def test_few_groups_are_noted():
    assert "found 5" in new_corpus(write("post.json", records(5)), None).notes[-1]
    assert new_corpus(write("post.json", records()), None).notes == []


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["eng.train", "eng.testa", "eng.testb"], True),
        (["a-Train.txt", "a_validation.txt", "a-TEST.txt"], True),
        (["train/x.txt", "val/x.txt", "test/x.txt"], True),
        (["train-[0].txt", "train-1.txt", "dev.txt", "test.txt"], True),
        (["train.txt", "test.txt"], False),
        (["train.txt", "dev.txt", "test.txt", "more.txt"], False),
        (["validated.txt", "train.txt", "test.txt"], False),
    ],
)
def test_published_splits_by_names_of_files(names, splits):
    for number, name in enumerate(names):
        lines = (f"Ann{number} B-NAME\n{to_letters(100 * number + n)} O\n\n" for n in range(20))
        write(Path("town", name), "".join(lines))
    content = block("town")
    assert ("files" in content["split"]) == splits
    cleaned("town", content)


def columns(rows, sentences=30):
    """The text of a column file; `#` and `字` in it tell its sentences apart."""
    count = ((to_letters(n), chr(ord("一") + n)) for n in range(sentences))
    return "".join(rows.replace("#", n).replace("字", sign) + "\n" for n, sign in count)


@pytest.mark.parametrize(
    ("rows", "conll"),
    [
        ("Ann# B-NAME\nMay I-NAME\nis# O\n", {}),
        ("Ann#\tNNP\tB-NP\tI-NAME\nis#\tVBZ\tB-VP\tO\n", {"tag": 3}),
        ("1 Ann# B-NAME\n2 is# O\n", {"token": 1, "tag": 2}),
        ("Ann# B-NAME x\nis# O y\n", {}),
        ("Ann# B-NAME x\nis# O\n", {}),  # rows of different lengths
        ("Ann# S-NAME\nis# O\n", {}),
        ("-DOCSTART- O\n\nAnn# B-NAME\nis# O\n", {}),
        ("Ann# B-NAME\nMay L-NAME\n", {}),
        ("Ann# W-NAME\nis# O\n", {}),
        ("王\tB-PER\n明\tI-PER\n字\tO\n来\tO\n", {"join": ""}),
        ("王0\tB-PER\n明1\tI-PER\n字0\tO\n来0\tO\n", {"join": "", "characters": True}),
    ],
)
@pytest.mark.parametrize("suffix", ["conll", "tsv"])
def test_columns(rows, conll, suffix):
    path = write(f"town.{suffix}", columns(rows))
    content = block(path)
    assert content["conll"] == {"token": 0, "tag": 1, "join": " ", **conll}
    assert not new_corpus(path, None).trial.rejects
    assert cleaned(path, content)["labels"]


def test_few_tokens_without_an_index_change_nothing():
    """As in Weibo, whose tokens are characters with their index in a word."""
    path = write("town.txt", columns("王0\tB-PER\n明1\tI-PER\n字0\tO\n") + "…\tO\n")
    assert block(path)["conll"]["characters"]


def test_two_columns_of_tags_are_a_question():
    path = write("town.txt", columns("1\tAnn#\tB-PER\tO\n2\tRome#\tB-PER\tB-LOC\n"))
    with pytest.raises(FlagError, match="--tag: found tags in the columns 2 and 3"):
        block(path)
    assert block(path, tag="3")["conll"] == {"token": 1, "tag": 3, "join": " "}


def test_files_beside_columns_are_named():
    write("town/a.conll", columns("Ann# B-NAME\nis# O\n"))
    write("town/sources", "Where these come from\nis a long story.\n")
    with pytest.raises(WxbError, match=r"town/sources: "):
        block("town")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ([{"review": "Good.", "mood": "up"}], FlagError, r"(?s)'mood': 'up'.*classification: a te"),
        ([1, 2], FlagError, "found no record that is an object"),
        ("text", WxbError, "broken JSON"),
        ([{"messages": [{"by": "user", "words": "Who?"}]}], WxbError, "with by, words"),
    ],
)
def test_other_records_are_an_error(content, error, message):
    with pytest.raises(error, match=message):
        block(write("post.json", content))


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("cp1252", "Frau Müller aus Köln grüßt herzlich. Ça coûte très cher, señor."),
        ("gb18030", "王小明住在北京市海淀区，电话号码是零二二三。他昨天去了上海。"),
        ("big5", "王小明住在臺北市信義區，電話號碼是零二二三。他昨天去了高雄。"),
        ("utf-16", "Ann is here."),
    ],
)
def test_other_encodings_come_with_the_command_that_converts(encoding, line):
    Path("post.json").write_bytes(json.dumps([{"text": line}], ensure_ascii=False).encode(encoding))
    command = rf"(?i)post.json: found .*`iconv -f {encoding} -t UTF-8 post.json > new.json`"
    with pytest.raises(WxbError, match=command):
        block("post.json")


def test_names_and_paths():
    added = new_corpus(write("my post.v2.json", records()).resolve(), None)
    assert added.name == "my-post"
    assert block("my post.v2.json")["path"] == "my post.v2.json"
    with pytest.raises(WxbError, match="give --name"):
        corpus.corpus_name(Path("記錄.json"))
    write("../outside.json", records())
    assert block("../outside.json")["path"] == "../outside.json"
    with pytest.raises(WxbError, match="no such file or folder"):
        block("nowhere.json")


@given(st.lists(st.dictionaries(st.sampled_from(["text", "label", "spans", "a"]), st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 9), st.sampled_from(["x", "to x", ""])),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(
        st.sampled_from(["start", "end", "label", "role"]), inner)),
)), max_size=4))  # fmt: skip
def test_any_file_is_read_or_an_error(rows):
    write("any.json", rows)
    with suppress(WxbError):
        assert new_corpus(Path("any.json"), None).trial.kept


@pytest.mark.parametrize(
    ("languages", "texts", "english"),
    [
        (["en", "en-GB", "English"], [], True),
        (["en", "fr"], [], False),
        ([], ["This is the letter that you have not sent to us."], True),
        ([], ["Das ist der Brief, den Sie uns nicht geschickt haben."], False),
        ([], ["這是你們沒有寄給我們的信。 It is to us."], False),
        ([], [], False),
    ],
)
def test_english_is_recognized(languages, texts, english):
    trial = corpus.Trial(texts=texts)
    trial.languages.update(languages)
    assert trial.is_english == english


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        ({"Review_Text": text, "sentiment": one_of_two},
         ("classification", {"input": "Review_Text", "label": "sentiment"})),
        ({"id": int, "English": text, "chinese": lambda n: f"第{n}句話。"},
         ("translation", {"input": "English", "target": "chinese", "id": "id"})),
        ({"tgt": lambda n: f"我說{WORDS[n]}。", "src": text},
         ("translation", {"input": "src", "target": "tgt"})),
        # A column with the whole prompt, as Alpaca has it, is not for pretraining.
        ({"Question": text, "answer": one_of_two, "text": text},
         ("chat", {"instruction": "Question", "output": "answer"})),
    ],
)  # fmt: skip
def test_known_names_of_each_task(make, expected):
    assert fields(table("a.csv", **make)) == expected


def test_files_that_are_classes_need_an_option():
    for name in ("Spam.csv", "ham[1].csv"):
        table(f"mail/{name}", text=lambda n, name=name: f"{text(n)} {name}")
    with pytest.raises(FlagError, match="--class-per-file"):
        block("mail")
    content = block("mail", class_per_file="")
    assert content["task"] == "classification"
    assert content["classes"] == {"Spam.csv": "spam", "ham[[]1].csv": "ham[1]"}
    trial = new_corpus(Path("mail"), None, None, {"class-per-file": ""}).trial
    assert trial.counts["classes"] == {"spam": 40, "ham[1]": 40}


def recordings(where, /, **columns):
    """A folder of short recordings, and a table of them."""
    noise = np.random.default_rng(1)
    for number in range(len(WORDS)):
        path = Path(where, "clips", f"{number}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, 0.3 * noise.standard_normal(4000), 16_000)
    return table(f"{where}/transcripts.csv", **columns)


def test_recordings_with_transcripts():
    columns = {"file_name": lambda n: f"clips/{n}.wav", "text": text}
    recordings("own", **columns, client_id=lambda n: f"speaker {n % 10}")
    expected = {"input": "file_name", "sentence": "text", "speaker": "client_id"}
    assert fields("own") == ("speech", expected)
    assert block("own")["split"]["by"] == "client_id"
    trial = new_corpus(Path("own"), None).trial
    assert (trial.kept, trial.groups) == (40, 10)


def test_the_table_with_transcripts_of_several():
    recordings("own", ID=int, sentence=text, speaker=one_of_two)
    table("own/about.csv", ID=int, place=one_of_two)
    content = block("own")
    assert content["manifest"] == "transcripts.csv"
    assert content["fields"]["speaker"] == "speaker"


def test_a_table_without_its_recordings_is_an_error():
    path = table("own/transcripts.csv", path=lambda n: f"{n}.mp3", sentence=text)
    with pytest.raises(WxbError, match=r"the table and the recordings: wxb new corpus own"):
        block(path)


def test_files_that_fit_several_tasks_need_an_option():
    path = table("a.csv", text=text, label=one_of_two, question=text, answer=text)
    with pytest.raises(FlagError, match="fits chat and classification; choose with --task"):
        block(path)
    assert fields(path, "classification")[1] == {"input": "text", "label": "label"}
    with pytest.raises(FlagError, match=r"(?s)'label': .*translation: a text"):
        block(path, "translation")
    with pytest.raises(WxbError, match=r"--task: found 'classify'; did you mean 'classification'"):
        block(path, "classify")


CSV = "pii/ai4privacy_format/synthetic_pii_data_"


@pytest.mark.parametrize(
    ("path", "task", "flags", "kept"),
    [
        ("pii/synth_dataset_v2.json", None, {}, 1500),
        ("pii/generated_small.json", None, {"repair": ""}, 100),
        (f"{CSV}claude-3-haiku.csv", "ner", {"repair": ""}, 117),
        (f"{CSV}ai21-jamba-instruct.csv", "ner", {"repair": ""}, 99),
        ("ner/conll2003", None, {}, 20744),
        ("ner/wnut17", None, {}, 5690),
        ("ner/msra", None, {}, 3442),
        ("ner/weibo", None, {}, 1890),
        ("translation/cmn.txt", None, {}, 25754),
        ("chat/ruozhiba_qa2449_gpt4t.json", None, {}, 2449),
        ("speech/fsdd", None, {}, 300),
    ],
)
@pytest.mark.slow
def test_real_corpora(path, task, flags, kept):
    if not (DATA / path).exists():
        pytest.skip(f"{path} is not in ../shared/data")
    added = new_corpus(DATA / path, None, task, flags)
    assert added.trial.kept == kept
    assert added.trial.rejects.keys() <= {"length ratio"}
    assert ("characters: true" in added.block) == (path == "ner/weibo")
