"""A backbone and a linear layer on its pooled hidden states.

With `pooling: cls`, a BERT is saved as transformers' `BertForSequenceClassification`.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.core import pretrained
from wxb.core.files import read_json, write_json
from wxb.core.params.experiments import Tuning
from wxb.core.pretrained import CONFIG, WEIGHTS
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.classification.models.tfidf import Tfidf
from wxb.tasks.classification.params import EncoderModel
from wxb.training.backbones.headed import Headed
from wxb.training.backbones.tuning import Model

WORDS = "words"  # the folder of the TF-IDF weights
# The modules of transformers' BertForSequenceClassification, by the names of ours.
BERT_MODULES = {"backbone": "bert", "pooler": "bert.pooler.dense", "head": "classifier"}


class Classifier(Headed):
    """A backbone with dropout and a linear layer: one logit per class and text."""

    def __init__(
        self,
        backbone: Model,
        labels: Sequence[str],
        settings: EncoderModel,
        *,
        tuning: Tuning | None = None,
    ) -> None:
        super().__init__(backbone, tuning=tuning)
        size = backbone.config.hidden_size
        self.labels, self.pooling = list(labels), settings.pooling
        self.pooler = nn.Linear(size, size) if settings.pooling == "cls" else None
        self.dropout = nn.Dropout(settings.dropout)
        self.head: nn.Module = nn.Linear(size, len(labels))
        self.words: Tfidf | None = None  # a predictor adds its logits

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor,  # (B, T), 1 for tokens, 0 for padding, which is on the right
        labels: Tensor | None = None,  # (B,)
    ) -> dict[str, Tensor]:
        """Logits (B, K); with labels also the cross-entropy of those not IGNORED as `loss`."""
        hidden = self.hidden(input_ids, attention_mask)  # (B, T, C)
        if self.pooler is not None:
            pooled = torch.tanh(self.pooler(hidden[:, 0]))  # (B, C)
        else:
            tokens = attention_mask[..., None]  # (B, T, 1)
            pooled = (hidden * tokens).sum(dim=1) / tokens.sum(dim=1).clamp(min=1)
        logits = self.head(self.dropout(pooled))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels, ignore_index=IGNORED), "logits": logits}

    def save_heads(self, folder: Path) -> None:
        """Write TF-IDF weights, if any, and heads.

        The heads of a full BERT with a pooler join its weights, and its configuration becomes that
        of a BertForSequenceClassification.
        """
        if self.words:
            self.words.save_pretrained(folder / WORDS)
        file = folder / CONFIG  # an adapter has none
        if self.pooler is None or not file.is_file() or read_json(file)["model_type"] != "bert":
            super().save_heads(folder)
            return
        states = {"backbone": load_file(folder / WEIGHTS)}
        states |= {name: module.state_dict() for name, module in self._heads()}
        weights = {
            f"{BERT_MODULES[part]}.{name}": weight.contiguous()
            for part, state in states.items()
            for name, weight in state.items()
        }
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        config = read_json(file)
        config["architectures"] = ["BertForSequenceClassification"]
        config["id2label"] = {str(index): label for index, label in enumerate(self.labels)}
        config["label2id"] = {label: index for index, label in enumerate(self.labels)}
        config["problem_type"] = "single_label_classification"
        config["classifier_dropout"] = self.dropout.p
        write_json(file, config)

    def load_heads(self, folder: Path) -> None:
        """Load what `save_heads` wrote, also the TF-IDF weights if there are any."""
        if (folder / WORDS).exists():
            self.words = Tfidf.from_pretrained(folder / WORDS)
        if (folder / "head.safetensors").exists():
            super().load_heads(folder)
            return
        weights = pretrained.read_weights(folder / WEIGHTS)
        for part, module in self._heads():
            prefix = f"{BERT_MODULES[part]}."
            own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
            pretrained.load_weights(module, own, folder / WEIGHTS)
