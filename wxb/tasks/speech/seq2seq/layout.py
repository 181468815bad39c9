"""Prompt tokens, configuration and files that make a folder a Whisper of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wxb.core.files import read_json, write_json
from wxb.tasks.speech.params import POSITIONS, Encoding, Shape
from wxb.tasks.speech.record.audio import FRAMES, HOP, RATE, WIDTH

START, TASK, PLAIN = "<|startoftranscript|>", "<|transcribe|>", "<|notimestamps|>"
TOKENIZER, EXTRACTOR = "tokenizer_config.json", "preprocessor_config.json"


def prompt_tokens(language: str | None) -> list[str]:
    """The tokens before every transcript; without a language for a monolingual model."""
    return [START, *([f"<|{language}|>", TASK] if language else []), PLAIN]


def prompt_ids(tokenizer: Any, language: str | None) -> list[int]:
    """The ids of `prompt_tokens`."""
    backend = tokenizer.backend_tokenizer
    return [backend.token_to_id(token) for token in prompt_tokens(language)]


def random_whisper(shape: Shape, encoding: Encoding, tokenizer: Any, prompt: Sequence[int]) -> Any:
    """A Whisper of transformers with random weights; seed torch before.

    The standard deviation of weights preserves the variance of layer inputs. With Whisper's own,
    0.02, the audio of a narrow model vanishes beside the position embeddings.
    """
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        encoder_attention_heads=shape.attention_heads,
        decoder_attention_heads=shape.attention_heads,
        encoder_ffn_dim=shape.ffn_dim,
        decoder_ffn_dim=shape.ffn_dim,
        d_model=shape.d_model,
        dropout=shape.dropout,
        init_std=shape.d_model**-0.5,
        vocab_size=len(tokenizer),
        num_mel_bins=encoding.mel_bands,
        max_source_positions=encoding.window * POSITIONS,
        max_target_positions=len(prompt) + encoding.max_length,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=prompt[0],
        begin_suppress_tokens=None,
    )
    return WhisperForConditionalGeneration(config)


def set_generation(whisper: Any, tokenizer: Any, encoding: Encoding) -> None:
    """Make transformers' `generate` use the prompt of training: language, no timestamps."""
    backend, settings = tokenizer.backend_tokenizer, whisper.generation_config
    language = encoding.language
    settings._from_model_config = False  # else loading recreates it from the configuration
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
    """Complete a saved folder for transformers' speech pipeline.

    Sets the tokenizer class to Whisper's, and writes the configuration of the feature extractor.
    """
    tokenizer = read_json(folder / TOKENIZER)
    if tokenizer["tokenizer_class"] != "WhisperTokenizer":
        changes = {
            "tokenizer_class": "WhisperTokenizer",
            "unk_token": tokenizer["eos_token"],
            "extra_special_tokens": prompt_tokens(encoding.language),
        }
        write_json(folder / TOKENIZER, {**tokenizer, **changes})
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
