"""Help of commands, and --version."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.commands import wxb
from wxb.cli.reference import unwrap_help

ROOT = Path(__file__).parents[2]


def documented():
    """One line
    and more.

    Two.

    \b
    As it
    is.
    """


def test_a_paragraph_is_one_line_unless_it_is_marked():
    assert unwrap_help(documented) == "One line and more.\n\nTwo.\n\n\b\nAs it\nis."


@pytest.mark.parametrize("arguments", [("-h",), ("mask", "-h"), ("new", "corpus", "-h")])
def test_help_is_wrapped_once(arguments):
    """A short line is the last of its paragraph, or the next word does not fit."""
    text = wxb(*arguments, path=[ROOT], COLUMNS="80").stdout.split("╭")[0]
    for paragraph in "\n".join(map(str.strip, text.splitlines())).split("\n\n"):
        lines = paragraph.strip().splitlines()
        if any("  " in line for line in lines):
            continue  # a list, whose lines are not wrapped
        for line, after in pairwise(lines):
            assert len(line) + 1 + len(after.split()[0]) > 76, (line, after)


def test_the_version_is_printed():
    assert wxb("--version", path=[ROOT]).stdout.startswith("wxb 0.")
