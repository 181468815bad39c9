"""`wxb chat`: a conversation with a trained experiment, in a terminal or in a pipe."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from wxb import tasks
from wxb.cli.options import apart, require_value, usage_error
from wxb.core import paths
from wxb.core.errors import WxbError, nearest
from wxb.core.files import read_json
from wxb.core.params import PARAMS
from wxb.core.params import load as load_params
from wxb.project.completion import names
from wxb.project.root import root as find_root

if TYPE_CHECKING:
    from wxb.tasks.chat.predictor import Replier

COMMANDS = {
    "/reset": "begins anew",
    "/system TEXT": "says how to answer, and begins anew",
    "/save FILE": "keeps the conversation as JSON",
}
HELP = ", ".join(f"{name} {what}" for name, what in COMMANDS.items())
Message = dict[str, str]


def chat(
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment",
            "-e",
            callback=require_value,
            help="a trained experiment, or its folder; default: the one with the best score",
            autocompletion=names("experiments"),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--SETTING VALUE...]",
            help="what the experiment may set under `prediction`, such as --max-new-tokens 200",
        ),
    ] = None,
) -> None:
    """Chat with a trained experiment: each line is a message, answers are streamed.

    /reset clears the conversation, /system TEXT sets the system prompt, /save FILE writes the
    messages as JSON. Ctrl-C stops an answer, Ctrl-D exits. In a pipe, all lines are messages of
    one conversation, and each answer is one line.

    Example: wxb chat -e chat-lora
    """
    from wxb.project import trained

    given, options = apart(settings or [])
    if given:
        usage_error(given[0], "not expected here: messages are typed, or come through a pipe")
    name = experiment or _best()
    predictor = trained.load(name, **options)
    if not hasattr(predictor, "reply"):
        raise WxbError(f"{name}: does not answer messages; `wxb predict -e {name}` uses it")
    console = Console(terminal=sys.stdin.isatty() and sys.stdout.isatty())
    if console.terminal:
        console.note(f"{name}: {HELP}; Ctrl-C stops an answer, Ctrl-D ends")
    elif experiment is None:
        console.note(f"{name} answers")
    Conversation(cast("Replier", predictor), console).run()


def _best() -> str:
    """The experiment with the best score of its study, of those that are trained and answer."""
    there = find_root()
    if there is None:
        raise WxbError(
            f"{Path.cwd()}: no {PARAMS} here or above; give the folder of a trained model with -e"
        )
    found: dict[str, float] = {}
    answering = []
    for name, block in load_params(there / PARAMS).experiments.items():
        if not hasattr(tasks.get(block.task).method(block.method).Predictor, "reply"):
            continue
        answering.append(block.study)
        measured = there / paths.metrics(block.study, name)
        if measured.exists() and (there / paths.model(name)).is_dir():
            scorer = tasks.get(block.task).metrics
            metric = next(m for m in scorer.METRICS if m.key == scorer.HEADLINE)
            score = read_json(measured)[metric.key]
            found[name] = -score if metric.lower_is_better else score
    if not found:
        how = f"`make run STUDY={answering[0]}`" if answering else "`wxb params chat`"
        raise WxbError(
            "found no trained experiment that answers messages; name one with -e, or begin with"
            f" {how}"
        )
    return max(found, key=lambda name: found[name])


class Console:
    """Lines from standard input, and what is said: answers to standard output, the rest beside it.

    Either a terminal, where somebody types, or a pipe, where what cannot be done is an error.
    """

    def __init__(self, *, terminal: bool) -> None:
        self.terminal = terminal
        if terminal:
            with contextlib.suppress(ImportError):  # not every Python can edit lines
                import readline  # noqa: F401

    def lines(self) -> Iterator[str]:
        """What is typed, line by line, up to Ctrl-D or the end of the pipe."""
        while True:
            try:
                yield input("> ") if self.terminal else _line()
            except EOFError:
                break
            except KeyboardInterrupt:
                if not self.terminal:
                    raise
                self.note("\nCtrl-D ends")
        if self.terminal:
            print()

    def say(self, text: str) -> None:
        """A piece of an answer, at once; what would steer the terminal is left out.

        In a pipe a line break within an answer is a space.
        """
        if not self.terminal:
            text = " ".join(text.split("\n"))
        print("".join(c for c in text if c.isprintable() or c in "\n\t"), end="", flush=True)

    @staticmethod
    def end() -> None:
        """The end of an answer's line."""
        print(flush=True)

    @staticmethod
    def note(text: str) -> None:
        """Something about the conversation, not of it."""
        print(text, file=sys.stderr, flush=True)

    def refuse(self, text: str) -> None:
        """What cannot be done: who types can go on, a pipe ends with WxbError."""
        if not self.terminal:
            raise WxbError(text)
        self.note(f"wxb: {text}")


def _line() -> str:
    raw = sys.stdin.buffer.readline()
    if not raw:
        raise EOFError
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise WxbError(f"standard input: expected UTF-8; {error}") from None


class Conversation:
    """What was said so far, and the answers to what comes."""

    def __init__(self, predictor: Replier, console: Any) -> None:
        self.predictor, self.console = predictor, console
        self.messages: list[Message] = []

    def run(self) -> None:
        """Answer line after line."""
        for line in self.console.lines():
            text = line.strip()
            if text.startswith("/"):
                name, _, rest = text.partition(" ")
                self._command(name, rest.strip())
            elif text:
                self._answer(text)

    def _answer(self, text: str) -> None:
        asked = [*self.messages, {"role": "user", "content": text}]
        pieces: list[str] = []
        try:
            if number := self.predictor.dropped(asked):
                self.console.note(f"({number} earlier messages no longer fit, and are not read)")
            for piece in self._written(asked):
                pieces.append(piece)
                self.console.say(piece)
        except KeyboardInterrupt:
            if not self.console.terminal:
                raise
            self.console.end()
            self.console.note("(stopped)")
        except WxbError as error:
            self.console.refuse(str(error))
            return
        if answer := "".join(pieces).strip():  # without one there is no turn to go on from
            self.messages = [*asked, {"role": "assistant", "content": answer}]

    def _written(self, asked: Sequence[Message]) -> Iterator[str]:
        """The pieces of an answer, and the end of its line; an answer that is cut off is told."""
        ended = yield from self.predictor.reply(asked)
        self.console.end()
        if not ended:
            self.console.note("(as long as it may be: --max-new-tokens allows more)")

    def _command(self, name: str, rest: str) -> None:
        match name:
            case "/reset":
                self.messages = [each for each in self.messages if each["role"] == "system"]
                kept = ": what /system said stays" if self.messages else ""
                self.console.note(f"(begun anew{kept})")
            case "/system" if rest:
                self.messages = [{"role": "system", "content": rest}]
                self.console.note("(begun anew, with this said)")
            case "/save" if rest:
                self._save(Path(rest).expanduser())
            case _:
                known = [each.partition(" ")[0] for each in COMMANDS]
                fault = "something must follow it" if name in known else "no such command"
                meant = "" if name in known else nearest(name, known)
                self.console.refuse(f"{name}: {fault}{meant}; {HELP}")

    def _save(self, path: Path) -> None:
        if not any(each["role"] == "assistant" for each in self.messages):
            self.console.refuse(f"{path}: not saved: nothing was answered yet")
            return
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump([{"messages": self.messages}], file, ensure_ascii=False, indent=2)
                file.write("\n")
        except OSError as error:
            self.console.refuse(f"{path}: not saved: {error.strerror}")
            return
        self.console.note(f"(saved: {path})")
