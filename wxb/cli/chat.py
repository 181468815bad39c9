"""`wxb chat`: a conversation with a trained experiment, in a terminal or a pipe."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from wxb import tasks
from wxb.cli.options import require_value, split_options, usage_error
from wxb.core import paths
from wxb.core.errors import WxbError, did_you_mean
from wxb.core.files import read_json
from wxb.core.params import PARAMS
from wxb.core.params import load as load_params
from wxb.project.completion import name_completer
from wxb.project.root import find_root

if TYPE_CHECKING:
    from wxb.tasks.chat.predictor import Replier

COMMANDS = {
    "/reset": "clears the conversation",
    "/system TEXT": "clears it and sets the system prompt",
    "/save FILE": "writes the messages as JSON",
}
HELP = ", ".join(f"{name} {effect}" for name, effect in COMMANDS.items())
Message = dict[str, str]


def chat(
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment",
            "-e",
            callback=require_value,
            help="a trained experiment, or its folder; default: the one with the best score",
            autocompletion=name_completer("experiments"),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--SETTING VALUE...]",
            help="settings of the experiment's `prediction`, such as --max-new-tokens 200",
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

    texts, options = split_options(settings or [])
    if texts:
        usage_error(texts[0], "not expected here; type messages, or send them through a pipe")
    name = experiment or _best_experiment()
    predictor = trained.load(name, **options)
    if not hasattr(predictor, "reply"):
        raise WxbError(f"{name} is no chat model; use `wxb predict -e {name}`")
    console = Console(terminal=sys.stdin.isatty() and sys.stdout.isatty())
    if console.terminal:
        console.note(f"{name}: {HELP}; Ctrl-C stops an answer, Ctrl-D ends")
    elif experiment is None:
        console.note(f"{name} answers")
    Conversation(cast("Replier", predictor), console).run()


def _best_experiment() -> str:
    """The trained chat model with the best score of its study."""
    root = find_root()
    if root is None:
        raise WxbError(
            f"{Path.cwd()}: no {PARAMS} here or above; give the folder of a trained model with -e"
        )
    scores: dict[str, float] = {}
    studies = []
    for name, block in load_params(root / PARAMS).experiments.items():
        if not hasattr(tasks.get(block.task).method(block.method).Predictor, "reply"):
            continue
        studies.append(block.study)
        file = root / paths.metrics(block.study, name)
        if file.exists() and (root / paths.model(name)).is_dir():
            scorer = tasks.get(block.task).metrics
            metric = next(m for m in scorer.METRICS if m.key == scorer.HEADLINE)
            score = read_json(file)[metric.key]
            scores[name] = -score if metric.lower_is_better else score
    if not scores:
        command = f"`make run STUDY={studies[0]}`" if studies else "`wxb params chat`"
        raise WxbError(f"found no trained chat model; name one with -e, or run {command}")
    return max(scores, key=lambda name: scores[name])


class Console:
    """Input lines and output of a conversation: answers on stdout, notes on stderr.

    Either a terminal or a pipe. In a pipe, errors end the conversation.
    """

    def __init__(self, *, terminal: bool) -> None:
        self.terminal = terminal
        if terminal:
            with contextlib.suppress(ImportError):  # some Pythons lack readline
                import readline  # noqa: F401

    def lines(self) -> Iterator[str]:
        """Input lines up to Ctrl-D or the end of the pipe."""
        while True:
            try:
                yield input("> ") if self.terminal else _read_line()
            except EOFError:
                break
            except KeyboardInterrupt:
                if not self.terminal:
                    raise
                self.note("\nCtrl-D exits")
        if self.terminal:
            print()

    def write(self, text: str) -> None:
        """Print a piece of an answer without control characters, and flush it.

        In a pipe, line breaks become spaces.
        """
        if not self.terminal:
            text = " ".join(text.split("\n"))
        print("".join(c for c in text if c.isprintable() or c in "\n\t"), end="", flush=True)

    @staticmethod
    def end_line() -> None:
        """End the line of an answer."""
        print(flush=True)

    @staticmethod
    def note(text: str) -> None:
        """Print a note on the conversation to standard error."""
        print(text, file=sys.stderr, flush=True)

    def report_error(self, text: str) -> None:
        """Print an error in a terminal, or raise it as WxbError in a pipe."""
        if not self.terminal:
            raise WxbError(text)
        self.note(f"wxb: {text}")


def _read_line() -> str:
    raw = sys.stdin.buffer.readline()
    if not raw:
        raise EOFError
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise WxbError(f"standard input: expected UTF-8; {error}") from None


class Conversation:
    """The messages so far; `run` answers new ones with a predictor."""

    def __init__(self, predictor: Replier, console: Any) -> None:
        self.predictor, self.console = predictor, console
        self.messages: list[Message] = []

    def run(self) -> None:
        """Answer each input line, or run it as a command."""
        for line in self.console.lines():
            text = line.strip()
            if text.startswith("/"):
                name, _, argument = text.partition(" ")
                self._run_command(name, argument.strip())
            elif text:
                self._answer(text)

    def _answer(self, text: str) -> None:
        messages = [*self.messages, {"role": "user", "content": text}]
        pieces: list[str] = []
        try:
            if dropped := self.predictor.count_dropped(messages):
                self.console.note(f"({dropped} earlier messages no longer fit and are dropped)")
            for piece in self._stream(messages):
                pieces.append(piece)
                self.console.write(piece)
        except KeyboardInterrupt:
            if not self.console.terminal:
                raise
            self.console.end_line()
            self.console.note("(stopped)")
        except WxbError as error:
            self.console.report_error(str(error))
            return
        if answer := "".join(pieces).strip():  # an empty answer is no turn of the conversation
            self.messages = [*messages, {"role": "assistant", "content": answer}]

    def _stream(self, messages: Sequence[Message]) -> Iterator[str]:
        """The pieces of an answer; then ends its line, and notes if it was cut."""
        is_complete = yield from self.predictor.reply(messages)
        self.console.end_line()
        if not is_complete:
            self.console.note("(cut at the maximum length: increase --max-new-tokens)")

    def _run_command(self, name: str, argument: str) -> None:
        match name:
            case "/reset":
                self.messages = [m for m in self.messages if m["role"] == "system"]
                kept = "; the system prompt is kept" if self.messages else ""
                self.console.note(f"(conversation cleared{kept})")
            case "/system" if argument:
                self.messages = [{"role": "system", "content": argument}]
                self.console.note("(conversation cleared, system prompt set)")
            case "/save" if argument:
                self._save(Path(argument).expanduser())
            case _:
                names = [command.partition(" ")[0] for command in COMMANDS]
                fault = "its argument is missing" if name in names else "no such command"
                hint = "" if name in names else did_you_mean(name, names)
                self.console.report_error(f"{name}: {fault}{hint}; {HELP}")

    def _save(self, path: Path) -> None:
        """Write the messages to a new JSON file."""
        if not any(message["role"] == "assistant" for message in self.messages):
            self.console.report_error(f"{path}: not saved: there is no answer yet")
            return
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump([{"messages": self.messages}], file, ensure_ascii=False, indent=2)
                file.write("\n")
        except OSError as error:
            self.console.report_error(f"{path}: not saved: {error.strerror}")
            return
        self.console.note(f"(saved: {path})")
