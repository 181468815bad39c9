"""What an argument of `wxb predict` and `wxb mask` is: a path or a text."""

import pytest
import typer

from wxb.cli.options import path_unless_text, visible_files
from wxb.core.errors import WxbError


@pytest.mark.parametrize("text", ["Ann", "Hello.", "我叫王明。", "See a.txt, now", "3.14", "e.g."])
def test_a_text_is_no_path(text, cwd):
    assert path_unless_text(text) is None


@pytest.mark.parametrize("path", ["missing.md", "a/b", "./a", "~/a", "data/x.yaml", r"C:\a"])
def test_a_missing_path_is_no_text(path, cwd):
    with pytest.raises(typer.BadParameter, match="to pass this as a text, use standard input"):
        path_unless_text(path)


def test_an_existing_file_is_a_path_whatever_its_name(cwd):
    (cwd / "Ann").touch()
    assert path_unless_text("Ann").name == "Ann"


def test_a_linked_folder_is_not_left_out_silently(cwd):
    (cwd / "old").mkdir()
    (cwd / "letters").mkdir()
    (cwd / "letters/2024").symlink_to(cwd / "old")
    with pytest.raises(WxbError, match="2024 is a linked folder"):
        visible_files(cwd / "letters")
