"""A backbone with a tagging head: a BIO tag for each token, and where spans start and end."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.core.params.experiments import Tuning
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.ner.models.words import FEATURES
from wxb.tasks.ner.params import Head, TaggingModel, WordFeatures
from wxb.training.backbones.headed import Headed
from wxb.training.backbones.tuning import Model


class TaggingHead(nn.Module):
    """One projection shared by three linear classifiers: BIO tag, start and end."""

    def __init__(self, hidden_size: int, tags: int, settings: Head) -> None:
        super().__init__()
        self.dropout = nn.Dropout(settings.dropout)
        self.projection = nn.Linear(hidden_size, settings.projection)
        self.tag = nn.Linear(settings.projection, tags)
        self.start = nn.Linear(settings.projection, 1)
        self.end = nn.Linear(settings.projection, 1)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # (B, T, H)
        """Logits: tags (B, T, K), start (B, T) and end (B, T)."""
        shared = F.gelu(self.projection(self.dropout(hidden)))  # (B, T, P)
        shared = self.dropout(shared)
        return self.tag(shared), self.start(shared).squeeze(-1), self.end(shared).squeeze(-1)


class WordEmbedding(nn.Module):
    """Vectors of word features, to add to the hidden states of tokens."""

    def __init__(self, hidden_size: int, settings: WordFeatures) -> None:
        super().__init__()
        columns = (2 * settings.window + 1) * FEATURES
        self.table = nn.Embedding(settings.rows, settings.width, padding_idx=0)
        self.dropout = nn.Dropout(settings.dropout)
        self.projection = nn.Linear(columns * settings.width, hidden_size)

    def forward(self, words: Tensor) -> Tensor:  # (B, T, F)
        """Vectors (B, T, H) of tokens from the ids of their features."""
        return F.gelu(self.projection(self.dropout(self.table(words).flatten(2))))


class Tagger(Headed):
    """Backbone, optional word features, and head."""

    def __init__(
        self, backbone: Model, tags: int, settings: TaggingModel, *, tuning: Tuning | None = None
    ) -> None:
        super().__init__(backbone, tuning=tuning)
        size, features = backbone.config.hidden_size, settings.word_features
        self.words = WordEmbedding(size, features) if features else None
        self.head = TaggingHead(size, tags, settings.head)

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor,  # (B, T), 1 where there is a token
        words: Tensor | None = None,  # (B, T, F), required with `settings.word_features`
        tags: Tensor | None = None,  # (B, T)
        starts: Tensor | None = None,  # (B, T)
        ends: Tensor | None = None,  # (B, T)
    ) -> dict[str, Tensor]:
        """The logits `tags`, `starts` and `ends`, and if all targets are given, the `loss`.

        It is that of BIO + 0.5 * mean(start, end), over the targets that are not IGNORED.
        """
        hidden = self.hidden(input_ids, attention_mask)
        if self.words:
            hidden = hidden + self.words(words)
        tag_logits, start_logits, end_logits = self.head(hidden)
        output = {"tags": tag_logits, "starts": start_logits, "ends": end_logits}
        if tags is None or starts is None or ends is None:
            return output
        bio = F.cross_entropy(tag_logits.flatten(0, 1), tags.flatten(), ignore_index=IGNORED)
        edges = _edge_loss(start_logits, starts) + _edge_loss(end_logits, ends)
        return {"loss": bio + 0.5 * edges / 2, **output}


def _edge_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean binary cross-entropy of logits (B, T) over targets not IGNORED; 0 without any."""
    counted = targets != IGNORED
    losses = F.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")
    return torch.where(counted, losses, 0).sum() / counted.sum().clamp(min=1)
