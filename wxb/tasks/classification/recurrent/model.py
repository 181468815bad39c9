"""The native LSTM that reads both ways, kept in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from safetensors.torch import load_file, save_file
from torch import nn

from wxb.models.lstm import LSTMClassifier

WEIGHTS = "model.safetensors"


class Recurrent(LSTMClassifier):
    """Logits of one class a text."""

    def get_input_embeddings(self) -> nn.Module:
        """The table of what each word is."""
        return self.embedding

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.state_dict(), folder / WEIGHTS)

    @classmethod
    def from_pretrained(cls, folder: Path, **shape: Any) -> Self:
        """Load what `save_pretrained` wrote; `shape` is what it was made with."""
        model = cls(**shape)
        model.load_state_dict(load_file(folder / WEIGHTS), strict=True)
        return model.eval()
