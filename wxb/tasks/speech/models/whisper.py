"""A Whisper, of transformers or ours, with its prompt and its loss."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.corpora.text.encoded import IGNORED
from wxb.models.decoding import complete, decoder_forward
from wxb.tasks.speech.params import POSITIONS, SpecAugment
from wxb.training.backbones import tuning, weights


def load_whisper(folder: Path, window: int, *, four_bit: bool = False) -> Any:
    """Load a Whisper of transformers for windows of `window` seconds, with its SpecAugment off.

    A longer `window` than its own has no effect. A shorter one keeps the first position embeddings:
    they are sinusoids, and the encoder computes in proportion to the window.
    """
    whisper: Any = weights.load_backbone(folder, generative=True, four_bit=four_bit)
    whisper.config.apply_spec_augment = False  # `model.spec_augment` is ours
    encoder, positions = whisper.get_encoder(), window * POSITIONS
    if positions < encoder.max_source_positions:
        first = encoder.embed_positions.weight[:positions].clone()
        encoder.embed_positions = nn.Embedding.from_pretrained(first)
        encoder.max_source_positions = whisper.config.max_source_positions = positions
    return whisper


class Transcriber(tuning.BackboneModel):
    """A Whisper, of transformers or ours; saved as a plain Hugging Face or peft folder."""

    def __init__(
        self,
        backbone: Any,
        prompt: Sequence[int],
        pad: int,
        *,
        spec_augment: SpecAugment | None = None,
        ctc_weight: float = 0.0,
    ) -> None:
        """`prompt` has the ids of the tokens before every transcript, `pad` is the padding id.

        With `ctc_weight`, a linear layer on the encoder is trained with CTC loss and not saved. The
        decoder then learns sooner where to attend, which takes most of a short training otherwise.
        """
        super().__init__(backbone)
        self.prompt, self.pad = list(prompt), pad
        self.spec_augment, self.ctc_weight = spec_augment, ctc_weight
        if ctc_weight:
            self.ctc = nn.Linear(backbone.config.d_model, backbone.config.vocab_size)

    def forward(
        self,
        input_features: Tensor,  # (B, frames, bands); SpecAugment masks them in training
        labels: Tensor,  # (B, T), IGNORED after the end
    ) -> dict[str, Tensor]:
        """Mean `loss` of labels, mixed with CTC by `ctc_weight`, and their `logits` (B, T, V)."""
        features = input_features
        if self.training and self.spec_augment:
            features = mask_features(features, self.spec_augment)
        prompt = labels.new_tensor(self.prompt).expand(len(labels), -1)  # (B, P)
        previous = labels.masked_fill(labels == IGNORED, self.pad)[:, :-1]
        output = self.backbone(
            input_features=features.transpose(1, 2),  # (B, bands, frames)
            decoder_input_ids=torch.cat([prompt, previous], dim=1),  # (B, P + T - 1)
            use_cache=False,
        )
        logits = output.logits[:, len(self.prompt) - 1 :].float()  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        if self.ctc_weight:
            ctc_loss = self._ctc_loss(output.encoder_last_hidden_state, labels)
            loss = (1 - self.ctc_weight) * loss + self.ctc_weight * ctc_loss
        return {"loss": loss, "logits": logits}

    def _ctc_loss(self, encoded: Tensor, labels: Tensor) -> Tensor:
        """The CTC loss of labels (B, T) without ends on encoded frames (B, F, C); blank: `pad`."""
        logs = self.ctc(encoded).float().log_softmax(dim=-1).transpose(0, 1)  # (F, B, V)
        lengths = (labels != IGNORED).sum(dim=1)
        frames = torch.full_like(lengths, len(logs))
        targets = labels.masked_fill(labels == IGNORED, self.pad)
        return F.ctc_loss(logs, targets, frames, lengths - 1, blank=self.pad, zero_infinity=True)

    @torch.inference_mode()
    def generate(self, input_features: Tensor, *, max_length: int, end: int) -> Tensor:
        """Greedy tokens (B, T) without prompt, T <= max_length, of features (B, frames, bands)."""
        full = getattr(self.backbone, "get_base_model", lambda: self.backbone)()
        encoded = full.get_encoder()(input_features.transpose(1, 2))
        start = torch.tensor([self.prompt], device=input_features.device)
        return complete(
            decoder_forward(full, encoded, use_cache=True),
            start.expand(len(input_features), -1),
            max_new_tokens=max_length,
            eos_token_id=end,
            pad_token_id=self.pad,
        ).tokens


def mask_features(features: Tensor, settings: SpecAugment) -> Tensor:
    """Features (B, frames, bands) with random spans of frames and bands set to the row's mean.

    SpecAugment (Park et al. 2019, section 2) without time warping. The width of a mask is uniform
    from 0 to its maximum, then its start is drawn.
    """
    batch, frames, bands = features.shape
    mask = torch.zeros(batch, frames, bands, dtype=torch.bool, device=features.device)
    for _ in range(settings.masks):
        mask |= _random_spans(batch, frames, settings.frames, features.device)[:, :, None]
        mask |= _random_spans(batch, bands, settings.bands, features.device)[:, None, :]
    return torch.where(mask, features.mean(dim=(1, 2), keepdim=True), features)


def _random_spans(batch: int, length: int, max_width: int, device: torch.device) -> Tensor:
    """A mask (B, length) that is True in one random span of each row, which may be empty."""
    widths = (torch.rand(batch, 1, device=device) * (min(max_width, length) + 1)).long()
    starts = (torch.rand(batch, 1, device=device) * (length - widths + 1)).long()
    positions = torch.arange(length, device=device)[None]
    return (positions >= starts) & (positions < starts + widths)
