"""Full fine-tuning, LoRA, QLoRA and NEFTune of a backbone, and how tuned backbones are stored."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from wxb.core import paths, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json, sha256, write_json
from wxb.core.params.experiments import Tuning
from wxb.core.pretrained import ADAPTER

if TYPE_CHECKING:  # these imports take seconds
    from peft import PeftModel
    from transformers import PreTrainedModel

    from wxb.training.backbones.native import Native

BASE = "base_model.json"  # the folder of a backbone that is stored elsewhere, and its hashes
GENERATION = "generation_config.json"

Model: TypeAlias = "PreTrainedModel | PeftModel | Native"


class BackboneModel(nn.Module):
    """A model with an adapted backbone, whose embeddings get the noise of `tuning` in training."""

    def __init__(self, backbone: Model, *, tuning: Tuning | None = None) -> None:
        super().__init__()
        self.backbone, self.tuning = backbone, tuning or Tuning()

    def save_pretrained(self, folder: Path) -> None:
        """Write a full backbone, or only its adapter with the name and hashes of its backbone."""
        if not hasattr(self.backbone, "peft_config"):
            self.backbone.save_pretrained(str(folder))
            return
        adapter = cast("PeftModel", self.backbone)
        # By default, peft writes full tables of an extended vocabulary. All new rows are trained.
        adapter.save_pretrained(str(folder), save_embedding_layers=False)
        (folder / "README.md").unlink()  # peft's template of a model card
        config = read_json(folder / ADAPTER)
        config["target_modules"].sort()  # a set: peft writes it in any order
        write_json(folder / ADAPTER, config)
        model = adapter.get_base_model()
        if generation := getattr(model, "generation_config", None):  # of training, not of the base
            generation.save_pretrained(str(folder))
        save_reference(Path(config["base_model_name_or_path"]), folder)

    def backbone_inputs(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        """Arguments of the backbone: the mask, and the ids or, in training, noisy embeddings."""
        inputs, alpha = {"input_ids": input_ids}, self.tuning.neftune_alpha
        if self.training and alpha:
            embeddings = self.backbone.get_input_embeddings()(input_ids)
            padded = self.tuning.neftune_padded
            inputs = {"inputs_embeds": add_noise(embeddings, attention_mask, alpha, padded=padded)}
        return {**inputs, "attention_mask": attention_mask}


def adapt(
    backbone: Model, tuning: Tuning, *, task_type: str | None, new_tokens: list[int] | None = None
) -> Model:
    """Prepare a backbone in place to train all weights, LoRA matrices only, or none if `frozen`.

    Returns it, or for LoRA a new peft model of it, with peft's `task_type`, which also trains the
    embeddings of `new_tokens`, a list of ids. Seed torch before: LoRA's matrices are random. A
    backbone in 4 bits is frozen, and its other weights are converted to float32. Enables gradient
    checkpointing, if it is set. Raises WxbError if the backbone lacks modules that LoRA names.
    """
    if tuning.four_bit:
        from peft import prepare_model_for_kbit_training

        backbone = prepare_model_for_kbit_training(backbone, use_gradient_checkpointing=False)
    if tuning.gradient_checkpointing:
        # With re-entrant checkpoints, blocks behind frozen embeddings would get no gradient.
        cast("PreTrainedModel", backbone).activation_checkpointing_enable({"use_reentrant": False})
    if tuning.frozen:
        backbone.requires_grad_(False)
    if tuning.lora is None:
        return backbone
    from peft import LoraConfig, get_peft_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    lora = tuning.lora
    if fault := pretrained.target_fault(backbone, lora.target_modules):  # peft accepts a part
        raise WxbError(fault)
    new_rows: list[int] | dict[str, list[int]] | None = new_tokens or None  # dict: untied tables
    if new_tokens and not backbone.config.tie_word_embeddings:
        tables = backbone.get_input_embeddings(), backbone.get_output_embeddings()
        modules = [name for name, module in backbone.named_modules() if module in tables]
        new_rows = {name.split(".")[-1]: new_tokens for name in modules}
    adapted = get_peft_model(
        backbone,
        LoraConfig(
            r=lora.r,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=list(lora.target_modules),
            trainable_token_indices=new_rows,
            task_type=task_type,
        ),
    )
    # The autocast of `bf16` would undo this conversion to float32, unless dropout comes between.
    layers: list[Any] = [layer for layer in adapted.modules() if isinstance(layer, BaseTunerLayer)]
    for layer in layers:
        layer.cast_input_dtype_enabled = lora.dropout > 0
    return adapted


def save_reference(backbone: Path, folder: Path) -> None:
    """Write the name of a backbone's folder and the hashes of its weights, not the weights."""
    content = {"folder": backbone.name, "sha256": _weight_hashes(backbone)}
    write_json(folder / BASE, content)


def _weight_hashes(folder: Path) -> dict[str, str]:
    return {file.name: sha256(file) for file in sorted(folder.glob("*.safetensors"))}


def load(folder: Path, load_backbone: Callable[[Path], Model]) -> Model:
    """Load what `BackboneModel` saved: a backbone, or an adapter onto that of `base_folder`."""
    backbone = cast("PreTrainedModel", load_backbone(base_folder(folder)))  # never a Native
    return pretrained.adapter(backbone, folder) if (folder / ADAPTER).exists() else backbone


def base_folder(folder: Path) -> Path:
    """The folder itself, or that of the backbone that `save_reference` named in it.

    That backbone is inside `folder`, beside it, or beside the parent of a further seed's folder.
    Raises WxbError if it is not there, or has other weights than in training.
    """
    if not (folder / BASE).is_file():
        return folder
    reference = read_json(folder / BASE)
    name = reference["folder"]
    model = folder.parent if folder.name.startswith(paths.SEED) else folder
    backbone = folder / name if (folder / name).is_dir() else model.parent / name
    if not backbone.is_dir():
        raise WxbError(
            f"{folder}: its base model {name!r} is not in {backbone}; run"
            f" `dvc repro pretrain@{name}`, or copy that model there"
        )
    if reference["sha256"] != _weight_hashes(backbone):
        raise WxbError(
            f"{folder}: found other weights in its base model {backbone} than in training; train"
            " it again, or restore that model"
        )
    return backbone


def merge_adapter(adapter: "PeftModel", folder: Path) -> "PreTrainedModel":
    """Merge an adapter into the weights of its backbone, in float32.

    `adapter`, from `folder`, cannot be used afterwards. Raises WxbError for QLoRA on GPT-2.
    """
    from transformers import GenerationConfig

    backbone = adapter.unload()
    if getattr(backbone, "is_quantized", False):
        if backbone.config.model_type in ("gpt2", "openai-gpt"):  # transposed by bitsandbytes
            raise WxbError("merge: cannot merge QLoRA on GPT-2; share the adapter, or train LoRA")
        # The sum does not fit into 4 bits.
        backbone = backbone.dequantize()
    merged: PreTrainedModel = pretrained.adapter(backbone, folder).merge_and_unload()
    if (folder / GENERATION).is_file():
        merged.generation_config = GenerationConfig.from_dict(read_json(folder / GENERATION))
    return merged


def add_noise(
    embeddings: Tensor, attention_mask: Tensor, alpha: float, *, padded: bool = False
) -> Tensor:
    """NEFTune (Jain et al. 2023): add uniform noise of scale alpha / sqrt(L * d) to embeddings.

    `embeddings` are (B, T, d), `attention_mask` (B, T) is 1 for tokens. L is the number of tokens
    of each row; if `padded`, the padded length, as in the authors' code, so that the noise of a row
    depends on the batch. Padding gets no noise.
    """
    counted = torch.ones_like(attention_mask) if padded else attention_mask
    lengths = counted.sum(dim=1).clamp(min=1)  # (B,)
    # MKL computes `sqrt`, which rounds otherwise on Intel than on AMD; `rsqrt` is torch's own.
    scale = alpha * (lengths * embeddings.shape[-1]).rsqrt()
    noise = torch.empty_like(embeddings).uniform_(-1, 1)
    return embeddings + noise * scale[:, None, None] * attention_mask[:, :, None]


def logits_only_at(model: Model, mask: Tensor) -> RemovableHandle:
    """A context in which a language model computes logits (N, V) only where a mask (B, T) is set.

    The output layer is its widest, so this saves most of the work for positions without loss.
    """
    head = model.get_output_embeddings()
    return head.register_forward_pre_hook(lambda _, inputs: (inputs[0][mask],))


def parameter_count(model: nn.Module, *, trainable: bool = False) -> int:
    """Number of parameters; only trainable ones if `trainable`. Shared ones count once.

    Trainable rows of new tokens replace rows of a frozen table, and count only as trainable.
    """
    return sum(
        (getattr(p, "quant_state", None) or p).shape.numel()  # in 4 bits, a byte holds two
        for name, p in model.named_parameters()
        if (p.requires_grad if trainable else "trainable_tokens_delta" not in name)
    )
