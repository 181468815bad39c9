"""The box at the top of a page."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from wxb.core.params import check, load, read_yaml
from wxb.reporting import about
from wxb.reporting.about import tuning_text

HOME = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ner-encoder", ""),
        ("ner-decoder-bidirectional", "bidirectional"),
        ("ner-decoder-qlora", "QLoRA r 32"),
    ],
)
def test_the_line_of_an_experiment_says_how_it_differs(name, text):
    assert tuning_text(load(HOME / "params.yaml").experiments[name]) == text


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("ner-mentions", "baseline without training: the strings that are labelled in training"),
        ("chat-nearest", "baseline without training: the answer of the most similar training"),
        ("chat-lora", "sft on chat-llama (llama), LoRA r 32"),
        ("translation-attention", "seq2seq, LSTM with attention"),
        ("translation-gpt2", "seq2seq, GPT-2"),
    ],
)
def test_the_line_has_the_method_and_its_start(name, line):
    content = read_yaml(HOME / "params.yaml")
    if (profile := HOME / f"params/{name.partition('-')[0]}.yaml").exists():
        content |= {key: content[key] | value for key, value in read_yaml(profile).items()}
    assert about._line(SimpleNamespace(params=check(content)), name).startswith(line)


def test_the_box_names_the_commit_and_whether_files_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert about._commit() == ""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    Path("params.yaml").write_text("seed: 1\n")
    Path("dvc.lock").write_text("stages: {}\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    Path("dvc.lock").write_text("changed by a run\n")
    name = about._commit()
    assert name.isalnum()
    Path("params.yaml").write_text("seed: 2\n")
    assert about._commit() == f"{name} with changes"


def test_the_box_has_an_example_the_test_sets_and_what_noise_means(tree):
    from stages import report
    from tests.reporting.test_report import Page

    written = tree(["ner-encoder", "ner-decoder"])
    report.main(written.params, "ner")
    text = " ".join(Page(Path("reports/ner.html").read_text(encoding="utf-8")).text.split())
    for part in (
        "ner. A predicted span is correct if its start, end and type are.",
        "; held out: template.",
        "Example",
        "ner-encoder: tagging on encoder (bert)",
        "test: ",
        "dvc repro report@",
    ):
        assert part in text
    assert "Suggestive: only the interval excludes 0. Else within noise." in text
