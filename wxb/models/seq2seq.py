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

from wxb.models.attention import Dropout, softmax
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
    weights: Tensor  # (B, S), what the last token looked at; zeros without attention

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
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(hidden + context, config.target_size)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """The state before the first token, of source ids and mask (B, S), padded on the right."""
        seen = attention_mask.bool()
        embedded = self.dropout(self.source_embedding(input_ids))  # (B, S, E)
        source, ends = read_both_ways(self.encoder, embedded, seen)  # (B, S, 2 * H), (B, 2 * H)
        hidden = torch.tanh(self.bridge(ends))  # (B, H)
        keys = self.attention.key(source) if self.attention else source
        nothing = source.new_zeros(seen.shape)
        return State(hidden, torch.zeros_like(hidden), source, keys, seen, nothing)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits (B, V) of the tokens that follow these (B, 1), and the state behind them."""
        outputs, state = self.advance(self.target_embedding(tokens).squeeze(1), state)
        return self.output(self.dropout(outputs)), state

    def advance(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """What the logits are made of, hidden state and context, and the state behind a token.

        The token is given by its embedding (B, E).
        """
        inputs = self.dropout(embedded)  # (B, E)
        if self.attention is None:
            hidden, memory = self.decoder(inputs, (state.hidden, state.memory))
            return hidden, state._replace(hidden=hidden, memory=memory)
        weights = self.attention(state.hidden, state.keys, state.seen)  # (B, S)
        context = (weights[:, None] @ state.source).squeeze(1)  # (B, 2 * H)
        inputs = torch.cat([inputs, context], dim=-1)
        hidden, memory = self.decoder(inputs, (state.hidden, state.memory))
        state = state._replace(hidden=hidden, memory=memory, weights=weights)
        return torch.cat([hidden, context], dim=-1), state

    def attention_weights(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> Tensor:
        """What each of the tokens (B, T) looked at in the source (B, S), as it was written.

        Weights (B, T, S) that sum to 1, or are 0 without attention.
        """
        state = self.encode(input_ids, attention_mask)
        weights = []
        for tokens in self.before(labels).unbind(dim=1):
            _, state = self.advance(self.target_embedding(tokens), state)
            weights.append(state.weights)
        return torch.stack(weights, dim=1)

    def before(self, labels: Tensor) -> Tensor:
        """The tokens (B, T) that come before labels (B, T), which follow bos."""
        return F.pad(labels[:, :-1], (1, 0), value=self.config.bos)

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
        if teacher_forcing >= 1:
            logits = self.output(self.outputs(input_ids, attention_mask, labels))
            return {"loss": self._judged(logits, labels), "logits": logits}
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
        return {"loss": self._judged(stacked, labels), "logits": stacked}

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The loss of `forward` with every label read, without logits where there is padding."""
        counted = labels != self.config.pad
        outputs = self.outputs(input_ids, attention_mask, labels)[counted]
        return self._judged(self.output(outputs), labels[counted])

    def outputs(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """What the logits of labels (B, T) are made of, (B, T, H or 3 * H), every label read."""
        state = self.encode(input_ids, attention_mask)
        made = []
        for embedded in self.target_embedding(self.before(labels)).unbind(dim=1):  # (B, E)
            output, state = self.advance(embedded, state)
            made.append(output)
        outputs: Tensor = self.dropout(torch.stack(made, dim=1))
        return outputs

    def _judged(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of logits (..., V) with the labels (...) that are no padding."""
        # In half precision the probabilities would be rounded.
        exact = torch.promote_types(logits.dtype, torch.float)
        flat = logits.flatten(0, -2).to(exact)
        return F.cross_entropy(flat, labels.flatten(), ignore_index=self.config.pad)


def teacher_forcing(step: int, *, decay: float) -> float:
    """Probability of reading the label: near 1 at first, then falling to 0.

    The inverse sigmoid of Bengio et al. 2015, section 2.4: k / (k + exp(step / k)) with k the decay
    (at least 1). It is one half after k ln k steps.
    """
    # As a hyperbolic tangent, which does not overflow.
    return (1 + math.tanh((math.log(decay) - step / decay) / 2)) / 2
