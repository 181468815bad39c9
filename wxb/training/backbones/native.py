"""Backbones with a native architecture instead of that of transformers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from wxb.core import pretrained
from wxb.core.files import read_json, write_json
from wxb.core.pretrained import ADAPTER_WEIGHTS
from wxb.training.backbones import tuning
from wxb.training.backbones.merged import merge

if TYPE_CHECKING:
    from transformers import PreTrainedModel  # this import takes seconds

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# The prefix of a backbone's weights in a model with heads, by model type.
PREFIXES = {"bert": "bert.", "llama": "model."}


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

    def __init__(self, config: Any, *, generative: bool = False) -> None:
        """Build a backbone from a configuration of transformers, or one with the same attributes.

        `generative` adds the head of a language model. Raises ValueError for settings that the
        architecture does not support.
        """
        super().__init__()
        self.config = config
        self.backbone = _build(config, generative=generative)

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
    def from_folder(
        cls,
        folder: Path,
        *,
        generative: bool = False,
        bidirectional: bool = False,
        tokens: int = 0,
    ) -> Native | None:
        """Load what `tuning.save` or transformers wrote, to predict; adapters are merged.

        `generative` keeps the head of a language model, and an adapter on it has `tokens` tokens;
        `bidirectional` removes the causal mask. None for an unsupported architecture or adapter,
        or without config.json and weights. Raises WxbError if a folder requests custom code, and as
        `tuning.base_folder` does.
        """
        base = tuning.base_folder(folder)
        pretrained.require_no_code(base)
        if not all((base / name).is_file() for name in (CONFIG, WEIGHTS)):
            return None
        config = SimpleNamespace(**{**read_json(base / CONFIG), "dtype": "float32"})
        if bidirectional:
            config.is_causal = False
        try:
            if tuning.is_adapter(folder):
                config.vocab_size = max(config.vocab_size, tokens)
            if config.model_type == "gpt2":
                config.max_position_embeddings = config.n_positions  # as transformers names it
            native = cls._from_base(config, base, folder, tokens, generative=generative)
        except (AttributeError, LookupError, RuntimeError, ValueError):  # left to transformers
            return None
        config.architectures = [type(native.backbone).__name__]
        return native.eval()

    @classmethod
    def _from_base(
        cls, config: Any, base: Path, folder: Path, tokens: int, *, generative: bool
    ) -> Native:
        """Load the weights of a base folder, and merge the adapter in `folder` if it has one.

        Raises ValueError for weights of another shape.
        """
        with Unfilled(shapes_only=True):  # weights of another shape must not take memory
            expected = cls(config, generative=generative).weights()
        prefix = "" if generative else PREFIXES[config.model_type]
        weights = _without_heads(pretrained.read_weights(base / WEIGHTS), prefix, expected)
        adapter: dict[str, Tensor] = {}
        if tuning.is_adapter(folder):
            adapter = pretrained.read_weights(folder / ADAPTER_WEIGHTS)
            weights = merge(weights, adapter, pretrained.adapter_settings(folder), tokens)
        if _shapes(expected) != _shapes(weights):
            raise ValueError(f"{base / WEIGHTS}: expected the weights of its {CONFIG}")
        with Unfilled():
            native = cls(config, generative=generative)
        native.backbone.load_state_dict(weights, strict=False)  # shared weights are there once
        if adapter:
            native.requires_grad_(False)
            # It is merged into the weights. As parameters, it counts in the size of the model.
            native.adapter = nn.ParameterDict({n.replace(".", "_"): t for n, t in adapter.items()})
        return native

    def get_input_embeddings(self) -> nn.Module:
        """The module of token embeddings; this method is named as in transformers."""
        return next(m for m in self.backbone.modules() if isinstance(m, nn.Embedding))

    def get_output_embeddings(self) -> nn.Module:
        """The head of a language model; this method is named as in transformers."""
        head: nn.Module = self.backbone.lm_head
        return head

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Output of the backbone; arguments and output are named as in transformers."""
        return self.backbone(*inputs, **options)

    def weights(self) -> dict[str, Tensor]:
        """The weights by name, shared ones once."""
        return {name: weight.data for name, weight in self.backbone.named_parameters()}

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder that `AutoModel` loads."""
        if isinstance(self.config, SimpleNamespace):
            write_json(Path(folder, CONFIG), vars(self.config))
        else:
            self.config.save_pretrained(str(folder))
        weights = {name: weight.contiguous() for name, weight in self.weights().items()}
        save_file(weights, Path(folder, WEIGHTS), metadata={"format": "pt"})


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}


def _without_heads(
    weights: dict[str, Tensor], prefix: str, expected: Collection[str]
) -> dict[str, Tensor]:
    """The weights whose names begin with a prefix, without it; all if none does.

    A head that shares its weights and a pooler are dropped unless they are among `expected`.
    """
    own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)} or weights
    heads = ("lm_head.", "pooler.")
    return {n: w for n, w in own.items() if n in expected or not n.startswith(heads)}


def _build(config: Any, *, generative: bool) -> Any:
    # Separate imports: an edit of one architecture must not make models of the other stale.
    match config.model_type:
        case "bert" if not generative:
            from wxb.models import bert

            return bert.BertModel(bert.Config.from_hf(config), add_pooling_layer=False)
        case "llama":
            from wxb.models import llama

            decoder = llama.LlamaForCausalLM if generative else llama.LlamaModel
            return decoder(llama.Config.from_hf(config))
        case "gpt2" if generative:
            from wxb.models import gpt2

            return gpt2.GPT2LMHeadModel(gpt2.Config.from_hf(config))
    raise ValueError(f"model_type: found {config.model_type!r}; expected bert, llama or gpt2")
