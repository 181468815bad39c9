"""GPT-2 as a translator: the source is a prompt, and what it writes behind it the translation."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import gpt2
from wxb.models.decoding import Read, decoder, positions
from wxb.models.transformer import smoothed_loss


class Special(NamedTuple):
    """The ids of special tokens; bos stands between source and translation."""

    pad: int
    bos: int
    eos: int


class Prompted(nn.Module):
    """Reads `source <bos>`, padded on the left, and writes `translation <eos>`."""

    def __init__(
        self, shape: gpt2.Config, special: Special, *, label_smoothing: float = 0.0
    ) -> None:
        super().__init__()
        self.config, self.label_smoothing = special, label_smoothing
        self.gpt2 = gpt2.GPT2LMHeadModel(shape)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Read:
        """The state before the first token, of source ids and mask (B, S)."""
        ids, mask = padded_left(input_ids, attention_mask)
        read = self.gpt2.transformer(ids, attention_mask=mask, position_ids=positions(mask))
        return Read(F.pad(mask, (0, 1), value=1), ids[:, :0], read.past_key_values)

    def step(self, tokens: Tensor, state: Read) -> tuple[Tensor, Read]:
        """Logits (B, V) of the tokens that follow these (B, 1), and the state behind them."""
        return decoder(partial(self.gpt2, logits_to_keep=1))(tokens, state)

    def forward(
        self,
        input_ids: Tensor,  # (B, S)
        attention_mask: Tensor,  # (B, S), 1 where there is a token
        labels: Tensor,  # (B, T), ending with eos and padded with pad
    ) -> dict[str, Tensor]:
        """Loss over the labels that are no padding, the prompt left out, and logits (B, T, V)."""
        logits = self.gpt2.lm_head(self.hidden(input_ids, attention_mask, labels))
        return {"loss": self._judged(logits, labels), "logits": logits}

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The loss of `forward`, without logits where there is padding."""
        counted = labels != self.config.pad
        hidden = self.hidden(input_ids, attention_mask, labels)[counted]
        return self._judged(self.gpt2.lm_head(hidden), labels[counted])

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """What the logits of labels (B, T) are made of (B, T, C)."""
        special = self.config
        ids, mask = padded_left(input_ids, attention_mask)
        before = F.pad(labels[:, :-1], (1, 0), value=special.bos)  # (B, T)
        # No token sees the padding behind the labels.
        mask = torch.cat([mask, torch.ones_like(before)], dim=1)
        read = self.gpt2.transformer(
            torch.cat([ids, before], dim=1),
            attention_mask=mask,
            position_ids=positions(mask),
            use_cache=False,
        )
        hidden: Tensor = read.last_hidden_state
        return hidden[:, ids.shape[1] :]

    def _judged(self, logits: Tensor, labels: Tensor) -> Tensor:
        smoothing = self.label_smoothing
        return smoothed_loss(logits, labels, smoothing=smoothing, ignored=self.config.pad)


def padded_left(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, S), the tokens of each row moved to its end, in their order."""
    order = mask.long().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.long().gather(1, order)
