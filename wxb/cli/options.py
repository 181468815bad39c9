"""Options and arguments that several commands share."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from wxb.core.errors import WxbError, choices
from wxb.core.params import Params
from wxb.project import trained

AsJson = Annotated[bool, typer.Option("--json", help="as JSON, for other programs")]
ARGUMENT = "TEXT | FILE | FOLDER | -"
EMPTY = "found an empty argument (a shell variable that is not set?)"
# Without blanks, and with a folder or a suffix. If it is mistyped, it must not be masked as a text.
LIKE_A_PATH = re.compile(r"~\S*|\S*[/\\]\S*|\S*\.[A-Za-z]\w{0,7}")


class TextCommand(TyperCommand):
    """A command whose inputs may be texts that begin with a dash, such as "- the best"."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Mark such texts by a NUL for `split_options`; click would find the options -e and -h."""
        texts = (f"\0{a}" if re.match("-[^-]", a) and " " in a else a for a in args)
        return super().parse_args(ctx, [*texts])


def require_value(value: str | None) -> str | None:
    """The value of an option, unchanged. Raises typer's usage error if it is empty."""
    if value == "":
        raise typer.BadParameter(EMPTY)
    return value


def require_experiment(value: str) -> str:
    """The value of --experiment. Raises typer's usage error, with all trained ones, if empty."""
    if not value:
        names = ", ".join(trained.names()) or "none here (`make run` trains some)"
        usage_error("--experiment / -e", f"missing; trained experiments: {names}")
    return value


Experiment = Annotated[
    str,
    typer.Option(
        "--experiment",
        "-e",
        callback=require_experiment,
        help="a trained experiment, or its folder; required",
        show_default=False,
    ),
]
StudyOrAll = Annotated[str, typer.Argument(help="a study or lesson of params.yaml, or all")]


def expand_all(params: Params, name: str) -> list[str]:
    """The study or lesson of this name, or all if it is "all". Raises WxbError if unknown."""
    names = [*params.studies, *params.lessons]
    if name == "all":
        return names
    if name not in names:
        raise WxbError(f"params.yaml has no study or lesson {name!r}{choices(name, names)}")
    return [name]


def path_unless_text(source: str | None) -> Path | None:
    """The file or folder named by an argument, or None if it is a text or "-".

    Raises typer's usage error if there is no such path, but the argument looks like one.
    """
    if source is None or source == "-":
        return None
    path = Path(source)
    try:
        if path.exists():
            return path
    except OSError:  # too long for a name
        return None
    if LIKE_A_PATH.fullmatch(source):
        usage_error(ARGUMENT, f"no file {source!r}; to pass this as a text, use standard input")
    return None


def visible_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted, without hidden ones and those in hidden folders.

    Raises OSError for an unreadable folder, WxbError for a linked one, or if there is no file.
    """
    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if linked := next((name for name in folders if Path(parent, name).is_symlink()), None):
            raise WxbError(
                f"{Path(parent, linked)} is a linked folder; copy it, or remove the link"
            )
        files += [Path(parent, name) for name in names if not name.startswith(".")]
    files = sorted(filter(Path.is_file, files))
    if not files:
        raise WxbError(f"{folder}: has no files, or only hidden ones")
    return files


def _raise(error: OSError) -> None:
    raise error


def usage_error(option: str, fault: str) -> NoReturn:
    """Raise typer's usage error for an option."""
    raise typer.BadParameter(fault, param_hint=option)


def split_options(arguments: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Inputs, and options by name (`--max-length 9`: `max_length`), which all have a value.

    A text with blanks may begin with dashes, and with the mark of `TextCommand`. Raises typer's
    usage error for `-x`, "" and no value.
    """
    inputs: list[str] = []
    options: dict[str, str] = {}
    rest = (argument.removeprefix("\0") for argument in arguments)
    for argument in rest:
        if not argument:
            usage_error("INPUT", EMPTY)
        if re.fullmatch(r"-[A-Za-z]", argument):
            usage_error(argument, "no such option")
        if not argument.startswith("--") or " " in argument.partition("=")[0]:
            inputs.append(argument)
            continue
        option, equals, value = argument.partition("=")
        value = value if equals else next(rest, "")
        if not value:
            usage_error(option, "missing its value")
        options[option[2:].replace("-", "_")] = value
    return inputs, options
