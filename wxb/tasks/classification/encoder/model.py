"""A backbone and a linear layer on one vector of its hidden states.

Where that is the first token's, a model of BERT's architecture is saved in the layout of
`BertForSequenceClassification`, which plain transformers load.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.core.files import read_json, write_json
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.classification.params import EncoderModel
from wxb.training.backbones import tuning
from wxb.training.backbones.headed import Headed
from wxb.training.backbones.native import CONFIG, WEIGHTS

# Where transformers' BertForSequenceClassification has what is called otherwise here.
PLAIN = {"backbone": "bert", "pooler": "bert.pooler.dense", "head": "classifier"}


class Classifier(Headed):
    """Logits of one class a text."""

    def __init__(
        self,
        backbone: tuning.Model,
        labels: Sequence[str],
        settings: EncoderModel,
        **noise: Any,
    ) -> None:
        """`noise` is that of the backbone's input in training; see `Headed`."""
        super().__init__(backbone, **noise)
        size = backbone.config.hidden_size
        self.labels, self.pooling = list(labels), settings.pooling
        self.pooler = nn.Linear(size, size) if settings.pooling == "cls" else None
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(size, len(labels))

    def get_input_embeddings(self) -> nn.Module:
        """The table of what each token is."""
        table: nn.Module = self.backbone.get_input_embeddings()
        return table

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor,  # (B, T), 1 where there is a token
        labels: Tensor | None = None,  # (B,)
    ) -> dict[str, Tensor]:
        """Logits (B, K), and with labels the cross-entropy."""
        hidden = self.hidden(input_ids, attention_mask)  # (B, T, C)
        if self.pooler is not None:
            pooled = torch.tanh(self.pooler(hidden[:, 0]))  # (B, C)
        else:
            tokens = attention_mask[..., None]  # (B, T, 1)
            pooled = (hidden * tokens).sum(dim=1) / tokens.sum(dim=1)
        logits = self.head(self.dropout(pooled))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels, ignore_index=IGNORED), "logits": logits}

    def save_further(self, folder: Path) -> None:
        """Write what stands on the backbone, or all as one where transformers have such a model."""
        if self.pooler is None or not self._whole_bert(folder):
            super().save_further(folder)
            return
        parts = {"backbone": load_file(folder / WEIGHTS)}
        parts |= {name: module.state_dict() for name, module in self._further()}
        weights = {
            f"{PLAIN[part]}.{name}": weight.contiguous()
            for part, found in parts.items()
            for name, weight in found.items()
        }
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        config = read_json(folder / CONFIG)
        config["architectures"] = ["BertForSequenceClassification"]
        config["id2label"] = {str(number): name for number, name in enumerate(self.labels)}
        config["label2id"] = {name: number for number, name in enumerate(self.labels)}
        config["problem_type"] = "single_label_classification"
        config["classifier_dropout"] = self.dropout.p
        write_json(folder / CONFIG, config)

    def load_further(self, folder: Path) -> None:
        """Load what `save_further` wrote."""
        if (folder / "head.safetensors").exists():
            super().load_further(folder)
            return
        weights = load_file(folder / WEIGHTS)
        for part, module in self._further():
            prefix = f"{PLAIN[part]}."
            own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
            module.load_state_dict(own, strict=True)

    def _whole_bert(self, folder: Path) -> bool:
        found = folder / CONFIG
        return found.is_file() and read_json(found)["model_type"] == "bert"
