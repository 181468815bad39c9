import json

import pytest

from wxb.cli.chat import Console, Conversation
from wxb.errors import WxbError


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
        Echo(), "/system Be brief.", "a", "/reset", "b", f"/save {path}", f"/save {path}", "/what"
    )
    kept = json.loads(path.read_text())[0]["messages"]
    assert [message["content"] for message in kept] == ["Be brief.", "b", "2 b\x1b[2J"]
    assert kept == conversation.messages
    told = capsys.readouterr().err
    assert "not saved: File exists" in told
    assert "/what: /reset" in told


def test_what_is_left_out_is_said(capsys):
    held(Echo(room=2), "a", "b")
    assert "1 earlier messages no longer fit" in capsys.readouterr().err


def test_ctrl_c_stops_the_answer_and_keeps_what_there_is(capsys):
    conversation = held(Echo(stops=True), "a")
    assert conversation.messages[-1] == {"role": "assistant", "content": "1"}
    with pytest.raises(KeyboardInterrupt):
        held(Echo(stops=True), "a", terminal=False)


def test_an_answer_that_cannot_be_given(capsys):
    conversation = held(Echo(), "a", "long", "b")
    assert [message["content"] for message in conversation.messages[::2]] == ["a", "b"]
    assert "too long" in capsys.readouterr().err
    with pytest.raises(WxbError, match="too long"):
        held(Echo(), "long", terminal=False)
