"""Shell completion."""

from pathlib import Path

from tests.commands import wxb

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
