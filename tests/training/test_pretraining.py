"""Pretraining: items of both objectives, their loss, and metrics."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812
from transformers import BertConfig, BertForPreTraining, LlamaConfig, LlamaForCausalLM, set_seed

from tests import tiny
from tests.models.equal import SINGLE, difference
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import train
from wxb.training.batches import collate
from wxb.training.pretraining import STREAMS, Objective, measure, sentences

LETTERS = "abcdefghijkl"
TEXTS = [f"{c} starts at 1. Then {c} goes on. Here {c} ends." for c in LETTERS]
KINDS = {"mlm+nsp": "wordpiece", "causal-lm": "byte-level-bpe"}
TOKENIZERS = {objective: train(kind, 400, TEXTS) for objective, kind in KINDS.items()}
ENCODER, DECODER = TOKENIZERS["mlm+nsp"], TOKENIZERS["causal-lm"]
CLS, SEP, MASK = ENCODER.cls_token_id, ENCODER.sep_token_id, ENCODER.mask_token_id

each_objective = pytest.mark.parametrize("objective", sorted(KINDS))


def items(objective, texts=TEXTS, **changes):
    options = {"length": 40, "max_length": 64, "seed": 1, **changes}
    return STREAMS[objective](texts, TOKENIZERS[objective], **options)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def parts(item):
    """The texts a and b of a pair, without special tokens."""
    unmasked = np.where(item["labels"] == IGNORED, item["input_ids"], item["labels"])
    second = item["token_type_ids"] == 1
    a, b = unmasked[~second], unmasked[second]
    assert a[0] == CLS
    assert a[-1] == b[-1] == SEP
    return [ENCODER.decode(part).replace(" ", "") for part in (a[1:-1], b[:-1])]


def assert_share(count, total, share):
    """A binomial share is within five standard deviations, but for one seed in a million."""
    limit = 5 * (share * (1 - share) / total) ** 0.5
    assert count / total == pytest.approx(share, abs=limit)


# The stream


def test_both_objectives_read_the_same_documents_at_the_same_step():
    encoder, decoder = (items(objective, length=30) for objective in KINDS)
    for index in range(30):
        text = DECODER.decode(decoder[index]["input_ids"], skip_special_tokens=True)
        assert parts(encoder[index])[0][0] == text[0]


@each_objective
def test_an_item_is_a_function_of_seed_and_index(objective):
    longer, shorter = (items(objective, length=length) for length in (40, 23))
    another_seed = items(objective, length=40, seed=2)
    backwards = {index: shorter[index] for index in reversed(range(23))}
    assert all(same(longer[index], backwards[index]) for index in range(23))
    assert not all(same(longer[index], another_seed[index]) for index in range(40))


@each_objective
def test_every_round_reads_every_document_once(objective):
    order = items(objective, length=3 * len(TEXTS) + 5).order.reshape(-1)
    assert len(order) == 3 * len(TEXTS) + 5
    rounds = np.split(order, range(len(TEXTS), len(order), len(TEXTS)))
    assert all(sorted(read) == list(range(len(TEXTS))) for read in rounds[:3])
    assert not np.array_equal(rounds[0], rounds[1])


@each_objective
@pytest.mark.parametrize("max_length", [5, 9, 10, 64])
def test_items_are_truncated(objective, max_length):
    dataset = items(objective, max_length=max_length)
    lengths = [len(dataset[index]["input_ids"]) for index in range(40)]
    assert max(lengths) <= max_length
    if max_length <= 10:
        assert set(lengths) == {max_length}


# Objectives


def test_causal_items_are_documents_between_special_tokens():
    item = items("causal-lm")[0]
    assert item["input_ids"][0] == DECODER.bos_token_id
    assert item["input_ids"][-1] == DECODER.eos_token_id
    assert DECODER.decode(item["input_ids"][1:-1]) in TEXTS
    assert np.array_equal(item["labels"], item["input_ids"])
    bare = SimpleNamespace(backend_tokenizer=DECODER.backend_tokenizer, bos_token_id=None)
    bare.eos_token_id = DECODER.eos_token_id  # as of Qwen's checkpoints
    items_ = STREAMS["causal-lm"](TEXTS, bare, length=1, max_length=64, seed=1)
    assert np.array_equal(items_[0]["input_ids"], item["input_ids"][1:])


def test_half_of_the_pairs_follow_each_other():
    documents = [text.replace(" ", "") for text in TEXTS]
    dataset = items("mlm+nsp", length=600)
    labels = []
    for index in range(600):
        item = dataset[index]
        labels.append(int(item["next_sentence_label"]))
        (document,) = [d for d in documents if d.startswith(parts(item)[0])]
        assert (document == "".join(parts(item))) == (labels[-1] == 0)
    assert_share(sum(labels), 600, 0.5)


def test_pairs_of_a_single_document_follow_each_other():
    dataset = items("mlm+nsp", TEXTS[:1])
    assert {int(dataset[index]["next_sentence_label"]) for index in range(40)} == {0}


def test_a_single_sentence_is_split_in_the_middle():
    assert parts(items("mlm+nsp", ["a b c d"])[0]) == ["ab", "cd"]


@pytest.mark.parametrize("texts", [["1"], ["1", "", "  "]])
def test_blank_documents_are_items_too(texts):
    for objective in KINDS:
        dataset = items(objective, texts, length=9)
        assert all(len(dataset[index]["input_ids"]) >= 2 for index in range(9))


def test_special_tokens_may_stand_behind_all_others():
    tokenizer = copy.deepcopy(ENCODER)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[LAST]"]})
    assert len(STREAMS["mlm+nsp"](TEXTS, tokenizer, length=1, max_length=64, seed=1)[0]) == 4


def test_masking_has_the_proportions_of_bert():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list(LETTERS), 60)) for _ in range(40)]
    dataset = items("mlm+nsp", texts, length=400)
    selected = masked = unchanged = replaced = candidates = 0
    for index in range(400):
        item = dataset[index]
        ids, labels = item["input_ids"], item["labels"]
        is_selected = labels != IGNORED
        assert (ids[~is_selected] != MASK).all()
        ids, labels = ids[is_selected], labels[is_selected]
        assert not np.isin(labels, [CLS, SEP]).any()
        candidates += len(item["input_ids"]) - 3
        selected += len(ids)
        masked += (ids == MASK).sum()
        unchanged += (ids == labels).sum()
        replacements = ids[(ids != MASK) & (ids != labels)]
        assert not np.isin(replacements, ENCODER.all_special_ids).any()
        replaced += len(replacements)
    assert_share(selected, candidates, 0.15)
    for count, share in ((masked, 0.8), (unchanged, 0.1), (replaced, 0.1)):
        assert_share(count, selected, share)


# Sentences


@settings(deadline=None)
@given(st.text(alphabet="ab1 .!?…。！？\n\t", max_size=40))
def test_sentences_lose_only_white_space(text):
    result = sentences(text)
    assert all(sentence == sentence.strip() != "" for sentence in result)
    assert "".join("".join(result).split()) == "".join(text.split())


def test_sentences_end_at_the_punctuation_of_their_language():
    assert sentences("It is 3.5. Is it? Yes") == ["It is 3.5.", "Is it?", "Yes"]
    assert sentences("他住在北京。真的吗？真的！") == ["他住在北京。", "真的吗？", "真的！"]
    assert sentences("a\n\nb") == ["a", "b"]


# Metrics


def model_of(objective):
    set_seed(0)
    shape = {**tiny.SHAPE, "num_hidden_layers": 1, "max_position_embeddings": 64}
    shape["vocab_size"] = len(TOKENIZERS[objective])
    shape["initializer_range"] = 0.5  # so that predictions differ
    if objective == "mlm+nsp":
        return BertForPreTraining(BertConfig(**shape))
    return LlamaForCausalLM(LlamaConfig(**shape))


@each_objective
@pytest.mark.parametrize("batch_size", [1, 4, 11])
def test_measure_equals_a_computation_item_by_item(objective, batch_size):
    model, dataset = model_of(objective), items(objective, length=11)
    metrics = measure(model, dataset, pad=TOKENIZERS[objective].pad_token_id, batch_size=batch_size)
    assert not model.training
    nll, hits, pairs = [], [], []
    for index in range(11):
        item = {name: torch.from_numpy(values)[None] for name, values in dataset[index].items()}
        labels = item.pop("labels")[0]
        pair_label = item.pop("next_sentence_label", None)
        with torch.inference_mode():
            output = model(**item)
        if objective == "mlm+nsp":
            logits = output.prediction_logits[0]
            pairs.append(int(output.seq_relationship_logits.argmax()) == int(pair_label))
        else:
            logits, labels = output.logits[0, :-1], labels[1:]
        for scores, label in zip(logits, labels, strict=True):
            if label != IGNORED:
                nll.append(float(-F.log_softmax(scores, -1)[label]))
                hits.append(int(scores.argmax()) == int(label))
    assert metrics["loss"] == pytest.approx(np.mean(nll), rel=SINGLE)
    assert metrics["perplexity"] == math.exp(metrics["loss"])
    assert metrics["accuracy"] == np.mean(hits)
    if objective == "mlm+nsp":
        assert metrics["nsp_accuracy"] == np.mean(pairs)


@each_objective
def test_loss_and_gradients_equal_transformers(objective):
    model, dataset = model_of(objective).double().eval(), items(objective, length=6)
    batch = collate([dataset[index] for index in range(6)], TOKENIZERS[objective].pad_token_id)
    losses, gradients = [], []
    for objective_or_model in (Objective(model), model):
        model.zero_grad()
        output = objective_or_model(**batch)
        losses.append(output["loss"].float())
        losses[-1].backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(*losses)
    assert difference(*gradients) <= 2 * SINGLE  # the losses are in float32


@each_objective
def test_logits_are_computed_for_labels_only(objective):
    model, dataset = model_of(objective), items(objective, length=6)
    batch = collate([dataset[index] for index in range(6)], TOKENIZERS[objective].pad_token_id)
    labels = batch["labels"] if objective == "mlm+nsp" else batch["labels"][:, 1:]
    logits = Objective(model)(**batch)["logits"]
    assert logits.shape == (int((labels != IGNORED).sum()), len(TOKENIZERS[objective]))
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    assert model(**inputs)[0].shape[:2] == batch["labels"].shape  # the hook is removed
