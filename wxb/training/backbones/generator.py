"""A causal language model that is trained to generate the answer to a prompt."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from wxb.core.params.experiments import Tuning
from wxb.core.pretrained import config
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.models.decoding import Continuation, complete
from wxb.training.backbones import tuning
from wxb.training.backbones.native import load_trained

# Models that may read the common start of prompts once: they measure distances by positions, not by
# columns of the cache, as sliding windows do.
SHARED_START_MODELS = ("llama", "gpt2")


class Generator(tuning.BackboneModel):
    """A causal language model; saved as a plain Hugging Face or peft folder, unless frozen."""

    unpredicted_labels = 1  # the first label of a row has no token before it

    @classmethod
    def from_backbone(cls, folder: Path, settings: Tuning, *, vocabulary: int) -> Self:
        """Load the language model of a folder, and adapt it by `settings` for training.

        `vocabulary` is the number of tokens; the embeddings of tokens that the folder lacks are
        trained unless `frozen`. Seed torch before: new weights are random.
        """
        backbone = language_model(folder, vocabulary=vocabulary, four_bit=settings.four_bit)
        new = list(range(len(SavedTokenizer(folder)), vocabulary))
        adapted = tuning.adapt(backbone, settings, task_type="CAUSAL_LM", new_tokens=new)
        return cls(adapted, tuning=settings)

    @classmethod
    def from_pretrained(cls, folder: Path, *, vocabulary: int, four_bit: bool = False) -> Self:
        """Load what `save_pretrained` wrote, for prediction, with the same logits.

        `vocabulary` is the number of tokens, which may be larger than that of the backbone. The
        architecture is native as in `Headed.from_pretrained`.
        """
        load = partial(language_model, vocabulary=vocabulary, four_bit=four_bit)
        return cls(load_trained(folder, load, generative=True)).eval()

    def save_pretrained(self, folder: Path) -> None:
        """Write the model; of a frozen one without new tokens, only the name of its backbone."""
        backbone = Path(str(self.backbone.name_or_path))
        if self.tuning.frozen and config(backbone).vocab_size == self.backbone.config.vocab_size:
            tuning.save_reference(backbone, folder)
        else:
            super().save_pretrained(folder)

    def forward(
        self,
        input_ids: Tensor,  # (B, T), padded on the right
        attention_mask: Tensor,  # (B, T), 1 = token, 0 = padding
        labels: Tensor,  # (B, T), IGNORED for tokens without loss
    ) -> dict[str, Tensor]:
        """The loss over the labels, and the logits (N, V) that predict them, row after row."""
        inputs = self.backbone_inputs(input_ids, attention_mask)
        targets = F.pad(labels[:, 1:], (0, 1), value=IGNORED)  # each token predicts the next one
        has_target = targets != IGNORED
        with tuning.logits_only_at(self.backbone, has_target):
            output = self.backbone(**inputs, use_cache=False)
        logits = output.logits.float()
        return {"loss": F.cross_entropy(logits, targets[has_target]), "logits": logits}

    @torch.inference_mode()
    def generate(
        self,
        input_ids: Tensor,  # (B, T), padded on the left
        attention_mask: Tensor,  # (B, T)
        *,
        max_new_tokens: int,
        eos: int | Sequence[int],
        pad: int,
    ) -> Continuation:
        """Generate answers by greedy search, up to any `eos` or `max_new_tokens`.

        Tokens and log-probabilities equal those of transformers' `generate` up to rounding. A
        backbone whose cache `decoder_step` does not support reads all tokens again at each step.
        """
        return complete(
            partial(self.backbone, use_cache=True, logits_to_keep=1),
            input_ids,
            attention_mask,
            max_new_tokens=max_new_tokens,
            eos_token_id=eos,
            pad_token_id=pad,
            share_start=self.backbone.config.model_type in SHARED_START_MODELS,
        )


def language_model(folder: Path, *, vocabulary: int, four_bit: bool = False) -> tuning.Model:
    """A model with at least `vocabulary` embeddings and default generation settings."""
    from transformers import GenerationConfig

    from wxb.training.backbones.weights import load_backbone

    model = load_backbone(folder, generative=True, four_bit=four_bit)
    if vocabulary > model.config.vocab_size:
        model.resize_token_embeddings(vocabulary)
    # Remove penalties and forbidden words of a checkpoint, so that transformers' `generate` on the
    # saved model returns what ours does.
    model.generation_config = GenerationConfig.from_model_config(model.config)
    return model
