"""Help of the command `wxb`, and docs/commands.md, which is generated from it."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

PATH = Path("docs/commands.md")
NO_REWRAP = "\b"  # as in Click: marks a paragraph that keeps its lines

HEAD = """# Commands

```sh
wxb --help
```

`wxb COMMAND --help` prints the same text as this page. `wxb readme` generates it.
Run commands in the root of the project, inside its environment (`source .venv/bin/activate`).
"""


def unwrap_help(command: Callable[..., Any] | None) -> str:
    """The docstring of a command, each paragraph on one line unless it begins with NO_REWRAP."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith(NO_REWRAP) else part.replace("\n", " ") for part in paragraphs
    )


def page(app: typer.Typer) -> str:
    """The page of commands in Markdown: HEAD and the help of each, without the option `--help`."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="wxb")
    _, _, commands = get_docs_for_click(obj=command, ctx=context, name="wxb").partition("\n## ")
    commands = commands.replace("* `--help`: Show this message and exit.\n", "")
    commands = commands.replace("**Options**:\n\n\n", "")  # of commands whose only option is --help
    stripped = re.sub(r"[ \t]+$", "", commands, flags=re.MULTILINE).rstrip()
    return f"{HEAD}\n## {stripped}\n"
