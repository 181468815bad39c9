"""Translation by LSTM encoder and decoder, without attention and with.

Without, the decoder knows of the source what fits into its first state (Sutskever et al. 2014).
With, it looks at every source token again at every step (Bahdanau et al. 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.attention import softmax
from wxb.models.lstm import read_both_ways


@dataclass(frozen=True)
class Config:
    """Sizes of the vocabularies and layers, and the ids of special tokens."""

    source_size: int
    target_size: int
    embedding_size: int = 256
    hidden_size: int = 512
    attention: bool = True
    dropout: float = 0.1
    pad: int = 0
    bos: int = 1
    eos: int = 2


class State(NamedTuple):
    """What the decoder remembers of each row: its cell, and what the encoder read."""

    hidden: Tensor  # (B, H)
    memory: Tensor  # (B, H)
    source: Tensor  # (B, S, 2 * H)
    keys: Tensor  # (B, S, H), the source as the attention compares it
    seen: Tensor  # (B, S), True where there is a source token

    def reorder(self, rows: Tensor) -> State:
        """The state of these rows (M,)."""
        return State(*(part[rows] for part in self))


class AdditiveAttention(nn.Module):
    """Scores v' tanh(W s + U h) of a decoder state s and every source token h (appendix A.1.2)."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, seen: Tensor) -> Tensor:
        """Weights (B, S) of the source tokens, zero where nothing is to be seen.

        The query is (B, H); keys are what `key` makes of the source (B, S, H), once for all steps.
        """
        scores = self.score(torch.tanh(self.query(query)[:, None] + keys)).squeeze(-1)  # (B, S)
        return softmax(scores, seen)


class Seq2Seq(nn.Module):
    """An encoder that reads both ways, and a decoder that writes a token at a time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        width, hidden = config.embedding_size, config.hidden_size
        context = 2 * hidden if config.attention else 0
        self.source_embedding = nn.Embedding(config.source_size, width)
        self.target_embedding = nn.Embedding(config.target_size, width)
        self.encoder = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.attention = AdditiveAttention(hidden) if config.attention else None
        self.decoder = nn.LSTMCell(width + context, hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(hidden + context, config.target_size)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """The state before the first token, of source ids and mask (B, S), padded on the right."""
        seen = attention_mask.bool()
        embedded = self.dropout(self.source_embedding(input_ids))  # (B, S, E)
        source, ends = read_both_ways(self.encoder, embedded, seen)  # (B, S, 2 * H), (B, 2 * H)
        hidden = torch.tanh(self.bridge(ends))  # (B, H)
        keys = self.attention.key(source) if self.attention else source
        return State(hidden, torch.zeros_like(hidden), source, keys, seen)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits (B, V) of the tokens that follow these (B, 1), and the state behind them."""
        inputs = self.dropout(self.target_embedding(tokens)).squeeze(1)  # (B, E)
        if self.attention:
            weights = self.attention(state.hidden, state.keys, state.seen)  # (B, S)
            context = (weights[:, None] @ state.source).squeeze(1)  # (B, 2 * H)
            inputs = torch.cat([inputs, context], dim=-1)
        hidden, memory = self.decoder(inputs, (state.hidden, state.memory))
        outputs = torch.cat([hidden, context], dim=-1) if self.attention else hidden
        return self.output(self.dropout(outputs)), state._replace(hidden=hidden, memory=memory)

    def forward(
        self,
        input_ids: Tensor,  # (B, S), padded on the right
        attention_mask: Tensor,  # (B, S), 1 where there is a token
        labels: Tensor,  # (B, T), ending with eos and padded with pad
        *,
        teacher_forcing: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> dict[str, Tensor]:
        """Loss over the labels that are no padding, and logits (B, T, V).

        The decoder reads the label before with the probability `teacher_forcing`, else the token
        that it finds likeliest itself: drawn for every token, from the generator (on the CPU).
        """
        coins = torch.rand(labels.shape, generator=generator).to(labels.device)
        forced = coins < teacher_forcing  # (B, T)
        state = self.encode(input_ids, attention_mask)
        tokens = torch.full_like(labels[:, :1], self.config.bos)  # (B, 1)
        logits = []
        for time in range(labels.shape[1]):
            scores, state = self.step(tokens, state)
            logits.append(scores)
            likeliest = scores.argmax(dim=-1)  # (B,)
            tokens = torch.where(forced[:, time], labels[:, time], likeliest)[:, None]
        stacked = torch.stack(logits, dim=1)  # (B, T, V)
        loss = F.cross_entropy(
            stacked.flatten(0, 1), labels.flatten(), ignore_index=self.config.pad
        )
        return {"loss": loss, "logits": stacked}


def teacher_forcing(step: int, *, decay: float) -> float:
    """Probability of reading the label: near 1 at first, then falling to 0.

    The inverse sigmoid of Bengio et al. 2015, section 2.4: k / (k + exp(step / k)) with k the decay
    (at least 1). It is one half after k ln k steps.
    """
    # As a hyperbolic tangent, which does not overflow.
    return (1 + math.tanh((math.log(decay) - step / decay) / 2)) / 2
