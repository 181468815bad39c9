"""What of a backbone learns: all of it, or LoRA's matrices beside it; and noise on its input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from wxb.core import paths, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.core.params.experiments import Tuning
from wxb.core.pretrained import ADAPTER

if TYPE_CHECKING:
    # Their imports take seconds, which few uses need.
    from peft import PeftModel
    from transformers import PreTrainedModel

Model: TypeAlias = "PreTrainedModel | PeftModel"


def adapt(
    backbone: PreTrainedModel,
    tuning: Tuning,
    *,
    task_type: str | None,
    new_tokens: list[int] | None = None,
) -> Model:
    """Make a backbone ready to learn: all of it, or low-rank matrices beside its frozen weights.

    `task_type` is peft's name of what the backbone does, None where it has none. The embeddings of
    `new_tokens` (ids) learn even where the rest of the table is frozen. Seed torch before: LoRA's
    matrices are random.
    """
    # Without re-entrance the frozen embeddings need no gradient for the blocks to get theirs.
    how = {"use_reentrant": False}
    if tuning.four_bit:
        from peft import prepare_model_for_kbit_training

        backbone = prepare_model_for_kbit_training(
            backbone, tuning.gradient_checkpointing, gradient_checkpointing_kwargs=how
        )
    elif tuning.gradient_checkpointing:
        backbone.gradient_checkpointing_enable(gradient_checkpointing_kwargs=how)
    if tuning.frozen:
        backbone.requires_grad_(False)
    if tuning.lora is None:
        return backbone
    from peft import LoraConfig, get_peft_model

    lora = tuning.lora
    return get_peft_model(
        backbone,
        LoraConfig(
            r=lora.r,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=list(lora.target_modules),
            trainable_token_indices=_rows(backbone, new_tokens) if new_tokens else None,
            task_type=task_type,
        ),
    )


def _rows(backbone: PreTrainedModel, tokens: list[int]) -> list[int] | dict[str, list[int]]:
    """Tokens by the tables with their rows: peft follows a shared table, not an output's own."""
    if backbone.config.tie_word_embeddings:
        return tokens
    tables = backbone.get_input_embeddings(), backbone.get_output_embeddings()
    return {name.split(".")[-1]: tokens for name, m in backbone.named_modules() if m in tables}


def save(backbone: Model, folder: Path) -> None:
    """Write a whole backbone, or what learns beside it with the name of what it belongs to."""
    if not hasattr(backbone, "peft_config"):
        backbone.save_pretrained(str(folder))
        return
    adapter: Any = backbone
    # Left to itself, peft writes the tables of a grown vocabulary whole.
    adapter.save_pretrained(str(folder), save_embedding_layers=not _learns_new_rows(adapter))
    (folder / "README.md").unlink()  # peft's empty form of a model card
    config = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))
    config["target_modules"].sort()  # a set: peft writes it in any order
    write_json(folder / ADAPTER, config)


def _learns_new_rows(backbone: PeftModel) -> bool:
    """Whether all rows that the base lacks in its own folder are among those that learn."""
    base = pretrained.config(str(backbone.get_base_model().name_or_path))
    lacking = set(range(base.vocab_size, backbone.config.vocab_size))
    adapter: Any = backbone.active_peft_config
    learnt = adapter.trainable_token_indices or []
    tables = learnt.values() if isinstance(learnt, dict) else [learnt]
    return all(lacking <= {*rows} for rows in tables)


def load(folder: Path, load_backbone: Callable[[Path], PreTrainedModel]) -> Model:
    """Load what `save` wrote; matrices go onto the backbone they name, which lies beside `folder`.

    Those of another seed, which lie in the folder of the first, go onto the backbone beside that.
    Raises WxbError where there is no such backbone, and as wxb.core.pretrained does.
    """
    if not (folder / ADAPTER).exists():
        return load_backbone(folder)
    config = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))
    name = Path(str(config["base_model_name_or_path"])).name
    model = folder.parent if folder.name.startswith(paths.SEED) else folder
    backbone = model.parent / name
    if not backbone.is_dir():
        raise WxbError(
            f"{folder}: belongs to a model {name!r}, expected in {backbone}; run"
            f" `dvc repro pretrain@{name}`, or copy that model there"
        )
    return pretrained.adapter(load_backbone(backbone), folder)


def merged(adapter: PeftModel, folder: Path) -> PreTrainedModel:
    """The backbone with what the adapter of a folder adds to its weights, in float32.

    `adapter` is what `load` gave of the folder, and is used up.
    """
    backbone: PreTrainedModel = adapter.unload()
    if getattr(backbone, "is_quantized", False):
        # Weights in 4 bits could not take the sum.
        backbone = backbone.dequantize()
    whole: PreTrainedModel = pretrained.adapter(backbone, folder).merge_and_unload()
    return whole


def noisy(
    embeddings: Tensor, attention_mask: Tensor, alpha: float, *, padded: bool = False
) -> Tensor:
    """NEFTune (Jain et al. 2023): add uniform noise of scale alpha / sqrt(L * d) to embeddings.

    `embeddings` are (B, T, d), `attention_mask` (B, T) is 1 where there is a token. L is the number
    of tokens of each row: the authors' code takes the `padded` length, so that what a row meets
    depends on its neighbours in the batch. Padding gets no noise.
    """
    counted = torch.ones_like(attention_mask) if padded else attention_mask
    lengths = counted.sum(dim=1).clamp(min=1)  # (B,)
    scale = alpha / (lengths * embeddings.shape[-1]).sqrt()
    noise = torch.empty_like(embeddings).uniform_(-1, 1)
    return embeddings + noise * scale[:, None, None] * attention_mask[:, :, None]
