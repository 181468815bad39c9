"""Tagging: items and figures for training, and one way of decoding for everything after it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel, set_seed

from stages import evaluate
from wxb.align import Fate, tag_names
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.features import IGNORED, write_encoded, write_targets
from wxb.files import read_json
from wxb.metrics import ner
from wxb.metrics import spans as scorer
from wxb.models.tagger import Tagger
from wxb.params import Experiment, Head, Params, Training, load
from wxb.spans import Span
from wxb.tasks import ner_tagging
from wxb.tasks.ner_tagging import THRESHOLDS, Predictor, ScoredSpan
from wxb.tokenizers import encode, train

ROOT = Path(__file__).parents[2]
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
EXPERIMENT = Experiment(
    study="ner",
    corpus="c",
    task="ner_tagging",
    backbone="b",
    max_length=24,
    head=Head(projection=16, dropout=0.1),
    training=Training(epochs=1, batch_size=4, learning_rate=1e-3),
)
TOKENIZERS = {kind: train(kind, 400, TEXTS) for kind in ("wordpiece", "byte-level-bpe")}

each_kind = pytest.mark.parametrize("kind", sorted(TOKENIZERS))


def predictor_of(kind):
    """A predictor with random weights, large enough to tell tokens apart."""
    set_seed(0)
    tokenizer = TOKENIZERS[kind]
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 32,
        "initializer_range": 0.2,
    }
    body = (
        BertModel(BertConfig(**shape), add_pooling_layer=False)
        if kind == "wordpiece"
        else LlamaModel(LlamaConfig(**shape))
    )
    model = Tagger(body, len(tag_names(TYPES)), EXPERIMENT.head)
    for name, values in model.head.named_parameters():
        torch.nn.init.normal_(values, std=0.0 if name.endswith("bias") else 1.0)
    return Predictor(model, tokenizer, TYPES, max_length=EXPERIMENT.max_length)


def written(tokenizer, texts, gold, folder):
    encoded = encode(tokenizer, texts, max_length=24)
    targets, fates = ner_tagging.align(encoded, gold, TYPES)
    write_encoded(folder / "features.arrow", encoded)
    write_targets(folder / "targets.arrow", targets, encoded.splits)
    return encoded, targets, fates


def bare(rows):
    return [[scored.span for scored in row] for row in rows]


# Training


@given(st.lists(st.lists(st.sampled_from(Fate), max_size=5), max_size=4))
def test_the_account_adds_up(fates):
    account = ner_tagging.account(fates)
    assert account.pop("gold") == sum(map(len, fates)) == sum(account.values())
    assert list(account) == [fate.value for fate in Fate]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_dataset_has_one_item_a_text(tmp_path, count):
    gold = [[Span(0, 3, "NAME")], [], [Span(2, 5, "NAME")]][:count]
    encoded, targets, _ = written(TOKENIZERS["wordpiece"], TEXTS[:count], gold, tmp_path)
    items = ner_tagging.dataset(tmp_path / "features.arrow", tmp_path / "targets.arrow")
    assert len(items) == count
    for row, item in enumerate(items):
        tokens = slice(encoded.splits[row], encoded.splits[row + 1])
        assert list(item) == ["input_ids", *ner_tagging.TARGETS]
        assert item["input_ids"].tolist() == encoded.ids[tokens].tolist()
        for name, values in targets._asdict().items():
            assert item[name].tolist() == values[tokens].tolist()


def test_collate_ignores_padding(tmp_path):
    written(TOKENIZERS["wordpiece"], TEXTS[:3], [[Span(0, 3, "NAME")], [], []], tmp_path)
    items = ner_tagging.dataset(tmp_path / "features.arrow", tmp_path / "targets.arrow")
    batch = ner_tagging.collate(items, pad=77)
    for row, item in enumerate(items):
        length = len(item["input_ids"])
        assert batch["attention_mask"][row].tolist() == [
            int(at < length) for at in range(batch["input_ids"].shape[1])
        ]
        for name, values in item.items():
            assert batch[name][row, :length].tolist() == values.tolist()
            fill = 77 if name == "input_ids" else IGNORED
            assert (batch[name][row, length:] == fill).all()


@each_kind
def test_figures_while_training_are_the_scores_of_the_predictor(kind, tmp_path):
    """Where every gold span is aligned; `figures` has no threshold."""
    predictor, texts = predictor_of(kind), TEXTS[:6]
    found = bare(predictor.candidates(texts, label="test"))
    # Half right, so that the score is neither 0 nor 1.
    gold = [spans[: 1 + len(spans) // 2] for spans in found]
    _, _, fates = written(predictor.tokenizer, texts, gold, tmp_path)
    assert {fate for row in fates for fate in row} == {Fate.ALIGNED}
    items = ner_tagging.dataset(tmp_path / "features.arrow", tmp_path / "targets.arrow")
    batch = ner_tagging.collate(items, predictor.tokenizer.pad_token_id)
    with torch.inference_mode():
        output = predictor.model(batch["input_ids"], batch["attention_mask"])
    logits = [output[name] for name in ner_tagging.TARGETS]
    labels = [batch[name].numpy() for name in ner_tagging.TARGETS]
    figures = ner_tagging.figures(ner_tagging.summarize(logits, labels).numpy(), labels)
    expected = scorer.prf(scorer.counts(gold, found).sum(axis=0))[2]
    assert figures == {ner_tagging.BEST: expected}
    assert 0 < expected < 1


# Predicting


@each_kind
def test_spans_are_stretches_of_the_untouched_text(kind):
    predictor = predictor_of(kind)
    found = predictor.predict(TEXTS)
    assert sum(map(len, found)) > 10
    for text, spans in zip(TEXTS, found, strict=True):
        for (start, end, name), score in spans:
            assert 0 <= start < end <= len(text)
            assert text[start:end] == text[start:end].strip()
            assert name in TYPES
            assert 0 <= score <= 1
        starts = [scored.span.start for scored in spans]
        assert starts == sorted(starts)


@each_kind
def test_nothing_is_found_in_nothing(kind):
    predictor = predictor_of(kind)
    assert predictor.predict([]) == []
    assert predictor.predict(["", " \n\t"]) == [[], []]


@each_kind
def test_a_text_is_read_up_to_max_length(kind):
    predictor, text = predictor_of(kind), TEXTS[6]
    encoded = encode(predictor.tokenizer, [text], max_length=EXPERIMENT.max_length)
    assert encoded.truncated[0]
    (found,) = predictor.predict([text])
    assert found
    assert max(scored.span.end for scored in found) <= encoded.ends.max()
    assert bare(predictor.predict([text + " and much more"])) == bare([found])


@each_kind
def test_company_does_not_change_what_is_found(kind, monkeypatch):
    predictor = predictor_of(kind)
    expected = predictor.predict(TEXTS)
    order = np.random.default_rng(0).permutation(len(TEXTS) * 6) % len(TEXTS)
    for batch in (2, 32):
        monkeypatch.setattr(ner_tagging, "BATCH", batch)
        found = predictor.predict([TEXTS[number] for number in order])
        for number, spans in zip(order, found, strict=True):
            assert bare([spans]) == bare([expected[number]])
            scores = [scored.score for scored in spans]
            assert scores == pytest.approx([s.score for s in expected[number]], abs=1e-5)


@each_kind
def test_a_loaded_predictor_finds_the_same(kind, tmp_path):
    predictor = predictor_of(kind)
    predictor.threshold = 0.6
    predictor.save(tmp_path, EXPERIMENT)
    loaded = Predictor.load(tmp_path)
    assert loaded.predict(TEXTS) == predictor.predict(TEXTS)
    assert read_json(tmp_path / ner_tagging.SETTINGS) == {
        "task": "ner_tagging",
        "types": TYPES,
        "threshold": 0.6,
        "max_length": 24,
        "head": {"projection": 16, "dropout": 0.1},
    }


@each_kind
def test_predict_keeps_the_candidates_that_reach_the_threshold(kind):
    predictor = predictor_of(kind)
    candidates = predictor.candidates(TEXTS, label="test")
    assert predictor.predict(TEXTS) == candidates
    scores = sorted(scored.score for spans in candidates for scored in spans)
    predictor.threshold = scores[len(scores) // 2]
    expected = [[s for s in spans if s.score >= predictor.threshold] for spans in candidates]
    assert predictor.predict(TEXTS) == expected
    assert sum(map(len, expected)) < len(scores)


scored_rows = st.lists(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([*THRESHOLDS.tolist(), 0.333, 1.0])),
        max_size=6,
        unique_by=lambda pair: pair[0],
    ),
    max_size=4,
)


@settings(deadline=None)
@given(scored_rows, st.sets(st.integers(0, 9)))
def test_the_threshold_is_the_lowest_of_the_best(rows, right):
    found = [[ScoredSpan(Span(at, at + 1, "AGE"), score) for at, score in row] for row in rows]
    gold = [[Span(at, at + 1, "AGE") for at in sorted(right)] for _ in rows]
    predictor = Predictor.__new__(Predictor)
    predictor.candidates = lambda texts, label: found
    predictor.choose_threshold([""] * len(rows), gold, label="test")

    def f1(threshold):
        predictor.threshold = threshold
        kept = bare(predictor.predict([""] * len(rows)))
        return scorer.prf(scorer.counts(gold, kept).sum(axis=0))[2]

    chosen = predictor.threshold
    scores = {float(threshold): f1(float(threshold)) for threshold in THRESHOLDS}
    assert chosen == min(t for t, score in scores.items() if score == max(scores.values()))


def test_evaluation_decodes_as_the_predictor_does(tmp_path, monkeypatch):
    content = load(ROOT / "params.yaml").model_dump()
    experiment = content["experiments"]["ner-encoder"]
    content |= {"resamples": 20, "experiments": {"ner-encoder": experiment}}
    content["studies"]["ner"]["experiments"] = ["ner-encoder"]
    monkeypatch.chdir(tmp_path)
    predictor = predictor_of("wordpiece")
    predictor.threshold = 0.5
    predictor.save(tmp_path / "models/ner-encoder", EXPERIMENT)
    expected = predictor.predict(TEXTS)
    gold = [tuple(row[:1]) for row in bare(predictor.candidates(TEXTS, label="test"))]
    records = [
        Record(id=str(number), text=text, spans=spans, language=None, group="")
        for number, (text, spans) in enumerate(zip(TEXTS, gold, strict=True))
    ]
    (tmp_path / "data/clean/pii").mkdir(parents=True)
    clean.write(tmp_path / "data/clean/pii/test.parquet", records)

    evaluate.main(Params.model_validate(content), "ner-encoder")

    judged = ner.read(Path("reports/predictions/ner/ner-encoder"))
    assert [list(record.predicted) for record in judged] == bare(expected)
    assert [record.gold for record in judged] == gold
    for record, spans in zip(judged, expected, strict=True):
        assert record.scores == pytest.approx([s.score for s in spans], abs=1e-4)
    metrics = read_json(Path("reports/metrics/ner/ner-encoder.json"))
    f1 = scorer.prf(scorer.counts(gold, bare(expected)).sum(axis=0))[2]
    assert metrics["f1"] == pytest.approx(f1, abs=1e-6)
    assert metrics["parameters"] == sum(p.numel() for p in predictor.model.parameters())
