"""Long short-term memory (Hochreiter and Schmidhuber 1997), and a classifier that reads both ways.

`LSTM` is the text book, cell by cell. What trains is torch's own, which gives the same, faster
(benchmarks/recurrent.py).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.rnn import RNN


class LSTM(RNN):
    """Layers of LSTM cells, in one direction or both; equal to `nn.LSTM` under the same names.

    A cell's state is its output and its memory (2, B, H). The forget gate is that of Gers et al.
    2000.
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
        """The next state: c' = f c + i g and h' = o tanh(c')."""
        hidden, memory = state
        update = F.linear(inputs, weight_ih, bias_ih) + F.linear(hidden, weight_hh, bias_hh)
        i, f, g, o = update.chunk(4, dim=-1)  # input gate, forget gate, candidate, output gate
        memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()  # (B, H)
        return torch.stack([o.sigmoid() * memory.tanh(), memory])


def without_special_tokens(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, T - 2) without the first and last token of each row: [CLS] and [SEP].

    Rows are padded on the right, so each keeps two tokens less and they begin one column later.
    """
    return input_ids[:, 1:-1], attention_mask[:, 2:]


def read_both_ways(layers: nn.LSTM, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (B, T, 2 * H) of torch's layers in both directions, and where these end (B, 2 * H).

    `inputs` are (B, T, C), `mask` (B, T) is True where there is a token. Each direction reads whole
    rows, the backward one rows that are turned round within their length: padding then comes last
    for both. Torch would have them packed, and on a CPU goes back through packed rows hardly faster
    than the text book (benchmarks/recurrent.py). Raises ValueError where padding is not on the
    right.
    """
    if (mask[:, 1:] & ~mask[:, :-1]).any():
        raise ValueError("tokens follow padding: pad on the right, or use the cell-by-cell form")
    rows, length, _ = inputs.shape
    lengths = mask.sum(dim=1, keepdim=True)  # (B, 1)
    place = torch.arange(length, device=inputs.device)
    turned = torch.where(place < lengths, lengths - 1 - place, place)[..., None]  # (B, T, 1)
    start = inputs.new_zeros(2, 1, rows, layers.hidden_size)
    weights = iter(layers.all_weights)  # of the first layer forwards, then backwards, and so on
    outputs = inputs
    for _ in range(layers.num_layers):
        ahead = _read(outputs, start, next(weights))
        back = _read(outputs.take_along_dim(turned, dim=1), start, next(weights))
        outputs = torch.cat([ahead, back.take_along_dim(turned, dim=1)], dim=-1)
    outputs = torch.where(mask[..., None], outputs, 0)
    last = (lengths - 1).clamp(min=0)[..., None]  # (B, 1, 1)
    ahead, back = outputs.chunk(2, dim=-1)
    return outputs, torch.cat([ahead.take_along_dim(last, dim=1)[:, 0], back[:, 0]], dim=-1)


def _read(inputs: Tensor, start: Tensor, weights: list[nn.Parameter]) -> Tensor:
    """Outputs (B, T, H) of one layer in one direction."""
    learns = torch.is_grad_enabled()
    return torch.lstm(inputs, tuple(start), tuple(weights), True, 1, 0.0, learns, False, True)[0]


class LSTMClassifier(nn.Module):
    """Embeddings, LSTM layers in both directions, and a linear layer on where both end.

    The forward direction ends at a row's last token, the backward one at its first: together they
    have read the row as a whole (Schuster and Paliwal 1997).
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
        """Logits (B, K), and with labels the cross-entropy."""
        embedded = self.dropout(self.embedding(input_ids))  # (B, T, C)
        _, ends = read_both_ways(self.lstm, embedded, attention_mask.bool())  # (B, 2 * H)
        logits = self.classifier(self.dropout(ends))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}
