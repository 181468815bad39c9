"""Long short-term memory (Hochreiter and Schmidhuber 1997), and a classifier that reads both ways.

`LSTM` is the text book, cell by cell. `LSTMClassifier` trains torch's own, which gives the same;
benchmarks/recurrent.py tells how much faster or slower it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.rnn import RNN, packed


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


def without_frame(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, T - 2) without the first and last token of each row: [CLS] and [SEP].

    Rows are padded on the right, so each keeps two tokens less and they begin one column later.
    """
    return input_ids[:, 1:-1], attention_mask[:, 2:]


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
        _, (hidden, _) = packed(self.lstm, embedded, attention_mask.bool())  # (L * 2, B, H)
        ends = torch.cat([hidden[-2], hidden[-1]], dim=-1)  # (B, 2 * H)
        logits = self.classifier(self.dropout(ends))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}
