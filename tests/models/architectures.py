"""Small native architectures, with the random settings, inputs and labels that tests need."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import transformers
from hypothesis import strategies as st

from tests.models.equal import dtypes, padding, perturb, tolerance, twin
from wxb.models import bert, gpt2, llama, whisper

VOCABULARY, LONGEST, BANDS, FRAMES, START = 30, 24, 6, 20, 1
PLAIN = {"rope_type": "default", "rope_theta": 10_000.0}
SCALED = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 12,
}


@dataclass(frozen=True)
class Architecture:
    """A native architecture and its counterpart in transformers."""

    module: ModuleType
    hf: type  # the configuration in transformers
    shape: dict[str, Any]
    random_settings: Callable[[Any], dict[str, Any]]  # given hypothesis' `draw`
    body: str
    head: str
    labels: Callable[[torch.Tensor], dict[str, torch.Tensor]]  # for ids
    dropouts: tuple[str, ...]
    saved: tuple[dict[str, Any], ...] = ({},)  # settings of models to save and load
    single: bool = False  # float64 models compute a part in float32
    prefix: str = ""  # of the names of a decoder's inputs, if there is an encoder
    shortest: int = 1  # number of tokens of a text with a loss

    def __str__(self):
        return self.module.__name__.rpartition(".")[2]

    def config(self, **settings):
        return self.hf(**{**self.shape, **settings})

    def theirs(self, name="", **settings):
        torch.manual_seed(0)
        cls = getattr(transformers, name or self.head)
        return perturb(cls(self.config(**settings))).eval()

    def ours(self, name="", **settings):
        return twin(self.theirs(name, **settings))[0]

    def initial(self, name="", **settings):
        """Our model with initial weights."""
        torch.manual_seed(1)
        config = self.module.Config.from_hf(self.config(**settings))
        return getattr(self.module, name or self.head)(config).eval()

    def limit(self, dtype):
        """The tolerance of a model of this type."""
        return tolerance(torch.float32 if self.single else dtype)

    def tokens(self, ids):
        """The inputs for some ids."""
        if self.prefix:
            ids[0, 0] = START  # otherwise `generate` of transformers adds it
        return {f"{self.prefix}input_ids": ids}

    def inputs(self, rows=3, length=8, seed=0):
        """Random ids (B, T), and log-mel features (B, bands, frames) if there is an encoder."""
        rng = torch.Generator().manual_seed(seed)
        features = torch.randn(rows, BANDS, FRAMES, generator=rng)
        ids = torch.randint(VOCABULARY, (rows, length), generator=rng)
        return {**({"input_features": features} if self.prefix else {}), **self.tokens(ids)}


def bert_settings(draw):
    heads = draw(st.integers(1, 4))
    return {
        "num_attention_heads": heads,
        "hidden_size": heads * draw(st.integers(8, 12)),
        "num_hidden_layers": draw(st.integers(0, 3)),
        "intermediate_size": draw(st.integers(1, 40)),
        "hidden_act": draw(st.sampled_from(["gelu", "gelu_new"])),
        "type_vocab_size": draw(st.integers(2, 3)),
        "pad_token_id": draw(st.sampled_from([None, 0, 4])),
    }


def bert_labels(ids):
    words = ids.roll(1, dims=0)
    words[:, 1::2] = -100
    return {"labels": words, "next_sentence_label": torch.arange(len(ids)) % 2}


BERT = Architecture(
    bert,
    transformers.BertConfig,
    {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 12,
        "initializer_range": 0.3,
    },
    bert_settings,
    "BertModel",
    "BertForPreTraining",
    bert_labels,
    ("hidden_dropout_prob", "attention_probs_dropout_prob"),
)


def gpt2_settings(draw):
    heads = draw(st.integers(1, 4))
    return {
        "n_head": heads,
        "n_embd": heads * draw(st.integers(8, 12)),
        "n_layer": draw(st.integers(1, 3)),
        "n_inner": draw(st.sampled_from([None, 10])),
        "activation_function": draw(st.sampled_from(["gelu", "gelu_new"])),
    }


def next_tokens(ids):
    """Labels that the models shift."""
    labels = ids.clone()
    labels[:, 2::3] = -100
    return {"labels": labels}


GPT2 = Architecture(
    gpt2,
    transformers.GPT2Config,
    {
        "vocab_size": VOCABULARY,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": LONGEST,
        "initializer_range": 0.3,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    gpt2_settings,
    "GPT2Model",
    "GPT2LMHeadModel",
    next_tokens,
    ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
    single=True,  # the loss
    shortest=2,
)


def llama_settings(draw):
    groups, size = draw(st.integers(1, 3)), 2 * draw(st.integers(2, 6))
    heads = groups * draw(st.integers(1, 3))
    rope = draw(st.sampled_from([PLAIN, {**PLAIN, "rope_theta": 500_000.0}, SCALED]))
    return {
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "hidden_size": heads * size,
        "head_dim": draw(st.sampled_from([size, size + 2])),
        "num_hidden_layers": draw(st.integers(1, 3)),
        "rope_parameters": dict(rope),
        "tie_word_embeddings": draw(st.booleans()),
        "pad_token_id": draw(st.sampled_from([None, 3])),
    }


LLAMA = Architecture(
    llama,
    transformers.LlamaConfig,
    {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.2,
        "rope_parameters": PLAIN,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    llama_settings,
    "LlamaModel",
    "LlamaForCausalLM",
    next_tokens,
    ("attention_dropout",),
    saved=({"tie_word_embeddings": True}, {"tie_word_embeddings": False}),
    single=True,  # norms, angles and the loss
    shortest=2,
)


def whisper_settings(draw):
    encoder_heads, decoder_heads = draw(st.sampled_from([(1, 2), (2, 1), (2, 4), (3, 3)]))
    return {
        "d_model": 12 * draw(st.integers(1, 2)),
        "encoder_layers": draw(st.integers(1, 3)),
        "encoder_attention_heads": encoder_heads,
        "encoder_ffn_dim": draw(st.integers(8, 20)),
        "decoder_layers": draw(st.integers(1, 3)),
        "decoder_attention_heads": decoder_heads,
        "decoder_ffn_dim": draw(st.integers(8, 20)),
        "activation_function": draw(st.sampled_from(["gelu", "gelu_new"])),
    }


def aligned_tokens(ids):
    """Labels at the tokens before them."""
    labels = ids.roll(1, dims=1)
    labels[:, 1::3] = -100
    return {"labels": labels}


WHISPER = Architecture(
    whisper,
    transformers.WhisperConfig,
    {
        "vocab_size": VOCABULARY,
        "num_mel_bins": BANDS,
        "d_model": 16,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 20,
        "decoder_layers": 2,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 20,
        "max_source_positions": FRAMES // 2,
        "max_target_positions": LONGEST,
        "init_std": 0.3,
        "pad_token_id": 0,
        "bos_token_id": START,
        "eos_token_id": 2,
        "decoder_start_token_id": START,
        "begin_suppress_tokens": None,
    },
    whisper_settings,
    "WhisperModel",
    "WhisperForConditionalGeneration",
    aligned_tokens,
    ("dropout", "attention_dropout", "activation_dropout"),
    prefix="decoder_",
)
DECODERS = (GPT2, LLAMA, WHISPER)
ALL = (BERT, *DECODERS)


@st.composite
def models(draw, kind):
    """A random model of transformers."""
    config = kind.config(**kind.random_settings(draw))
    torch.manual_seed(draw(st.integers(0, 1000)))
    cls = getattr(transformers, kind.head)
    return perturb(cls(config)).to(draw(dtypes)).eval()


@st.composite
def batches(draw, kind, dtype, *, left=None, shortest=1):
    """Inputs of a model, some with a mask."""
    rows, length = draw(st.integers(1, 4)), draw(st.integers(shortest, LONGEST // 2))
    inputs = kind.inputs(rows, length, draw(st.integers(0, 1000)))
    if kind is WHISPER:
        inputs["input_features"] = inputs["input_features"].to(dtype)
    if kind is BERT and draw(st.booleans()):
        inputs["token_type_ids"] = inputs["input_ids"] % 2
    if draw(st.booleans()):
        is_left = draw(st.booleans()) if left is None else left
        inputs[f"{kind.prefix}attention_mask"] = padding(draw, rows, length, left=is_left)
    return inputs
