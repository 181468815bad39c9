"""Fully sharded data parallel (FSDP): each process holds a shard of the model.

The weights of a layer are gathered only while it computes; gradients and optimizer states stay
sharded (Zhao et al. 2023). transformers' Trainer and accelerate do this by torch's `fully_shard`.
This module configures them, and gathers the trained model.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from torch import nn
from torch.distributed.tensor import DTensor
from transformers import Trainer


def config(model: nn.Module) -> dict[str, Any]:
    """The `fsdp_config` of TrainingArguments: layers are gathered one at a time.

    Layers are those of transformers' `_no_split_modules`; a model without them is gathered at once.
    """
    modules = [*model.modules()]
    names = {name for part in modules for name in getattr(part, "_no_split_modules", None) or ()}
    count = Counter(type(module).__name__ for module in modules)
    # A module that occurs once, such as embeddings, may share weights with others.
    layers = sorted(name for name in names if count[name] > 1)
    return {
        "version": 2,
        "state_dict_type": "FULL_STATE_DICT",  # checkpoints are those of one process
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP" if layers else "NO_WRAP",
        **({"transformer_layer_cls_to_wrap": layers} if layers else {}),
    }


def enable_on_cpu(trainer: Trainer) -> None:
    """Enable FSDP of a trainer on CPUs, where accelerate would replicate the model instead.

    accelerate 1.15 ignores its FSDP plugin without an accelerator (accelerate/state.py), although
    torch can shard with gloo.
    """
    state = trainer.accelerator.state
    if trainer.is_fsdp_enabled:
        return
    plugin = FullyShardedDataParallelPlugin(**trainer.args.fsdp_plugin_args)
    if state.mixed_precision != "no":
        plugin.set_mixed_precision(state.mixed_precision)
    state.fsdp_plugin = plugin
    state.distributed_type = PartialState().distributed_type = DistributedType.FSDP
    trainer.is_fsdp_enabled = True


@torch.no_grad()
def gather(sharded: nn.Module, full: nn.Module) -> None:
    """Copy the trained weights and buffers of a sharded model into a full one, in every process."""
    values = {**dict(sharded.named_parameters()), **dict(sharded.named_buffers())}
    trainable = [(name, weight) for name, weight in full.named_parameters() if weight.requires_grad]
    for name, tensor in [*trainable, *full.named_buffers()]:
        value = values[name]
        tensor.copy_(value.full_tensor() if isinstance(value, DTensor) else value)
