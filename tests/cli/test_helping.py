"""What help and --version say."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.commands import wxb
from wxb.cli.helping import unwrapped

ROOT = Path(__file__).parents[2]


def said():
    """One line
    and more.

    Two.

    \b
    As it
    is.
    """


def test_a_paragraph_is_a_line_unless_it_stays_as_it_is():
    assert unwrapped(said) == "One line and more.\n\nTwo.\n\n\b\nAs it\nis."


@pytest.mark.parametrize("arguments", [("-h",), ("mask", "-h"), ("new", "corpus", "-h")])
def test_help_is_wrapped_once(arguments):
    """A line that ends early is the last of its paragraph, or the next word had no room."""
    told = wxb(*arguments, path=[ROOT], COLUMNS="80").stdout.split("╭")[0]
    for paragraph in "\n".join(map(str.strip, told.splitlines())).split("\n\n"):
        lines = paragraph.strip().splitlines()
        if any("  " in line for line in lines):
            continue  # a list, whose lines stay
        for line, after in pairwise(lines):
            assert len(line) + 1 + len(after.split()[0]) > 76, (line, after)


def test_the_version_is_told():
    assert wxb("--version", path=[ROOT]).stdout.startswith("wxb 0.")
