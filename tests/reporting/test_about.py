"""The box at the top of a page."""

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


def test_the_box_has_an_example_the_test_sets_and_what_noise_means(tree):
    from stages import report
    from tests.reporting.test_report import Page

    written = tree(["ner-encoder", "ner-decoder"])
    report.main(written.params, "ner")
    text = " ".join(Page(Path("reports/ner.html").read_text(encoding="utf-8")).text.split())
    for part in (
        "Example",
        "ner-encoder: tagging on encoder (bert)",
        "test: ",
        "dvc repro report@",
    ):
        assert part in text
    assert "it is suggestive, not established" in text
