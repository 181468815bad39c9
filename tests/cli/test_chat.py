import re
import sys

import pytest

from tests.commands import Terminal
from wxb.cli.chat import Conversation
from wxb.core.errors import WxbError


class Echo:
    """Answers with the number of messages and the last one; the answer to "cut" is incomplete."""

    def __init__(self, room=100, stops=False):
        self.room, self.stops, self.received = room, stops, []

    def count_dropped(self, conversation):
        return max(0, len(conversation) - self.room)

    def reply(self, conversation):
        self.received.append([dict(message) for message in conversation])
        if conversation[-1]["content"] == "long":
            raise WxbError("the last message is too long")
        yield f"{len(conversation)} "
        if self.stops:
            raise KeyboardInterrupt
        yield conversation[-1]["content"] + "\x1b[2J"
        return conversation[-1]["content"] != "cut"


def run_conversation(predictor, *lines, is_terminal=True):
    conversation = Conversation(predictor, is_terminal=is_terminal)
    conversation.lines = lambda: iter(lines)
    conversation.run()
    return conversation


def test_answers_and_history(capsys):
    predictor = Echo()
    run_conversation(predictor, "Hello", "", "  An\u3000d\u200d?  ")
    assert capsys.readouterr().out == "1 Hello[2J\n3 An\u3000d\u200d?[2J\n"
    assert [message["role"] for message in predictor.received[1]] == ["user", "assistant", "user"]


def test_commands(capsys):
    conversation = run_conversation(Echo(), "/system Be brief.", "a", "/reset", "b")
    contents = [message["content"] for message in conversation.messages]
    assert contents == ["Be brief.", "b", "2 b\x1b[2J"]
    assert "(conversation cleared; the system prompt is kept)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [("/rest", "/rest: no such command"), ("/system", "/system: "), ("long", "too long")],
)
def test_errors_are_printed_in_a_terminal_and_end_a_pipe(line, message, capsys):
    conversation = run_conversation(Echo(), line, "a")
    assert message in capsys.readouterr().err
    assert [turn["content"] for turn in conversation.messages[::2]] == ["a"]
    with pytest.raises(WxbError, match=re.escape(message)):
        run_conversation(Echo(), line, "a", is_terminal=False)


def test_dropped_messages_and_cut_answers_are_noted(capsys):
    run_conversation(Echo(room=2), "a", "cut")
    notes = capsys.readouterr().err
    assert "1 earlier messages no longer fit" in notes
    assert notes.count("--max-new-tokens") == 1


def test_an_answer_is_one_line_of_a_pipe(capsys):
    run_conversation(Echo(), "a\nb", is_terminal=False)
    assert capsys.readouterr().out == "1 a b[2J\n"


def test_ctrl_c_stops_the_answer_and_keeps_its_beginning(capsys):
    conversation = run_conversation(Echo(stops=True), "a")
    assert conversation.messages[-1] == {"role": "assistant", "content": "1"}
    with pytest.raises(KeyboardInterrupt):
        run_conversation(Echo(stops=True), "a", is_terminal=False)


ENDLESS = """
import itertools, sys, time
from wxb.cli.chat import Conversation
class Endless:
    def count_dropped(self, conversation):
        return 0
    def reply(self, conversation):
        for number in itertools.count():
            yield f"{number} "
            time.sleep(0.01)

Conversation(Endless(), is_terminal=sys.stdin.isatty()).run()
"""


def test_in_a_terminal_answers_stream_until_ctrl_c_and_ctrl_d_ends():
    terminal = Terminal(sys.executable, "-c", ENDLESS)
    try:
        terminal.wait_for("> ")
        terminal.type("count\n")
        terminal.wait_for("0 1 2 ")
        terminal.wait_for("(stopped)", typing="\x03")
        terminal.wait_for("> ")
        terminal.wait_for("Ctrl-D exits", typing="\x03")
        assert terminal.end(typing="\x04") == 0
    finally:
        terminal.close()
