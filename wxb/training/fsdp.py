"""Fully sharded data parallel (FSDP): of several processes each keeps a part of the model.

A layer's weights are put together while it computes, and dropped again; gradients and what the
optimiser keeps are never whole (Zhao et al. 2023). transformers' Trainer and accelerate do all that
by torch's `fully_shard`; here is what they are told, and how a whole model comes back.
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
    """The `fsdp_config` of TrainingArguments: a model's layers are put together one at a time.

    Layers are what transformers says is not to be split; a model without is put together whole.
    """
    parts = [*model.modules()]
    named = {name for part in parts for name in getattr(part, "_no_split_modules", None) or ()}
    count = Counter(type(part).__name__ for part in parts)
    # What is there once, such as embeddings, may share weights with others outside of it.
    layers = sorted(name for name in named if count[name] > 1)
    return {
        "version": 2,
        "state_dict_type": "FULL_STATE_DICT",  # checkpoints are those of one process
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP" if layers else "NO_WRAP",
        **({"transformer_layer_cls_to_wrap": layers} if layers else {}),
    }


def enable_on_cpu(trainer: Trainer) -> None:
    """Let accelerate do on CPUs what it does on GPUs; of itself it would only copy the model.

    accelerate 1.15 asks for an accelerator before it heeds its plugin (accelerate/state.py), though
    torch shards by gloo just as well.
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
def gather(sharded: nn.Module, whole: nn.Module) -> None:
    """Put what a sharded model has learnt into one of the same form, in every process."""
    values = {**dict(sharded.named_parameters()), **dict(sharded.named_buffers())}
    learnt = [(name, own) for name, own in whole.named_parameters() if own.requires_grad]
    for name, own in [*learnt, *whole.named_buffers()]:
        value = values[name]
        own.copy_(value.full_tensor() if isinstance(value, DTensor) else value)
