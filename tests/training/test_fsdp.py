"""Settings of FSDP; its training is tested in test_processes.py."""

import pytest
from torch import nn
from transformers import BertConfig, BertForPreTraining, LlamaConfig, LlamaModel, TrainingArguments

from wxb.training import fsdp

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        # Its embeddings must not be split either, but are tied to the output layer.
        (BertForPreTraining(BertConfig(vocab_size=20, intermediate_size=16, **SIZE)), "BertLayer"),
        (
            nn.Sequential(LlamaModel(LlamaConfig(vocab_size=20, intermediate_size=16, **SIZE))),
            "LlamaDecoderLayer",
        ),
        (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), None),
    ],
)
def test_layers_are_wrapped_one_at_a_time(model, layers, tmp_path):
    arguments = TrainingArguments(
        str(tmp_path), fsdp=True, fsdp_config=fsdp.config(model), use_cpu=True
    ).fsdp_plugin_args
    assert arguments.get("transformer_cls_names_to_wrap") == layers
    assert (arguments["auto_wrap_policy"] == "NO_WRAP") == (layers is None)
    assert (arguments["fsdp_version"], arguments["state_dict_type"]) == (2, "FULL_STATE_DICT")
