"""Translation by LSTM encoder and decoder, without or with attention.

The decoder reads a context of the source at every step. Without attention, it is always the final
state of the encoder (Cho et al. 2014). With attention, it is a weighted mean of the states of all
source tokens, with other weights at each step (Bahdanau et al. 2015).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.attention import Dropout, softmax
from wxb.models.lstm import run_bidirectional


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
    """The state of each row in generation: the decoder's cell and the encoder's output."""

    hidden: Tensor  # (B, H)
    memory: Tensor  # (B, H)
    source: Tensor  # (B, S, 2 * H); without attention the final state only, (B, 2 * H)
    keys: Tensor  # (B, S, H), the attention's keys; (B, 0) without attention
    source_mask: Tensor  # (B, S), True for source tokens
    weights: Tensor  # (B, S), attention weights of the last token; zeros without attention

    def reorder(self, rows: Tensor) -> "State":
        """The state of these rows (M,)."""
        return State(*(part[rows] for part in self))


class AdditiveAttention(nn.Module):
    """Attention by scores v' tanh(W s + U h) of a decoder state s and source tokens h (A.1.2)."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Attention weights (B, S) of the source tokens, zero for padding.

        The query is (B, H); keys are the outputs of `key` (B, S, H), computed once for all steps.
        """
        scores = self.score(torch.tanh(self.query(query)[:, None] + keys)).squeeze(-1)  # (B, S)
        return softmax(scores, mask)


class Seq2Seq(nn.Module):
    """A bidirectional LSTM encoder and an LSTM decoder, with or without attention."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        width, hidden = config.embedding_size, config.hidden_size
        self.source_embedding = nn.Embedding(config.source_size, width)
        self.target_embedding = nn.Embedding(config.target_size, width)
        self.encoder = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.attention = AdditiveAttention(hidden) if config.attention else None
        self.decoder = nn.LSTMCell(width + 2 * hidden, hidden)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(3 * hidden, config.target_size)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """Read sources (B, S), padded on the right: the recurrent state before the first target."""
        mask = attention_mask.bool()
        embedded = self.dropout(self.source_embedding(input_ids))  # (B, S, E)
        source, final = run_bidirectional(self.encoder, embedded, mask)  # (B, S, 2 * H), (B, 2 * H)
        hidden = torch.tanh(self.bridge(final))  # (B, H)
        memory, weights = torch.zeros_like(hidden), source.new_zeros(mask.shape)
        if self.attention is None:
            return State(hidden, memory, final, final[:, :0], mask, weights)
        return State(hidden, memory, source, self.attention.key(source), mask, weights)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits (B, V) of the tokens that follow these (B, 1), and the state after these."""
        outputs, state = self.advance(self.target_embedding(tokens).squeeze(1), state)
        return self.output(self.dropout(outputs)), state

    def advance(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the decoder for one token, given its embedding (B, E), without the output layer.

        Returns hidden state and context (B, 3 * H), inputs of the output layer before dropout, and
        the state after it. Without attention, the context is the encoder's final state.
        """
        if self.attention is None:
            weights, context = state.weights, state.source
        else:
            weights = self.attention(state.hidden, state.keys, state.source_mask)  # (B, S)
            context = (weights[:, None] @ state.source).squeeze(1)  # (B, 2 * H)
        inputs = torch.cat([self.dropout(embedded), context], dim=-1)
        hidden, memory = self.decoder(inputs, (state.hidden, state.memory))
        state = state._replace(hidden=hidden, memory=memory, weights=weights)
        return torch.cat([hidden, context], dim=-1), state

    @torch.no_grad()
    def attention_weights(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> Tensor:
        """Weights (B, T, S) of source tokens for each target token; 0 without attention."""
        steps = self._advance_forced(input_ids, attention_mask, labels)
        return torch.stack([state.weights for _, state in steps], dim=1)

    def _advance_forced(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> Iterator[tuple[Tensor, State]]:
        """What `advance` returns for each label (B, T), after bos and the labels before it."""
        state = self.encode(input_ids, attention_mask)
        previous = F.pad(labels[:, :-1], (1, 0), value=self.config.bos)
        for embedded in self.target_embedding(previous).unbind(dim=1):  # (B, E)
            outputs, state = self.advance(embedded, state)
            yield outputs, state

    def forward(
        self,
        input_ids: Tensor,  # (B, S), padded on the right
        attention_mask: Tensor,  # (B, S), 1 where there is a token
        labels: Tensor,  # (B, T), with eos at the end, padded with pad
        *,
        teacher_forcing: float,
        generator: torch.Generator | None = None,
    ) -> dict[str, Tensor]:
        """The `loss`, a mean over labels without padding, and the `logits` (B, T, V).

        With the probability `teacher_forcing`, the decoder reads the previous label, else its own
        most likely token. This is drawn for every token from `generator`, on the CPU.
        """
        coins = torch.rand(labels.shape, generator=generator).to(labels.device)
        is_forced = coins < teacher_forcing  # (B, T)
        state = self.encode(input_ids, attention_mask)
        tokens = torch.full_like(labels[:, :1], self.config.bos)  # (B, 1)
        logits = []
        for column in range(labels.shape[1]):
            scores, state = self.step(tokens, state)
            logits.append(scores)
            best = scores.argmax(dim=-1)  # (B,)
            tokens = torch.where(is_forced[:, column], labels[:, column], best)[:, None]
        stacked = torch.stack(logits, dim=1)  # (B, T, V)
        return {"loss": self._cross_entropy(stacked, labels), "logits": stacked}

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The loss of `forward` with teacher forcing; labels are padded with `config.pad`."""
        counted = labels != self.config.pad
        hidden = self.hidden(input_ids, attention_mask, labels)[counted]
        return self._cross_entropy(self.output(hidden), labels[counted])

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """Inputs (B, T, 3 * H) of the output layer for labels (B, T), with teacher forcing."""
        steps = self._advance_forced(input_ids, attention_mask, labels)
        return self.dropout(torch.stack([outputs for outputs, _ in steps], dim=1))

    def _cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of logits (..., V) with the labels (...) without padding."""
        # At least float32: half precision would round the probabilities.
        dtype = torch.promote_types(logits.dtype, torch.float)
        flat = logits.flatten(0, -2).to(dtype)
        return F.cross_entropy(flat, labels.flatten(), ignore_index=self.config.pad)


def teacher_forcing(step: int, *, decay: float) -> float:
    """Probability of teacher forcing at a training step: near 1 at first, then falling to 0.

    The inverse sigmoid of Bengio et al. 2015, section 2.4: k / (k + exp(step / k)) with k the decay
    (at least 1). It is one half after k ln k steps.
    """
    # As a hyperbolic tangent, which does not overflow.
    return (1 + math.tanh((math.log(decay) - step / decay) / 2)) / 2
