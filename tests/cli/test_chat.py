import json
import re
import sys

import pytest

from tests.commands import Terminal
from wxb.cli.chat import Console, Conversation
from wxb.core.errors import WxbError


class Echo:
    """Answers with the number of messages and the last one; one word is its end."""

    def __init__(self, room=100, stops=False):
        self.room, self.stops, self.asked = room, stops, []

    def dropped(self, conversation):
        return max(0, len(conversation) - self.room)

    def reply(self, conversation):
        self.asked.append([dict(message) for message in conversation])
        if conversation[-1]["content"] == "long":
            raise WxbError("the last message is too long")
        yield f"{len(conversation)} "
        if self.stops:
            raise KeyboardInterrupt
        yield conversation[-1]["content"] + "\x1b[2J"
        return conversation[-1]["content"] != "cut"


class Typed(Console):
    """A console with lines that stand in a list."""

    def __init__(self, *lines, terminal=True):
        self.typed, self.terminal = lines, terminal

    def lines(self):
        return iter(self.typed)


def held(predictor, *lines, terminal=True):
    conversation = Conversation(predictor, Typed(*lines, terminal=terminal))
    conversation.run()
    return conversation


def test_answers_and_history(capsys):
    predictor = Echo()
    held(predictor, "Hello", "", "  And?  ")
    assert capsys.readouterr().out == "1 Hello[2J\n3 And?[2J\n"
    assert [message["role"] for message in predictor.asked[1]] == ["user", "assistant", "user"]


def test_commands(capsys, tmp_path):
    path = tmp_path / "kept.json"
    conversation = held(
        Echo(), "/system Be brief.", "a", "/reset", "b", f"/save {path}", f"/save {path}"
    )
    kept = json.loads(path.read_text())[0]["messages"]
    assert [message["content"] for message in kept] == ["Be brief.", "b", "2 b\x1b[2J"]
    assert kept == conversation.messages
    told = capsys.readouterr().err
    assert "(begun anew: what /system said stays)" in told
    assert "not saved: File exists" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/rest", "/rest: no such command; did you mean '/reset'?"),
        ("/system", "/system: something must follow it"),
        ("/save", "/save: something must follow it"),
        ("/save kept.json", "nothing was answered yet"),
        ("long", "too long"),
    ],
)
def test_what_cannot_be_done_is_told_where_somebody_types_and_ends_a_pipe(line, told, capsys):
    conversation = held(Echo(), line, "a")
    assert told in capsys.readouterr().err
    assert [message["content"] for message in conversation.messages[::2]] == ["a"]
    with pytest.raises(WxbError, match=re.escape(told)):
        held(Echo(), line, "a", terminal=False)


def test_what_is_left_out_or_cut_is_said(capsys):
    held(Echo(room=2), "a", "cut")
    told = capsys.readouterr().err
    assert "1 earlier messages no longer fit" in told
    assert told.count("--max-new-tokens") == 1


def test_an_answer_is_a_line_of_a_pipe(capsys):
    held(Echo(), "a\nb", terminal=False)
    assert capsys.readouterr().out == "1 a b[2J\n"


def test_ctrl_c_stops_the_answer_and_keeps_what_there_is(capsys):
    conversation = held(Echo(stops=True), "a")
    assert conversation.messages[-1] == {"role": "assistant", "content": "1"}
    with pytest.raises(KeyboardInterrupt):
        held(Echo(stops=True), "a", terminal=False)


ENDLESS = """
import itertools, sys, time
from tests.commands import Terminal
from wxb.cli.chat import Console, Conversation

class Endless:
    def dropped(self, conversation):
        return 0

    def reply(self, conversation):
        for number in itertools.count():
            yield f"{number} "
            time.sleep(0.01)

Conversation(Endless(), Console(terminal=sys.stdin.isatty())).run()
"""


def test_in_a_terminal_answers_stream_until_ctrl_c_and_ctrl_d_ends(tmp_path):
    terminal = Terminal(sys.executable, "-c", ENDLESS)
    try:
        terminal.wait_for("> ")
        terminal.type("count\n")
        terminal.wait_for("0 1 2 ")
        terminal.wait_for("(stopped)", typing="\x03")
        terminal.wait_for("> ")
        terminal.wait_for("Ctrl-D ends", typing="\x03")
        terminal.type(f"/save {tmp_path}/kept.json\n")
        terminal.wait_for("(saved:")
        terminal.wait_for("> ")
        terminal.type("\x04")
        assert terminal.process.wait(30) == 0
    finally:
        terminal.close()
    question, answer = json.loads((tmp_path / "kept.json").read_text())[0]["messages"]
    assert question["content"] == "count"
    assert answer["content"].startswith("0 1 2")
