"""The Transformer (Vaswani et al. 2017): encoder and decoder, with norms after or before sublayers.

`Transformer` has the parameters and outputs of `torch.nn.Transformer`. `Translator` adds
embeddings, positions and a vocabulary.
"""

from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import masks
from wxb.models.attention import Dropout, MultiHeadAttention, sinusoids
from wxb.models.decoding import extend


@dataclass(frozen=True)
class Config:
    """Sizes of the paper's table 3, and the ids of special tokens."""

    source_size: int
    target_size: int
    width: int = 512
    heads: int = 8
    layers: int = 6
    feed_forward: int = 2048
    dropout: float = 0.1
    norm_first: bool = False  # norm before each sublayer: trains faster (Xiong et al. 2020)
    label_smoothing: float = 0.1
    max_length: int = 512
    pad: int = 0
    bos: int = 1
    eos: int = 2


class Cache(NamedTuple):
    """Keys and values of a decoder layer: of the target so far and of the source."""

    keys: Tensor  # (B, h, T, d)
    values: Tensor  # (B, h, T, d)
    source_keys: Tensor  # (B, h, S, d)
    source_values: Tensor  # (B, h, S, d)


class State(NamedTuple):
    """The state of each row in generation: a cache for each layer, and the source's mask."""

    layers: tuple[Cache, ...]
    source_mask: Tensor  # (B, 1, 1, S)

    def reorder(self, rows: Tensor) -> "State":
        """The state of these rows (M,)."""
        layers = tuple(Cache(*(part[rows] for part in layer)) for layer in self.layers)
        return State(layers, self.source_mask[rows])


class FeedForward(nn.Module):
    """Base of both kinds of layer: two linear layers at each position (section 3.3), and norms."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.linear1 = nn.Linear(config.width, config.feed_forward)
        self.linear2 = nn.Linear(config.feed_forward, config.width)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def pre_norm(self, norm: nn.Module, hidden: Tensor) -> Tensor:
        """Normalize the input of a sublayer if `norm_first`."""
        return norm(hidden) if self.norm_first else hidden

    def post_norm(self, norm: nn.Module, hidden: Tensor) -> Tensor:
        """Normalize the sum of a sublayer's output and residual unless `norm_first`."""
        return hidden if self.norm_first else norm(hidden)

    def feed(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        """Output of the linear layers (B, T, C)."""
        return self.dropout(self.linear2(self.dropout(self.linear1(hidden).relu())))


class EncoderLayer(FeedForward):
    """Self-attention, then the feed-forward layers."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.width, config.heads, config.dropout)
        self.norm1 = nn.LayerNorm(config.width)
        self.norm2 = nn.LayerNorm(config.width)

    def forward(self, hidden: Tensor, source_mask: Tensor) -> Tensor:
        """Hidden states (B, S, C) from those of the layer before and a mask (B, 1, 1, S)."""
        inputs = self.pre_norm(self.norm1, hidden)
        attended = self.self_attn(inputs, *self.self_attn.keys_values(inputs), source_mask)
        hidden = self.post_norm(self.norm1, hidden + self.dropout(attended))
        output = self.feed(self.pre_norm(self.norm2, hidden))
        return self.post_norm(self.norm2, hidden + output)


class DecoderLayer(FeedForward):
    """Self-attention to the target, attention to the source, then the feed-forward layers."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.width, config.heads, config.dropout)
        self.multihead_attn = MultiHeadAttention(config.width, config.heads, config.dropout)
        self.norm1 = nn.LayerNorm(config.width)
        self.norm2 = nn.LayerNorm(config.width)
        self.norm3 = nn.LayerNorm(config.width)

    def initial_cache(self, memory: Tensor) -> Cache:
        """The cache before the first token, from the encoder's output (B, S, C)."""
        empty = self.self_attn.keys_values(memory[:, :0])
        return Cache(*empty, *self.multihead_attn.keys_values(memory))

    def forward(
        self, hidden: Tensor, cache: Cache, target_mask: Tensor | None, source_mask: Tensor
    ) -> tuple[Tensor, Cache]:
        """Hidden states (B, T, C) of the new tokens (B, T, C), and the cache with these appended.

        The masks are of the source (B, 1, 1, S) and target (B, 1, T, cached + T; None: no mask).
        """
        inputs = self.pre_norm(self.norm1, hidden)
        past = cache.keys, cache.values
        keys, values = extend(past, *self.self_attn.keys_values(inputs))
        cache = cache._replace(keys=keys, values=values)
        attended = self.self_attn(inputs, keys, values, target_mask)
        hidden = self.post_norm(self.norm1, hidden + self.dropout(attended))
        inputs = self.pre_norm(self.norm2, hidden)
        attended = self.multihead_attn(inputs, cache.source_keys, cache.source_values, source_mask)
        hidden = self.post_norm(self.norm2, hidden + self.dropout(attended))
        output = self.feed(self.pre_norm(self.norm3, hidden))
        return self.post_norm(self.norm3, hidden + output), cache


class Encoder(nn.Module):
    """Layers and a final norm, which `nn.Transformer` has and the paper has not."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, hidden: Tensor, source_mask: Tensor) -> Tensor:
        """Hidden states (B, S, C) of a source (B, S, C) with a mask (B, 1, 1, S)."""
        for layer in self.layers:
            hidden = layer(hidden, source_mask)
        return self.norm(hidden)


class Decoder(nn.Module):
    """Layers and a final norm."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(
        self, hidden: Tensor, state: State, target_mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Hidden states of the new tokens (B, T, C), and the state after them.

        The mask is of the target so far (B, 1, T, cached + T); a single token needs none.
        """
        caches = []
        for layer, cache in zip(self.layers, state.layers, strict=True):
            hidden, cache = layer(hidden, cache, target_mask, state.source_mask)
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

    def encode(self, source: Tensor, source_mask: Tensor) -> State:
        """Encode the source (B, S, C) with its mask (B, S): the state before the first token."""
        mask = masks.tokens(source_mask)
        memory = self.encoder(source, mask)
        layers = (cast(DecoderLayer, layer) for layer in self.decoder.layers)
        return State(tuple(layer.initial_cache(memory) for layer in layers), mask)

    def forward(
        self,
        source: Tensor,  # (B, S, C)
        target: Tensor,  # (B, T, C)
        source_mask: Tensor,  # (B, S), 1 where there is a token
        target_mask: Tensor | None = None,  # (B, T); padding on the right needs none
    ) -> Tensor:
        """Hidden states of the target tokens (B, T, C), with causal attention."""
        length = target.shape[1]
        mask = masks.decoder(target_mask, length, length, target.device)
        return self.decoder(target, self.encode(source, source_mask), mask)[0]


class Translator(nn.Module):
    """A Transformer with embeddings, positions and a head that shares the target's embeddings.

    As in section 3.4, except that source and target have separate vocabularies.
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
        """Scaled embeddings of ids (B, T) plus position encodings from `first` on, with dropout."""
        scaled = embedding(ids) * self.config.width**0.5  # (B, T, C)
        return self.dropout(scaled + self.positions[first : first + ids.shape[1]])

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """Encode source ids with their mask (B, S): the state before the first target token."""
        return self.transformer.encode(self.embed(self.source_embedding, input_ids), attention_mask)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits (B, V) of the tokens that follow these (B, T), and the state after these."""
        past, length = state.layers[0].keys.shape[2], tokens.shape[1]
        target = self.embed(self.target_embedding, tokens, first=past)  # (B, T, C)
        mask = masks.decoder(None, length, past + length, tokens.device)
        hidden, state = self.transformer.decoder(target, state, mask)
        return self.logits(hidden[:, -1]), state

    @torch.no_grad()
    def attention_weights(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> Tensor:
        """Attention of target tokens (B, T) to source tokens (B, S): weights (B, T, S).

        They are those of the last layer, averaged over its heads, and sum to 1.
        """
        last = cast(DecoderLayer, self.transformer.decoder.layers[-1]).multihead_attn
        weights: list[Tensor] = []
        with last.register_forward_hook(
            lambda _, inputs, __: weights.append(last.weights(inputs[0], inputs[1], inputs[3]))
        ):
            self.hidden(input_ids, attention_mask, labels)
        return weights[0].mean(dim=1)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of the decoder's output (..., C)."""
        return F.linear(hidden, self.target_embedding.weight)

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """Label-smoothed loss over labels (B, T), which end with eos and are padded with pad."""
        config = self.config
        counted = labels != config.pad
        hidden = self.hidden(input_ids, attention_mask, labels)[counted]  # (N, C)
        logits, labels = self.logits(hidden), labels[counted]
        return smoothed_loss(logits, labels, smoothing=config.label_smoothing, ignored=config.pad)

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """Hidden states (B, T, C) to predict labels (B, T) from bos and the labels before each."""
        target_ids = F.pad(labels[:, :-1], (1, 0), value=self.config.bos)  # (B, T)
        return self.transformer(
            self.embed(self.source_embedding, input_ids),
            self.embed(self.target_embedding, target_ids),
            attention_mask,
        )


def smoothed_loss(logits: Tensor, labels: Tensor, *, smoothing: float, ignored: int) -> Tensor:
    """Cross-entropy of logits (..., V) with smoothed labels (...) (section 5.4).

    The label has the probability 1 - smoothing + smoothing / V, every other token smoothing / V
    (Szegedy et al. 2016, section 7). The mean is over labels that are not `ignored`; 0 if none.
    """
    # At least float32: half precision would round the probabilities.
    dtype = torch.promote_types(logits.dtype, torch.float)
    total = F.cross_entropy(
        logits.flatten(0, -2).to(dtype),
        labels.flatten(),
        ignore_index=ignored,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return total / (labels != ignored).sum().clamp(min=1)
