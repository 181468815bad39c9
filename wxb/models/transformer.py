"""The Transformer (Vaswani et al. 2017): encoder and decoder, normalised after each sublayer.

Or before each, as most are today.

`Transformer` is equal to `torch.nn.Transformer` under the same names; `Translator` puts embeddings,
positions and a vocabulary around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import masks
from wxb.models.attention import Dropout, MultiHeadAttention, sinusoids


@dataclass(frozen=True)
class Config:
    """Sizes, named as in the paper's table 3 in words, and the ids of special tokens."""

    source_size: int
    target_size: int
    width: int = 512
    heads: int = 8
    layers: int = 6
    feed_forward: int = 2048
    dropout: float = 0.1
    norm_first: bool = False  # normalise before each sublayer: learns sooner (Xiong et al. 2020)
    label_smoothing: float = 0.1
    max_length: int = 512
    pad: int = 0
    bos: int = 1
    eos: int = 2


class Cache(NamedTuple):
    """Keys and values that a decoder layer has made: of the target so far and of the source."""

    keys: Tensor  # (B, h, T, d)
    values: Tensor  # (B, h, T, d)
    source_keys: Tensor  # (B, h, S, d)
    source_values: Tensor  # (B, h, S, d)

    @property
    def length(self) -> int:
        """Target tokens so far."""
        return self.keys.shape[2]


class State(NamedTuple):
    """What the decoder remembers of each row: a cache for each layer, and the source's mask."""

    layers: tuple[Cache, ...]
    seen: Tensor  # (B, 1, 1, S)

    def reorder(self, rows: Tensor) -> State:
        """The state of these rows (M,)."""
        layers = tuple(Cache(*(part[rows] for part in layer)) for layer in self.layers)
        return State(layers, self.seen[rows])


class FeedForward(nn.Module):
    """Two linear layers at each position by itself (section 3.3); part of both kinds of layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.linear1 = nn.Linear(config.width, config.feed_forward)
        self.linear2 = nn.Linear(config.feed_forward, config.width)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def before(self, norm: nn.Module, hidden: Tensor) -> Tensor:
        """What a sublayer reads."""
        return norm(hidden) if self.norm_first else hidden

    def after(self, norm: nn.Module, hidden: Tensor) -> Tensor:
        """What it leaves, added to what there was."""
        return hidden if self.norm_first else norm(hidden)

    def feed(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        """The layers' output (B, T, C)."""
        output: Tensor = self.dropout(self.linear2(self.dropout(self.linear1(hidden).relu())))
        return output


class EncoderLayer(FeedForward):
    """Self-attention, then the feed-forward layers."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.width, config.heads, config.dropout)
        self.norm1 = nn.LayerNorm(config.width)
        self.norm2 = nn.LayerNorm(config.width)

    def forward(self, hidden: Tensor, seen: Tensor) -> Tensor:
        """The next layer's input (B, S, C), of (B, S, C) and a mask (B, 1, 1, S)."""
        inputs = self.before(self.norm1, hidden)
        found = self.self_attn(inputs, *self.self_attn.keys_values(inputs), seen)
        hidden = self.after(self.norm1, hidden + self.dropout(found))
        fed = self.feed(self.before(self.norm2, hidden))
        return self.after(self.norm2, hidden + fed)


class DecoderLayer(FeedForward):
    """Self-attention to what is written, attention to the source, the feed-forward layers."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.width, config.heads, config.dropout)
        self.multihead_attn = MultiHeadAttention(config.width, config.heads, config.dropout)
        self.norm1 = nn.LayerNorm(config.width)
        self.norm2 = nn.LayerNorm(config.width)
        self.norm3 = nn.LayerNorm(config.width)

    def start(self, memory: Tensor) -> Cache:
        """The cache before the first token, of the encoder's output (B, S, C)."""
        nothing = self.self_attn.keys_values(memory[:, :0])
        return Cache(*nothing, *self.multihead_attn.keys_values(memory))

    def forward(
        self, hidden: Tensor, cache: Cache, written: Tensor | None, seen: Tensor
    ) -> tuple[Tensor, Cache]:
        """The next layer's input (B, T, C) for the new tokens (B, T, C), and the longer cache.

        The masks are those of the target so far (B, 1, T, cached + T) and the source (B, 1, 1, S).
        """
        inputs = self.before(self.norm1, hidden)
        keys, values = self.self_attn.keys_values(inputs)
        cache = cache._replace(
            keys=torch.cat([cache.keys, keys], dim=2),
            values=torch.cat([cache.values, values], dim=2),
        )
        found = self.self_attn(inputs, cache.keys, cache.values, written)
        hidden = self.after(self.norm1, hidden + self.dropout(found))
        inputs = self.before(self.norm2, hidden)
        found = self.multihead_attn(inputs, cache.source_keys, cache.source_values, seen)
        hidden = self.after(self.norm2, hidden + self.dropout(found))
        fed = self.feed(self.before(self.norm3, hidden))
        return self.after(self.norm3, hidden + fed), cache


class Encoder(nn.Module):
    """Layers, and a last normalisation, which `nn.Transformer` has and the paper has not."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, hidden: Tensor, seen: Tensor) -> Tensor:
        """The source in context (B, S, C), of (B, S, C) and a mask (B, 1, 1, S)."""
        for layer in self.layers:
            hidden = layer(hidden, seen)
        output: Tensor = self.norm(hidden)
        return output


class Decoder(nn.Module):
    """Layers, and a last normalisation as in the encoder."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(
        self, hidden: Tensor, state: State, written: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """What follows the new tokens (B, T, C), and the state behind them.

        The mask (B, 1, T, cached + T) tells what they see of the target; a single token sees all.
        """
        caches = []
        for layer, cache in zip(self.layers, state.layers, strict=True):
            hidden, cache = layer(hidden, cache, written, state.seen)
            caches.append(cache)
        return self.norm(hidden), state._replace(layers=tuple(caches))


class Transformer(nn.Module):
    """Encoder and decoder between vectors: `nn.Transformer(batch_first=True)`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        """Encode the source (B, S, C) with its mask (B, S): the state before the first token."""
        seen = masks.padding(source_mask)
        memory = self.encoder(source, seen)
        layers = (cast(DecoderLayer, layer) for layer in self.decoder.layers)
        return State(tuple(layer.start(memory) for layer in layers), seen)

    def forward(
        self,
        source: Tensor,  # (B, S, C)
        target: Tensor,  # (B, T, C)
        source_mask: Tensor,  # (B, S), 1 where there is a token
        target_mask: Tensor | None = None,  # (B, T)
    ) -> Tensor:
        """What follows each target token (B, T, C), which sees those before it and the source.

        Padding behind the target needs no mask, as no token sees what comes after it.
        """
        length = target.shape[1]
        written = masks.decoder(target_mask, length, length, target.device)
        hidden: Tensor = self.decoder(target, self.start(source, source_mask), written)[0]
        return hidden


class Translator(nn.Module):
    """Embeddings and positions before a Transformer; the target's embedding is the last layer too.

    As in section 3.4, except that source and target have vocabularies of their own.
    """

    positions: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = nn.Embedding(config.source_size, config.width)
        self.target_embedding = nn.Embedding(config.target_size, config.width)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=config.width**-0.5)
        self.transformer = Transformer(config)
        self.dropout = Dropout(config.dropout)
        table = torch.from_numpy(sinusoids(config.max_length, config.width)).float()
        self.register_buffer("positions", table, persistent=False)

    def embed(self, embedding: nn.Embedding, ids: Tensor, first: int = 0) -> Tensor:
        """Embeddings of ids (B, T), scaled to the positions' size, at positions from `first` on.

        Raises ValueError where they go past the longest that the model was made for.
        """
        last = first + ids.shape[1]
        if last > self.config.max_length:
            raise ValueError(f"a text of {last} tokens, max_length is {self.config.max_length}")
        scaled = embedding(ids) * self.config.width**0.5  # (B, T, C)
        embedded: Tensor = self.dropout(scaled + self.positions[first:last])
        return embedded

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """The state before the first token, of source ids and mask (B, S)."""
        return self.transformer.start(self.embed(self.source_embedding, input_ids), attention_mask)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits (B, V) of the tokens that follow these (B, T), and the state behind them."""
        past, length = state.layers[0].length, tokens.shape[1]
        target = self.embed(self.target_embedding, tokens, first=past)  # (B, T, C)
        written = masks.decoder(None, length, past + length, tokens.device)
        hidden, state = self.transformer.decoder(target, state, written)
        return self.logits(hidden[:, -1]), state

    @torch.no_grad()
    def attention_weights(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> Tensor:
        """What each of the tokens (B, T) looked at in the source (B, S), as it was written.

        Weights (B, T, S) that sum to 1: those of the last layer, the mean of its heads.
        """
        last = cast(DecoderLayer, self.transformer.decoder.layers[-1]).multihead_attn
        found: list[Tensor] = []
        hook = last.register_forward_hook(
            lambda _, inputs, __: found.append(last.weights(inputs[0], inputs[1], inputs[3]))
        )
        try:
            self(input_ids, attention_mask, labels)
        finally:
            hook.remove()
        return found[0].mean(dim=1)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of the decoder's output (..., C)."""
        return F.linear(hidden, self.target_embedding.weight)

    def forward(
        self,
        input_ids: Tensor,  # (B, S)
        attention_mask: Tensor,  # (B, S), 1 where there is a token
        labels: Tensor,  # (B, T), ending with eos and padded with pad
    ) -> dict[str, Tensor]:
        """Label-smoothed loss over the labels that are no padding, and logits (B, T, V)."""
        config = self.config
        logits = self.logits(self.hidden(input_ids, attention_mask, labels))
        loss = smoothed_loss(logits, labels, smoothing=config.label_smoothing, ignored=config.pad)
        return {"loss": loss, "logits": logits}

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The loss of `forward`, without logits where there is padding."""
        config = self.config
        counted = labels != config.pad
        hidden = self.hidden(input_ids, attention_mask, labels)[counted]  # (N, C)
        smoothing = config.label_smoothing
        return smoothed_loss(
            self.logits(hidden), labels[counted], smoothing=smoothing, ignored=config.pad
        )

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """What the logits of labels (B, T) are made of (B, T, C)."""
        target_ids = F.pad(labels[:, :-1], (1, 0), value=self.config.bos)  # (B, T)
        output: Tensor = self.transformer(
            self.embed(self.source_embedding, input_ids),
            self.embed(self.target_embedding, target_ids),
            attention_mask,
        )
        return output


def smoothed_loss(logits: Tensor, labels: Tensor, *, smoothing: float, ignored: int) -> Tensor:
    """Cross-entropy of logits (..., V) with labels (...), each a little unsure (section 5.4).

    The label has the probability 1 - smoothing, and all tokens share the rest alike (Szegedy et al.
    2016, section 7). The mean is over the labels that are not `ignored`, and 0 if there is none.
    """
    # In half precision the probabilities would be rounded.
    exact = torch.promote_types(logits.dtype, torch.float)
    total = F.cross_entropy(
        logits.flatten(0, -2).to(exact),
        labels.flatten(),
        ignore_index=ignored,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return total / (labels != ignored).sum().clamp(min=1)
