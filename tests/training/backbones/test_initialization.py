"""Structured initialization: heads look where they are told to, and one goes on with a passage."""

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
    "attn_implementation": "eager",  # which tells its weights
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
    """A copy of a model with the weights of its backbone structured."""
    changed = deepcopy(model)
    initialize(changed.base_model)
    return changed


def words(rows=4):
    """Ids of words in no order (B, T), none of which comes twice in a row."""
    generator = torch.Generator().manual_seed(0)
    size = SHAPE["vocab_size"]
    return torch.stack([torch.randperm(size, generator=generator)[:LENGTH] for _ in range(rows)])


@torch.inference_mode()
def looks(model, ids, reach=4):
    """Mean attention by layer, head and distance, a dictionary of it for each head."""
    found = model.base_model(ids, output_attentions=True).attentions
    middle = torch.arange(reach, ids.shape[1] - reach)
    return [
        [
            {
                distance: float(heads[:, head, middle, middle + distance].mean())
                for distance in range(-reach, reach + 1)
            }
            for head in range(heads.shape[1])
        ]
        for heads in found  # (B, heads, T, T)
    ]


def peak(weights):
    return max(weights, key=weights.get)


def changed(before, after):
    """Which weights of a backbone are others than before, as boolean tensors by name."""
    after = after.base_model.state_dict()
    pairs = {name: (value, after[name]) for name, value in before.base_model.state_dict().items()}
    return {name: one != other for name, (one, other) in pairs.items()}


# Looking


@each_seed
def test_heads_of_bert_look_at_the_neighbours(seed):
    """Were all words the same, by position alone: exactly there."""
    model = structured(bert(seed))
    same = torch.full((1, LENGTH), 7)
    for layer in looks(model, same):
        assert [peak(weights) for weights in layer] == [*BERT_DISTANCES]
    for layer in looks(model, words()):
        for weights, distance in zip(layer, BERT_DISTANCES, strict=True):
            # A word is always most like itself, which adds to what its own position gets.
            others = {at: weight for at, weight in weights.items() if at != 0}
            assert peak(others) == distance
            assert weights[distance] > 0.2
            assert weights[-distance] < 0.02


@each_seed
def test_heads_of_llama_look_back(seed):
    first, second, third = looks(structured(llama(seed)), words())
    for layer in (first, second):
        assert [peak(weights) for weights in layer[:2]] == [*LLAMA_DISTANCES]
    for weights, distance in zip(first, LLAMA_DISTANCES, strict=False):
        assert weights[distance] > 0.6
    # What was carried along covers the constant of the embeddings, though not all of it.
    usual = looks(llama(seed), words())[2]
    for weights, plain, distance in zip(third, usual, LLAMA_DISTANCES, strict=False):
        assert weights[distance] > 1.5 * plain[distance]


def test_without_structure_heads_look_nowhere_in_particular():
    for make in (bert, llama):
        for layer in looks(make(), words()):
            assert all(max(weights.values()) < 0.1 for weights in layer)


def test_further_heads_of_bert_start_as_usual():
    before = bert(num_attention_heads=8)
    told = changed(before, structured(before))
    for layer in range(3):
        for side in ("query", "key"):
            rows = told.pop(f"encoder.layer.{layer}.attention.self.{side}.weight").any(dim=1)
            assert rows.view(8, 16).any(dim=1).tolist() == [True] * 4 + [False] * 4
    assert told.pop("embeddings.position_embeddings.weight").any()
    assert not any(values.any() for values in told.values())


def test_further_heads_of_llama_start_as_usual():
    before = llama(num_attention_heads=8)  # 4 to a group
    told = changed(before, structured(before))
    for layer in range(3):
        heads = told[f"layers.{layer}.self_attn.q_proj.weight"].view(8, 16, 128)
        groups = told[f"layers.{layer}.self_attn.k_proj.weight"].view(2, 16, 128)
        copies = layer == 1
        assert heads.any(dim=(1, 2)).tolist() == [True] * 2 + [False] * 2 + [copies] + [False] * 3
        assert groups.any(dim=(1, 2)).tolist() == [True, copies]
    mlp = [values for name, values in told.items() if "mlp" in name or "norm" in name]
    assert len(mlp) == 3 * (3 + 2) + 1
    assert not any(values.any() for values in mlp)


# Copying


@torch.inference_mode()
def standing(model, ids, places):
    """How far the logit of the next token is above the mean, in standard deviations."""
    logits = model(ids).logits[:, places]
    following = ids[:, places + 1, None]
    above = logits.gather(-1, following).squeeze(-1) - logits.mean(-1)
    return float((above / logits.std(-1)).mean())


@each_seed
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_what_followed_before_is_likely_to_follow_again(seed, groups):
    usual = llama(seed, num_key_value_heads=groups)
    model = structured(usual)
    half = LENGTH // 2
    passage = words(rows=8)[:, :half]
    twice = torch.cat([passage, passage], dim=1)
    again, before = torch.arange(half, 2 * half - 1), torch.arange(half - 1)
    assert standing(model, twice, again) > 1
    assert abs(standing(model, twice, before)) < 0.5
    assert abs(standing(usual, twice, again)) < 0.5


@pytest.mark.parametrize("shape", [{"num_hidden_layers": 1}, {"num_attention_heads": 2}])
def test_where_there_is_no_room_nothing_is_copied(shape):
    """Two heads of half the width leave no place for the word of the token before."""
    before = llama(**shape)
    model = structured(before)
    told = changed(before, model)
    assert not any(values.any() for name, values in told.items() if "v_proj" in name)
    assert not any(values.any() for name, values in told.items() if "o_proj" in name)
    heads = SHAPE["num_attention_heads"] if "num_hidden_layers" in shape else 1
    for weights, distance in zip(looks(model, words())[0][:heads], LLAMA_DISTANCES, strict=False):
        assert peak(weights) == distance


# Weights


@each_type
def test_weights_keep_their_names_shapes_and_kinds(make):
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
def test_the_same_seed_gives_the_same_bytes(make, tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        structured(make(seed)).save_pretrained(tmp_path / name)
    one, again, other = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "again", "other")
    )
    assert one == again != other


@each_type
def test_nothing_is_drawn_at_random(make):
    model = make()
    state = torch.get_rng_state()
    initialize(model.base_model)
    assert torch.equal(torch.get_rng_state(), state)


def test_other_bodies_are_left_alone():
    before = GPT2Model(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16))
    assert not any(values.any() for values in changed(before, structured(before)).values())
