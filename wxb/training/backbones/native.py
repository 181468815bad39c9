"""Backbones with a native architecture instead of that of transformers."""

from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from wxb.core import pretrained
from wxb.core.files import read_json, write_json
from wxb.core.pretrained import ADAPTER, CONFIG, WEIGHTS
from wxb.models import bert, gpt2, llama, whisper
from wxb.training.backbones import tuning

# The prefix of a backbone's weights in a model with heads, by model type.
PREFIXES = {"bert": "bert.", "llama": "model."}


class Native(nn.Module):
    """A native backbone with the interface and weight names of one of transformers."""

    def __init__(self, config: Any, *, generative: bool = False) -> None:
        """Build a backbone from a configuration of transformers, or one with the same attributes.

        `generative` adds the head of a language model. The state of torch's random generator does
        not change. Raises ValueError for settings that the architecture does not support.
        """
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            self.backbone = _build(config, generative=generative)

    @classmethod
    def from_transformers(cls, backbone: tuning.Model, *, generative: bool = False) -> Self:
        """Copy the weights of a backbone of transformers; `generative` as for the class.

        Sets `architectures` in its configuration, which both share; ValueError if unsupported.
        """
        native = cls(backbone.config, generative=generative)
        native.backbone.load_state_dict(backbone.state_dict(), strict=True)
        native.config.architectures = [type(backbone).__name__]
        return native

    @classmethod
    def from_folder(cls, folder: Path, *, generative: bool = False) -> Self | None:
        """Load what a `BackboneModel` or transformers wrote, to predict.

        `generative` keeps the head of a language model. Returns None if the architecture is not
        supported, if there is no file WEIGHTS, or if an `lm_head` differs from shared embeddings.
        Raises WxbError for custom code, and for missing, unexpected or non-finite weights.
        """
        file = pretrained.require_no_code(folder) / WEIGHTS
        if not file.is_file():
            return None
        config = SimpleNamespace(**read_json(folder / CONFIG))
        try:
            native = cls(config, generative=generative)
        except (AttributeError, LookupError, ValueError):  # left to transformers
            return None
        prefix = "" if generative else PREFIXES[config.model_type]
        own = {name for name, _ in native.backbone.named_parameters()}
        saved = pretrained.read_weights(file)
        pretrained.load_weights(native.backbone, _backbone_weights(saved, prefix, own), file)
        head = saved.get("lm_head.weight") if generative else None
        if head is not None and not torch.equal(head, native.get_output_embeddings().weight):
            return None  # a head of its own, though the configuration shares the embeddings
        return native.eval()

    def get_input_embeddings(self) -> nn.Module:
        """The first embeddings, of tokens except in a Whisper; named as in transformers."""
        return next(m for m in self.backbone.modules() if isinstance(m, nn.Embedding))

    def get_output_embeddings(self) -> nn.Linear:
        """The `lm_head`, or AttributeError, as for a Whisper; named as in transformers."""
        return cast(nn.Linear, self.backbone.get_submodule("lm_head"))

    def get_encoder(self) -> nn.Module:
        """The encoder of a Whisper; this method is named as in transformers."""
        return self.backbone.get_submodule("model.encoder")

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Output of the backbone; arguments and output are named as in transformers."""
        return self.backbone(*inputs, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder that `AutoModel` loads."""
        if isinstance(self.config, SimpleNamespace):  # of `from_folder`
            write_json(Path(folder, CONFIG), vars(self.config))
        else:
            self.config.save_pretrained(str(folder))
        # Shared weights are there once.
        weights = {n: w.data.contiguous() for n, w in self.backbone.named_parameters()}
        save_file(weights, Path(folder, WEIGHTS), metadata={"format": "pt"})


def load_trained(
    folder: Path, load_backbone: Callable[[Path], tuning.Model], *, generative: bool = False
) -> tuning.Model:
    """Load what a `BackboneModel` saved, to predict: natively, else as `tuning.load` does.

    `load_backbone` loads the backbones of adapters, which are never native, and unsupported ones.
    """
    is_adapter = (folder / ADAPTER).exists()
    base = folder if is_adapter else tuning.base_folder(folder)
    return Native.from_folder(base, generative=generative) or tuning.load(folder, load_backbone)


def _backbone_weights(
    weights: dict[str, Tensor], prefix: str, keep: Collection[str]
) -> dict[str, Tensor]:
    """The weights whose names begin with a prefix, without it; all if none does.

    Drops a pooler and a shared head unless in `keep`; renames BERT's `LayerNorm.gamma` and `beta`.
    """
    own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)} or weights
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        own = {n.replace(old, new): w for n, w in own.items()}
    heads = ("lm_head.", "pooler.")
    return {n: w for n, w in own.items() if n in keep or not n.startswith(heads)}


def _build(config: Any, *, generative: bool) -> nn.Module:
    """An untrained BERT or LLaMA or, if `generative`, LLaMA, GPT-2 or Whisper; else ValueError."""
    match config.model_type:
        case "bert" if not generative:
            return bert.BertModel(bert.Config.from_hf(config), add_pooling_layer=False)
        case "llama":
            decoder = llama.LlamaForCausalLM if generative else llama.LlamaModel
            return decoder(llama.Config.from_hf(config))
        case "gpt2" if generative:
            return gpt2.GPT2LMHeadModel(gpt2.Config.from_hf(config))
        case "whisper" if generative:
            return whisper.WhisperForConditionalGeneration(whisper.Config.from_hf(config))
    raise ValueError(f"model_type {config.model_type!r} has no native architecture here")
