"""BERT (Devlin et al. 2019), a bidirectional encoder.

Modules are named as in Hugging Face's checkpoints, which load without conversion. Shapes: B texts
of T tokens, width C, H heads of D = C / H, inner width I, vocabulary V.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import configuration, masks
from wxb.models.configuration import ACTIVATIONS


@dataclass(frozen=True)
class Config(configuration.Config):
    """The shape of a BERT; names and values as in Hugging Face's `BertConfig`."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0

    supported: ClassVar = {
        "hidden_act": tuple(ACTIVATIONS),
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    }


class _Embeddings(nn.Module):
    """The sum of the embeddings of tokens, positions and segments, normalized."""

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
    ) -> Tensor:
        types = self.token_type_embeddings
        hidden = words + (types.weight[0] if token_type_ids is None else types(token_type_ids))
        hidden = hidden + self.position_embeddings.weight[: words.shape[1]]
        return self.dropout(self.LayerNorm(hidden))  # (B, T, C)


class _SelfAttention(nn.Module):
    """Multi-head attention of each token to unmasked ones (Vaswani et al. 2017, section 3.2.2)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.hidden_size
        self.size = width // config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:  # (B, T, C)
        query = masks.split_heads(self.query(hidden), self.size)  # (B, H, T, D)
        key = masks.split_heads(self.key(hidden), self.size)
        value = masks.split_heads(self.value(hidden), self.size)
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, mask, dropout)  # (B, H, T, D)
        return attended.transpose(1, 2).flatten(2)  # (B, T, C)


class _Residual(nn.Module):
    """Projection of a sublayer's output, residual connection and norm."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, output: Tensor, hidden: Tensor) -> Tensor:  # (B, T, inputs), (B, T, C)
        return self.LayerNorm(hidden + self.dropout(self.dense(output)))  # (B, T, C)


class _Layer(nn.Module):
    """Attention, then two linear layers for each token separately; each half with its residual."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = nn.ModuleDict(
            {"self": _SelfAttention(config), "output": _Residual(width, config)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.activation = ACTIVATIONS[config.hidden_act]
        self.output = _Residual(inner, config)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:  # (B, T, C)
        context = self.attention["self"](hidden, mask)  # (B, T, C)
        attended = self.attention["output"](context, hidden)  # (B, T, C)
        inner = self.activation(self.intermediate["dense"](attended))  # (B, T, I)
        return self.output(inner, attended)  # (B, T, C)


class EncoderOutput(NamedTuple):
    """Output of the encoder."""

    last_hidden_state: Tensor  # (B, T, C)
    pooler_output: Tensor | None  # (B, C)


class PreTrainingOutput(NamedTuple):
    """Logits of the two heads of pretraining, and the sum of their losses if labels are given."""

    loss: Tensor | None
    prediction_logits: Tensor  # (B, T, V)
    seq_relationship_logits: Tensor  # (B, 2): the second segment follows, or does not


class BertModel(nn.Module):
    """The encoder without heads. Its pooler computes a vector of each text from the first token."""

    def __init__(self, config: Config, add_pooling_layer: bool = True) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})
        self.pooler = nn.ModuleDict()
        if add_pooling_layer:
            self.pooler["dense"] = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T), padded on the right, as positions count from 0
        attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding; None: no padding
        token_type_ids: Tensor | None = None,  # (B, T), the segment of each token; None: all 0
        inputs_embeds: Tensor | None = None,  # (B, T, C), instead of `input_ids`
    ) -> EncoderOutput:
        """Hidden states of ids or embeddings, and their pooled output: None without a pooler."""
        if inputs_embeds is None:
            inputs_embeds = self.embeddings.word_embeddings(input_ids)
        mask = None if attention_mask is None else masks.tokens(attention_mask)
        hidden = self.embeddings(inputs_embeds, token_type_ids)  # (B, T, C)
        for layer in self.encoder["layer"].children():
            hidden = layer(hidden, mask)  # (B, T, C)
        pooled = torch.tanh(self.pooler["dense"](hidden[:, 0])) if self.pooler else None  # (B, C)
        return EncoderOutput(hidden, pooled)


class _WordPrediction(nn.Module):
    """The head for masked words: a hidden layer, then the word embeddings' weights and a bias."""

    def __init__(self, config: Config, words: nn.Embedding) -> None:
        super().__init__()
        width = config.hidden_size
        norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.transform = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": norm})
        self.activation = ACTIVATIONS[config.hidden_act]
        self.decoder = nn.Linear(width, config.vocab_size)
        self.decoder.weight = words.weight
        self.bias = self.decoder.bias  # checkpoints have it under both names

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        hidden = self.activation(self.transform["dense"](hidden))  # (B, T, C)
        return self.decoder(self.transform["LayerNorm"](hidden))  # (B, T, V)


class BertForPreTraining(nn.Module):
    """BERT with the heads for masked words and next sentences (section 3.1)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.bert = BertModel(config)
        next_sentence = nn.Linear(config.hidden_size, 2)
        words = _WordPrediction(config, self.bert.embeddings.word_embeddings)
        self.cls = nn.ModuleDict({"predictions": words, "seq_relationship": next_sentence})

    def forward(
        self,
        *inputs: Tensor | None,  # as in `BertModel`
        labels: Tensor | None = None,  # (B, T), the masked words; -100 at other tokens
        next_sentence_label: Tensor | None = None,  # (B,), 0 = follows, 1 = does not
        **options: Tensor | None,
    ) -> PreTrainingOutput:
        """Logits of both heads, and the loss if labels of both kinds are given."""
        encoded = self.bert(*inputs, **options)
        words = self.cls["predictions"](encoded.last_hidden_state)  # (B, T, V)
        pairs = self.cls["seq_relationship"](encoded.pooler_output)  # (B, 2)
        loss = None
        if labels is not None and next_sentence_label is not None:
            word_loss = F.cross_entropy(words.flatten(0, 1), labels.flatten())
            loss = word_loss + F.cross_entropy(pairs, next_sentence_label.flatten())
        return PreTrainingOutput(loss, words, pairs)
