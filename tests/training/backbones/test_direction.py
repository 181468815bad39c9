"""The direction of attention of a LLaMA: causal, or bidirectional without the causal mask."""

import pytest
import torch
from transformers import AutoModelForCausalLM, GPTNeoConfig, StableLmConfig, set_seed

from tests import tiny
from wxb.core.errors import WxbError
from wxb.core.params.experiments import LowRank, Tuning
from wxb.tasks.ner.models.tagger import Tagger
from wxb.tasks.ner.params import Head, TaggingModel
from wxb.training.backbones import tuning
from wxb.training.backbones.weights import load_backbone

HEAD = TaggingModel(head=Head(projection=12, dropout=0.0))
LORA = LowRank(r=4, alpha=8, dropout=0.0, target_modules=["q_proj", "v_proj"])
IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
# With padding there is a mask; without, each layer decides.
BATCHES = {
    "padded": (IDS, MASK),
    "padded and alone": (IDS[:1], MASK[:1]),
    "full": (IDS[1:].repeat(2, 1), MASK[1:].repeat(2, 1)),
    "full and alone": (IDS[1:], MASK[1:]),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tiny.llama(folder / "llama", vocab_size=60)
    return folder


def tagger(models, bidirectional, lora=None, checkpointing=False):
    set_seed(1)
    backbone = load_backbone(models / "llama", bidirectional=bidirectional)
    settings = Tuning(lora=lora, gradient_checkpointing=checkpointing)
    adapted = tuning.adapt(backbone, settings, task_type="FEATURE_EXTRACTION")
    return Tagger(adapted, 5, HEAD)


@torch.no_grad()
def depends_on_last(model, batch):
    """For every token but the last of its row: whether its logits change with the last one."""
    ids, mask = BATCHES[batch]
    last = mask.sum(dim=1) - 1
    changed_ids = ids.clone()
    changed_ids[torch.arange(len(ids)), last] = 40
    before, after = (model(tokens, mask)["tags"] for tokens in (ids, changed_ids))
    changed = (before != after).any(dim=-1)
    assert changed[torch.arange(len(ids)), last].all()
    return torch.cat([row[:end] for row, end in zip(changed, last, strict=True)])


@pytest.mark.parametrize("bidirectional", [False, True], ids=["causal", "both"])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
@pytest.mark.parametrize("mode", ["evaluation", "training", "checkpointing"])
def test_logits_depend_on_later_tokens_only_if_bidirectional(
    models, bidirectional, batch, lora, mode
):
    model = tagger(models, bidirectional, lora, checkpointing=mode == "checkpointing")
    depends = depends_on_last(model.train(mode != "evaluation"), batch)
    assert depends.all() if bidirectional else not depends.any()


def decoder(folder, config):
    set_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return load_backbone(folder, bidirectional=True)


@torch.no_grad()
def test_no_layer_stays_causal_by_itself(tmp_path):
    """A layer with a flag of its own would read later tokens in padded batches only."""
    shape = {k: v for k, v in tiny.SHAPE.items() if k != "initializer_range"}
    model = decoder(tmp_path, StableLmConfig(vocab_size=60, num_key_value_heads=4, **shape))
    alone = model(IDS[:1, :4]).last_hidden_state
    padded = model(IDS[:1], attention_mask=MASK[:1]).last_hidden_state[:, :4]
    assert torch.allclose(alone, padded, atol=1e-5)


def test_a_mask_that_cannot_be_removed_is_refused(tmp_path):
    config = GPTNeoConfig(
        vocab_size=60, hidden_size=16, num_layers=1, num_heads=2, attention_types=[[["global"], 1]]
    )
    with pytest.raises(WxbError, match=r"bidirectional: found 'gpt_neo', whose causal mask"):
        decoder(tmp_path, config)
