"""A body with a tagging head: what every token is, and where spans start and end."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.backbones import tuning
from wxb.backbones.native import Written
from wxb.params.experiments import Head, WordFeatures
from wxb.tasks.ner.tagging.words import WordEmbedding
from wxb.text.encoded import IGNORED

HEAD = "head.safetensors"
WORDS = "words.safetensors"


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


class Tagger(nn.Module):
    """Body and head; saved as a plain Hugging Face or peft folder with the head beside the body."""

    def __init__(
        self,
        backbone: tuning.Body,
        tags: int,
        settings: Head,
        *,
        word_features: WordFeatures | None = None,
        neftune_alpha: float | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        size = backbone.config.hidden_size
        self.words = WordEmbedding(size, word_features) if word_features else None
        self.head = TaggingHead(size, tags, settings)
        self.neftune_alpha = neftune_alpha

    @classmethod
    def from_pretrained(
        cls,
        folder: Path,
        *,
        tags: int,
        settings: Head,
        word_features: WordFeatures | None = None,
        bidirectional: bool = False,
        four_bit: bool = False,
    ) -> Tagger:
        """Load what `save_pretrained` wrote, to predict: the same logits.

        `bidirectional` and `four_bit` tell how the body was made that an adapter belongs to. A
        whole one is run by the architecture written out here, if there is one: transformers takes
        seconds to import.
        """
        backbone: Any = None if four_bit else Written.read(folder)
        if backbone is None:
            from wxb.backbones.weights import body

            backbone = tuning.load(
                folder, partial(body, bidirectional=bidirectional, four_bit=four_bit)
            )
        model = cls(backbone, tags, settings, word_features=word_features)
        model.head.load_state_dict(load_file(folder / HEAD), strict=True)
        if model.words:
            model.words.load_state_dict(load_file(folder / WORDS), strict=True)
        return model.eval()

    def save_pretrained(self, folder: Path) -> None:
        """Write body and head; `AutoModel` or peft loads the body from the same folder."""
        tuning.save(self.backbone, folder)
        save_file(self.head.state_dict(), folder / HEAD)
        if self.words:
            save_file(self.words.state_dict(), folder / WORDS)

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor,  # (B, T), 1 where there is a token
        words: Tensor | None = None,  # (B, T, F), features of words
        tags: Tensor | None = None,  # (B, T)
        starts: Tensor | None = None,  # (B, T)
        ends: Tensor | None = None,  # (B, T)
    ) -> dict[str, Tensor]:
        """Logits, and with targets the loss: BIO + 0.5 * mean(start, end), over tagged tokens."""
        inputs = {"input_ids": input_ids}
        if self.training and self.neftune_alpha:
            embeddings = self.backbone.get_input_embeddings()(input_ids)
            noisy = tuning.noisy(embeddings, attention_mask, self.neftune_alpha)
            inputs = {"inputs_embeds": noisy}
        hidden = self.backbone(**inputs, attention_mask=attention_mask).last_hidden_state
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
    """Binary cross-entropy over the tokens that count (B, T)."""
    counted = targets != IGNORED
    losses = F.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")
    return torch.where(counted, losses, 0).sum() / counted.sum().clamp(min=1)
