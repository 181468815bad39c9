"""Pretraining: both objectives read the same texts, in items that anyone can make again."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812
from transformers import BertConfig, BertForPreTraining, LlamaConfig, LlamaForCausalLM, set_seed

from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import ids_of, train
from wxb.training.batches import collate
from wxb.training.pretraining import Objective, measure, sentences, stream

LETTERS = "abcdefghijkl"
TEXTS = [f"{c} starts at 1. Then {c} goes on. Here {c} ends." for c in LETTERS]
KINDS = {"mlm+nsp": "wordpiece", "causal-lm": "byte-level-bpe"}
TOKENIZERS = {objective: train(kind, 400, TEXTS) for objective, kind in KINDS.items()}
ENCODER, DECODER = TOKENIZERS["mlm+nsp"], TOKENIZERS["causal-lm"]
CLS, SEP, MASK = ENCODER.cls_token_id, ENCODER.sep_token_id, ENCODER.mask_token_id

each_objective = pytest.mark.parametrize("objective", sorted(KINDS))


def items(objective, texts=TEXTS, **changes):
    options = {"length": 40, "max_length": 64, "seed": 1, **changes}
    return stream(objective, texts, TOKENIZERS[objective], **options)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def restored(item):
    """The ids of an item before any was masked."""
    return np.where(item["labels"] == IGNORED, item["input_ids"], item["labels"])


def parts(item):
    """The texts a and b of a pair, without special tokens."""
    ids, second = restored(item), item["token_type_ids"] == 1
    a, b = ids[~second], ids[second]
    assert a[0] == CLS
    assert a[-1] == b[-1] == SEP
    return [ENCODER.decode(part).replace(" ", "") for part in (a[1:-1], b[:-1])]


# The stream


def is_twice(objective, item):
    """Whether an item holds a passage twice."""
    if objective == "mlm+nsp":
        first, second = parts(item)
        return first == second
    return item["labels"][0] == IGNORED


@pytest.mark.parametrize("copying", [0.0, 0.5, 1.0])
def test_both_objectives_read_the_same_documents_at_the_same_step(copying):
    encoder, decoder = (items(objective, length=30, copying=copying) for objective in KINDS)
    for index in range(30):
        read = DECODER.decode(decoder[index]["input_ids"], skip_special_tokens=True)
        assert parts(encoder[index])[0][0] == read[0]
        assert is_twice("mlm+nsp", encoder[index]) == is_twice("causal-lm", decoder[index])


@each_objective
@pytest.mark.parametrize("copying", [0.0, 0.5])
def test_an_item_is_a_function_of_seed_and_index(objective, copying):
    longer, shorter, other = (
        items(objective, length=40, copying=copying),
        items(objective, length=23, copying=copying),
        items(objective, length=40, copying=copying, seed=2),
    )
    backwards = {index: shorter[index] for index in reversed(range(23))}
    assert all(same(longer[index], backwards[index]) for index in range(23))
    assert not all(same(longer[index], other[index]) for index in range(40))


@each_objective
def test_every_round_reads_every_document_once(objective):
    order = items(objective, length=3 * len(TEXTS) + 5).order.reshape(-1)
    assert len(order) == 3 * len(TEXTS) + 5
    rounds = np.split(order, range(len(TEXTS), len(order), len(TEXTS)))
    assert all(sorted(read) == list(range(len(TEXTS))) for read in rounds[:3])
    assert not np.array_equal(rounds[0], rounds[1])


@each_objective
@pytest.mark.parametrize("copying", [0.0, 1.0])
@pytest.mark.parametrize("max_length", [5, 9, 10, 64])
def test_items_are_at_most_as_long_as_asked_for(objective, max_length, copying):
    drawn = items(objective, max_length=max_length, copying=copying)
    lengths = [len(drawn[index]["input_ids"]) for index in range(40)]
    assert max(lengths) <= max_length
    if max_length <= 10:
        # Of an odd rest, two equal halves leave one out.
        special = {"mlm+nsp": 3, "causal-lm": 2}[objective]
        short = (max_length - special) % 2 if copying else 0
        assert set(lengths) == {max_length - short}


@each_objective
def test_settings_left_on_a_tokenizer_are_not_obeyed(objective):
    expected = items(objective)[0]
    backend = TOKENIZERS[objective].backend_tokenizer
    backend.enable_padding(length=128)
    backend.enable_truncation(4)
    assert same(items(objective)[0], expected)


# Objectives


def test_causal_items_are_documents_between_special_tokens():
    item = items("causal-lm")[0]
    assert item["input_ids"][0] == DECODER.bos_token_id
    assert item["input_ids"][-1] == DECODER.eos_token_id
    assert DECODER.decode(item["input_ids"][1:-1]) in TEXTS
    assert np.array_equal(item["labels"], item["input_ids"])


def test_pairs_follow_each_other_or_come_from_two_documents():
    documents = [text.replace(" ", "") for text in TEXTS]
    drawn = items("mlm+nsp", length=600)
    labels = []
    for index in range(600):
        item = drawn[index]
        labels.append(int(item["next_sentence_label"]))
        (home,) = [d for d in documents if d.startswith(parts(item)[0])]
        assert (home == "".join(parts(item))) == (labels[-1] == 0)
    assert np.mean(labels) == pytest.approx(0.5, abs=0.08)


def test_a_corpus_of_one_document_has_no_other():
    drawn = items("mlm+nsp", TEXTS[:1])
    assert {int(drawn[index]["next_sentence_label"]) for index in range(40)} == {0}


def test_a_single_sentence_is_cut_in_the_middle():
    assert parts(items("mlm+nsp", ["a b c d"])[0]) == ["ab", "cd"]


@pytest.mark.parametrize("copying", [0.0, 1.0])
@pytest.mark.parametrize("texts", [["1"], ["1", "", "  "]])
def test_documents_with_next_to_nothing_are_items_too(texts, copying):
    for objective in KINDS:
        drawn = items(objective, texts, length=9, copying=copying)
        assert all(len(drawn[index]["input_ids"]) >= 2 for index in range(9))


def test_masking_has_the_proportions_of_bert():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list(LETTERS), 60)) for _ in range(40)]
    drawn = items("mlm+nsp", texts, length=400)
    chosen = masked = kept = other = candidates = 0
    for index in range(400):
        item = drawn[index]
        ids, labels = item["input_ids"], item["labels"]
        at = labels != IGNORED
        assert not np.isin(labels[at], [CLS, SEP]).any()
        assert (ids[~at] != MASK).all()
        candidates += len(ids) - 3
        chosen += at.sum()
        masked += (ids[at] == MASK).sum()
        kept += (ids[at] == labels[at]).sum()
        replaced = ids[at][(ids[at] != MASK) & (ids[at] != labels[at])]
        assert not np.isin(replaced, ENCODER.all_special_ids).any()
        other += len(replaced)
    assert chosen / candidates == pytest.approx(0.15, abs=0.005)
    assert masked / chosen == pytest.approx(0.8, abs=0.03)
    assert kept / chosen == pytest.approx(0.1, abs=0.03)
    assert other / chosen == pytest.approx(0.1, abs=0.03)


# Copying


@pytest.mark.parametrize("max_length", [16, 64])
def test_a_causal_item_holds_a_passage_twice_and_asks_for_the_second(max_length):
    drawn = items("causal-lm", copying=1.0, max_length=max_length)
    for index in range(40):
        ids, labels = drawn[index]["input_ids"], drawn[index]["labels"]
        half = (len(ids) - 2) // 2
        first, second = np.split(ids[1:-1], 2)
        assert first.tolist() == second.tolist()
        assert half == min((max_length - 2) // 2, len(DECODER.encode(TEXTS[0])) - 1)
        assert (ids[0], ids[-1]) == (DECODER.bos_token_id, DECODER.eos_token_id)
        assert any(DECODER.decode(first) in text for text in TEXTS)
        assert (labels[: half + 1] == IGNORED).all()
        assert labels[half + 1 :].tolist() == ids[half + 1 :].tolist()


@pytest.mark.parametrize("max_length", [17, 64])
def test_a_masked_pair_holds_a_passage_twice_which_does_not_follow(max_length):
    drawn = items("mlm+nsp", copying=1.0, max_length=max_length)
    masked_apart = 0
    for index in range(40):
        item = drawn[index]
        first, second = parts(item)
        assert first == second
        assert any(first in text.replace(" ", "") for text in TEXTS)
        assert int(item["next_sentence_label"]) == 1
        assert np.diff(np.bincount(item["token_type_ids"])) == -1
        # Each of the two is masked on its own, so that the other tells what is under the mask.
        a, b = np.split(np.delete(item["labels"], [0, len(first_half(item)) + 1, -1]), 2)
        masked_apart += int(((a == IGNORED) != (b == IGNORED)).any())
    assert masked_apart > 30


def first_half(item):
    """The tokens of a pair's first passage."""
    return item["input_ids"][1 : (item["token_type_ids"] == 0).sum() - 1]


@each_objective
def test_passages_come_from_anywhere_in_their_document(objective):
    text = "".join(chr(ord("a") + number % 12) + " " for number in range(20))
    document = ids_of(TOKENIZERS[objective], [text])[0].tolist()
    special, length = {"mlm+nsp": 3, "causal-lm": 2}[objective], 6
    drawn = items(objective, [text], length=300, copying=1.0, max_length=2 * length + special)
    windows = [document[at : at + length] for at in range(len(document) - length + 1)]
    first = slice(1, 1 + length)
    assert {tuple(restored(drawn[i])[first].tolist()) for i in range(300)} == {*map(tuple, windows)}


@each_objective
@pytest.mark.parametrize("copying", [0.0, 0.25, 1.0])
def test_as_many_items_as_asked_for_hold_a_passage_twice(objective, copying):
    drawn = items(objective, length=600, copying=copying)
    share = np.mean([is_twice(objective, drawn[index]) for index in range(600)])
    assert share == pytest.approx(copying, abs=0.05 if 0 < copying < 1 else 0)


def test_without_copying_nothing_is_twice():
    for item in (items("causal-lm")[index] for index in range(40)):
        inner = item["input_ids"][1:-1]
        assert inner[: len(inner) // 2].tolist() != inner[len(inner) // 2 :].tolist()
    for item in (items("mlm+nsp")[index] for index in range(40)):
        assert len(set(parts(item))) == 2


@settings(deadline=None)
@given(st.text(alphabet="ab1 .!?…。！？\n\t", max_size=40))
def test_sentences_lose_nothing_but_white_space(text):
    found = sentences(text)
    assert all(sentence == sentence.strip() != "" for sentence in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_sentences_end_at_the_punctuation_of_their_language():
    assert sentences("It is 3.5. Is it? Yes") == ["It is 3.5.", "Is it?", "Yes"]
    assert sentences("他住在北京。真的吗？真的！") == ["他住在北京。", "真的吗？", "真的！"]
    assert sentences("a\n\nb") == ["a", "b"]


# Metrics


def model_of(objective):
    set_seed(0)
    shape = {
        "vocab_size": len(TOKENIZERS[objective]),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
        "initializer_range": 0.5,  # so that predictions differ
    }
    if objective == "mlm+nsp":
        return BertForPreTraining(BertConfig(**shape))
    return LlamaForCausalLM(LlamaConfig(**shape))


@each_objective
@pytest.mark.parametrize("copying", [0.0, 0.5])
def test_measure_equals_a_computation_item_by_item(objective, copying):
    model, drawn = model_of(objective), items(objective, length=11, copying=copying)
    metrics = measure(model, drawn, pad=TOKENIZERS[objective].pad_token_id, batch_size=4)
    assert not model.training
    nll, hits, pairs = [], [], []
    for index in range(11):
        item = {name: torch.from_numpy(values)[None] for name, values in drawn[index].items()}
        labels = item.pop("labels")[0]
        apart = item.pop("next_sentence_label", None)
        with torch.inference_mode():
            output = model(**item)
        if objective == "mlm+nsp":
            logits = output.prediction_logits[0]
            pairs.append(int(output.seq_relationship_logits.argmax()) == int(apart))
        else:
            logits, labels = output.logits[0, :-1], labels[1:]
        for scores, label in zip(logits, labels, strict=True):
            if label != IGNORED:
                nll.append(float(-F.log_softmax(scores, -1)[label]))
                hits.append(int(scores.argmax()) == int(label))
    assert metrics["loss"] == pytest.approx(np.mean(nll), rel=1e-4)
    assert metrics["perplexity"] == math.exp(metrics["loss"])
    assert metrics["accuracy"] == np.mean(hits)
    if objective == "mlm+nsp":
        assert metrics["nsp_accuracy"] == np.mean(pairs)


@each_objective
@pytest.mark.parametrize("copying", [0.0, 0.5, 1.0])
def test_loss_and_gradients_are_those_of_transformers(objective, copying):
    model, drawn = model_of(objective).double().eval(), items(objective, length=6, copying=copying)
    batch = collate([drawn[index] for index in range(6)], TOKENIZERS[objective].pad_token_id)
    losses, gradients = [], []
    for way in (Objective(model), model):
        model.zero_grad()
        output = way(**batch)
        losses.append(output["loss"].float())
        losses[-1].backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(*losses)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)  # the losses are in float32


@each_objective
def test_the_head_reads_only_what_is_asked(objective):
    model, drawn = model_of(objective), items(objective, length=6)
    batch = collate([drawn[index] for index in range(6)], TOKENIZERS[objective].pad_token_id)
    asked = batch["labels"] if objective == "mlm+nsp" else batch["labels"][:, 1:]
    found = Objective(model)(**batch)
    assert found["logits"].shape == (int((asked != IGNORED).sum()), len(TOKENIZERS[objective]))
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    assert model(**inputs)[0].shape[:2] == batch["labels"].shape  # as before


@each_objective
def test_a_batch_of_copies_alone_teaches(objective):
    model, drawn = Objective(model_of(objective)).train(), items(objective, copying=1.0)
    batch = collate([drawn[index] for index in range(4)], TOKENIZERS[objective].pad_token_id)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        losses.append(model(**batch)["loss"])
        losses[-1].backward()
        optimizer.step()
    assert 0 < losses[1] < losses[0] < math.inf


@each_objective
def test_copies_are_measured_as_other_items_are(objective):
    model, drawn = model_of(objective), items(objective, length=5, copying=1.0)
    metrics = measure(model, drawn, pad=TOKENIZERS[objective].pad_token_id, batch_size=4)
    pairs = ["nsp_accuracy"] if objective == "mlm+nsp" else []
    assert list(metrics) == ["loss", "perplexity", "accuracy", *pairs]


@each_objective
def test_measure_does_not_depend_on_the_batch_size(objective):
    model, drawn = model_of(objective), items(objective, length=11)
    several = [measure(model, drawn, pad=0, batch_size=size) for size in (1, 3, 11)]
    for one, other in pairwise(several):
        assert one == pytest.approx(other, rel=1e-4)
