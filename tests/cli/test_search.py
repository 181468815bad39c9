"""The command `wxb search`, and the embeddings that it compares."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from tests import demo, tiny
from tests.commands import wxb
from tests.project_copy import ROOT
from wxb import tasks
from wxb.cli import search
from wxb.cli.search import BATCH, embed
from wxb.core.packages import verified_files
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import load, train
from wxb.training.backbones.weights import load_backbone

LINES = ["A puppy is playing.", "Machine learning is fascinating.", "[red]not a colour[/red]"]
EPSILON = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    (folder / "lines.txt").write_text("\n\n".join(LINES))
    demo.write(folder)
    tokenizer = train("wordpiece", 300, LINES)
    tiny.bert(folder / "tiny", vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder / "tiny")
    return folder


@pytest.fixture(autouse=True)
def _in_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*arguments):
    return wxb("search", *arguments, path=[ROOT])


def test_it_finds_similar_texts():
    result = run("A dog is running.", "--file", "lines.txt", "--json")
    rows = json.loads(result.stdout)
    assert [row["text"] for row in rows] == LINES
    assert [row["line"] for row in rows] == [1, 3, 5]
    assert rows[0]["cosine"] > 0.5 > 0.2 > rows[1]["cosine"]
    assert result.stderr == ""


def test_any_folder_is_an_encoder_with_a_warning_and_texts_are_shown_without_markup(folder):
    result = run(LINES[2], "--encoder", "tiny", "--file", "lines.txt", "--top", "2")
    assert result.stdout.startswith(f"1.000  {LINES[2]}\n")
    assert "tiny was not trained for similarity" in result.stderr
    (folder / "tiny/wxb.json").write_text('{"four_bit": true}')  # as of an adapter by QLoRA
    assert run(*result.args[result.args.index("search") + 1 :]).stdout != result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["  ", "--encoder", "tiny", "--file", "lines.txt"], 2, "QUERY"),
        (["x", "--encoder", "encodr", "--file", "lines.txt"], 1, "did you mean 'encoder'"),
        (["x", "--encoder", "encoder", "--file", "lines.txt"], 1, "dvc repro pretrain@encoder"),
        (["x", "--encoder", "tiny"], 1, "dvc repro preprocess@pii"),
        (["x", "--encoder", "tiny", "--corpus", "pi"], 1, "did you mean 'pii'"),
        (["x", "--encoder", "tiny", "--file", "none.txt"], 2, "none.txt"),
    ],
)
def test_missing_inputs_are_errors(arguments, code, message):
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (code, "")
    assert message in result.stderr


def test_the_texts_of_recordings_are_their_transcripts(cwd, monkeypatch):
    params = SimpleNamespace(corpora={"talks": 0}, block=lambda *_: SimpleNamespace(task="speech"))
    monkeypatch.setattr(search, "load", lambda: params)
    Path("data/clean/talks").mkdir(parents=True)
    records = [Record(f"{n}", f"{n}.flac", {"text": "Hello."}, None, "") for n in range(2)]
    clean.write(Path("data/clean/talks/test.parquet"), records, tasks.get("speech").record)
    assert search._unique_test_texts(None) == ["Hello."]


def test_a_text_has_the_same_vector_alone_and_among_others(folder):
    backbone, tokenizer = load_backbone(folder / "tiny").eval(), load(folder / "tiny")
    texts = [*LINES, "", "x"] * BATCH
    together = embed(backbone, tokenizer, texts)
    alone = torch.cat([embed(backbone, tokenizer, [text]) for text in texts[:5]])
    # Padding changes the order of float32 sums over at most T tokens or H channels, in each of the
    # few layers: an error of a unit vector's entries below (T + H) * layers * epsilon.
    config = backbone.config
    terms = (max(map(len, texts)) + config.intermediate_size) * config.num_hidden_layers
    np.testing.assert_allclose(together, alone.repeat(BATCH, 1), atol=terms * EPSILON)
    np.testing.assert_allclose(together.norm(dim=1), 1, atol=config.hidden_size * EPSILON)


def test_means_are_those_of_sentence_transformers():
    folder = verified_files("minilm")[0].parent
    texts = ["A dog is running.", *LINES, "Große Straße 5, 10115 Berlin"]
    model = SentenceTransformer(str(folder), device="cpu")
    theirs = model.encode(texts, normalize_embeddings=True)
    ours = embed(load_backbone(folder).eval(), load(folder), texts)
    config = model[0].auto_model.config
    # As above: two orders of the same float32 sums.
    terms = (max(map(len, texts)) + config.intermediate_size) * config.num_hidden_layers
    np.testing.assert_allclose(ours, theirs, atol=terms * EPSILON)
