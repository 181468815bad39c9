"""The native bidirectional LSTM, with saving and loading."""

from pathlib import Path
from typing import Any, Self

from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from wxb.core import pretrained
from wxb.core.pretrained import WEIGHTS
from wxb.models.lstm import LSTMClassifier


class Recurrent(LSTMClassifier):
    """A bidirectional LSTM: one logit per class and text."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """See `LSTMClassifier`; a batch without words is read as one word of padding."""
        if input_ids.shape[1] == 0:
            input_ids, attention_mask = F.pad(input_ids, (0, 1)), F.pad(attention_mask, (0, 1))
        return super().forward(input_ids, attention_mask, labels)

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.state_dict(), folder / WEIGHTS)

    @classmethod
    def from_pretrained(cls, folder: Path, **shape: Any) -> Self:
        """Load what `save_pretrained` wrote; `shape` holds the arguments of the constructor."""
        model = cls(**shape)
        file = folder / WEIGHTS
        pretrained.load_weights(model, pretrained.read_weights(file), file)
        return model.eval()
