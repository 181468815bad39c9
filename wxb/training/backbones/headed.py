"""A backbone with modules of a task on top, which learn with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wxb.core.params.experiments import Tuning
from wxb.training.backbones import tuning
from wxb.training.backbones.native import Native


class Headed(nn.Module):
    """A backbone and what else a subclass has, such as `head`.

    Saved as a plain Hugging Face or peft folder, with a file `<module>.safetensors` beside it for
    each further module.
    """

    def __init__(
        self,
        backbone: tuning.Model,
        *,
        neftune_alpha: float | None = None,
        neftune_padded: bool = False,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.neftune_alpha, self.neftune_padded = neftune_alpha, neftune_padded

    @classmethod
    def to_learn(
        cls,
        folder: Path,
        settings: Tuning,
        /,
        *,
        bidirectional: bool = False,
        native: bool = False,
        **shape: Any,
    ) -> Self:
        """On the backbone saved in a folder, of which learns what the settings say.

        `shape` is what else it is made with; `bidirectional` and `native` are as in
        `load_backbone`. Seed torch before: new weights are random.
        """
        from wxb.training.backbones.weights import load_backbone

        bare = load_backbone(
            folder, bidirectional=bidirectional, four_bit=settings.four_bit, native=native
        )
        adapted = tuning.adapt(bare, settings, task_type="FEATURE_EXTRACTION")
        noise = {name: getattr(settings, name) for name in ("neftune_alpha", "neftune_padded")}
        return cls(adapted, **noise, **shape)

    @classmethod
    def from_pretrained(
        cls, folder: Path, *, bidirectional: bool = False, four_bit: bool = False, **shape: Any
    ) -> Self:
        """Load what `save_pretrained` wrote, to predict: the same logits.

        `shape` is what else it was made with. `bidirectional` and `four_bit` tell how the backbone
        was made that an adapter belongs to. A whole one is run by the native architecture, if
        there is one: transformers takes seconds to import.
        """
        backbone: Any = None if four_bit else Native.read(folder)
        if backbone is None:
            from wxb.training.backbones.weights import load_backbone

            backbone = tuning.load(
                folder, partial(load_backbone, bidirectional=bidirectional, four_bit=four_bit)
            )
        model = cls(backbone, **shape)
        model.load_further(folder)
        return model.eval()

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The last hidden states (B, T, C) of tokens (B, T); in training with NEFTune's noise."""
        inputs = {"input_ids": input_ids}
        if self.training and self.neftune_alpha:
            embeddings = self.backbone.get_input_embeddings()(input_ids)
            noisy = tuning.noisy(
                embeddings, attention_mask, self.neftune_alpha, padded=self.neftune_padded
            )
            inputs = {"inputs_embeds": noisy}
        states: Tensor = self.backbone(**inputs, attention_mask=attention_mask).last_hidden_state
        return states

    def save_pretrained(self, folder: Path) -> None:
        """Write all modules; `AutoModel` or peft loads the backbone from the same folder."""
        tuning.save(self.backbone, folder)
        self.save_further(folder)

    def save_further(self, folder: Path) -> None:
        """Write each module but the backbone to a file of its own."""
        for name, module in self._further():
            save_file(module.state_dict(), folder / f"{name}.safetensors")

    def load_further(self, folder: Path) -> None:
        """Load what `save_further` wrote."""
        for name, module in self._further():
            module.load_state_dict(load_file(folder / f"{name}.safetensors"), strict=True)

    def _further(self) -> Iterator[tuple[str, nn.Module]]:
        """The modules that have weights, but for the backbone."""
        found = ((name, m) for name, m in self.named_children() if name != "backbone")
        return ((name, module) for name, module in found if module.state_dict())
