"""The profile full-pairs, whose models are on the hub, with random twins of its architectures."""

from pathlib import Path

import pytest
import torch
from transformers import (
    ModernBertConfig,
    ModernBertDecoderConfig,
    ModernBertDecoderForCausalLM,
    ModernBertModel,
    set_seed,
)

from wxb.core.params import read_yaml
from wxb.training.backbones.weights import load_backbone

PROFILE = read_yaml(Path(__file__).parents[3] / "params/full-pairs.yaml")
CLASSES = {
    "encoder": (ModernBertConfig, ModernBertModel),
    "decoder": (ModernBertDecoderConfig, ModernBertDecoderForCausalLM),
}


@pytest.mark.parametrize("name", PROFILE["experiments"])
def test_taggers_of_the_pairs_see_what_their_settings_say(name, tmp_path):
    experiment = PROFILE["experiments"][name]
    checkpoint = PROFILE["backbones"][experiment["backbone"]]["checkpoint"]
    set_seed(0)
    config, cls = CLASSES[checkpoint.split("-")[2]]
    # Of four layers, one has global attention.
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4}
    tokens = {f"{name}_token_id": i for i, name in enumerate(("pad", "bos", "eos", "cls", "sep"))}
    heads = {"num_attention_heads": 2, "local_attention": 8, "max_position_embeddings": 64}
    cls(config(vocab_size=99, **shape, **heads, **tokens)).save_pretrained(tmp_path)
    bidirectional = experiment["model"].get("bidirectional", False)
    sees_later = bidirectional or "encoder" in name
    ids = torch.randint(5, 99, (2, 20))
    mask = torch.ones_like(ids)
    mask[1, 17:] = 0
    model = load_backbone(tmp_path, bidirectional=bidirectional).eval()
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state
    for position in (1, 9, 16):
        changed = ids.clone()
        changed[:, position] = 5 + (ids[:, position] - 4) % 94
        others = model(input_ids=changed, attention_mask=mask).last_hidden_state
        differs = ((states - others).abs().amax(dim=-1) > 0)[:, :17]
        assert differs[:, position:].any()
        assert bool(differs[:, :position].any()) is sees_later
    padded = ids.clone()
    padded[1, 17:] = 7
    others = model(input_ids=padded, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(others[1, :17], states[1, :17])
