"""Native BERT beside transformers'."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_model

from tests.models.equal import TOLERANCE, assert_equal, assert_same_learning, dtypes, padded, shaken
from wxb.lessons.parity import difference, twin
from wxb.models import bert
from wxb.models.bert import Config

VOCABULARY, LABELS = 30, 3
HEADS = [
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "BertForTokenClassification",
]
each_class = pytest.mark.parametrize("name", ["BertModel", *HEADS])


def config(**settings):
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 12,
        "initializer_range": 0.3,
        "num_labels": LABELS,
    }
    return transformers.BertConfig(**{**shape, **settings})


def made(name="BertModel", **settings):
    torch.manual_seed(0)
    return getattr(transformers, name)(config(**settings)).eval()


def batch(rows=3, length=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return {
        "input_ids": torch.randint(VOCABULARY, (rows, length), generator=rng),
        "token_type_ids": torch.randint(2, (rows, length), generator=rng),
    }


def labels(name, ids, seed=0):
    rng = torch.Generator().manual_seed(seed)
    rows = ids.shape[:1] if name == "BertForSequenceClassification" else ids.shape
    words = name in ("BertForPreTraining", "BertForMaskedLM")
    targets = torch.randint(VOCABULARY if words else LABELS, rows, generator=rng)
    if len(rows) == 2:
        targets[:, 1::2] = -100
    if name != "BertForPreTraining":
        return {"labels": targets}
    return {"labels": targets, "next_sentence_label": torch.randint(2, rows[:1], generator=rng)}


@st.composite
def models(draw):
    heads = draw(st.integers(1, 4))
    shape = config(
        num_attention_heads=heads,
        hidden_size=heads * draw(st.integers(8, 12)),
        num_hidden_layers=draw(st.integers(0, 3)),
        intermediate_size=draw(st.integers(1, 40)),
        hidden_act=draw(st.sampled_from(["gelu", "gelu_new"])),
        type_vocab_size=draw(st.integers(2, 3)),
        pad_token_id=draw(st.sampled_from([None, 0, 4])),
    )
    torch.manual_seed(draw(st.integers(0, 1000)))
    model = getattr(transformers, draw(st.sampled_from(HEADS)))(shape)
    return shaken(model).to(draw(dtypes)).eval()


@st.composite
def batches(draw):
    inputs = batch(draw(st.integers(1, 4)), draw(st.integers(1, 12)), draw(st.integers(0, 1000)))
    if draw(st.booleans()):
        shape = inputs["input_ids"].shape
        inputs["attention_mask"] = padded(draw, *shape, left=draw(st.booleans()))
    if draw(st.booleans()):
        del inputs["token_type_ids"]
    return inputs


@given(models(), batches())
@settings(deadline=None, max_examples=30)
def test_outputs_loss_and_gradients_equal_transformers(theirs, inputs):
    targets = labels(type(theirs).__name__, inputs["input_ids"])
    assert_same_learning(theirs, inputs, targets, TOLERANCE[theirs.dtype])


@pytest.mark.parametrize("pools", [True, False])
def test_a_body_with_and_without_pooler_equals_transformers(pools):
    torch.manual_seed(0)
    theirs = transformers.BertModel(config(), add_pooling_layer=pools).eval()
    ours = bert.BertModel(Config.from_hf(config()), add_pooling_layer=pools).eval()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert_equal(ours(**batch()), theirs(**batch()), TOLERANCE[torch.float32])
    assert (ours(**batch()).pooler_output is None) != pools


def test_embeddings_and_positions_may_be_given():
    theirs = made()
    ours, *_ = twin(theirs)
    embedded = torch.randn(2, 5, 16)
    places = torch.tensor([[4, 3, 2, 1, 0], [0, 0, 7, 8, 9]])
    inputs = {"inputs_embeds": embedded, "position_ids": places}
    assert_equal(ours(**inputs), theirs(**inputs), TOLERANCE[torch.float32])


@each_class
def test_what_padding_holds_changes_nothing(name):
    ours, *_ = twin(made(name))
    inputs = batch()
    mask = (torch.arange(8) < torch.tensor([8, 5, 1])[:, None]).long()
    other = inputs["input_ids"].where(mask.bool(), 9)
    with torch.no_grad():
        found = [ours(ids, mask, inputs["token_type_ids"]) for ids in (inputs["input_ids"], other)]
    for first, second in zip(*found, strict=True):
        if first is not None:
            real = mask.bool() if first.ndim == 3 else slice(None)
            assert first[real].equal(second[real])


def test_a_text_of_padding_alone_gives_numbers_and_gradients():
    theirs = made("BertForTokenClassification")
    inputs = {**batch(rows=2), "attention_mask": torch.tensor([[1] * 8, [0] * 8])}
    targets = labels("BertForTokenClassification", inputs["input_ids"])
    assert_same_learning(theirs, inputs, targets, TOLERANCE[torch.float32])


@each_class
def test_saved_weights_load_in_transformers(name, tmp_path):
    torch.manual_seed(1)
    ours = getattr(bert, name)(Config.from_hf(config())).eval()
    save_model(ours, str(tmp_path / "model.safetensors"), metadata={"format": "pt"})
    config(architectures=[name]).save_pretrained(tmp_path)
    cls = transformers.AutoModel if name == "BertModel" else getattr(transformers, name)
    theirs, loading = cls.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(loading.values())
    with torch.no_grad():
        assert_equal(ours(**batch()), theirs(**batch()), TOLERANCE[torch.float32])


def test_initial_weights_are_spread_as_in_transformers():
    torch.manual_seed(0)
    settings = {"hidden_size": 64, "initializer_range": 0.05, "pad_token_id": 3}
    shape = config(**settings)
    ours = bert.BertForPreTraining(Config.from_hf(shape)).state_dict()
    theirs = transformers.BertForPreTraining(shape).state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name].std(), weight.std(), rtol=0.3, atol=1e-3)
        torch.testing.assert_close(ours[name].mean(), weight.mean(), rtol=0, atol=0.02)
    assert not ours["bert.embeddings.word_embeddings.weight"][3].any()


def test_dropout_is_for_training_only():
    shape = config(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    ours = bert.BertModel(Config.from_hf(shape)).eval()
    with torch.no_grad():
        states = [ours(**batch()).last_hidden_state for _ in range(2)]
        assert states[0].equal(states[1])
        ours.train()
        assert difference(ours(**batch()).last_hidden_state, states[0]) > 0.1


@pytest.mark.parametrize("place", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_either_dropout_has_effect(place):
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    ours = bert.BertModel(Config.from_hf(config(**{**none, place: 0.5}))).train()
    with torch.no_grad():
        states = [ours(**batch()).last_hidden_state for _ in range(2)]
    assert difference(*states) > 0.1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"hidden_act": "relu"}, "hidden_act: found 'relu'"),
        ({"is_decoder": True}, "is_decoder: found True"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
        ({"position_embedding_type": "relative_key"}, "found 'relative_key'"),
        ({"problem_type": "regression"}, "problem_type: found 'regression'"),
        ({"num_attention_heads": 3}, "hidden_size 16 is not a multiple"),
    ],
)
def test_other_architectures_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Config.from_hf(config(**settings))


def test_one_label_for_a_text_is_refused():
    with pytest.raises(ValueError, match="num_labels: found 1"):
        bert.BertForSequenceClassification(Config(num_labels=1))


def test_more_tokens_than_positions_are_refused():
    ours, *_ = twin(made())
    with pytest.raises(ValueError, match="found 13 tokens; the model has positions for 12"):
        ours(torch.zeros(1, 13, dtype=torch.long))


@pytest.mark.parametrize("given", [{}, {**batch(), "inputs_embeds": torch.zeros(3, 8, 16)}])
def test_ids_and_embeddings_exclude_each_other(given):
    ours, *_ = twin(made())
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        ours(**given)
