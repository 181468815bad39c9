"""A Whisper that learns to write down what is said, after the tokens that ask it to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.corpora.text.encoded import IGNORED
from wxb.models.decoding import complete
from wxb.tasks.speech.params import SpecAugment
from wxb.tasks.speech.seq2seq.native import NativeWhisper
from wxb.training.backbones import tuning


class Transcriber(nn.Module):
    """A Whisper, transformers' or ours; saved as a plain Hugging Face or peft folder."""

    def __init__(
        self,
        backbone: Any,
        prompt: Sequence[int],
        pad: int,
        *,
        spec_augment: SpecAugment | None = None,
        ctc_weight: float = 0.0,
    ) -> None:
        """`prompt` are the tokens that stand before every transcript.

        With `ctc_weight`, a linear layer on the encoder, which is not kept, learns to tell the
        tokens in the order in which they are heard. An encoder that knows them is soon attended to
        in the right place, which otherwise takes most of a short training.
        """
        super().__init__()
        self.backbone, self.prompt, self.pad = backbone, list(prompt), pad
        self.spec_augment, self.ctc_weight = spec_augment, ctc_weight
        if ctc_weight:
            self.ctc = nn.Linear(backbone.config.d_model, backbone.config.vocab_size)

    @classmethod
    def from_pretrained(
        cls, folder: Path, prompt: Sequence[int], pad: int, *, four_bit: bool = False
    ) -> Self:
        """Load what `save_pretrained` wrote, to predict; a whole model is run by our code."""
        backbone: Any = None if four_bit else NativeWhisper.read(folder)
        if backbone is None:
            backbone = tuning.load(folder, partial(load, four_bit=four_bit))
        return cls(backbone, prompt, pad).eval()

    def save_pretrained(self, folder: Path) -> None:
        """Write the model; `AutoModelForSpeechSeq2Seq` or peft loads it from the same folder."""
        tuning.save(self.backbone, folder)

    def forward(
        self,
        input_features: Tensor,  # (B, frames, bands)
        labels: Tensor,  # (B, T), IGNORED behind the end
    ) -> dict[str, Tensor]:
        """The loss over the transcripts' tokens, and the logits (B, T, V) that predict them."""
        features = input_features
        if self.training and self.spec_augment:
            features = masked(features, self.spec_augment)
        prompt = labels.new_tensor(self.prompt).expand(len(labels), -1)  # (B, P)
        read = labels.masked_fill(labels == IGNORED, self.pad)[:, :-1]
        output = self.backbone(
            input_features=features.transpose(1, 2),  # (B, bands, frames)
            decoder_input_ids=torch.cat([prompt, read], dim=1),  # (B, P + T - 1)
            use_cache=False,
        )
        logits = output.logits[:, len(self.prompt) - 1 :].float()  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        if self.ctc_weight:
            heard = self._ctc_loss(output.encoder_last_hidden_state, labels)
            loss = (1 - self.ctc_weight) * loss + self.ctc_weight * heard
        return {"loss": loss, "logits": logits}

    def _ctc_loss(self, encoded: Tensor, labels: Tensor) -> Tensor:
        """Of transcripts (B, T) without their ends, from encoded frames (B, F, C); padding is the
        blank."""
        logs = self.ctc(encoded).float().log_softmax(dim=-1).transpose(0, 1)  # (F, B, V)
        told = (labels != IGNORED).sum(dim=1)
        frames = torch.full_like(told, len(logs))
        targets = labels.masked_fill(labels == IGNORED, self.pad)
        return F.ctc_loss(logs, targets, frames, told - 1, blank=self.pad, zero_infinity=True)

    @torch.inference_mode()
    def write(self, input_features: Tensor, *, longest: int, end: int) -> Tensor:
        """The likeliest token again and again, up to `end` or the `longest` transcript: (B, T)."""
        whole = getattr(self.backbone, "get_base_model", lambda: self.backbone)()
        encoded = whole.get_encoder()(input_features.transpose(1, 2))

        def forward(past_key_values: Any, **inputs: Tensor) -> Any:
            return whole(
                encoder_outputs=encoded,
                past_key_values=past_key_values,
                use_cache=True,
                **{f"decoder_{name}": tensor for name, tensor in inputs.items()},
            )

        start = torch.tensor([self.prompt], device=input_features.device)
        return complete(
            forward,
            start.expand(len(input_features), -1),
            max_new_tokens=longest,
            eos_token_id=end,
            pad_token_id=self.pad,
        ).tokens


def load(folder: Path, *, four_bit: bool = False) -> Any:
    """The Whisper of a folder by transformers, in float32; `four_bit`: as QLoRA keeps it."""
    from wxb.training.backbones.weights import load_backbone

    return load_backbone(folder, writes=True, four_bit=four_bit)


def masked(features: Tensor, settings: SpecAugment) -> Tensor:
    """Features (B, frames, bands) with stretches of both set to each recording's mean.

    SpecAugment (Park et al. 2019, section 2) without warping: the width of each mask is drawn
    evenly from 0 to its largest, then its place.
    """
    batch, frames, bands = features.shape
    hidden = torch.zeros(batch, frames, bands, dtype=torch.bool, device=features.device)
    for _ in range(settings.masks):
        hidden |= _stretch(batch, frames, settings.frames, features.device)[:, :, None]
        hidden |= _stretch(batch, bands, settings.bands, features.device)[:, None, :]
    return torch.where(hidden, features.mean(dim=(1, 2), keepdim=True), features)


def _stretch(batch: int, length: int, longest: int, device: torch.device) -> Tensor:
    """True in a stretch of each row (B, length)."""
    widths = (torch.rand(batch, 1, device=device) * (min(longest, length) + 1)).long()
    starts = (torch.rand(batch, 1, device=device) * (length - widths + 1)).long()
    places = torch.arange(length, device=device)[None]
    return (places >= starts) & (places < starts + widths)
