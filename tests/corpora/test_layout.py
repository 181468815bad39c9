import pytest

from tests.corpora.records import corpus
from wxb.core.errors import WxbError
from wxb.core.params.corpora import Split
from wxb.corpora.layout import data_files, decode, files_by_split, unread_files


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def names(files, folder):
    return [file.relative_to(folder).as_posix() for file in files]


def test_only_files_of_records_are_read_in_the_order_of_their_paths(tmp_path):
    touch(tmp_path, "b.jsonl", "a.JSON", "sub/c.csv", "a.md", "d.parquet", "._a.csv", ".x/e.json")
    paths = names(data_files(tmp_path, corpus()), tmp_path)
    assert paths == ["a.JSON", "b.jsonl", "d.parquet", "sub/c.csv"]


def test_column_files_may_have_any_name_that_is_not_hidden(tmp_path):
    touch(tmp_path, "weibo.train", "sub/test", ".DS_Store", ".git/config")
    paths = names(data_files(tmp_path, corpus(conll={})), tmp_path)
    assert paths == ["sub/test", "weibo.train"]


@pytest.mark.parametrize(
    ("files", "changes", "message"),
    [
        ([], {}, r"found nothing; expected .*\.jsonl"),
        (["a.xml"], {}, r"found a\.xml; expected .*\.arrow; or set `conll`"),
        ([".hidden"], {"conll": {}}, r"found \.hidden; expected files that `conll` reads"),
    ],
)
def test_a_folder_without_records_is_an_error_that_lists_its_files(
    tmp_path, files, changes, message
):
    touch(tmp_path, *files)
    with pytest.raises(WxbError, match=message):
        data_files(tmp_path, corpus(**changes))


def divide(folder, further=None, **patterns):
    default = {"train": ["train/*"], "valid": ["valid*"], "test": ["test*"]}
    split = Split.model_validate({"files": default | patterns, "further": further})
    return files_by_split(data_files(folder, corpus()), folder, split)


def test_patterns_on_paths_divide_files(tmp_path):
    touch(tmp_path, "train/a.csv", "train/sub/b.csv", "valid.csv", "test-1.csv", "test-2.csv")
    splits = divide(tmp_path)
    assert {name: names(files, tmp_path) for name, files in splits.items()} == {
        "train": ["train/a.csv", "train/sub/b.csv"],
        "valid": ["valid.csv"],
        "test": ["test-1.csv", "test-2.csv"],
    }


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({"test": ["test-1.csv"]}, "test-2.csv is in no split"),
        ({"train": ["*.csv"], "test": ["tes*"]}, "test-1.csv is in train and test"),
        ({"valid": ["dev*", "v"]}, "no file matches dev*, v (valid); valid.csv is in no split"),
    ],
)
def test_a_file_in_no_split_or_two_is_an_error_on_one_line(tmp_path, patterns, message):
    touch(tmp_path, "train/a.csv", "valid.csv", "test-1.csv", "test-2.csv")
    with pytest.raises(WxbError, match=f"^{tmp_path}: .*change the patterns in `split`") as raised:
        divide(tmp_path, **patterns)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_of_no_further_test_set_are_left_to_divide(tmp_path):
    touch(tmp_path, "a.csv", "tweets.csv", "z.csv")
    further = {"tweets": {"files": ["tw*"]}, "situations": {"by": "scene", "share": 0.1}}
    split = Split.model_validate({"test": 0.2, "valid": 0.1, "further": further})
    splits = files_by_split(data_files(tmp_path, corpus()), tmp_path, split)
    assert {name: names(files, tmp_path) for name, files in splits.items()} == {
        "tweets": ["tweets.csv"],
        None: ["a.csv", "z.csv"],
    }
    split = Split.model_validate({"test": 0.2, "valid": 0.1, "further": {"all": {"files": ["*"]}}})
    with pytest.raises(WxbError, match="no file is left to divide; expected"):
        files_by_split(data_files(tmp_path, corpus()), tmp_path, split)


def test_entries_that_are_not_read_are_named(tmp_path):
    for name in ("a.json", "b.txt", "c.jsonl.gz", "d.xlsx", ".hidden", "more/e.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    unread = unread_files(tmp_path, [tmp_path / "a.json"])
    assert unread == ["b.txt", "c.jsonl.gz", "d.xlsx", "more/e.md"]


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("cp1252", "Frau Müller aus Köln grüßt herzlich. Ça coûte très cher, señor."),
        ("gb18030", "王小明住在北京市海淀区，电话号码是零二二三。他昨天去了上海。"),
        ("utf-16", "Ann is here."),
    ],
)
def test_other_encodings_come_with_the_command_that_converts(tmp_path, encoding, line):
    file = tmp_path / "a.json"
    file.write_bytes(f'["{line}"]'.encode(encoding))
    with pytest.raises(WxbError, match=rf"`iconv -f {encoding} -t UTF-8 .*/a\.json > new\.json`"):
        decode(file)
