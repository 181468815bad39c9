"""Whisper (Radford et al. 2022), which writes down recordings.

Modules are named as in Hugging Face's checkpoints, which load without conversion. Shapes: B
recordings of M mel bands and 2F frames, which the encoder halves to F; texts of T new tokens after
S - T cached ones; width C, H heads of D = C / H, inner width I, vocabulary V.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import configuration, masks
from wxb.models.configuration import ACTIVATIONS
from wxb.models.decoding import Cache, KeysValues, extend


@dataclass(frozen=True)
class Config(configuration.Config):
    """The shape of a Whisper; names and values as in Hugging Face's `WhisperConfig`."""

    vocab_size: int = 51865
    num_mel_bins: int = 80
    d_model: int = 384
    encoder_layers: int = 4
    encoder_attention_heads: int = 6
    encoder_ffn_dim: int = 1536
    decoder_layers: int = 4
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 1536
    max_source_positions: int = 1500  # frames of the encoder, 20 ms each
    max_target_positions: int = 448
    activation_function: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    pad_token_id: int = 50256

    supported: ClassVar = {
        "activation_function": tuple(ACTIVATIONS),
        "scale_embedding": (False,),
        "encoder_layerdrop": (0.0,),
        "decoder_layerdrop": (0.0,),
        "apply_spec_augment": (False,),
        "tie_word_embeddings": (True,),
    }


def sinusoids(length: int, width: int) -> Tensor:
    """Sines, then cosines, of positions at wavelengths from 2π to 10,000 · 2π: (length, width).

    Vaswani et al. 2017, section 3.5, with another order of columns and last wavelength.
    """
    frequencies = 10_000 ** -torch.linspace(0, 1, width // 2)
    angles = torch.arange(length)[:, None] * frequencies  # (length, width / 2)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class _Attention(nn.Module):
    """Multi-head attention whose keys have no bias."""

    def __init__(self, heads: int, config: Config) -> None:
        super().__init__()
        width = config.d_model
        self.size = width // heads
        self.dropout = config.attention_dropout
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def keys_values(self, memory: Tensor) -> KeysValues:  # (B, S, C)
        """Keys and values (B, H, S, D) of a memory (B, S, C)."""
        keys, values = self.k_proj(memory), self.v_proj(memory)
        return masks.split_heads(keys, self.size), masks.split_heads(values, self.size)

    def forward(
        self, hidden: Tensor, keys_values: KeysValues, mask: Tensor | None = None
    ) -> Tensor:  # (B, T, C), as `hidden`; mask None: all queries attend to all keys
        query = masks.split_heads(self.q_proj(hidden), self.size)  # (B, H, T, D)
        dropout = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(query, *keys_values, mask, dropout)  # (B, H, T, D)
        return self.out_proj(context.transpose(1, 2).flatten(2))  # (B, T, C)


class _Layer(nn.Module):
    """Self-attention and MLP of both kinds of layer, each with a norm before it and a residual."""

    def __init__(self, heads: int, inner: int, config: Config) -> None:
        super().__init__()
        width = config.d_model
        self.self_attn = _Attention(heads, config)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)
        self.activation = ACTIVATIONS[config.activation_function]
        self.activation_dropout = nn.Dropout(config.activation_dropout)
        self.dropout = nn.Dropout(config.dropout)

    def add_mlp(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        inner = self.activation(self.fc1(self.final_layer_norm(hidden)))  # (B, T, I)
        return hidden + self.dropout(self.fc2(self.activation_dropout(inner)))  # (B, T, C)


class _EncoderLayer(_Layer):
    """Self-attention over all frames, then the MLP."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.encoder_attention_heads, config.encoder_ffn_dim, config)

    def forward(self, hidden: Tensor) -> Tensor:  # (B, F, C)
        normal = self.self_attn_layer_norm(hidden)
        attended = self.self_attn(normal, self.self_attn.keys_values(normal))
        return self.add_mlp(hidden + self.dropout(attended))


class _DecoderLayer(_Layer):
    """Causal self-attention, attention to the recording, then the MLP."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.decoder_attention_heads, config.decoder_ffn_dim, config)
        self.encoder_attn = _Attention(config.decoder_attention_heads, config)
        self.encoder_attn_layer_norm = nn.LayerNorm(config.d_model)

    def forward(
        self,
        hidden: Tensor,  # (B, T, C)
        mask: Tensor | None,  # of the text; None: all tokens attend to each other
        encoded: Tensor,  # (B, F, C)
        text: KeysValues | None,  # of the cached tokens, (B, H, S - T, D)
        audio: KeysValues | None,  # of the recording, (B, H, F, D); None: to be computed
    ) -> tuple[Tensor, KeysValues, KeysValues]:  # hidden, `text` with the new tokens, `audio`
        normal = self.self_attn_layer_norm(hidden)
        text = extend(text, *self.self_attn.keys_values(normal))
        hidden = hidden + self.dropout(self.self_attn(normal, text, mask))
        audio = audio or self.encoder_attn.keys_values(encoded)
        normal = self.encoder_attn_layer_norm(hidden)
        hidden = hidden + self.dropout(self.encoder_attn(normal, audio))
        return self.add_mlp(hidden), text, audio


class EncoderOutput(NamedTuple):
    """Output of the encoder."""

    last_hidden_state: Tensor  # (B, F, C)


class Seq2SeqOutput(NamedTuple):
    """Output of encoder and decoder without the head."""

    last_hidden_state: Tensor  # (B, T, C)
    past_key_values: Cache | None  # of the texts, layer by layer, then of the recordings
    encoder_last_hidden_state: Tensor  # (B, F, C)


class Seq2SeqLMOutput(NamedTuple):
    """Logits of the next token, and the mean cross-entropy if labels are given."""

    loss: Tensor | None
    logits: Tensor  # (B, T, V)
    past_key_values: Cache | None
    encoder_last_hidden_state: Tensor  # (B, F, C)


class WhisperEncoder(nn.Module):
    """Two convolutions, of which the second halves the frames, and layers of attention."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, frames = config.d_model, config.max_source_positions
        self.conv1 = nn.Conv1d(config.num_mel_bins, width, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(width, width, kernel_size=3, stride=2, padding=1)
        self.embed_positions = nn.Embedding.from_pretrained(sinusoids(frames, width), freeze=True)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(_EncoderLayer(config) for _ in range(config.encoder_layers))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, input_features: Tensor) -> EncoderOutput:  # (B, M, 2F)
        """Encode recordings of 2F frames, with F the `max_source_positions`."""
        frames = F.gelu(self.conv1(input_features))  # (B, C, 2F)
        frames = F.gelu(self.conv2(frames))  # (B, C, F)
        hidden = self.dropout(frames.transpose(1, 2) + self.embed_positions.weight)  # (B, F, C)
        for layer in self.layers:
            hidden = layer(hidden)
        return EncoderOutput(self.layer_norm(hidden))


class WhisperDecoder(nn.Module):
    """A causal decoder with attention to the recording."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.d_model
        self.embed_tokens = nn.Embedding(config.vocab_size, width, config.pad_token_id)
        self.embed_positions = nn.Embedding(config.max_target_positions, width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(_DecoderLayer(config) for _ in range(config.decoder_layers))
        self.layer_norm = nn.LayerNorm(width)

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        *,
        encoder_hidden_states: Tensor,  # (B, F, C)
        attention_mask: Tensor | None = None,  # (B, S), 1 = token, 0 = padding; None: no padding
        position_ids: Tensor | None = None,  # (B, T); None: S - T, S - T + 1, ...
        past_key_values: Cache | None = None,
        use_cache: bool = True,
    ) -> tuple[Tensor, Cache | None]:
        """Hidden states of T tokens after the cached ones, and the cache as in `Seq2SeqOutput`."""
        length, device = input_ids.shape[1], input_ids.device
        cached = past_key_values[0][0].shape[2] if past_key_values else 0
        if position_ids is None:
            position_ids = torch.arange(cached, cached + length, device=device)[None]
        mask = masks.decoder(attention_mask, length, cached + length, device)
        embedded = self.embed_tokens(input_ids) + self.embed_positions(position_ids)
        hidden = self.dropout(embedded)  # (B, T, C)
        texts, recordings = [], []
        for index, layer in enumerate(self.layers):
            past = past_key_values[index :: len(self.layers)] if past_key_values else (None, None)
            hidden, text, audio = layer(hidden, mask, encoder_hidden_states, *past)
            texts.append(text)
            recordings.append(audio)
        return self.layer_norm(hidden), (*texts, *recordings) if use_cache else None


class WhisperModel(nn.Module):
    """Encoder and decoder without the head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.encoder = WhisperEncoder(config)
        self.decoder = WhisperDecoder(config)

    def forward(
        self,
        input_features: Tensor | None = None,  # (B, M, 2F)
        *,
        decoder_input_ids: Tensor,  # (B, T)
        decoder_attention_mask: Tensor | None = None,  # (B, S), 1 = token, 0 = padding
        decoder_position_ids: Tensor | None = None,  # (B, T)
        encoder_outputs: EncoderOutput | None = None,  # instead of `input_features`
        past_key_values: Cache | None = None,
        use_cache: bool = True,
    ) -> Seq2SeqOutput:
        """Decoder states (B, T, C), cache and encoder states; `encoder_outputs` skip encoding."""
        encoded = (encoder_outputs or self.encoder(input_features)).last_hidden_state
        hidden, cache = self.decoder(
            decoder_input_ids,
            encoder_hidden_states=encoded,
            attention_mask=decoder_attention_mask,
            position_ids=decoder_position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
        )
        return Seq2SeqOutput(hidden, cache, encoded)


class WhisperForConditionalGeneration(nn.Module):
    """Encoder and decoder with a head that shares the weights of the word embeddings."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.model = WhisperModel(config)
        self.proj_out = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.proj_out.weight = self.model.decoder.embed_tokens.weight

    def forward(
        self,
        input_features: Tensor | None = None,
        *,
        labels: Tensor | None = None,  # (B, T), shifted already: the next tokens; -100 is ignored
        **inputs: Any,  # as in `WhisperModel`
    ) -> Seq2SeqLMOutput:
        """Logits after each token; their loss if `labels`, the next tokens, are given."""
        output = self.model(input_features, **inputs)
        logits = self.proj_out(output.last_hidden_state)  # (B, T, V)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(loss, logits, *output[1:])
