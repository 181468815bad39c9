"""`wxb chat`: a conversation with a trained experiment, in a terminal or a pipe."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wxb.cli.options import Experiment, split_options, usage_error
from wxb.core.errors import WxbError
from wxb.project import trained

if TYPE_CHECKING:
    from wxb.tasks.chat.models.predictor import Replier

HELP = "/reset clears the conversation, /system TEXT also sets the system prompt"
Message = dict[str, str]


def chat(
    experiment: Experiment = "",
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--SETTING VALUE...]",
            help="settings of the experiment's `prediction`, such as --max-new-tokens 200",
        ),
    ] = None,
) -> None:
    """Chat with a trained experiment: each line is a message, answers are streamed.

    /reset clears the conversation, /system TEXT also sets the system prompt. Ctrl-C stops an
    answer, Ctrl-D exits. In a pipe, all lines belong to one conversation, and each answer is one
    line.

    Example: wxb chat -e chat-lora
    """
    texts, options = split_options(settings or [])
    if texts:
        usage_error(texts[0], "not expected here; type messages, or send them through a pipe")
    predictor: Any = trained.load(experiment, **options)
    if not hasattr(predictor, "reply"):
        raise WxbError(f"{experiment} is no chat model; use `wxb predict -e {experiment}`")
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    conversation = Conversation(predictor, is_terminal=is_terminal)
    if is_terminal:
        conversation.note(f"{experiment}: {HELP}; Ctrl-C stops an answer, Ctrl-D ends")
    conversation.run()


class Conversation:
    """The messages so far; `run` answers new ones on stdout, and prints notes on stderr.

    Errors end it in a pipe. The model does not read earlier messages that no longer fit.
    """

    def __init__(self, predictor: "Replier", *, is_terminal: bool) -> None:
        self.predictor, self.is_terminal = predictor, is_terminal
        self.messages: list[Message] = []
        if is_terminal:
            with contextlib.suppress(ImportError):  # some Pythons lack readline
                import readline  # noqa: F401

    def lines(self) -> Iterator[str]:
        """Yield lines until Ctrl-D, not Ctrl-C, or a pipe's end; WxbError for one not in UTF-8."""
        if not self.is_terminal:
            from wxb.cli.inputs import standard_input

            for _, line, error in standard_input():
                if error:
                    raise WxbError(error)
                yield str(line)
        while self.is_terminal:
            try:
                yield input("> ")
            except EOFError:
                print()
                break
            except KeyboardInterrupt:
                self.note("\nCtrl-D exits")

    def write(self, text: str) -> None:
        """Print and flush a piece of an answer without control characters; a pipe gets one line."""
        if not self.is_terminal:
            text = " ".join(text.split("\n"))
        kept = (c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))
        print("".join(kept), end="", flush=True)

    @staticmethod
    def note(text: str) -> None:
        """Print to standard error."""
        print(text, file=sys.stderr, flush=True)

    def run(self) -> None:
        """Answer each nonblank line; one that begins with / is a command, also in a pipe."""
        for line in self.lines():
            text = line.strip()
            try:
                if text.startswith("/"):
                    name, _, argument = text.partition(" ")
                    self._run_command(name, argument.strip())
                elif text:
                    self._answer(text)
            except WxbError as error:
                if not self.is_terminal:
                    raise
                self.note(f"wxb: {error}")

    def _answer(self, text: str) -> None:
        """Stream the answer to a message, and append both unless it is empty.

        Ctrl-C ends the answer early in a terminal, and raises KeyboardInterrupt in a pipe.
        """
        messages = [*self.messages, {"role": "user", "content": text}]
        pieces: list[str] = []
        try:
            if dropped := self.predictor.count_dropped(messages):
                self.note(f"({dropped} earlier messages no longer fit and are dropped)")
            for piece in self._stream(messages):
                pieces.append(piece)
                self.write(piece)
        except KeyboardInterrupt:
            if not self.is_terminal:
                raise
            print(flush=True)
            self.note("(stopped)")
        if answer := "".join(pieces).strip():  # an empty answer is no turn of the conversation
            self.messages = [*messages, {"role": "assistant", "content": answer}]

    def _stream(self, messages: Sequence[Message]) -> Iterator[str]:
        """Yield the pieces of an answer, then end its line and print a note if it was cut short."""
        is_complete = yield from self.predictor.reply(messages)
        print(flush=True)
        if not is_complete:
            self.note("(cut at the maximum length: increase --max-new-tokens)")

    def _run_command(self, name: str, argument: str) -> None:
        """Clear the messages: /reset keeps the system prompt, /system TEXT sets it. Others fail."""
        match name:
            case "/reset":
                self.messages = [m for m in self.messages if m["role"] == "system"]
                kept = "; the system prompt is kept" if self.messages else ""
                self.note(f"(conversation cleared{kept})")
            case "/system" if argument:
                self.messages = [{"role": "system", "content": argument}]
                self.note("(conversation cleared, system prompt set)")
            case _:
                raise WxbError(f"{name}: no such command, or its text is missing; {HELP}")
