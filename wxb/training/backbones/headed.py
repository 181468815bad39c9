"""A backbone with modules of a task on top, which are trained with it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from safetensors.torch import save_file
from torch import Tensor, nn

from wxb.core import pretrained
from wxb.core.params.experiments import Tuning
from wxb.training.backbones import tuning
from wxb.training.backbones.native import load_trained


class Headed(tuning.BackboneModel):
    """A backbone and the modules that a subclass adds, such as `head`.

    Saved as a plain Hugging Face or peft folder, with a file `<module>.safetensors` beside it for
    each added module.
    """

    @classmethod
    def from_backbone(
        cls, folder: Path, settings: Tuning, options: Mapping[str, Any] = {}, /, **shape: Any
    ) -> Self:
        """Load the backbone of a folder, and adapt it by `settings` for training.

        `options` are further ones of `load_backbone`, `shape` those of the class. Seed torch
        before: new weights are random.
        """
        from wxb.training.backbones.weights import load_backbone

        backbone = load_backbone(folder, four_bit=settings.four_bit, **options)
        adapted = tuning.adapt(backbone, settings, task_type="FEATURE_EXTRACTION")
        return cls(adapted, tuning=settings, **shape)

    @classmethod
    def from_pretrained(
        cls, folder: Path, *, bidirectional: bool = False, four_bit: bool = False, **shape: Any
    ) -> Self:
        """Load what `save_pretrained` wrote, for prediction, with the same logits.

        `shape` are further arguments of the class. A full model runs in the native architecture, if
        there is one; `bidirectional` and `four_bit` apply to other models.
        """

        def load(base: Path) -> Any:
            from wxb.training.backbones.weights import load_backbone

            return load_backbone(base, bidirectional=bidirectional, four_bit=four_bit)

        model = cls(load_trained(folder, load), **shape)
        model.load_heads(folder)
        return model.eval()

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The last hidden states (B, T, C) of tokens (B, T); with NEFTune noise in training."""
        inputs = self.backbone_inputs(input_ids, attention_mask)
        return self.backbone(**inputs).last_hidden_state

    def save_pretrained(self, folder: Path) -> None:
        """Write all modules; `AutoModel` or peft loads the backbone from the same folder."""
        super().save_pretrained(folder)
        self.save_heads(folder)

    def save_heads(self, folder: Path) -> None:
        """Write each module with weights, except the backbone, to a file in an existing folder."""
        for name, module in self._heads():
            save_file(module.state_dict(), folder / f"{name}.safetensors")

    def load_heads(self, folder: Path) -> None:
        """Load what `save_heads` wrote. Raises WxbError for missing, unknown or non-finite ones."""
        for name, module in self._heads():
            file = folder / f"{name}.safetensors"
            pretrained.load_weights(module, pretrained.read_weights(file), file)

    def _heads(self) -> Iterator[tuple[str, nn.Module]]:
        """The modules with weights, except the backbone."""
        for name, module in self.named_children():
            if name != "backbone" and module.state_dict():
                yield name, module


class WithHead(Headed):
    """A backbone and a head, which `head(width)` makes; it gets the hidden states and the mask."""

    def __init__(self, backbone: Any, head: Callable[[int], nn.Module], **options: Any) -> None:
        super().__init__(backbone, **options)
        self.head = head(backbone.config.hidden_size)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Any = None) -> Any:
        """The outputs of the head for tokens (B, T)."""
        return self.head(self.hidden(input_ids, attention_mask), attention_mask, labels)
