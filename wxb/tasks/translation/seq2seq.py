"""Translation by a model that reads the source and then generates the target token by token."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from sacrebleu.metrics import BLEU

from wxb.core.errors import WxbError
from wxb.core.params import experiments
from wxb.core.params.section import Fraction, Section
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import join_rows, read_columns, write_chunks
from wxb.corpora.text.tokenizers import special_tokens, token_ids
from wxb.tasks.methods import Alignment, Chunks, Items, Network
from wxb.tasks.translation.models.predictor import Translator, special_ids_and_size
from wxb.tasks.translation.params import Prediction


class Recurrent(Section):
    """An LSTM encoder and decoder, with Bahdanau's attention or only the encoder's last state.

    With `teacher_forcing_decay`, training feeds the labels less and less often, by the inverse
    sigmoid of `wxb.models.seq2seq.teacher_forcing`; without it, always.
    """

    kind: Literal["recurrent"]
    attention: bool
    embedding_size: PositiveInt
    hidden_size: PositiveInt
    dropout: Fraction = 0.0
    teacher_forcing_decay: Annotated[float, Field(ge=1)] | None = None


class Transformer(Section):
    """The Transformer; its output layer shares the weights of the target embedding."""

    multiples: ClassVar = {"width": "heads"}

    kind: Literal["transformer"]
    width: Annotated[int, Field(ge=2, multiple_of=2)]
    heads: PositiveInt
    layers: PositiveInt
    feed_forward: PositiveInt
    dropout: Fraction = 0.0
    norm_first: bool = True
    label_smoothing: Fraction = 0.0


class Decoder(Section):
    """A GPT-2 that continues after the source, with the names of Hugging Face's configuration."""

    multiples: ClassVar = {"n_embd": "n_head"}

    kind: Literal["gpt2"]
    n_embd: PositiveInt
    n_layer: PositiveInt
    n_head: PositiveInt
    dropout: Fraction = 0.0
    label_smoothing: Fraction = 0.0


class Seq2SeqExperiment(experiments.Network, experiments.Untuned):
    """An experiment in translation, trained from random weights."""

    model: Annotated[Recurrent | Transformer | Decoder, Field(discriminator="kind")]
    prediction: Prediction = Prediction()

    def checkpoint_faults(self, config: Any, generation: Mapping[str, Any]) -> Iterable[str]:
        """A fault for an encoder-decoder, whose weights would not be used."""
        if config.is_encoder_decoder:
            yield (
                f"method: found {self.method!r}, which trains a new network, and the weights of"
                f" {config.model_type} in backbone {self.backbone!r}; expected a tokenizer only:"
                " set `tokenizer: {kind: byte-level-bpe, ...}` instead of `checkpoint`"
            )

    @property
    def traits(self) -> list[str]:
        """The architecture, which the model's settings choose."""
        if isinstance(self.model, Recurrent):
            return ["LSTM with attention" if self.model.attention else "LSTM"]
        return ["Transformer" if isinstance(self.model, Transformer) else "GPT-2"]


class Seq2SeqMethod(Network):
    """A sequence-to-sequence model, trained from random weights."""

    experiment: Seq2SeqExperiment
    METRIC = "bleu"
    PREDICTOR = Translator

    def __post_init__(self) -> None:
        """Raise WxbError if the tokenizer has no eos, no token before texts (bos) or no own pad."""
        tokenizer = self.tokenizer
        required = {
            "eos": tokenizer.eos_token_id is not None,
            "bos": len(special_tokens(tokenizer)[0]) > 0,
            "separate pad": tokenizer.pad_token_id not in (None, tokenizer.eos_token_id),
        }
        if missing := [name for name, is_there in required.items() if not is_there]:
            raise WxbError(
                f"backbone {self.experiment.backbone!r}: its tokenizer has no {', '.join(missing)}"
                " token; for translation, set `tokenizer: {kind: byte-level-bpe, ...}`"
            )

    def encode(self, chunks: Chunks, path: Path, *, caption: str) -> None:
        """Write the token ids of the sources, not truncated and without special tokens."""
        texts = ([record.input for record in records] for records in chunks)
        rows = (join_rows(token_ids(self.tokenizer, chunk), np.int32) for chunk in texts)
        write_chunks(path, (({"ids": ids}, row_splits) for ids, row_splits in rows))

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The token ids of each reference of the records, with eos, and counts of references.

        A reference longer than `max_length`, with eos, has no tokens, and counts as lost.
        """
        max_length, eos = self.experiment.encoding.max_length, [self.tokenizer.eos_token_id]
        rows = [
            np.concatenate([ids, eos]).astype(np.int32)
            for records in chunks
            for record in records
            for ids in token_ids(self.tokenizer, record.gold)
        ]
        kept = [row if len(row) <= max_length else row[:0] for row in rows]
        lost = sum(not len(row) for row in kept)
        account = {"gold": len(rows), "kept": len(rows) - lost, "lost": lost}
        labels, row_splits = join_rows(kept, np.int32)
        return {"labels": labels}, row_splits, account

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Items:
        """An item per reference with `labels`, the shortest first, with truncated `input_ids`."""
        max_length = self.experiment.encoding.max_length
        columns, row_splits = read_columns(features, ["ids"])
        sources = [columns["ids"][start:end] for start, end in pairwise(row_splits)]
        columns, row_splits = read_columns(targets, self.TARGETS)
        repeated = [source for source, r in zip(sources, records, strict=True) for _ in r.gold]
        items = [
            {"input_ids": source[:max_length], "labels": columns["labels"][start:end]}
            for source, (start, end) in zip(repeated, pairwise(row_splits), strict=True)
            if end > start
        ]
        # Validation batches keep this order: items of similar length need little padding.
        return sorted(items, key=lambda item: (len(item["labels"]), len(item["input_ids"])))

    def new_model(self, backbone: Path) -> Any:
        """A model with random weights; seed torch first. The backbone is not used."""
        from wxb.tasks.translation.models.seq2seq import Seq2SeqModel

        shape, special = self.experiment.model.model_dump(), special_ids_and_size(self.tokenizer)
        return Seq2SeqModel(self.tokenizer, shape, special, self.experiment.encoding.max_length)

    @staticmethod
    def compute_metrics(statistics: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
        """BLEU from statistics (N, 10) of greedy validation texts with one reference each."""
        score = BLEU()._compute_score_from_stats(statistics.sum(axis=0).tolist())
        return {"bleu": float(score.score)}

    def predictor_settings(self, targets: Path) -> dict[str, Any]:
        """The network, special tokens and lengths; the `longest` target limits translations."""
        _, row_splits = read_columns(targets, ["labels"])
        return {
            "shape": self.experiment.model.model_dump(),
            "special": special_ids_and_size(self.tokenizer),
            "longest": int(np.diff(row_splits).max()),
            **self.experiment.encoding.model_dump(),
        }
