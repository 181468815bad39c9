"""The published forms have the defects that docs/errata.md describes, and no others."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from transformers import AutoModelForCausalLM, set_seed

from stages import align, download, preprocess, pretrain, tokenize, tokenizer, train
from tests import tiny
from tests.benchmarks.script import script
from wxb.core.params import check, load, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import train as train_tokenizer
from wxb.project.profiles import switch
from wxb.tasks.ner.generation import answers
from wxb.tasks.ner.generation.method import Method
from wxb.tasks.ner.metrics import counts
from wxb.tasks.ner.params import Head
from wxb.tasks.ner.record import Labelling
from wxb.tasks.ner.record.bio import OUTSIDE
from wxb.tasks.ner.record.spans import Span
from wxb.tasks.ner.tagging.method import Method as Tagging
from wxb.tasks.ner.tagging.model import Tagger
from wxb.training.backbones.generator import Generator
from wxb.training.batches import collate

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ["ner-encoder", "ner-decoder", "ner-generative"]
TYPES = ["AGE", "NAME"]

scoring, training, errata = map(script, ("errata_scoring", "errata_training", "errata"))


def recognizer(texts, kind="wordpiece"):
    """A predictor with a tokenizer for the texts and a dummy model."""
    settings = {"types": TYPES, "threshold": 0.0, "max_length": 64, "stride": 8}
    settings["word_features"] = None
    return Tagging.Predictor(torch.nn.Linear(1, 1), train_tokenizer(kind, 400, texts), **settings)


def record(text, *spans):
    return Record(id=text, input=text, gold=tuple(spans), language=None, group="")


# Scoring and decoding of taggers


def test_token_scores_count_a_part_of_a_token_as_right():
    texts = ["Ann met Bob"] * 50
    predictor = recognizer(texts)
    gold, predicted = [[Span(0, 2, "NAME")]], [[Span(0, 3, "NAME")]]
    assert counts(gold, predicted).tolist() == [[0, 1, 1]]
    by_token = [scoring.on_tokens(predictor, texts[:1], spans) for spans in (gold, predicted)]
    assert counts(*by_token).tolist() == [[1, 1, 1]]


def test_texts_are_truncated_at_the_end_of_a_token():
    texts = ["a b c", "a " * scoring.LIMIT, "", "a b " * scoring.LIMIT]
    predictor = recognizer(texts)
    assert scoring.truncate(predictor, texts) == [*texts[:3], ("a b " * scoring.LIMIT)[:63]]


@given(st.sets(st.integers(0, 40)), st.integers(0, 40))
def test_gold_after_the_limit_is_removed(edges, length):
    edges = sorted(edges)
    spans = [Span(a, b, "AGE") for a, b in zip(edges[::2], edges[1::2], strict=False)]
    truncated = scoring.truncate_spans(spans, length)
    covered = {i for span in spans for i in range(span.start, span.end) if i < length}
    assert {i for span in truncated for i in range(span.start, span.end)} == covered
    assert {span for span in spans if span.end <= length} <= {*truncated}


def test_spans_are_extended_by_a_space_before_them():
    spans = [Span(0, 3, "NAME"), Span(4, 5, "AGE"), Span(6, 7, "AGE")]
    assert scoring.with_space("Ann 9,8", spans) == [spans[0], Span(3, 5, "AGE"), spans[2]]


# Prompts and decoding of generators

RECORDS = [
    record("Ann is 9.", Span(0, 3, "NAME"), Span(7, 8, "AGE")),
    record("Yesterday, as we heard, Bob was 12", Span(24, 27, "NAME"), Span(32, 34, "AGE")),
    record("No one of that name is here, nor ever was."),
    record("It was Eve.", Span(7, 10, "NAME")),
]

ids = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=7), st.integers(1, 3))
def test_outputs_are_sliced_like_a_padded_batch(rows, size):
    batched = [scoring.Answer(np.array(prompt), np.array(answer), 1.0) for prompt, answer in rows]
    expected = []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        longest = max(len(prompt) for prompt, _ in batch)
        for prompt, answer in batch:
            output = [0] * (longest - len(prompt)) + prompt + answer
            expected.append([i for i in output[len(prompt) :] if i != 0])
    assert [row.tolist() for row in scoring.slice_by_tokens(batched, size)] == expected


@pytest.mark.parametrize("value", ["a;;b", "a|b", "a;;B|c", "a"])
def test_the_unescaped_form_loses_mentions_with_separators(value):
    text = f"Say {value} to 9"
    spans = [Span(4, 4 + len(value), "NAME"), Span(len(text) - 1, len(text), "AGE")]
    mentions = scoring.parse_unescaped(scoring.join_unescaped(text, spans))
    expected = [(span.type, text[span.start : span.end]) for span in spans]
    assert (mentions == expected) == (answers.SEPARATOR not in value)


def test_perfect_answers_with_separators_are_right_if_escaped():
    pair = scoring.separator_pair([record for record in RECORDS if record.gold])
    assert pair.correct.tolist() == [[2, 2, 2], [2, 2, 2], [1, 1, 1]]
    assert pair.published.sum(axis=0).tolist()[0] == 2  # the ages


# Training


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    folder = tiny.bert(tmp_path_factory.mktemp("bert"), vocab_size=20)
    set_seed(0)
    backbone = tiny.BertModel.from_pretrained(folder, add_pooling_layer=False)
    return Tagger(backbone, 5, Head(projection=8, dropout=0.0)).eval()


def test_padding_changes_the_loss_only_if_it_is_labelled(tagger):
    rows = [np.array(row) for row in ([3, 4, 5], [6, 7, 8, 9, 3])]
    items = [
        {"input_ids": row, "tags": row % 5, "starts": row % 2, "ends": row % 2} for row in rows
    ]
    batches = [training.padded_to(16, fill, items, pad=0) for fill in (IGNORED, OUTSIDE)]
    for batch, fill in zip(batches, (IGNORED, OUTSIDE), strict=True):
        for name in ("tags", "starts", "ends"):
            assert set(batch[name][batch["attention_mask"] == 0].tolist()) == {fill}
    with torch.no_grad():
        plain = tagger(**collate(items, 0))["loss"]
        right, published = (tagger(**batch)["loss"] for batch in batches)
    torch.testing.assert_close(right, plain)
    assert abs(published - plain) > 0.01


def test_loss_over_the_prompt_equals_that_of_the_full_text(tmp_path):
    model = AutoModelForCausalLM.from_pretrained(tiny.llama(tmp_path, vocab_size=20)).eval()
    item = {"input_ids": np.array([1, 5, 6, 7, 2]), "labels": np.array([-100, -100, -100, 7, 2])}
    batch = collate([training.over_the_prompt(item)], 0)
    with torch.no_grad():
        loss = Generator(model)(**batch)["loss"]
        expected = model(batch["input_ids"], labels=batch["input_ids"]).loss
    torch.testing.assert_close(loss, expected)


def test_noise_of_short_rows_shrinks_with_the_padded_length():
    embeddings, mask = torch.zeros(1, 64, 16), torch.zeros(1, 64, dtype=torch.long)
    mask[:, :4] = 1
    torch.manual_seed(0)
    noise = training.noisy_by_padding(embeddings, mask, 5.0)
    assert float(noise.abs().max()) == pytest.approx(5 / (64 * 16) ** 0.5, rel=0.02)
    assert noise[:, 4:].abs().min() > 0
    torch.manual_seed(0)
    by_row = training.add_noise(embeddings, mask, 5.0)
    torch.testing.assert_close(by_row[:, :4], noise[:, :4] * 4)


# The command


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of few records with three experiments, trained for one epoch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("project"))
        Path("demos").mkdir()
        Path("demos/pii").symlink_to(ROOT / "demos/pii")
        Path("params").symlink_to(ROOT / "params")
        Path("params.yaml").write_text((ROOT / "params.yaml").read_text())
        switch("tiny")
        content = read_yaml(Path("params.yaml"))
        content["corpora"]["pii"]["generate"] |= {"labelled": 80, "unlabelled": 20}
        for name, experiment in [*content["experiments"].items()]:
            if "epochs" not in experiment["training"]:
                del content["experiments"][name]
                content["studies"]["ner"]["experiments"].remove(name)
            else:
                experiment["training"]["epochs"] = 1
        YAML().dump(content, Path("params.yaml"))
        params = check(content)
        for stage in (download, preprocess):
            stage.main(params, "pii")
        for name in ("encoder", "decoder"):
            tokenizer.main(params, name)
            pretrain.main(params, name)
        for name in EXPERIMENTS:
            for stage in (tokenize, align, train):
                stage.main(params, name)
        yield Path.cwd()


@pytest.mark.slow
def test_every_defect_has_a_row(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    errata.main(records=8, train_records=16, seeds=1)
    output = capsys.readouterr().out
    rows = re.findall(r"\| (\d+) \| (.+?) \| (\S+(?: \S+)?) \| \d\.\d{3} \| \d\.\d{3}", output)
    assert [int(row) for row, _, _ in rows] == list(range(1, 15))
    by_system = {name: [r[1] for r in rows if r[2] == name] for name in EXPERIMENTS}
    assert "space before a mention is part of it" in by_system["ner-decoder"]
    assert "space before a mention is part of it" not in by_system["ner-encoder"]
    assert {"padding is labelled O", "NEFTune's noise by the padded length"} <= {
        *by_system["ner-encoder"]
    }
    assert len(by_system["ner-generative"]) == 4
    assert "8 test records" in output


@pytest.mark.slow
def test_the_right_form_is_that_of_the_project(project, monkeypatch):
    """The prompts are those of training, and gold answers are parsed as the gold spans."""
    monkeypatch.chdir(project)
    test = clean.read_labelled(Path("data/clean/pii/test.parquet"), Labelling())
    predictor = Method.Predictor.load(Path("models/ner-generative"))
    items = Method(load().experiments["ner-generative"], [], predictor.tokenizer).dataset(
        Path("data/features/ner-generative/test.arrow"),
        Path("data/targets/ner-generative/test.arrow"),
        test,
    )
    batched = scoring.answer_texts(predictor, [record.input for record in test], label="test")
    for record_, answer, item in zip(test, batched, items, strict=True):
        is_label = item["labels"] != IGNORED
        assert answer.prompt.tolist() == item["input_ids"][~is_label].tolist()
        answer = answer._replace(score=1.0)
        spans = scoring.spans_of(predictor, record_.input, answer, item["labels"][is_label])
        assert spans == [span for span in record_.gold if span.type in predictor.types]
