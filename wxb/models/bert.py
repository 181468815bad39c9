"""BERT (Devlin et al. 2019), an encoder that reads in both directions.

Modules are called as in Hugging Face's checkpoints, whose weights fit as they are. Shapes: B texts
of T tokens, width C, H heads of D = C / H, vocabulary V, K labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import configuration, masks
from wxb.models.configuration import ACTIVATIONS


@dataclass(frozen=True)
class Config:
    """The shape of a BERT; names and values as in Hugging Face's `BertConfig`."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None  # None: `hidden_dropout_prob`
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    num_labels: int = 2

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads"
                f" {self.num_attention_heads}"
            )

    @classmethod
    def from_hf(cls, config: Any) -> Self:
        """The shape that a `transformers.BertConfig` states; ValueError where it is not this one's.

        Decoders, relative positions, decoder weights of their own and regression are left out.
        """
        return configuration.from_hf(
            cls,
            config,
            hidden_act=tuple(ACTIVATIONS),
            position_embedding_type=("absolute",),
            is_decoder=(False,),
            add_cross_attention=(False,),
            tie_word_embeddings=(True,),
            problem_type=(None, "single_label_classification"),
        )


class _Embeddings(nn.Module):
    """The sum of what a token is, where it stands and to which segment it belongs, normalised."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        words: Tensor,  # (B, T, C)
        token_type_ids: Tensor | None,  # (B, T); None: all 0
        position_ids: Tensor | None,  # (B, T); None: 0, 1, 2, ...
    ) -> Tensor:
        length, longest = words.shape[1], self.position_embeddings.num_embeddings
        if position_ids is None and length > longest:
            raise ValueError(f"found {length} tokens; the model has positions for {longest}")
        types = self.token_type_embeddings
        places = self.position_embeddings
        hidden = words + (types.weight[0] if token_type_ids is None else types(token_type_ids))
        hidden = hidden + (places.weight[:length] if position_ids is None else places(position_ids))
        normal: Tensor = self.dropout(self.LayerNorm(hidden))  # (B, T, C)
        return normal


class _SelfAttention(nn.Module):
    """Multi-head attention of every token to every token (Vaswani et al. 2017, section 3.2.2)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:  # (B, T, C)
        query = self._split(self.query(hidden))  # (B, H, T, D)
        key = self._split(self.key(hidden))
        value = self._split(self.value(hidden))
        dropout = self.dropout if self.training else 0.0
        attended = masks.attend(query, key, value, mask, dropout=dropout)  # (B, H, T, D)
        return attended.transpose(1, 2).flatten(2)  # (B, T, C)

    def _split(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        batch, length, _ = hidden.shape
        return hidden.view(batch, length, self.heads, -1).transpose(1, 2)  # (B, H, T, D)


class _Residual(nn.Module):
    """Projects what a sublayer found, adds it to what the sublayer read, and normalises the sum."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, found: Tensor, hidden: Tensor) -> Tensor:  # (B, T, inputs), (B, T, C)
        normal: Tensor = self.LayerNorm(hidden + self.dropout(self.dense(found)))  # (B, T, C)
        return normal


class _Attention(nn.Module):
    """The first half of a layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Residual(config.hidden_size, config)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:  # (B, T, C)
        attended: Tensor = self.output(self.self(hidden, mask), hidden)  # (B, T, C)
        return attended


class _Activated(nn.Module):
    """A linear layer and its activation."""

    def __init__(self, inputs: int, outputs: int, activation: str) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)
        self.activation = ACTIVATIONS[activation]

    def forward(self, hidden: Tensor) -> Tensor:  # (..., inputs)
        return self.activation(self.dense(hidden))  # (..., outputs)


class _Layer(nn.Module):
    """Attention, then two linear layers for each token alone; each half with its residual."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Activated(
            config.hidden_size, config.intermediate_size, config.hidden_act
        )
        self.output = _Residual(config.intermediate_size, config)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:  # (B, T, C)
        attended = self.attention(hidden, mask)  # (B, T, C)
        output: Tensor = self.output(self.intermediate(attended), attended)  # (B, T, C)
        return output


class _Encoder(nn.Module):
    """The layers, one after another."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:  # (B, T, C)
        for layer in self.layer:
            hidden = layer(hidden, mask)
        return hidden


class _Pooler(nn.Module):
    """A text's vector, from that of its first token."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        return torch.tanh(self.dense(hidden[:, 0]))  # (B, C)


class Encoded(NamedTuple):
    """What the encoder makes of texts."""

    last_hidden_state: Tensor  # (B, T, C)
    pooler_output: Tensor | None  # (B, C)


class PreTrained(NamedTuple):
    """What the two heads of pretraining say, and the sum of their losses."""

    loss: Tensor | None
    prediction_logits: Tensor  # (B, T, V)
    seq_relationship_logits: Tensor  # (B, 2): the second segment follows, or does not


class Labelled(NamedTuple):
    """Logits over V or K, and the mean cross-entropy where labels are given."""

    loss: Tensor | None
    logits: Tensor


class BertModel(nn.Module):
    """The encoder without heads."""

    def __init__(self, config: Config, add_pooling_layer: bool = True) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        self.encoder = _Encoder(config)
        self.pooler = _Pooler(config) if add_pooling_layer else None
        _initialise(self, config)

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T)
        attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding
        token_type_ids: Tensor | None = None,  # (B, T), the segment of each token
        position_ids: Tensor | None = None,  # (B, T)
        inputs_embeds: Tensor | None = None,  # (B, T, C), in place of `input_ids`
    ) -> Encoded:
        """Encode texts; ValueError unless either ids or embeddings are given, and not too many."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("expected either input_ids or inputs_embeds")
        if inputs_embeds is None:
            inputs_embeds = self.embeddings.word_embeddings(input_ids)
        mask = None if attention_mask is None else masks.padding(attention_mask)
        hidden = self.embeddings(inputs_embeds, token_type_ids, position_ids)
        hidden = self.encoder(hidden, mask)  # (B, T, C)
        return Encoded(hidden, self.pooler(hidden) if self.pooler else None)


class _Transform(_Activated):
    """What a token's vector goes through before it is compared with the words."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.hidden_size, config.hidden_size, config.hidden_act)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        normal: Tensor = self.LayerNorm(super().forward(hidden))  # (B, T, C)
        return normal


class _WordPrediction(nn.Module):
    """Which word stands at each token: the product with every word's embedding, and a bias."""

    def __init__(self, config: Config, words: nn.Embedding) -> None:
        super().__init__()
        self.transform = _Transform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        _initialise(self, config)
        self.decoder.weight = words.weight
        self.bias = self.decoder.bias  # checkpoints hold it under both names

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        logits: Tensor = self.decoder(self.transform(hidden))  # (B, T, V)
        return logits


class BertForPreTraining(nn.Module):
    """Finds masked words, and tells whether the second segment follows the first (section 3.1)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.bert = BertModel(config)
        follows = nn.Linear(config.hidden_size, 2)
        _initialise(follows, config)
        words = _WordPrediction(config, self.bert.embeddings.word_embeddings)
        self.cls = nn.ModuleDict({"predictions": words, "seq_relationship": follows})

    def forward(
        self,
        *inputs: Tensor | None,  # as of `BertModel`
        labels: Tensor | None = None,  # (B, T), the masked words; -100 at other tokens
        next_sentence_label: Tensor | None = None,  # (B,), 0 = follows, 1 = does not
        **named: Tensor | None,
    ) -> PreTrained:
        """The logits of both heads, and the loss where both kinds of labels are given."""
        encoded = self.bert(*inputs, **named)
        words = self.cls["predictions"](encoded.last_hidden_state)  # (B, T, V)
        follows = self.cls["seq_relationship"](encoded.pooler_output)  # (B, 2)
        loss = None
        if labels is not None and next_sentence_label is not None:
            loss = _cross_entropy(words, labels) + _cross_entropy(follows, next_sentence_label)
        return PreTrained(loss, words, follows)


class BertForMaskedLM(nn.Module):
    """Finds masked words."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        words = _WordPrediction(config, self.bert.embeddings.word_embeddings)
        self.cls = nn.ModuleDict({"predictions": words})

    def forward(
        self,
        *inputs: Tensor | None,  # as of `BertModel`
        labels: Tensor | None = None,  # (B, T), the masked words; -100 at other tokens
        **named: Tensor | None,
    ) -> Labelled:
        """Logits (B, T, V), and the loss where labels are given."""
        encoded = self.bert(*inputs, **named)
        return _labelled(self.cls["predictions"](encoded.last_hidden_state), labels)


class _Classifier(nn.Module):
    """An encoder, dropout and one linear layer over K labels."""

    def __init__(self, config: Config, *, pools: bool) -> None:
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=pools)
        dropout = config.classifier_dropout
        self.dropout = nn.Dropout(config.hidden_dropout_prob if dropout is None else dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        _initialise(self.classifier, config)

    def forward(
        self,
        *inputs: Tensor | None,  # as of `BertModel`
        labels: Tensor | None = None,  # (B,) of texts, or (B, T) of tokens; -100 does not count
        **named: Tensor | None,
    ) -> Labelled:
        """Logits, of texts (B, K) or tokens (B, T, K), and the loss where labels are given."""
        encoded = self.bert(*inputs, **named)
        found = encoded.last_hidden_state if self.bert.pooler is None else encoded.pooler_output
        return _labelled(self.classifier(self.dropout(found)), labels)


class BertForSequenceClassification(_Classifier):
    """Which of K labels a text has; ValueError for one, which transformers takes for regression."""

    def __init__(self, config: Config) -> None:
        if config.num_labels < 2:
            raise ValueError(f"num_labels: found {config.num_labels}; expected 2 or more")
        super().__init__(config, pools=True)


class BertForTokenClassification(_Classifier):
    """Which of K labels each token has."""

    def __init__(self, config: Config) -> None:
        super().__init__(config, pools=False)


def _labelled(logits: Tensor, labels: Tensor | None) -> Labelled:
    return Labelled(None if labels is None else _cross_entropy(logits, labels), logits)


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:  # (..., K), (...)
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def _initialise(model: nn.Module, config: Config) -> None:
    """Initial weights as in BERT's own code: normal, and 0 for biases and padding."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])
