"""Shell completion."""

from pathlib import Path

import pytest
import shellingham

from tests.commands import wxb
from wxb.cli.app import main

ROOT = Path(__file__).parents[2]


def complete(words, index):
    done = wxb(path=[ROOT], _WXB_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(index))
    return done.stdout.split()


def test_names_of_blocks_are_completed(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text(
        "experiments: {ner-encoder: {}, ner-decoder: {}, other: {}}\nstudies: {ner: {}}\n"
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert complete("wxb mask -e ner-", 3) == ["ner-encoder", "ner-decoder"]
    assert complete("wxb table ", 2) == ["all", "ner"]
    monkeypatch.chdir("/")
    assert complete("wxb mask -e ner-", 3) == []


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_without_a_shell_the_error_says_what_to_do(option, monkeypatch, capsys):
    def fail():
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", fail)
    monkeypatch.setattr("sys.argv", ["wxb", option])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert "at the prompt of bash, zsh, fish or PowerShell" in capsys.readouterr().err
