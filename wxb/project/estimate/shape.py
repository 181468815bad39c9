"""Models that are not made yet, on the device `meta`: their weights have a shape, and no values.

So the size of a model is counted, not guessed, and one of eight billion parameters takes a second.
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
from tokenizers import Tokenizer, models
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.flop_counter import FlopCounterMode

from wxb import tasks
from wxb.core import hub, paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import Params, read_yaml
from wxb.core.params.backbones import Tokenizer as TokenizerSettings
from wxb.corpora.text import tokenizers, vocabulary
from wxb.training.backbones import weights
from wxb.training.backbones.size import parameters
from wxb.training.pretraining import CHOSEN

SHAPES = Path(__file__).with_name("shapes.yaml")
LABELS = 20  # where no data says how many there are
WEIGHT, GRADIENT, ADAM = 4, 4, 8  # bytes of a parameter in float32: itself, and what learns it
# A weight in 4 bits, its scales quantized too (Dettmers et al. 2023, section 3).
QUANTIZED = (4 + 0.127) / 8


@dataclass(frozen=True)
class Shape:
    """A model, and what the loss is computed from: a share of the positions of a text."""

    model: Any
    predicted: float
    four_bit: bool = False
    recomputes: bool = False  # gradient checkpointing

    @property
    def parameters(self) -> int:
        """All of them; shared ones count once."""
        return parameters(self.model)

    @property
    def trainable(self) -> int:
        """Those that learn."""
        return parameters(self.model, trainable=True)

    @property
    def weights(self) -> int:
        """Bytes of all weights in memory."""
        packed = sum(
            module.weight.numel()
            for name, module in self.model.named_modules()
            if self.four_bit and isinstance(module, nn.Linear) and _is_packed(name, module)
        )
        return round(WEIGHT * (self.parameters - packed) + QUANTIZED * packed)

    @property
    def learning(self) -> int:
        """Bytes of gradients and of what AdamW keeps."""
        return (GRADIENT + ADAM) * self.trainable

    def training_flops(self, batch: int, length: int) -> float:
        """Operations of one forward and backward pass over `batch` texts of so many tokens.

        Backward takes as many as forward for the gradients of what a layer is given, and as many
        again for those of the weights that learn.
        """
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        share = sum(p.numel() for p in matrices if p.requires_grad) / max(
            1, sum(p.numel() for p in matrices)
        )
        return float(self.flops(batch, length) * (2 + share + self.recomputes))

    def flops(self, batch: int, length: int) -> float:
        """Operations of one forward pass."""
        if self._inner is None:
            return 2.0 * batch * length * sum(p.numel() for p in self._matrices(self.model))
        with FlopCounterMode(display=False) as counted, torch.device("meta"), torch.no_grad():
            self._inner(input_ids=torch.zeros(batch, length, dtype=torch.long))
        inner = {id(p) for p in self._inner.parameters()}
        over = sum(p.numel() for p in self._matrices(self.model) if id(p) not in inner)
        head = self._output
        if head is not None:  # tied to the embeddings, which are no matrix to multiply with
            over += head.numel() * (id(head) in inner)
        return float(counted.get_total_flops() + 2 * batch * length * over * self.predicted)

    def activations(self, batch: int, length: int) -> int:
        """Bytes that a forward pass keeps for the backward one.

        With gradient checkpointing they are what each block is given, and those of one block.
        """
        if self._inner is None:
            return 0
        kept = self._kept(batch, length)
        if not self.recomputes:
            return kept
        config = self._inner.config
        blocks = config.num_hidden_layers
        given = WEIGHT * blocks * batch * length * int(config.hidden_size)
        return int(kept // blocks + given)

    def _kept(self, batch: int, length: int) -> int:
        kept: dict[int, int] = {}
        own = {p.untyped_storage()._cdata for p in self.model.parameters()}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                held[storage._cdata] = tensor  # else its place is another's next
                kept[storage._cdata] = storage.nbytes()
            return tensor

        held: dict[int, torch.Tensor] = {}
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with hooks, torch.device("meta"):
            output = self._inner.train()(input_ids=torch.zeros(batch, length, dtype=torch.long))
        del output
        return sum(kept.values())

    def loss(self, ids: torch.Tensor) -> Any:
        """What a pass over tokens (B, T) comes to, with logits where some are predicted."""
        given = self._inner(input_ids=ids) if self._inner else self.model(input_ids=ids)
        states = given[0] if isinstance(given, tuple) else given.last_hidden_state  # (B, T, C)
        table = self._output
        if table is None:
            return states.square().mean()
        chosen = states.flatten(0, 1)[: max(1, round(self.predicted * ids.numel()))]
        return F.cross_entropy(chosen @ table.T, ids.flatten()[: len(chosen)])

    @property
    def _inner(self) -> Any:
        """What reads tokens and gives hidden states; None where a model has another form."""
        found: Any = getattr(self.model, "backbone", None)
        if found is None:
            found = self.model if hasattr(self.model, "base_model_prefix") else None
        if hasattr(found, "get_base_model"):  # of peft, which has put its matrices into it
            found = found.get_base_model()
        prefix = getattr(found, "base_model_prefix", "")
        return getattr(found, prefix, found) if prefix else found

    @property
    def _output(self) -> nn.Parameter | None:
        """The table that turns hidden states into logits, where the model has one."""
        outer = getattr(self.model, "backbone", self.model)
        get = getattr(outer, "get_output_embeddings", None)
        found = get() if get else None
        return None if found is None else found.weight

    @staticmethod
    def _matrices(module: nn.Module) -> list[nn.Parameter]:
        tables = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
        return [p for p in module.parameters() if p.ndim > 1 and id(p) not in tables]


def _is_packed(name: str, module: nn.Linear) -> bool:
    return not module.weight.requires_grad and "lora_" not in name and "lm_head" not in name


def of_experiment(params: Params, name: str, predicted: float = 1.0) -> Shape:
    """The model that an experiment trains; of `predicted` positions it computes logits.

    Raises WxbError for one that is not trained by steps, or reads no tokens.
    """
    experiment = params.experiments[name]
    tuning = experiment.tuning
    # What is computed twice is counted, not done.
    once = tuning.model_copy(update={"gradient_checkpointing": False})
    experiment = experiment.model_copy(update={"tuning": once})
    with backbone(params, experiment.backbone) as folder:
        labels = _labels(experiment.corpus)
        method = tasks.method_of(experiment, labels, tokenizers.load(folder))
        with torch.device("meta"):
            model = method.build(folder)
    reads = inspect.signature(getattr(model, "forward", len)).parameters
    if not isinstance(model, nn.Module) or "input_ids" not in reads:
        raise WxbError(
            f"experiments.{name}: no estimate for the method {experiment.method}; it is for models"
            " that read tokens and learn by steps"
        )
    return Shape(model, predicted, tuning.four_bit, tuning.gradient_checkpointing)


def of_backbone(params: Params, name: str) -> Shape:
    """The model that pretraining makes, with its heads."""
    settings = params.backbones[name]
    with backbone(params, name) as folder, torch.device("meta"):
        cls = weights.CLASSES[settings.objective]
        model = cls.from_config(weights.pretrained.config(folder))
    return Shape(model, CHOSEN if settings.objective == "mlm+nsp" else 1.0)


def _labels(corpus: str) -> list[str]:
    """The labels of a corpus, or as many as there may be."""
    path = paths.clean(corpus) / paths.PROFILE
    if path.is_file():
        return list(read_json(path)["labels"])
    return [f"label {number}" for number in range(LABELS)]


@contextmanager
def backbone(params: Params, name: str) -> Iterator[Path]:
    """A folder with the configuration and a tokenizer of a backbone, made or not."""
    origin = name
    while origin in params.experiments:
        origin = params.experiments[origin].backbone
    settings = params.backbones[origin]
    made = paths.model(origin)
    if made.is_dir():
        yield made
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, origin)
        shape = _published(settings.checkpoint)
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
            with hub.checkpoint(settings.checkpoint, settings.revision) as there:
                yield there


def _published(checkpoint: str | None) -> dict[str, Any]:
    """The shape of a checkpoint that is not here, where it is known; else nothing."""
    found: dict[str, Any] = read_yaml(SHAPES).get(checkpoint, {})
    return found


def _tokenizer(settings: TokenizerSettings | None, shape: dict[str, Any]) -> Any:
    """A tokenizer of the size of one that is not trained yet: what its tokens are, it makes up."""
    kind = settings.kind if settings else "wordpiece"
    size = settings.vocabulary if settings else shape["vocab_size"]
    special = vocabulary.SPECIAL if kind == "words" else tokenizers.SPECIAL_TOKENS[kind]
    tokens = [*special.values(), *(f"token {number}" for number in range(size - len(special)))]
    backend = Tokenizer(
        models.WordLevel({token: place for place, token in enumerate(tokens)}, tokens[0])
    )
    backend.add_special_tokens([*special.values()])
    if kind == "words":
        return tokenizers.BareTokenizer(backend, special)
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)
