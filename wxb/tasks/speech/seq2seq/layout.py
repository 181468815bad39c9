"""What makes a folder one of Whisper's: its tokens, its configurations, its feature extractor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wxb.core.files import read_json, write_json
from wxb.tasks.speech.params import POSITIONS, Encoding, Shape
from wxb.tasks.speech.record.audio.features import FRAMES, HOP, RATE, WIDTH

START, TASK, PLAIN = "<|startoftranscript|>", "<|transcribe|>", "<|notimestamps|>"
TOKENIZER, EXTRACTOR = "tokenizer_config.json", "preprocessor_config.json"


def prompt(language: str | None) -> list[str]:
    """The tokens before every transcript; a model of one language is told none."""
    return [START, *([f"<|{language}|>", TASK] if language else []), PLAIN]


def prompt_ids(tokenizer: Any, language: str | None) -> list[int]:
    """Their ids."""
    backend = tokenizer.backend_tokenizer
    return [backend.token_to_id(token) for token in prompt(language)]


def initial(shape: Shape, encoding: Encoding, tokenizer: Any, asked: Sequence[int]) -> Any:
    """A Whisper with random weights, by transformers; seed torch before.

    They are drawn so that layers keep the variance of what they are given. With 0.02, Whisper's own
    deviation, what a narrow model hears is lost in the positions that are added to it.
    """
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    layers: dict[str, Any] = {
        f"{side}_{name}": value
        for side, count in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers))
        for name, value in (
            ("layers", count),
            ("attention_heads", shape.attention_heads),
            ("ffn_dim", shape.ffn_dim),
        )
    }
    config = WhisperConfig(
        **layers,
        d_model=shape.d_model,
        dropout=shape.dropout,
        init_std=shape.d_model**-0.5,
        vocab_size=len(tokenizer),
        num_mel_bins=encoding.mel_bands,
        max_source_positions=encoding.window * POSITIONS,
        max_target_positions=len(asked) + encoding.max_length,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=asked[0],
        begin_suppress_tokens=None,
    )
    return WhisperForConditionalGeneration(config)


def set_generation(whisper: Any, tokenizer: Any, encoding: Encoding) -> None:
    """Let transformers' `generate` ask for what the model learns: its language, no timestamps."""
    backend, settings = tokenizer.backend_tokenizer, whisper.generation_config
    language = encoding.language
    settings._from_model_config = False  # else it is made anew on loading, from less
    settings.decoder_start_token_id = backend.token_to_id(START)
    settings.no_timestamps_token_id = backend.token_to_id(PLAIN)
    settings.pad_token_id, settings.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    settings.max_length = whisper.config.max_target_positions
    settings.is_multilingual = language is not None
    settings.return_timestamps = False
    settings.suppress_tokens = settings.begin_suppress_tokens = None
    if language:
        token = f"<|{language}|>"
        settings.language, settings.task = token, "transcribe"
        known = getattr(settings, "lang_to_id", {})
        settings.lang_to_id = {**known, token: backend.token_to_id(token)}
        settings.task_to_id = {"transcribe": backend.token_to_id(TASK)}


def complete_folder(folder: Path, encoding: Encoding) -> None:
    """Say in a saved folder that its tokenizer is Whisper's, and how it hears."""
    named = read_json(folder / TOKENIZER)
    if named["tokenizer_class"] != "WhisperTokenizer":
        tokens = prompt(encoding.language)
        end = named["eos_token"]
        write_json(
            folder / TOKENIZER,
            {
                **named,
                "tokenizer_class": "WhisperTokenizer",
                "unk_token": end,
                "extra_special_tokens": tokens,
            },
        )
    extractor = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": encoding.mel_bands,
        "sampling_rate": RATE,
        "hop_length": HOP,
        "n_fft": WIDTH,
        "chunk_length": encoding.window,
        "n_samples": encoding.window * RATE,
        "nb_max_frames": encoding.window * FRAMES,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }
    write_json(folder / EXTRACTOR, extractor)
