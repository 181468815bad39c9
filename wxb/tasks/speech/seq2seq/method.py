"""Transcripts by Whisper: log-mel features in, tokens out.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb.core.errors import WxbError
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Columns, read_columns
from wxb.corpora.text.tokenizers import ids_of
from wxb.tasks import methods
from wxb.tasks.speech.params import POSITIONS, Encoding, Seq2Seq
from wxb.tasks.speech.predictor import Recogniser, read
from wxb.tasks.speech.record.audio.cleaning import at_speed
from wxb.tasks.speech.record.audio.features import FRAMES, log_mel, to_window
from wxb.tasks.speech.record.audio.parallel import each
from wxb.tasks.speech.seq2seq import layout, stored

if TYPE_CHECKING:
    import torch


def _speeds(path: Path, encoding: Encoding) -> list[float]:
    """The speeds at which the recordings of a split are heard, that they were spoken at first."""
    return [1.0, *(encoding.speeds if path.stem == clean.SPLITS[0] else [])]


def _features(job: tuple[str, float, Encoding]) -> NDArray[np.float16]:
    source, speed, encoding = job
    samples = read(source)
    if speed != 1:
        samples = at_speed(samples, speed)
    frames = log_mel(samples, encoding.mel_bands, encoding.window * FRAMES)
    return frames.astype(np.float16)  # half the bytes from process to process


def _status(seconds: float, tokens: int, encoding: Encoding) -> str:
    if seconds > encoding.window:
        return "cut"
    return "kept" if tokens <= encoding.max_length else "too_long"


class Items(Sequence[Mapping[str, NDArray[Any]]]):
    """What is learnt of each recording; features are read when they are asked for."""

    def __init__(self, features: Path, targets: Path, window: int) -> None:
        self.stored, self.window = stored.Stored(features), window
        columns, splits = read_columns(targets, ["labels"])
        self.labels = [columns["labels"][start:stop] for start, stop in pairwise(splits)]
        self.kept = [place for place, labels in enumerate(self.labels) if len(labels)]

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: Any) -> Any:
        """One item: `input_features` (window, bands) and `labels` (T,)."""
        place = self.kept[index]
        features = to_window(self.stored[place], self.window)
        return {"input_features": features, "labels": self.labels[place]}


def _check_shape(backbone: Path, config: Any, encoding: Encoding) -> None:
    for key, found, expected in (
        ("encoding.window", encoding.window, config.max_source_positions / POSITIONS),
        ("encoding.mel_bands", encoding.mel_bands, config.num_mel_bins),
    ):
        if found != expected:
            raise WxbError(f"{key}: found {found}; the model in {backbone} is for {expected:g}")


class Seq2SeqRecogniser(Recogniser):
    """A trained model of this method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """The model that was saved in a folder; of a frozen one nothing learns here either."""
        from wxb.tasks.speech.seq2seq import model

        asked = layout.prompt_ids(tokenizer, settings["language"])
        assert tokenizer.pad_token_id is not None
        found = model.Transcriber.from_pretrained(
            folder, asked, tokenizer.pad_token_id, four_bit=settings["four_bit"]
        )
        return found.requires_grad_(False) if settings["frozen"] else found

    def save(self, folder: Path, experiment: Seq2Seq, *, updates: int, examples: int) -> None:
        """As other models, with what transformers' pipeline for speech wants besides."""
        super().save(folder, experiment, updates=updates, examples=examples)
        layout.complete_folder(folder, experiment.encoding)

    def own_settings(self, experiment: Seq2Seq) -> dict[str, Any]:
        """Whether nothing of it learns."""
        return {"frozen": experiment.tuning.frozen}

    def write(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of each window (B, frames, bands)."""
        import torch

        device = next(self.model.parameters()).device
        written: torch.Tensor = self.model.write(
            torch.from_numpy(features).to(device),
            longest=self.settings["max_length"],
            end=self.tokenizer.eos_token_id,
        )
        return [text.strip() for text in self._decoded(written.tolist())]

    def _decoded(self, rows: Sequence[Sequence[int]]) -> Iterator[str]:
        end = self.tokenizer.eos_token_id
        for row in rows:
            ids = row[: row.index(end)] if end in row else row
            yield self.tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=True)


class Method(methods.Method):
    """Whisper, from a checkpoint or from random weights."""

    experiment: Seq2Seq
    Predictor = Seq2SeqRecogniser

    def vocabulary(self) -> Any:
        """The tokenizer; one that was trained here gets the tokens that prompt for a text.

        Raises WxbError for a checkpoint's that lacks one of them.
        """
        experiment, backend = self.experiment, self.tokenizer.backend_tokenizer
        prompt = layout.prompt(experiment.encoding.language)
        lacking = [token for token in prompt if backend.token_to_id(token) is None]
        if lacking and experiment.model.shape is None:
            raise WxbError(
                f"backbone {experiment.backbone!r}: its tokenizer has no {', '.join(lacking)};"
                " expected Whisper's: correct `encoding.language`, or give `model.shape` to begin"
                " anew"
            )
        backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in lacking])
        return self.tokenizer

    def encode(self, records: Sequence[Record], path: Path, *, label: str) -> None:
        """Write the log-mel features of the records' recordings, several at a time.

        Those to train on follow once more for each further speed.
        """
        encoding = self.experiment.encoding
        jobs = [
            (record.input, speed, encoding)
            for speed in _speeds(path, encoding)
            for record in records
        ]
        stored.write(path, each(_features, jobs, label), encoding.mel_bands)

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The tokens of each transcript with the end, and which ones are learnt.

        Those are not whose recording is longer than a window, or that have too many tokens. Copies
        at further speeds count each.
        """
        encoding = self.experiment.encoding
        account = dict.fromkeys(("gold", "kept", "cut", "too_long"), 0)
        end = np.array([self.tokenizer.eos_token_id], np.int32)
        seconds: list[float] = []
        rows: list[NDArray[np.int32]] = []
        for records in chunks:
            seconds += [record.gold["seconds"] for record in records]
            texts = ids_of(self.tokenizer, [record.gold["text"] for record in records])
            rows += [np.concatenate([ids, end]) for ids in texts]
        learnt = []
        for speed in _speeds(path, encoding):
            for length, ids in zip(seconds, rows, strict=True):
                status = _status(length / speed, len(ids), encoding)
                account["gold"] += 1
                account[status] += 1
                learnt.append(ids if status == "kept" else ids[:0])
        values = np.concatenate([end[:0], *learnt])
        return {"labels": values}, np.cumsum([0, *map(len, learnt)]).astype(np.int64), account

    def dataset(self, features: Path, targets: Path, records: Sequence[Record]) -> Items:
        """One item a recording that is learnt."""
        return Items(features, targets, self.experiment.encoding.window * FRAMES)

    def build(self, backbone: Path) -> Any:
        """The model that training starts from; new weights are random."""
        from wxb.tasks.speech.seq2seq import model
        from wxb.tasks.speech.seq2seq.native import NativeWhisper
        from wxb.training.backbones import tuning

        tokenizer, changes = self.tokenizer, self.experiment.tuning
        encoding, settings = self.experiment.encoding, self.experiment.model
        prompt = layout.prompt_ids(tokenizer, encoding.language)
        if settings.shape:
            whisper = layout.initial(settings.shape, encoding, tokenizer, prompt)
        elif not (backbone / "config.json").exists():
            raise WxbError(
                f"{backbone}: found a tokenizer and no weights; give `model.shape` to begin with"
                " random ones, or a backbone that has some"
            )
        else:
            whisper = model.load(backbone, four_bit=changes.four_bit)
            _check_shape(backbone, whisper.config, encoding)
        layout.set_generation(whisper, tokenizer, encoding)
        if settings.implementation == "native":
            whisper = NativeWhisper.of(whisper)
            whisper.requires_grad_(not changes.frozen)
            whisper.get_encoder().embed_positions.requires_grad_(False)
        else:
            whisper = tuning.adapt(whisper, changes, task_type=None)
        return model.Transcriber(
            whisper,
            prompt,
            tokenizer.pad_token_id,
            spec_augment=settings.spec_augment,
            ctc_weight=settings.ctc_weight,
        )
