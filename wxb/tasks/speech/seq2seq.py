"""Speech recognition with Whisper: log-mel features in, tokens out."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from tokenizers import AddedToken

from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params import experiments
from wxb.core.params.section import Fraction, PositiveFloat, Section
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import join_rows, read_columns
from wxb.corpora.text.tokenizers import CONFIG, text_of, token_ids
from wxb.tasks.methods import Alignment, Chunks, Items, LazyItems, Network
from wxb.tasks.speech.models.features import WIDTH, log_mel, to_window
from wxb.tasks.speech.models.predictor import Recogniser, read
from wxb.tasks.speech.params import ENGLISH, POSITIONS, Prediction, SpecAugment, Spectrograms
from wxb.tasks.speech.record.audio import FRAMES, HOP, RATE, change_speed, map_parallel

START, TASK, PLAIN = "<|startoftranscript|>", "<|transcribe|>", "<|notimestamps|>"
BATCH = 64  # recordings in memory at a time
FEATURES = pa.large_list(pa.float16())  # (F * bands,) of a recording


class Encoding(experiments.Encoding, Spectrograms):
    """How recordings and transcripts are encoded."""

    max_length: PositiveInt  # tokens of a transcript, including special ones
    speeds: list[PositiveFloat] = Field(default=[])  # of additional copies of training recordings
    language: str | None = None  # of a multilingual checkpoint, such as zh


class Shape(Section):
    """The size of a Whisper with random weights; names as in Hugging Face's `WhisperConfig`."""

    multiples: ClassVar = {"d_model": "attention_heads"}

    d_model: PositiveInt
    encoder_layers: PositiveInt
    decoder_layers: PositiveInt
    attention_heads: PositiveInt
    ffn_dim: PositiveInt
    dropout: Fraction = 0.0


class Seq2SeqModel(Section):
    """The code and size of the Whisper, and its regularization."""

    implementation: Literal["transformers", "native"] = "transformers"
    shape: Shape | None = None  # null: the weights of the backbone
    spec_augment: SpecAugment | None = None
    ctc_weight: Fraction = 0.0  # share of a CTC loss on the encoder (Kim et al. 2017)


class Seq2SeqExperiment(experiments.Network):
    """Transcription by a Whisper."""

    encoding: Encoding
    model: Seq2SeqModel = Seq2SeqModel()
    prediction: Prediction = Prediction()

    @property
    def required_weights(self) -> Any:  # type: ignore[override]
        """The kind of weights, "whisper", or None for a new model with random ones."""
        return None if self.model.shape else "whisper"

    @property
    def required_lengths(self) -> dict[str, int]:
        """The tokens that the decoder has to read: `encoding.max_length` plus the prompt."""
        prompt = 4 if self.encoding.language else 2
        return {"encoding.max_length": prompt + self.encoding.max_length}

    def checkpoint_faults(self, config: Any, generation: Mapping[str, Any]) -> Iterable[str]:
        """Yield faults if window, bands or language do not fit the config; none for a new model."""
        if not self.required_weights:
            return
        encoding, backbone = self.encoding, f"backbone {self.backbone!r}"
        longest, bands = config.max_source_positions / POSITIONS, config.num_mel_bins
        if (window := encoding.window) > longest:
            yield f"encoding.window: found {window}; expected at most {longest:g}, as in {backbone}"
        if (setting := encoding.mel_bands) != bands:
            yield f"encoding.mel_bands: found {setting}; expected {bands}, as in {backbone}"
        is_large = config.vocab_size > ENGLISH  # of checkpoints without generation settings
        has_languages = generation.get("is_multilingual", "lang_to_id" in generation or is_large)
        if has_languages != bool(encoding.language):
            expected = "the language of its transcripts, such as zh" if has_languages else "null"
            yield (
                f"encoding.language: found {encoding.language or 'null'}; expected {expected}, as"
                f" {backbone} is {'' if has_languages else 'not '}multilingual"
            )

    @property
    def traits(self) -> list[str]:
        """SpecAugment and CTC, if it trains with them, for tables."""
        traits = {"SpecAugment": self.model.spec_augment, "CTC": self.model.ctc_weight}
        return [trait for trait, setting in traits.items() if setting]


def _speeds(path: Path, encoding: Encoding) -> list[float]:
    """The speeds of a split's copies; only the training split has others than the original."""
    return [1.0, *(encoding.speeds if path.stem == clean.TRAINING_SPLITS[0] else [])]


def _features(job: tuple[str, float, Encoding]) -> NDArray[np.float16]:
    """The features (F, bands) of a recording at a speed, truncated to a window."""
    path, speed, encoding = job
    samples = read(path)
    if speed != 1:
        samples = change_speed(samples, speed)
    frames = log_mel(samples, encoding.mel_bands, encoding.window * FRAMES)
    return frames.astype(np.float16)  # half the bytes between processes


class Seq2SeqRecogniser(Recogniser):
    """A trained Whisper."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the `Transcriber` that `save` wrote to a folder; full models run on our code."""
        from wxb.tasks.speech.models.whisper import Transcriber, load_whisper
        from wxb.training.backbones.native import load_trained

        window, four_bit = settings["window"], settings["four_bit"]
        load = partial(load_whisper, window=window, four_bit=four_bit)
        whisper = load_trained(folder, load, generative=True)
        prompt = prompt_ids(tokenizer, settings["language"])
        return Transcriber(whisper, prompt, tokenizer.pad_token_id)

    def save(self, folder: Path) -> None:
        """Write the folder, with a WhisperTokenizer and feature extractor for speech pipelines."""
        from transformers import WhisperFeatureExtractor

        super().save(folder)
        tokenizer, settings = read_json(folder / CONFIG), self.settings
        if tokenizer["tokenizer_class"] != "WhisperTokenizer":
            changes = {
                "tokenizer_class": "WhisperTokenizer",
                "unk_token": tokenizer["eos_token"],
                "extra_special_tokens": prompt_tokens(settings["language"]),
            }
            write_json(folder / CONFIG, {**tokenizer, **changes})
        bands, window = settings["mel_bands"], settings["window"]
        extractor = WhisperFeatureExtractor(bands, RATE, HOP, window, WIDTH).to_dict()
        extractor["processor_class"] = "WhisperProcessor"  # for adapters
        write_json(folder / "preprocessor_config.json", extractor)

    def transcribe(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of each window (B, frames, bands)."""
        import torch

        device = next(self.model.parameters()).device
        tokens = self.model.generate(
            torch.from_numpy(features).to(device),
            max_length=self.settings["max_length"],
            end=self.tokenizer.eos_token_id,
        )
        return [text_of(self.tokenizer, row).strip() for row in tokens.tolist()]


class WhisperMethod(Network):
    """Whisper, from a checkpoint or from random weights."""

    experiment: Seq2SeqExperiment
    PREDICTOR = Seq2SeqRecogniser

    def __post_init__(self) -> None:
        """Add the prompt tokens to a new model's tokenizer; WxbError if a checkpoint lacks one."""
        experiment, backend = self.experiment, self.tokenizer.backend_tokenizer
        prompt = prompt_tokens(experiment.encoding.language)
        missing = [token for token in prompt if backend.token_to_id(token) is None]
        if missing and experiment.model.shape is None:
            raise WxbError(
                f"the tokenizer of backbone {experiment.backbone!r} has no {', '.join(missing)};"
                " expected a Whisper's: correct `encoding.language`, or set `model.shape` to train"
                " a new model"
            )
        backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in missing])

    def encode(self, chunks: Chunks, path: Path, *, caption: str) -> None:
        """Write log-mel features as Arrow: all recordings, in training also at each other speed."""
        encoding = self.experiment.encoding
        files = [record.input for records in chunks for record in records]
        jobs = [(file, speed, encoding) for speed in _speeds(path, encoding) for file in files]
        features = map_parallel(_features, jobs, caption)
        schema = pa.schema([("frames", FEATURES)], {"bands": str(encoding.mel_bands)})
        with pa.ipc.new_file(path, schema) as sink:
            while True:
                rows = [frames.ravel() for frames in islice(features, BATCH)]
                sink.write_batch(pa.record_batch([pa.array(rows, FEATURES)], schema=schema))
                if len(rows) < BATCH:
                    return

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The tokens of each transcript with the end as `labels`, and counts of recordings.

        All count as `gold`. Those longer than the window (`cut`) or with too many tokens
        (`too_long`) have no labels, others are `kept`. Copies at other speeds are recordings.
        """
        encoding = self.experiment.encoding
        account = dict.fromkeys(("gold", "kept", "cut", "too_long"), 0)
        end = np.array([self.tokenizer.eos_token_id], np.int32)
        seconds: list[float] = []
        rows: list[NDArray[np.int32]] = []
        for records in chunks:
            seconds += [record.gold["seconds"] for record in records]
            texts = token_ids(self.tokenizer, [record.gold["text"] for record in records])
            rows += [np.concatenate([ids, end]) for ids in texts]
        labels = []
        for speed in _speeds(features, encoding):
            for length, ids in zip(seconds, rows, strict=True):
                status = "too_long" if len(ids) > encoding.max_length else "kept"
                status = "cut" if length / speed > encoding.window else status
                account["gold"] += 1
                account[status] += 1
                labels.append(ids if status == "kept" else ids[:0])
        values, row_splits = join_rows(labels, np.int32)
        return {"labels": values}, row_splits, account

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Items:
        """Recordings that have `labels` (T,), with lazily read `input_features` (window, bands)."""
        table = pa.ipc.open_file(pa.memory_map(str(features))).read_all()
        recordings, bands = table["frames"], int(table.schema.metadata[b"bands"])
        columns, row_splits = read_columns(targets, ["labels"])
        labels = [columns["labels"][start:stop] for start, stop in pairwise(row_splits)]

        def item(recording: int) -> dict[str, NDArray[Any]]:
            frames = recordings[recording].values.to_numpy().reshape(-1, bands)
            features = to_window(frames, self.experiment.encoding.window * FRAMES)
            return {"input_features": features, "labels": labels[recording]}

        return LazyItems([i for i, ids in enumerate(labels) if len(ids)], item)

    def new_model(self, backbone: Path) -> Any:
        """The model before training, with the backbone's weights or random ones (seed torch)."""
        from wxb.tasks.speech.models.whisper import Transcriber, load_whisper
        from wxb.training.backbones import tuning
        from wxb.training.backbones.native import Native

        tokenizer, changes = self.tokenizer, self.experiment.tuning
        encoding, settings = self.experiment.encoding, self.experiment.model
        prompt = prompt_ids(tokenizer, encoding.language)
        if settings.shape:
            whisper = random_whisper(settings.shape, encoding, tokenizer, prompt)
        else:
            whisper = load_whisper(backbone, encoding.window, four_bit=changes.four_bit)
        set_generation(whisper, tokenizer, encoding)
        if settings.implementation == "native":
            whisper = Native.from_transformers(whisper, generative=True)
            whisper.requires_grad_(not changes.frozen)
            whisper.get_encoder().embed_positions.requires_grad_(False)
        else:
            whisper = tuning.adapt(whisper, changes, task_type=None)
        return Transcriber(
            whisper,
            prompt,
            tokenizer.pad_token_id,
            spec_augment=settings.spec_augment,
            ctc_weight=settings.ctc_weight,
        )


# A Whisper of transformers: prompt tokens and configuration


def prompt_tokens(language: str | None) -> list[str]:
    """The tokens before every transcript; without a language for a monolingual model."""
    return [START, *([f"<|{language}|>", TASK] if language else []), PLAIN]


def prompt_ids(tokenizer: Any, language: str | None) -> list[int]:
    """The ids of `prompt_tokens`."""
    backend = tokenizer.backend_tokenizer
    return [backend.token_to_id(token) for token in prompt_tokens(language)]


def random_whisper(shape: Shape, encoding: Encoding, tokenizer: Any, prompt: Sequence[int]) -> Any:
    """A Whisper with random weights, whose decoder begins with `prompt[0]`; seed torch before.

    The standard deviation of weights preserves the variance of layer inputs. With Whisper's own,
    0.02, the audio of a narrow model vanishes beside the position embeddings.
    """
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        **shape.model_dump(include={"encoder_layers", "decoder_layers", "d_model", "dropout"}),
        encoder_attention_heads=shape.attention_heads,
        decoder_attention_heads=shape.attention_heads,
        encoder_ffn_dim=shape.ffn_dim,
        decoder_ffn_dim=shape.ffn_dim,
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
        dtype="float32",
    )
    return WhisperForConditionalGeneration(config)


def set_generation(whisper: Any, tokenizer: Any, encoding: Encoding) -> None:
    """Make transformers' `generate` greedy, with our prompt; no timestamps or suppressed tokens."""
    settings, language = whisper.generation_config, encoding.language
    token_to_id = tokenizer.backend_tokenizer.token_to_id
    settings._from_model_config = False  # else loading recreates it from the configuration
    settings.decoder_start_token_id = token_to_id(START)
    settings.no_timestamps_token_id = token_to_id(PLAIN)
    settings.pad_token_id, settings.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    settings.max_length = whisper.config.max_target_positions
    settings.is_multilingual = language is not None
    settings.return_timestamps, settings.num_beams = False, 1  # the pipeline's default is 5
    settings.suppress_tokens = settings.begin_suppress_tokens = None
    if language:
        token = f"<|{language}|>"
        settings.language, settings.task = token, "transcribe"
        known = getattr(settings, "lang_to_id", {})
        settings.lang_to_id = {**known, token: token_to_id(token)}
        settings.task_to_id = {"transcribe": token_to_id(TASK)}
