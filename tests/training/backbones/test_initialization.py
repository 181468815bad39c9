"""Structured initialization: heads attend to neighbours, and one copies repeated passages."""

from copy import deepcopy

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaForCausalLM,
    set_seed,
)

from wxb.training.backbones.initialization import initialize

SHAPE = {
    "vocab_size": 300,
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",  # returns attention weights
}
BERT_DISTANCES, LLAMA_DISTANCES = (-1, 1, -2, 2), (-1, -2)  # of the first heads of each layer
LENGTH = 40

each_seed = pytest.mark.parametrize("seed", [1, 2, 3])


def bert(seed=1, **changes):
    set_seed(seed)
    return BertModel(BertConfig(**{**SHAPE, **changes}), add_pooling_layer=False).eval()


def llama(seed=1, **changes):
    set_seed(seed)
    config = {**SHAPE, "num_key_value_heads": 2, "tie_word_embeddings": True, **changes}
    return LlamaForCausalLM(LlamaConfig(**config)).eval()


MAKERS = {"bert": bert, "llama": llama}
each_type = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def structured(model):
    """A copy of a model with a structured initialization of its backbone."""
    copy = deepcopy(model)
    initialize(copy.base_model)
    return copy


def words(rows=4):
    """Random ids of words (B, T), each at most once in a row."""
    generator = torch.Generator().manual_seed(0)
    size = SHAPE["vocab_size"]
    return torch.stack([torch.randperm(size, generator=generator)[:LENGTH] for _ in range(rows)])


@torch.inference_mode()
def mean_attention(model, ids, reach=4):
    """Mean attention by layer and head, as a dictionary by distance."""
    weights = model.base_model(ids, output_attentions=True).attentions
    middle = torch.arange(reach, ids.shape[1] - reach)
    return [
        [
            {
                distance: float(heads[:, head, middle, middle + distance].mean())
                for distance in range(-reach, reach + 1)
            }
            for head in range(heads.shape[1])
        ]
        for heads in weights  # (B, heads, T, T)
    ]


def peak(weights):
    return max(weights, key=weights.get)


def changed(before, after):
    """Masks of the changed weights of a backbone, by name."""
    after = after.base_model.state_dict()
    pairs = {name: (value, after[name]) for name, value in before.base_model.state_dict().items()}
    return {name: old != new for name, (old, new) in pairs.items()}


# Attention to neighbours


@each_seed
def test_heads_of_bert_attend_to_neighbours(seed):
    model = structured(bert(seed))
    same = torch.full((1, LENGTH), 7)  # only positions matter
    for layer in mean_attention(model, same):
        assert [peak(weights) for weights in layer] == [*BERT_DISTANCES]
    for layer in mean_attention(model, words()):
        for weights, distance in zip(layer, BERT_DISTANCES, strict=True):
            # A word is most similar to itself, which adds to the attention at distance 0.
            to_others = {offset: weight for offset, weight in weights.items() if offset != 0}
            assert peak(to_others) == distance
            assert weights[distance] > 0.2
            assert weights[-distance] < 0.02


@each_seed
def test_heads_of_llama_attend_to_previous_tokens(seed):
    first, second, third = mean_attention(structured(llama(seed)), words())
    for layer in (first, second):
        assert [peak(weights) for weights in layer[:2]] == [*LLAMA_DISTANCES]
    for weights, distance in zip(first, LLAMA_DISTANCES, strict=False):
        assert weights[distance] > 0.6
    # The copied words reduce, but do not hide, the constant of the embeddings.
    usual = mean_attention(llama(seed), words())[2]
    for weights, plain, distance in zip(third, usual, LLAMA_DISTANCES, strict=False):
        assert weights[distance] > 1.5 * plain[distance]


def test_usual_initial_heads_attend_evenly():
    for make in (bert, llama):
        for layer in mean_attention(make(), words()):
            assert all(max(weights.values()) < 0.1 for weights in layer)


def test_other_heads_of_bert_are_unchanged():
    before = bert(num_attention_heads=8)
    masks = changed(before, structured(before))
    for layer in range(3):
        for side in ("query", "key"):
            rows = masks.pop(f"encoder.layer.{layer}.attention.self.{side}.weight").any(dim=1)
            assert rows.view(8, 16).any(dim=1).tolist() == [True] * 4 + [False] * 4
    assert masks.pop("embeddings.position_embeddings.weight").any()
    assert not any(values.any() for values in masks.values())


def test_other_heads_of_llama_are_unchanged():
    before = llama(num_attention_heads=8)  # 4 to a group
    masks = changed(before, structured(before))
    for layer in range(3):
        heads = masks[f"layers.{layer}.self_attn.q_proj.weight"].view(8, 16, 128)
        groups = masks[f"layers.{layer}.self_attn.k_proj.weight"].view(2, 16, 128)
        copies = layer == 1
        assert heads.any(dim=(1, 2)).tolist() == [True] * 2 + [False] * 2 + [copies] + [False] * 3
        assert groups.any(dim=(1, 2)).tolist() == [True, copies]
    mlp = [values for name, values in masks.items() if "mlp" in name or "norm" in name]
    assert len(mlp) == 3 * (3 + 2) + 1
    assert not any(values.any() for values in mlp)


# Copying


@torch.inference_mode()
def standard_score(model, ids, columns):
    """The logit of the next token minus the mean logit, in standard deviations."""
    logits = model(ids).logits[:, columns]
    next_tokens = ids[:, columns + 1, None]
    above = logits.gather(-1, next_tokens).squeeze(-1) - logits.mean(-1)
    return float((above / logits.std(-1)).mean())


@each_seed
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_repeated_passages_are_copied(seed, groups):
    usual = llama(seed, num_key_value_heads=groups)
    model = structured(usual)
    half = LENGTH // 2
    passage = words(rows=8)[:, :half]
    twice = torch.cat([passage, passage], dim=1)
    second, first = torch.arange(half, 2 * half - 1), torch.arange(half - 1)
    assert standard_score(model, twice, second) > 1
    assert abs(standard_score(model, twice, first)) < 0.5
    assert abs(standard_score(usual, twice, second)) < 0.5


@pytest.mark.parametrize("shape", [{"num_hidden_layers": 1}, {"num_attention_heads": 2}])
def test_models_that_are_too_small_do_not_copy(shape):
    """Two heads of half the width leave no entries for the word of the previous token."""
    before = llama(**shape)
    model = structured(before)
    masks = changed(before, model)
    assert not any(values.any() for name, values in masks.items() if "v_proj" in name)
    assert not any(values.any() for name, values in masks.items() if "o_proj" in name)
    heads = SHAPE["num_attention_heads"] if "num_hidden_layers" in shape else 1
    for weights, distance in zip(
        mean_attention(model, words())[0][:heads], LLAMA_DISTANCES, strict=False
    ):
        assert peak(weights) == distance


# Weights


@each_type
def test_weights_keep_their_names_shapes_and_types(make):
    before = make()
    model = structured(before)
    old, new = before.state_dict(), model.state_dict()
    assert list(old) == list(new)
    for name, value in new.items():
        assert (value.shape, value.dtype) == (old[name].shape, old[name].dtype)
        assert value.isfinite().all()
    assert all(p.requires_grad for p in model.parameters())
    if make is llama:
        assert model.lm_head.weight is model.base_model.embed_tokens.weight


@each_type
def test_the_seed_determines_the_bytes(make, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        structured(make(seed)).save_pretrained(tmp_path / name)
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


@each_type
def test_initialization_uses_no_random_numbers(make):
    model = make()
    state = torch.get_rng_state()
    initialize(model.base_model)
    assert torch.equal(torch.get_rng_state(), state)


def test_other_backbones_are_unchanged():
    before = GPT2Model(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16))
    assert not any(values.any() for values in changed(before, structured(before)).values())
