"""Backbones with a native architecture instead of that of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from wxb.core import pretrained
from wxb.core.files import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel  # this import takes seconds

CONFIG, WEIGHTS = "config.json", "model.safetensors"

# The module of token embeddings, by model type.
EMBEDDINGS = {"bert": "embeddings.word_embeddings", "llama": "embed_tokens"}


class Unfilled(TorchFunctionMode):
    """A context in which modules draw no random weights, as others replace them.

    The state of torch's random generator does not change. With `shapes_only`, weights take no
    memory. `torch.device("meta")` would do the same, but imports torch's compiler, which takes as
    long as torch itself.
    """

    def __init__(self, *, shapes_only: bool = False) -> None:
        super().__init__()
        self.options = {"device": "meta"} if shapes_only else {}

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Return the tensor of a function of `torch.nn.init` as it is; call any other function."""
        options = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return options["tensor"]
        if func is torch.empty:  # the weights of modules
            options |= self.options
        return func(*args, **options)


class Native(nn.Module):
    """A native backbone with the interface and weight names of one of transformers."""

    def __init__(self, config: Any) -> None:
        """Build a backbone from a configuration of transformers, or one with the same attributes.

        Raises ValueError for settings that the architecture does not support.
        """
        super().__init__()
        self.config = config
        self.backbone = _build(config)

    @classmethod
    def from_transformers(cls, backbone: PreTrainedModel) -> Native:
        """Copy a backbone of transformers. The state of torch's random generator does not change.

        Raises ValueError for settings that the architecture does not support.
        """
        with Unfilled():
            native = cls(backbone.config)
        native.backbone.load_state_dict(backbone.state_dict(), strict=True)
        native.config.architectures = [type(backbone).__name__]
        return native

    @classmethod
    def from_folder(cls, folder: Path) -> Native | None:
        """Load a backbone that `save_pretrained` wrote, ours or that of transformers, to predict.

        None for an unsupported architecture, or a folder without config.json and weights. Raises
        WxbError if the folder requests custom code.
        """
        pretrained.require_no_code(folder)
        if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS)):
            return None
        config = SimpleNamespace(**read_json(folder / CONFIG))
        try:
            weights = _without_head(load_file(folder / WEIGHTS))
            with Unfilled(shapes_only=True):  # weights of another shape must not take memory
                expected = cls(config).backbone.state_dict()
            if {n: w.shape for n, w in expected.items()} != {
                n: w.shape for n, w in weights.items()
            }:
                return None
            with Unfilled():
                native = cls(config)
            native.backbone.load_state_dict(weights, strict=True)
        except (ValueError, RuntimeError):  # left to transformers
            return None
        return native.eval()

    def get_input_embeddings(self) -> nn.Module:
        """The module of token embeddings; this method is named as in transformers."""
        table: nn.Module = self.backbone.get_submodule(EMBEDDINGS[self.config.model_type])
        return table

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T)
        attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding
        inputs_embeds: Tensor | None = None,  # (B, T, C), instead of `input_ids`
    ) -> Any:
        """Output of the backbone; its `last_hidden_state` is (B, T, C)."""
        return self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds
        )

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder that `AutoModel` loads."""
        self.config.save_pretrained(str(folder))
        weights = {name: weight.contiguous() for name, weight in self.backbone.state_dict().items()}
        save_file(weights, Path(folder, WEIGHTS), metadata={"format": "pt"})


def _without_head(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the backbone of a BERT with a head; all weights of any other model."""
    own = {name.removeprefix("bert."): w for name, w in weights.items() if name[:5] == "bert."}
    return {name: w for name, w in own.items() if not name.startswith("pooler.")} or weights


def _build(config: Any) -> Any:
    # Separate imports: an edit of one architecture must not make models of the other stale.
    match config.model_type:
        case "bert":
            from wxb.models import bert

            return bert.BertModel(bert.Config.from_hf(config), add_pooling_layer=False)
        case "llama":
            from wxb.models import llama

            return llama.LlamaModel(llama.Config.from_hf(config))
    raise ValueError(f"model_type: found {config.model_type!r}; expected bert or llama")
