"""`wxb chat`: a conversation with a trained experiment, in a terminal or in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import typer

from wxb import paths, tasks
from wxb.errors import WxbError
from wxb.files import read_json
from wxb.params import load as load_params

HELP = "/reset begins anew, /system TEXT says how to answer, /save FILE keeps the conversation"
Message = dict[str, str]


class Converses(Protocol):
    """A predictor that answers messages, dicts of `role` and `content`."""

    def reply(self, conversation: Sequence[Message]) -> Iterator[str]:
        """The answer, piece by piece as it is written; WxbError where it cannot be given."""

    def dropped(self, conversation: Sequence[Message]) -> int:
        """How many of the oldest messages are not read, as there is no room for them."""


def chat(
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment",
            "-e",
            help="a trained experiment, or its folder; default: the one with the best score",
        ),
    ] = None,
) -> None:
    """Talk with a trained experiment: a line is a message, the answer comes as it is written.

    /reset begins anew, /system TEXT says how to answer (in a new conversation), /save FILE writes
    the messages as JSON. Ctrl-C stops an answer, Ctrl-D ends. In a pipe every line is a message,
    and every answer a line.

    Example: wxb chat -e chat-lora
    """
    from wxb.project import trained

    name = experiment or _best()
    predictor = trained.load(name)
    if not hasattr(predictor, "reply"):
        raise WxbError(f"{name}: does not answer messages; `wxb predict -e {name}` uses it")
    console = Console(name if sys.stdin.isatty() else None)
    Conversation(cast(Converses, predictor), console).run()


def _best() -> str:
    """The experiment with the best score of its study, of those that are trained and answer."""
    params = load_params()
    found: dict[str, float] = {}
    for name, block in params.experiments.items():
        measured = paths.metrics(block.study, name)
        method = tasks.method(block.task, block.method)
        if hasattr(method.Predictor, "reply") and measured.exists() and paths.model(name).is_dir():
            scorer = tasks.metrics(block.task)
            metric = next(m for m in scorer.METRICS if m.key == scorer.HEADLINE)
            score = read_json(measured)[metric.key]
            found[name] = -score if metric.lower_is_better else score
    if not found:
        raise WxbError(
            "found no trained experiment that answers messages; name one with -e, or train those of"
            " params.yaml"
        )
    return max(found, key=lambda name: found[name])


class Console:
    """Lines from standard input, and what is said: answers to standard output, the rest beside it.

    With a `name` it is a terminal, where somebody types; without, a pipe.
    """

    def __init__(self, name: str | None) -> None:
        self.terminal = name is not None
        if self.terminal:
            import readline  # noqa: F401  (gives `input` its editing of lines)

            self.note(f"{name}: {HELP}; Ctrl-C stops an answer, Ctrl-D ends")

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

    @staticmethod
    def say(text: str) -> None:
        """A piece of an answer, at once; what would steer the terminal is left out."""
        print("".join(c for c in text if c.isprintable() or c in "\n\t"), end="", flush=True)

    @staticmethod
    def note(text: str) -> None:
        """Something about the conversation, not of it."""
        print(text, file=sys.stderr, flush=True)


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

    def __init__(self, predictor: Converses, console: Any) -> None:
        self.predictor, self.console = predictor, console
        self.messages: list[Message] = []

    def run(self) -> None:
        """Answer line after line."""
        for line in self.console.lines():
            text = line.strip()
            if text.startswith("/"):
                self._command(*text.partition(" ")[::2])
            elif text:
                self._answer(text)

    def _answer(self, text: str) -> None:
        asked = [*self.messages, {"role": "user", "content": text}]
        pieces: list[str] = []
        try:
            if number := self.predictor.dropped(asked):
                self.console.note(f"({number} earlier messages no longer fit, and are not read)")
            for piece in self.predictor.reply(asked):
                pieces.append(piece)
                self.console.say(piece)
        except KeyboardInterrupt:
            if not self.console.terminal:
                raise
        except WxbError as error:
            if not self.console.terminal:
                raise
            self.console.note(f"wxb: {error}")
            return
        self.console.say("\n")
        answer = "".join(pieces).strip()
        # Without an answer there is no turn to go on from.
        self.messages = (
            [*asked, {"role": "assistant", "content": answer}] if answer else self.messages
        )

    def _command(self, name: str, rest: str) -> None:
        match name:
            case "/reset":
                self.messages = self.messages[: self._system]
                self.console.note("(begun anew)")
            case "/system" if rest.strip():
                self.messages = [{"role": "system", "content": rest.strip()}]
                self.console.note("(begun anew, with this said)")
            case "/save" if rest.strip():
                self._save(Path(rest.strip()))
            case _:
                self.console.note(f"{name}: {HELP}")

    @property
    def _system(self) -> int:
        """How many messages say how to answer, not what."""
        return sum(message["role"] == "system" for message in self.messages)

    def _save(self, path: Path) -> None:
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump([{"messages": self.messages}], file, ensure_ascii=False, indent=2)
                file.write("\n")
        except OSError as error:
            self.console.note(f"{path}: not saved: {error.strerror}")
            return
        self.console.note(f"(saved: {path})")
