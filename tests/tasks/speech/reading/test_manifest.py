import pytest

from tests.tasks.speech.tones import write
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.reading import Reading


def rows(file, content, **changes):
    """The rows of a manifest, which is written first."""
    file.write_text(content, encoding="utf-8")
    block = {"task": "speech", "path": "x", "split": {"test": 0.2, "valid": 0.2}, **changes}
    return [raw.content for raw in Reading().raw_records(file, Corpus.model_validate(block))]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # A row without a path uses the file named by its id.
        ("t.csv", "ID,sentence\n0 乔治,zero\n1,one\n", ["wavs/0 乔治.wav", "1"]),
        # A path is relative to its manifest.
        ("m.jsonl", '{"path": "wavs/0 乔治.wav"}\n{"path": "../b"}\n', ["wavs/0 乔治.wav", "../b"]),
        # A name without folder is searched below, as in Common Voice.
        ("t.tsv", "path\tsentence\na.b.flac\ta\nc.mp3\tb\n", ["clips/a.b.flac", "c.mp3"]),
    ],
)
def test_recordings_are_found(tmp_path, name, content, expected):
    for path in ("wavs/0 乔治.wav", "clips/a.b.flac"):
        (tmp_path / path).parent.mkdir()
        write(tmp_path / path)
    paths = [row["path"] for row in rows(tmp_path / name, content)]
    assert paths == [f"{tmp_path}/{path}" for path in expected]


def test_absolute_paths_are_those_of_the_copied_folder(tmp_path):
    for folder in ("own", "copy"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "a.wav")
    (row,) = rows(tmp_path / "copy/t.csv", f"path,sentence\n{tmp_path}/own/a.wav,one\n")
    assert row["path"] == f"{tmp_path}/copy/a.wav"


@pytest.mark.parametrize("content", ['{"sentence": "a"}\n', "[1]\n", "broken\n"])
def test_an_unusable_row_is_returned_to_be_rejected(tmp_path, content):
    (row,) = rows(tmp_path / "m.jsonl", content)
    assert not isinstance(row, dict) or "path" not in row
