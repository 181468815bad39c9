"""Fine-tuning on conversations, with the loss on the assistant's tokens or on all."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, RaggedColumns, join_rows, read_columns, write_chunks
from wxb.corpora.text.templates import Template, Tokens
from wxb.tasks.chat.models import predictor
from wxb.tasks.chat.params import Prediction
from wxb.tasks.chat.record.conversation import with_answer
from wxb.tasks.methods import Alignment, Chunks, GeneratorMethod, Items


class Encoding(experiments.Encoding):
    """The template and maximum length of conversations, and the tokens with loss.

    `template` is by default the checkpoint's `own`, or `roles` if it has none.
    """

    template: Literal["roles", "plain", "own"] | None = None
    loss: Literal["assistant", "all"] = "assistant"


class SftExperiment(experiments.Network):
    """Supervised fine-tuning of a decoder on conversations."""

    required_weights = "decoder"

    encoding: Encoding
    prediction: Prediction = Prediction()

    @property
    def required_lengths(self) -> dict[str, int]:
        """The tokens of a conversation, and of a reply with one token of its prompt, by setting."""
        longest = self.prediction.max_new_tokens + 1
        return {**super().required_lengths, "prediction.max_new_tokens": longest}

    @property
    def traits(self) -> list[str]:
        """Names for tables: "loss on all tokens" and "few-shot", if the settings have them."""
        loss = ["loss on all tokens"] if self.encoding.loss == "all" else []
        return [*loss, *(["few-shot"] if self.prediction.shots else [])]


class SftMethod(GeneratorMethod):
    """Supervised fine-tuning of a decoder."""

    experiment: SftExperiment
    template: Template  # which `__post_init__` sets
    PREDICTOR = predictor.Replier

    def __post_init__(self) -> None:
        """Set `template`, and add it with its markers to the tokenizer, in place."""
        super().__post_init__()
        template = Template.add(self.tokenizer, self.experiment.encoding.template)
        object.__setattr__(self, "template", template)

    def encode(self, chunks: Chunks, path: Path, *, caption: str) -> None:
        """Write the token ids of conversations with their answers, and masks of assistant tokens.

        Drops the oldest turns of long ones. If the last turn is too long, the row is empty.
        """
        write_chunks(path, map(self._ids_and_generated, chunks))

    def _ids_and_generated(self, records: Sequence[Record]) -> RaggedColumns:
        """`ids` and mask `generated` of truncated conversations, empty if too long; row splits."""
        empty = Tokens(np.zeros(0, np.int32), np.zeros(0, np.bool_))
        longest = self.experiment.encoding.max_length
        kept = (self.template.truncate(with_answer(record), longest) for record in records)
        rows = [each.tokens or empty for each in kept]
        ids, row_splits = join_rows([row.ids for row in rows], np.int32)
        generated, _ = join_rows([row.generated for row in rows], np.int8)
        return {"ids": ids, "generated": generated}, row_splits

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The tokens with loss as labels, the others IGNORED, and counts of conversations.

        `loss: all` is for training only: validation losses stay comparable. Prints how many are
        `shortened` (oldest turns) or `lost`.
        """
        columns, row_splits = read_columns(features, ["ids", "generated"])
        on_all = self.experiment.encoding.loss == "all" and features.stem == "train"
        counts = {"gold": 0, "kept": 0, "shortened": 0, "lost": 0}
        records = (record for chunk in chunks for record in chunk)
        for record, (start, end) in zip(records, pairwise(row_splits.tolist()), strict=True):
            answers = sum(turn["role"] == "assistant" for turn in with_answer(record))
            kept = np.count_nonzero(np.diff(columns["generated"][start:end], prepend=0) == 1)
            status = "kept" if kept == answers else "shortened" if end > start else "lost"
            counts["gold"] += 1
            counts[status] += 1
        if counts["kept"] < counts["gold"]:
            print(
                f"{features.stem}: of {counts['gold']} conversations, {counts['lost']} are too long"
                f" and lost, {counts['shortened']} lost their oldest turns (encoding.max_length)"
            )
        has_loss = on_all | (columns["generated"] == 1)
        labels = np.where(has_loss, columns["ids"], IGNORED).astype(np.int32)
        return {"labels": labels}, row_splits, counts

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Items:
        """One item per conversation that is not too long; `targets` must be of these `features`."""
        inputs, row_splits = read_columns(features, ["ids"])
        labels, _ = read_columns(targets, self.TARGETS)
        return [
            {"input_ids": inputs["ids"][start:end], "labels": labels["labels"][start:end]}
            for start, end in pairwise(row_splits.tolist())
            if end > start
        ]

    def new_model(self, backbone: Path) -> Any:
        """The model before training, with random new embeddings; `end_ids` end its generation."""
        model = super().new_model(backbone)
        generation, end_ids = model.backbone.generation_config, self.template.end_ids
        generation.eos_token_id = end_ids if len(end_ids) > 1 else end_ids[0]
        generation.pad_token_id = self.tokenizer.pad_token_id
        return model

    def predictor_settings(self, targets: Path) -> dict[str, Any]:
        """As by default, with the name of the template in use."""
        return {**super().predictor_settings(targets), "template": self.template.name}
