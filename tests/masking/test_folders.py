"""Inputs in a folder, their outputs, and files that cannot be read."""

import os

import pytest

from tests.masking.running import write_files
from wxb.core.errors import WxbError
from wxb.masking.folders import check_inputs, find_inputs
from wxb.masking.sources import Layout


@pytest.fixture
def folder(tmp_path):
    files = {
        "a.txt": b"Ann",
        "b.txt": b"one\nAnn \xff",
        "closed/c.txt": b"Ann",
        "sub/d.jsonl": b'{"text": Ann}',
        "sub/e.csv": b"text\nAnn \xfe",
        "sub/.git/x": b"\xff",
        ".hidden": b"\xff",
    }
    return write_files(tmp_path / "in", files)


def test_a_folder_without_files_is_an_error(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/.hidden").touch()
    with pytest.raises(WxbError, match="has no files"):
        find_inputs(tmp_path / "in", tmp_path / "out")


def names(inputs):
    return [source.path.name for source in inputs.sources]


def test_a_subfolder_that_cannot_be_listed_is_unreadable(folder, tmp_path, closed):
    inputs = find_inputs(folder, tmp_path / "out")
    assert names(inputs) == ["a.txt", "b.txt", "d.jsonl", "e.csv"]
    assert inputs.unreadable == [f"{folder}/closed: cannot be read (Permission denied)"]
    with pytest.raises(WxbError, match=r"has no files.*\n.*closed: cannot be read"):
        find_inputs(folder / "closed", tmp_path / "out")


def test_a_file_whose_folder_cannot_be_entered_is_unreadable(folder, tmp_path, monkeypatch):
    stat = os.stat

    def refuse(path, **options):
        if str(path).endswith("c.txt"):
            raise PermissionError(13, "Permission denied")
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refuse)
    inputs = find_inputs(folder, tmp_path / "out")
    assert inputs.unreadable == [f"{folder}/closed/c.txt: cannot be read (Permission denied)"]


def test_broken_links_and_pipes_are_no_files(folder, tmp_path):
    (folder / "link.txt").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.txt")
    inputs = find_inputs(folder, tmp_path / "out")
    assert (len(inputs.sources), inputs.unreadable) == (5, [])


def test_all_unreadable_files_are_in_one_error(folder, tmp_path, closed):
    inputs = find_inputs(folder, tmp_path / "out")
    with pytest.raises(WxbError, match="nothing is written, as 4 cannot be read") as error:
        check_inputs(inputs, Layout(), skip=False)
    for fault in (
        "in/b.txt: line 2: byte 0xff is not UTF-8",
        "in/closed: cannot be read",
        "in/sub/d.jsonl: line 1, character 10: no JSON",
        "in/sub/e.csv: line 2: byte 0xfe is not UTF-8",
        "--skip-unreadable",
    ):
        assert fault in str(error.value)
    assert "Ann" not in str(error.value)


def test_unreadable_files_can_be_skipped(folder, tmp_path, closed):
    inputs = check_inputs(find_inputs(folder, tmp_path / "out"), Layout(), skip=True)
    assert names(inputs) == ["a.txt"]
    assert len(inputs.unreadable) == 4
    (folder / "a.txt").unlink()
    with pytest.raises(WxbError, match="nothing is written") as error:
        check_inputs(find_inputs(folder, tmp_path / "out"), Layout(), skip=True)
    assert "--skip-unreadable" not in str(error.value)


def test_a_file_that_cannot_be_opened_is_unreadable(folder, tmp_path, closed):
    inputs = find_inputs(folder / "a.txt", tmp_path / "out.txt")
    (folder / "a.txt").unlink()
    with pytest.raises(WxbError, match=r"a\.txt: cannot be read"):
        check_inputs(inputs, Layout(), skip=False)
