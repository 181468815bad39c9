"""Tagging: training items and metrics, and one decoding for calibration, evaluation and use."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel, set_seed

from stages import evaluate
from tests import demo, training_steps
from tests.ner_project import EXPERIMENT, without_scores, write_corpus
from tests.tasks.ner.test_tagger import SHAPE
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.core.params.experiments import Prediction
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import encode, special_tokens, train
from wxb.corpora.text.windows import sliding_windows, text_windows
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.models.bio import align, best_tags, tag_names
from wxb.tasks.ner.models.tagger import Tagger
from wxb.tasks.ner.models.windowed import Status, count_statuses
from wxb.tasks.ner.models.words import continues_word
from wxb.tasks.ner.params import Encoding, WordFeatures
from wxb.tasks.ner.record import Span, f1
from wxb.tasks.ner.tagging import TaggingMethod, _merged_windows
from wxb.training.batches import collate

TYPES = ["AGE", "NAME"]
TEXTS = [
    "Ann is 9 and Bob is 12.",
    "",
    "  Zoë\tMüller, 34\r\n ",
    "李明今年三十岁。",
    "👨‍👩‍👧 and 👍🏽 are 7!",
    "no one",
    "Carl 5 Dora 6 " * 20,
    " \n ",
]
WORDS = WordFeatures(rows=50, width=4, window=1, dropout=0.1)
TOKENIZERS = {kind: train(kind, 400, TEXTS) for kind in ("wordpiece", "byte-level-bpe")}
WITH_WORDS = "wordpiece, with words"

each_kind = pytest.mark.parametrize("kind", [*sorted(TOKENIZERS), WITH_WORDS])


def experiment_of(kind):
    words = WORDS if kind == WITH_WORDS else None
    model = EXPERIMENT.model.model_copy(update={"word_features": words})
    return EXPERIMENT.model_copy(update={"model": model})


def predictor_of(kind):
    """A predictor with random weights, large enough to tell tokens apart."""
    set_seed(0)
    tokenizer = TOKENIZERS[kind.partition(",")[0]]
    experiment = experiment_of(kind)
    shape = {**SHAPE, "num_hidden_layers": 1, "initializer_range": 0.2}
    shape["vocab_size"] = len(tokenizer)
    backbone = (
        BertModel(BertConfig(**shape), add_pooling_layer=False)
        if kind.startswith("wordpiece")
        else LlamaModel(LlamaConfig(**shape))
    )
    model = Tagger(backbone, len(tag_names(TYPES)), experiment.model)
    for name, values in model.head.named_parameters():
        torch.nn.init.normal_(values, std=0.0 if name.endswith("bias") else 1.0)
    return TaggingMethod(experiment, TYPES, tokenizer).predictor(
        model, Path("unread"), updates=3, examples=20
    )


def records_of(texts, gold):
    return [
        Record(id=str(index), input=text, gold=tuple(spans), language=None, group="")
        for index, (text, spans) in enumerate(zip(texts, gold, strict=True))
    ]


def write_items(kind, texts, gold, folder, experiment=None):
    """Write features and targets; their training items, and the statuses of gold spans."""
    tokenizer = TOKENIZERS[kind.partition(",")[0]]
    experiment = experiment or experiment_of(kind)
    encoded = encode(tokenizer, texts)
    windows = windows_of(encoded, tokenizer, experiment)
    records, method = records_of(texts, gold), TaggingMethod(experiment, TYPES, tokenizer)
    features, targets, counts = training_steps.encode(method, records, folder)
    _, statuses = align(encoded, windows, gold, TYPES)
    assert counts == count_statuses(statuses)
    return method.items(features, targets, records), statuses


def windows_of(encoded, tokenizer, experiment=EXPERIMENT):
    return text_windows(encoded, tokenizer, **experiment.encoding.model_dump())


# Training


@each_kind
def test_the_items_of_a_long_text_are_its_windows(kind, tmp_path):
    text, tokenizer = TEXTS[6], TOKENIZERS[kind.partition(",")[0]]
    gold = [[Span(0, 4, "NAME"), Span(200, 204, "NAME")]]
    items, _ = write_items(kind, [text], gold, tmp_path)
    longer = EXPERIMENT.model_copy(update={"encoding": Encoding(max_length=999, stride=8)})
    (whole,), _ = write_items(kind, [text], gold, tmp_path, longer)
    encoded = encode(tokenizer, [text])
    windows = windows_of(encoded, tokenizer)
    before, after = map(len, special_tokens(tokenizer))
    assert len(items) == len(windows.rows) > 3
    for item, first, last in zip(items, windows.reads_from, windows.reads_to, strict=True):
        assert len(item["input_ids"]) == EXPERIMENT.encoding.max_length
        inside = slice(before, len(item["input_ids"]) - after)
        for name in ("input_ids", *TaggingMethod.TARGETS):
            assert (
                item[name][inside].tolist() == whole[name][before + first : before + last].tolist()
            )


@each_kind
def test_validation_metrics_equal_the_scores_of_the_predictor(kind, tmp_path):
    """`compute_metrics` has neither a threshold nor Viterbi: all gold tags are aligned here."""
    predictor, texts = predictor_of(kind), TEXTS[:6]
    predicted = without_scores(predictor.scored_spans(texts, caption="test"))
    # Half of them are correct, so that the score is neither 0 nor 1.
    gold = [spans[: 1 + len(spans) // 2] for spans in predicted]
    items, statuses = write_items(kind, texts, gold, tmp_path)
    assert set(statuses.tolist()) == {Status.KEPT}
    batch = collate(items, predictor.tokenizer.pad_token_id)
    with torch.inference_mode():
        inputs = {k: v for k, v in batch.items() if k not in TaggingMethod.TARGETS}
        output = predictor.model(**inputs)
    encoded = encode(predictor.tokenizer, texts)
    assert len(items) == len(texts)
    best = torch.full_like(output["tags"], -1.0)
    for row, item in enumerate(items):
        start, nonblank = encoded.row_splits[row], np.flatnonzero(item["tags"] != IGNORED)
        if len(nonblank):
            tokens = start + nonblank - len(special_tokens(predictor.tokenizer)[0])
            continues = continues_word(texts[row], encoded.starts[tokens], encoded.ends[tokens])
            scores = output["tags"][row].log_softmax(-1).numpy()[nonblank]
            best[row, nonblank, best_tags([scores], [continues])[0]] = 1.0
    logits = [best, output["starts"], output["ends"]]
    labels = [batch[name].numpy() for name in TaggingMethod.TARGETS]
    metrics = TaggingMethod.compute_metrics(TaggingMethod.summarize(logits, labels).numpy(), labels)
    expected = f1(gold, predicted)
    assert metrics == {TaggingMethod.METRIC: expected}
    assert 0 < expected < 1


# Predicting


@each_kind
def test_blank_texts_have_no_spans(kind):
    predictor = predictor_of(kind)
    assert predictor.predict([]) == []
    assert predictor.predict(["", " \n\t"]) == [[], []]


class Local(torch.nn.Module):
    """The logits of a token do not depend on other tokens."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(400, 2 * len(TYPES) + 3)
        torch.nn.init.normal_(self.table.weight, std=3.0)

    def forward(self, input_ids, attention_mask):
        logits = self.table(input_ids)
        return {"tags": logits[..., 2:], "starts": logits[..., 0], "ends": logits[..., 1]}


PLAIN = {"types": TYPES, "threshold": 0.0, "word_features": None}


@pytest.mark.parametrize("kind", sorted(TOKENIZERS))
@settings(deadline=None, max_examples=30)
@given(
    size=st.integers(5, 30),
    stride=st.integers(0, 12),
    texts=st.lists(st.text("Ann 9,李\n", max_size=60), max_size=3),
    seed=st.integers(0, 9),
)
def test_spans_do_not_depend_on_windows(kind, size, stride, texts, seed):
    torch.manual_seed(seed)
    model = Local()
    texts = [*texts, TEXTS[6]]
    whole, windowed = (
        TaggingMethod.PREDICTOR(
            model, TOKENIZERS[kind], **PLAIN, max_length=length, stride=overlap
        ).scored_spans(texts, caption="test")
        for length, overlap in ((999, 0), (size, min(stride, size // 2)))
    )
    assert windowed == whole
    assert any(whole)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("OBII", "OOOO", "OOOO"), ("BIIO", "IIIO", "BIIO"), ("IIII", "IIII", "IIII")],
)
def test_one_window_decides_on_a_span_in_an_overlap(left, right, expected):
    """Two windows of 8 tokens share the middle 4 of 12; only the last case is cut."""
    windows = sliding_windows(np.array([0, 12]), size=8, stride=4)
    rows = [f"OOOO{left}", f"{right}OOOO"]
    outputs = {w: (np.eye(3)[["OBI".index(tag) for tag in row]],) for w, row in enumerate(rows)}
    (decided,) = _merged_windows(windows, outputs)
    assert "".join("OBI"[tag] for tag in decided.argmax(axis=1)) == f"OOOO{expected}OOOO"


@each_kind
def test_predictions_do_not_depend_on_the_batch(kind, monkeypatch):
    predictor = predictor_of(kind)
    expected = predictor.predict(TEXTS)
    order = np.random.default_rng(0).permutation(len(TEXTS) * 6) % len(TEXTS)
    for batch in (2, 32):
        monkeypatch.setattr(predictor, "prediction", Prediction(batch_size=batch))
        predictions = predictor.predict([TEXTS[index] for index in order])
        for index, spans in zip(order, predictions, strict=True):
            assert without_scores([spans]) == without_scores([expected[index]])
            scores = [scored.score for scored in spans]
            assert scores == pytest.approx([s.score for s in expected[index]], abs=1e-5)


@each_kind
def test_a_loaded_predictor_predicts_the_same(kind, tmp_path):
    predictor = predictor_of(kind)
    predictor.threshold = 0.6
    predictor.save(tmp_path)
    loaded = TaggingMethod.PREDICTOR.load(tmp_path)
    assert loaded.predict(TEXTS) == predictor.predict(TEXTS)
    assert loaded.settings == predictor.settings
    loaded.save(tmp_path / "copy")
    assert TaggingMethod.PREDICTOR.load(tmp_path / "copy").predict(TEXTS) == loaded.predict(TEXTS)


def test_evaluation_decodes_as_the_predictor_does(cwd):
    content = demo.params().model_dump()
    experiment = content["experiments"]["ner-encoder"]
    content |= {"experiments": {"ner-encoder": experiment}}
    content["studies"]["ner"]["experiments"] = ["ner-encoder"]
    predictor = predictor_of("wordpiece")
    predictor.threshold = 0.5
    predictor.save(cwd / "models/ner-encoder")
    expected = predictor.predict(TEXTS)
    gold = [tuple(row[:1]) for row in without_scores(predictor.scored_spans(TEXTS, caption="test"))]
    splits = {name: records_of(TEXTS, gold) for name in ("train", "valid", "test", "new")}
    splits["new"] = splits["new"][:1]
    write_corpus(cwd / "data/clean/pii", splits)

    evaluate.main(Params.model_validate(content), "ner-encoder")

    rows = evaluation.load_predictions(scorer.Scorer(), Path("reports/predictions/ner/ner-encoder"))
    assert [list(row.predicted) for row in rows] == without_scores(expected)
    assert [row.gold for row in rows] == gold
    for row, spans in zip(rows, expected, strict=True):
        assert row.scores == pytest.approx([s.score for s in spans], abs=1e-4)
    metrics = read_json(Path("reports/metrics/ner/ner-encoder.json"))
    assert metrics["f1"] == pytest.approx(f1(gold, without_scores(expected)), abs=1e-6)
    records = [Record(text, text, spans, None, "") for text, spans in zip(TEXTS, gold, strict=True)]
    measured = predictor.model_metrics(records, expected)
    assert metrics["seqeval_f1"] == round(measured["seqeval_f1"], 6)
    assert metrics["recall_seen"] == metrics["recall"]  # the training texts are the same
    assert (metrics["updates"], metrics["examples"]) == (3, 20)
    assert metrics["new_support"] == len(gold[0])
    assert metrics["parameters"] == sum(p.numel() for p in predictor.model.parameters())
