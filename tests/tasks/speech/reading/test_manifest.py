import json

import pytest

from tests.tasks.speech.tones import write
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.reading import Reading


def corpus(**changes):
    return Corpus.model_validate(
        {"task": "speech", "path": "x", "split": {"test": 0.2, "valid": 0.2}, **changes}
    )


def paths(folder, name, settings):
    return [raw.content["path"] for raw in Reading().raw_records(folder / name, settings)]


def test_a_row_without_a_path_uses_the_file_named_by_its_id(tmp_path):
    (tmp_path / "wavs").mkdir()
    write(tmp_path / "wavs" / "0 乔治.wav")
    (tmp_path / "t.csv").write_text("ID,sentence\n0 乔治,zero\n1,one\n", encoding="utf-8")
    assert paths(tmp_path, "t.csv", corpus()) == [f"{tmp_path}/wavs/0 乔治.wav", f"{tmp_path}/1"]


def test_a_path_is_relative_to_its_manifest(tmp_path):
    (tmp_path / "in").mkdir()
    rows = [{"path": "a.flac", "sentence": "a"}, {"path": "../b.flac", "sentence": "b"}]
    (tmp_path / "in/m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert paths(tmp_path, "in/m.jsonl", corpus()) == [
        f"{tmp_path}/in/a.flac",
        f"{tmp_path}/in/../b.flac",
    ]


def test_a_name_without_folder_is_searched_below_as_in_common_voice(tmp_path):
    (tmp_path / "clips").mkdir()
    write(tmp_path / "clips" / "a.b.flac", suffix="flac")
    (tmp_path / "test.tsv").write_text("path\tsentence\na.b.flac\ta\nc.mp3\tb\n")
    assert paths(tmp_path, "test.tsv", corpus()) == [
        f"{tmp_path}/clips/a.b.flac",
        f"{tmp_path}/c.mp3",
    ]


def test_further_tables_add_columns(tmp_path):
    (tmp_path / "transcripts.csv").write_text("ID,sentence\na,zero\nb,one\n")
    (tmp_path / "metadata.csv").write_text("ID,speaker,sentence\na,ann,other\n")
    settings = corpus(manifest=["transcripts.csv", "metadata.csv"])
    rows = [raw.content for raw in Reading().raw_records(tmp_path / "transcripts.csv", settings)]
    assert rows[0] == {"ID": "a", "speaker": "ann", "sentence": "zero", "path": f"{tmp_path}/a"}
    assert "speaker" not in rows[1]
    assert [*Reading().raw_records(tmp_path / "metadata.csv", settings)] == []


@pytest.mark.parametrize("content", ['{"sentence": "a"}\n', "[1]\n", "broken\n"])
def test_an_unusable_row_is_returned_to_be_rejected(tmp_path, content):
    (tmp_path / "m.jsonl").write_text(content)
    (raw,) = Reading().raw_records(tmp_path / "m.jsonl", corpus())
    assert not isinstance(raw.content, dict) or "path" not in raw.content
