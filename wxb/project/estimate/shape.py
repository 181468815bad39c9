"""Models on the device `meta`, whose weights have shapes but no values.

They make sizes exact, and a model of eight billion parameters takes a second.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, processors
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.flop_counter import FlopCounterMode

from wxb import tasks
from wxb.core import hub, paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import Params, read_yaml
from wxb.core.params.backbones import Tokenizer as TokenizerSettings
from wxb.corpora.text import tokenizers
from wxb.corpora.text.saved import BareTokenizer
from wxb.training.backbones import weights
from wxb.training.backbones.size import parameter_count
from wxb.training.pretraining import SELECTED

SHAPES = Path(__file__).with_name("shapes.yaml")
LABELS = 20  # assumed number of labels without data
WEIGHT, GRADIENT, ADAM = 4, 4, 8  # bytes per parameter in float32
# Bytes of a weight in 4 bits with double quantization (Dettmers et al. 2023, section 3).
QUANTIZED = (4 + 0.127) / 8


@dataclass(frozen=True)
class Shape:
    """A model on the device `meta`, and how it is trained."""

    model: Any
    predicted_share: float  # share of the positions of a text for which logits are computed
    four_bit: bool = False
    gradient_checkpointing: bool = False

    @property
    def parameters(self) -> int:
        """Number of parameters; shared ones count once."""
        return parameter_count(self.model)

    @property
    def trainable(self) -> int:
        """Number of trainable parameters."""
        return parameter_count(self.model, trainable=True)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights in memory."""
        packed = sum(
            module.weight.numel()
            for name, module in self.model.named_modules()
            if self.four_bit and isinstance(module, nn.Linear) and _is_packed(name, module)
        )
        return round(WEIGHT * (self.parameters - packed) + QUANTIZED * packed)

    @property
    def optimizer_bytes(self) -> int:
        """Bytes of gradients and of AdamW's moments."""
        return (GRADIENT + ADAM) * self.trainable

    def training_flops(self, batch: int, length: int) -> float:
        """FLOPs of a forward and a backward pass over `batch` texts of `length` tokens.

        The backward pass takes those of the forward pass for the gradients of inputs, and again for
        the gradients of trainable weights.
        """
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        share = sum(p.numel() for p in matrices if p.requires_grad) / max(
            1, sum(p.numel() for p in matrices)
        )
        return float(self.flops(batch, length) * (2 + share + self.gradient_checkpointing))

    def flops(self, batch: int, length: int) -> float:
        """FLOPs of a forward pass over `batch` texts of `length` tokens.

        Logits are counted for `predicted_share` of the positions. Networks without a Hugging Face
        backbone are estimated as 2 FLOPs per token and weight of a matrix.
        """
        if self._inner is None:
            return 2.0 * batch * length * sum(p.numel() for p in self._matrices(self.model))
        with FlopCounterMode(display=False) as counter, torch.device("meta"), torch.no_grad():
            self._inner(input_ids=torch.zeros(batch, length, dtype=torch.long))
        inner = {id(p) for p in self._inner.parameters()}
        outer = sum(p.numel() for p in self._matrices(self.model) if id(p) not in inner)
        head = self._output
        if head is not None:  # tied embeddings count only as the output table
            outer += head.numel() * (id(head) in inner)
        return float(counter.get_total_flops() + 2 * batch * length * outer * self.predicted_share)

    def activation_bytes(self, batch: int, length: int) -> int:
        """Bytes that a forward pass saves for the backward pass.

        With gradient checkpointing: the inputs of all blocks, and the activations of one.
        """
        if self._inner is None:
            return 0
        saved = self._saved_bytes(batch, length)
        if not self.gradient_checkpointing:
            return saved
        config = self._inner.config
        blocks = config.num_hidden_layers
        inputs = WEIGHT * blocks * batch * length * int(config.hidden_size)
        return int(saved // blocks + inputs)

    def _saved_bytes(self, batch: int, length: int) -> int:
        """Bytes of the tensors that autograd saves in a forward pass, except parameters."""
        saved: dict[int, torch.Tensor] = {}  # references, so that no address is reused
        own = {p.untyped_storage()._cdata for p in self.model.parameters()}

        def save(tensor: torch.Tensor) -> torch.Tensor:
            address = tensor.untyped_storage()._cdata
            if address not in own:
                saved[address] = tensor
            return tensor

        hooks = torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor)
        with hooks, torch.device("meta"):
            output = self._inner.train()(input_ids=torch.zeros(batch, length, dtype=torch.long))
        del output
        return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())

    def loss(self, ids: torch.Tensor) -> Any:
        """A loss of tokens (B, T), with the cost of the real one; its value has no meaning."""
        output = self._inner(input_ids=ids) if self._inner else self.model(input_ids=ids)
        states = output[0] if isinstance(output, tuple) else output.last_hidden_state  # (B, T, C)
        table = self._output
        if table is None:
            return states.square().mean()
        chosen = states.flatten(0, 1)[: max(1, round(self.predicted_share * ids.numel()))]
        return F.cross_entropy(chosen @ table.T, ids.flatten()[: len(chosen)])

    @property
    def _inner(self) -> Any:
        """The module from tokens to hidden states; None if the model has another form."""
        module: Any = getattr(self.model, "backbone", None)
        if module is None:
            module = self.model if hasattr(self.model, "base_model_prefix") else None
        if hasattr(module, "get_base_model"):  # peft has added its matrices to it
            module = module.get_base_model()
        prefix = getattr(module, "base_model_prefix", "")
        return getattr(module, prefix, module) if prefix else module

    @property
    def _output(self) -> nn.Parameter | None:
        """The matrix from hidden states to logits; None if the model has none."""
        outer = getattr(self.model, "backbone", self.model)
        get = getattr(outer, "get_output_embeddings", None)
        module = get() if get else None
        return None if module is None else module.weight

    @staticmethod
    def _matrices(module: nn.Module) -> list[nn.Parameter]:
        """The parameters of matrix products: no vectors, no embeddings."""
        tables = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
        return [p for p in module.parameters() if p.ndim > 1 and id(p) not in tables]


def _is_packed(name: str, module: nn.Linear) -> bool:
    """Whether QLoRA stores a layer in 4 bits."""
    return not module.weight.requires_grad and "lora_" not in name and "lm_head" not in name


def experiment_shape(params: Params, name: str, predicted_share: float = 1.0) -> Shape:
    """The model that an experiment trains.

    Raises WxbError if it is not trained in steps, or has other inputs than tokens.
    """
    experiment = params.experiments[name]
    tuning = experiment.tuning
    # Gradient checkpointing is counted, but need not run.
    once = tuning.model_copy(update={"gradient_checkpointing": False})
    experiment = experiment.model_copy(update={"tuning": once})
    with backbone_folder(params, experiment.backbone) as folder:
        labels = _labels(experiment.corpus)
        method = tasks.method_of(experiment, labels, tokenizers.load(folder))
        with torch.device("meta"):
            model = method.build(folder)
    inputs = inspect.signature(getattr(model, "forward", len)).parameters
    if not isinstance(model, nn.Module) or "input_ids" not in inputs:
        raise WxbError(
            f"experiments.{name}: cannot estimate the method {experiment.method}; `wxb estimate`"
            " supports models of tokens that are trained in steps"
        )
    return Shape(model, predicted_share, tuning.four_bit, tuning.gradient_checkpointing)


def backbone_shape(params: Params, name: str) -> Shape:
    """The model that pretraining trains, with its heads."""
    settings = params.backbones[name]
    with backbone_folder(params, name) as folder, torch.device("meta"):
        cls = weights.CLASSES[settings.objective]
        model = cls.from_config(weights.pretrained.config(folder))
    return Shape(model, SELECTED if settings.objective == "mlm+nsp" else 1.0)


def _labels(corpus: str) -> list[str]:
    """The labels of a corpus; made up ones if it has no data yet."""
    path = paths.clean(corpus) / paths.PROFILE
    if path.is_file():
        return list(read_json(path)["labels"])
    return [f"label {index}" for index in range(LABELS)]


@contextmanager
def backbone_folder(params: Params, name: str) -> Iterator[Path]:
    """A folder with configuration and tokenizer of a backbone.

    If it does not exist, a temporary one with a made-up tokenizer. Downloads a checkpoint whose
    shape is neither in params.yaml nor in shapes.yaml.
    """
    origin = name
    while origin in params.experiments:
        origin = params.experiments[origin].backbone
    settings = params.backbones[origin]
    model = paths.model(origin)
    if model.is_dir():
        yield model
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, origin)
        shape = _known_shape(settings.checkpoint)
        if shape or settings.checkpoint is None:
            tokenizer = _tokenizer(settings.tokenizer, shape)
            tokenizer.save_pretrained(path)
            if settings.architecture:
                weights.configuration(settings.architecture, tokenizer).save_pretrained(path)
            elif shape:
                from transformers import AutoConfig

                AutoConfig.for_model(**shape).save_pretrained(path)
            yield path
        else:
            with hub.checkpoint(settings.checkpoint, settings.revision) as checkpoint:
                yield checkpoint


def _known_shape(checkpoint: str | None) -> dict[str, Any]:
    """The configuration of a checkpoint in shapes.yaml; empty if it has none."""
    shape: dict[str, Any] = read_yaml(SHAPES).get(checkpoint, {})
    return shape


def _tokenizer(settings: TokenizerSettings | None, shape: dict[str, Any]) -> Any:
    """A tokenizer of the right size with made-up tokens."""
    kind = settings.kind if settings else "wordpiece"
    size = settings.vocabulary if settings else shape["vocab_size"]
    special = tokenizers.SPECIAL_TOKENS[kind]
    tokens = [*special.values(), *(f"token {index}" for index in range(size - len(special)))]
    backend = Tokenizer(
        models.WordLevel({token: index for index, token in enumerate(tokens)}, tokens[0])
    )
    backend.add_special_tokens([*special.values()])
    if bos := special.get("bos_token"):
        pairs = [(bos, tokens.index(bos))]
        backend.post_processor = processors.TemplateProcessing(f"{bos} $A", None, pairs)
    if kind == "words":
        return BareTokenizer(backend, special)
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)
