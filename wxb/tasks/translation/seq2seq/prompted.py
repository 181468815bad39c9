"""GPT-2 as a translator: the prompt is the source, and its continuation the translation."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import gpt2
from wxb.models.decoding import DecoderState, decoder_step, positions
from wxb.models.transformer import smoothed_loss


class Special(NamedTuple):
    """The ids of special tokens; bos separates source and translation."""

    pad: int
    bos: int
    eos: int


class PromptedGPT2(nn.Module):
    """A GPT-2 that reads `source <bos>`, padded on the left, and generates `translation <eos>`."""

    def __init__(
        self, shape: gpt2.Config, special: Special, *, label_smoothing: float = 0.0
    ) -> None:
        super().__init__()
        self.config, self.label_smoothing = special, label_smoothing
        self.gpt2 = gpt2.GPT2LMHeadModel(shape)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> DecoderState:
        """The decoder state after sources with ids and mask (B, S)."""
        ids, mask = pad_left(input_ids, attention_mask)
        output = self.gpt2.transformer(ids, attention_mask=mask, position_ids=positions(mask))
        return DecoderState(F.pad(mask, (0, 1), value=1), ids[:, :0], output.past_key_values)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Logits (B, V) after the next tokens (B, 1), and the new state."""
        return decoder_step(partial(self.gpt2, logits_to_keep=1))(tokens, state)

    def forward(
        self,
        input_ids: Tensor,  # (B, S)
        attention_mask: Tensor,  # (B, S), 1 for tokens, 0 for padding
        labels: Tensor,  # (B, T), ending with eos and padded with pad
    ) -> dict[str, Tensor]:
        """Logits (B, T, V) of the labels, and the loss over those that are not padding."""
        logits = self.gpt2.lm_head(self.hidden(input_ids, attention_mask, labels))
        return {"loss": self._smoothed_loss(logits, labels), "logits": logits}

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The loss of `forward`, without computing the logits of padding."""
        mask = labels != self.config.pad
        hidden = self.hidden(input_ids, attention_mask, labels)[mask]
        return self._smoothed_loss(self.gpt2.lm_head(hidden), labels[mask])

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The last hidden states (B, T, C), from which the labels (B, T) are predicted."""
        ids, mask = pad_left(input_ids, attention_mask)
        previous = F.pad(labels[:, :-1], (1, 0), value=self.config.bos)  # (B, T)
        # Padding after the labels needs no mask: no token attends to later ones.
        mask = torch.cat([mask, torch.ones_like(previous)], dim=1)
        output = self.gpt2.transformer(
            torch.cat([ids, previous], dim=1),
            attention_mask=mask,
            position_ids=positions(mask),
            use_cache=False,
        )
        hidden: Tensor = output.last_hidden_state
        return hidden[:, ids.shape[1] :]

    def _smoothed_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        smoothing = self.label_smoothing
        return smoothed_loss(logits, labels, smoothing=smoothing, ignored=self.config.pad)


def pad_left(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, S) with the padding of each row moved to its start."""
    order = mask.long().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.long().gather(1, order)
