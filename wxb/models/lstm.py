"""Long short-term memory (Hochreiter and Schmidhuber 1997), and a bidirectional classifier.

`LSTM` is the textbook version, cell by cell. Models train with torch's layers, which compute the
same and are faster.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.rnn import RNN


class LSTM(RNN):
    """Layers of LSTM cells, in one direction or both; same parameters and outputs as `nn.LSTM`.

    The state of a cell is its output and memory (2, B, H), with a forget gate (Gers et al. 2000).
    """

    gates = 4
    states = 2

    def cell(
        self,
        inputs: Tensor,  # (B, C)
        state: Tensor,  # (2, B, H)
        weight_ih: Tensor,  # (4 * H, C)
        bias_ih: Tensor,  # (4 * H,)
        weight_hh: Tensor,  # (4 * H, H)
        bias_hh: Tensor,  # (4 * H,)
    ) -> Tensor:
        """The next state [h', c'] (2, B, H): c' = f c + i g and h' = o tanh(c')."""
        hidden, memory = state
        update = F.linear(inputs, weight_ih, bias_ih) + F.linear(hidden, weight_hh, bias_hh)
        i, f, g, o = update.chunk(4, dim=-1)  # input gate, forget gate, candidate, output gate
        memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()  # (B, H)
        return torch.stack([o.sigmoid() * memory.tanh(), memory])


def run_bidirectional(layers: nn.LSTM, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (B, T, 2 * H) and final outputs (B, 2 * H) of bidirectional layers, without dropout.

    `inputs` are (B, T, C), padded on the right; `mask` (B, T) is True for tokens. Outputs are 0 for
    padding. The backward direction reads rows that are reversed within their length, so that
    padding comes last in both directions. Packed sequences would do the same, but their backward
    pass on a CPU is hardly faster than the textbook version.
    """
    rows, length, _ = inputs.shape
    lengths = mask.sum(dim=1, keepdim=True)  # (B, 1)
    columns = torch.arange(length, device=inputs.device)
    reversal = torch.where(columns < lengths, lengths - 1 - columns, columns)[..., None]
    start = inputs.new_zeros(2, 1, rows, layers.hidden_size)
    weights = iter(layers.all_weights)  # first layer forward, first layer backward, second layer...
    outputs = inputs
    for _ in range(layers.num_layers):
        forward = _run_layer(outputs, start, next(weights))
        backward = _run_layer(outputs.take_along_dim(reversal, dim=1), start, next(weights))
        outputs = torch.cat([forward, backward.take_along_dim(reversal, dim=1)], dim=-1)
    outputs = torch.where(mask[..., None], outputs, 0)
    last = (lengths - 1).clamp(min=0)[..., None]  # (B, 1, 1)
    forward, backward = outputs.chunk(2, dim=-1)
    return outputs, torch.cat([forward.take_along_dim(last, dim=1)[:, 0], backward[:, 0]], dim=-1)


def _run_layer(inputs: Tensor, start: Tensor, weights: list[nn.Parameter]) -> Tensor:
    """Outputs (B, T, H) of one layer and direction; `start` (2, 1, B, H): output and memory."""
    training, state, parameters = torch.is_grad_enabled(), tuple(start), tuple(weights)
    with torch.autocast(inputs.device.type, enabled=False):  # in bfloat16, cuDNN takes float16
        return torch.lstm(inputs, state, parameters, True, 1, 0.0, training, False, True)[0]


class LSTMClassifier(nn.Module):
    """Embeddings, bidirectional LSTM layers, and a linear layer on their final outputs.

    The forward direction ends at the last token of a row, the backward one at its first (Schuster
    and Paliwal 1997).
    """

    def __init__(
        self,
        vocab_size: int,
        classes: int,
        *,
        embedding_size: int = 256,
        hidden_size: int = 128,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_size)
        self.lstm = nn.LSTM(
            embedding_size, hidden_size, num_layers, batch_first=True, bidirectional=True
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden_size, classes)

    def forward(
        self,
        input_ids: Tensor,  # (B, T), padded on the right
        attention_mask: Tensor,  # (B, T), 1 where there is a token
        labels: Tensor | None = None,  # (B,)
    ) -> dict[str, Tensor]:
        """The `logits` (B, K) and, if labels are given, the mean cross-entropy as `loss`."""
        embedded = self.dropout(self.embedding(input_ids))  # (B, T, C)
        _, ends = run_bidirectional(self.lstm, embedded, attention_mask.bool())  # (B, 2 * H)
        logits = self.classifier(self.dropout(ends))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}
