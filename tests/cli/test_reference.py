"""Help of commands, and --version."""

from tests.commands import wxb
from tests.project_copy import ROOT
from wxb.cli.reference import unwrap_help


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


def test_the_version_is_printed():
    assert wxb("--version", path=[ROOT]).stdout.startswith("wxb 0.")
