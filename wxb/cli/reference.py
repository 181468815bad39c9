"""docs/commands.md: the reference of the command `wxb`, generated from its help."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from typer.cli import get_docs_for_click

PATH = Path("docs/commands.md")

HEAD = """# Commands

```sh
wxb --help
```

`wxb COMMAND --help` prints the same text as this page. `wxb readme` generates it.
Run commands in the root of the project, inside its environment (`source .venv/bin/activate`).
"""


def page(app: typer.Typer) -> str:
    """The reference of an application and all its commands, in Markdown."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="wxb")
    _, _, commands = get_docs_for_click(obj=command, ctx=context, name="wxb").partition("\n## ")
    commands = commands.replace("* `--help`: Show this message and exit.\n", "")
    commands = commands.replace("**Options**:\n\n\n", "")  # of a command with no other option
    stripped = re.sub(r"[ \t]+$", "", commands, flags=re.MULTILINE).rstrip()
    return f"{HEAD}\n## {stripped}\n"
