"""The Whisper of wxb/models/whisper.py, as a replacement of transformers'."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import torch
from safetensors.torch import save_file
from torch import nn

from wxb.core import pretrained
from wxb.models import whisper

CONFIG, WEIGHTS, HEAD = "config.json", "model.safetensors", "proj_out.weight"


class NativeWhisper(nn.Module):
    """Our Whisper, with the weights of a Whisper of transformers, under the same names."""

    def __init__(
        self, config: Any, weights: dict[str, torch.Tensor], file: Path = Path(WEIGHTS)
    ) -> None:
        """Raises ValueError or RuntimeError if the weights are of another architecture.

        Raises WxbError if some are missing or unexpected.
        """
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            self.whisper = whisper.WhisperForConditionalGeneration(whisper.Config.from_hf(config))
        pretrained.load_weights(self.whisper, weights, file)

    @classmethod
    def from_transformers(cls, model: Any) -> Self:
        """A copy of a Whisper of transformers."""
        return cls(model.config, model.state_dict())

    @classmethod
    def from_folder(cls, folder: Path) -> Self | None:
        """The model of a folder, to predict; None for an adapter or another architecture.

        Raises WxbError if the folder requests custom code.
        """
        pretrained.require_no_code(folder)
        if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS)):
            return None
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        try:
            file = folder / WEIGHTS
            return cls(SimpleNamespace(**config), pretrained.read_weights(file), file).eval()
        except (ValueError, RuntimeError):
            return None

    def get_encoder(self) -> nn.Module:
        """The encoder; this method is named as in transformers."""
        return self.whisper.model.encoder

    def forward(self, **inputs: Any) -> Any:
        """The outputs for inputs, both as in transformers."""
        return self.whisper(**inputs)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder in Hugging Face's layout."""
        self.config.architectures = ["WhisperForConditionalGeneration"]
        self.config.dtype = "float32"
        self.config.save_pretrained(str(folder))
        weights = {k: v.contiguous() for k, v in self.whisper.state_dict().items() if k != HEAD}
        save_file(weights, Path(folder, WEIGHTS), metadata={"format": "pt"})
