"""A language model that learns to write the answer to a prompt, and no other token."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from transformers import GenerationConfig, PreTrainedModel

from wxb.core.params.experiments import Tuning
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.models.decoding import Continuation, complete
from wxb.training.backbones import tuning
from wxb.training.backbones.weights import load_backbone, logits_only_at


class Generator(nn.Module):
    """A causal language model; saved as a plain Hugging Face or peft folder."""

    def __init__(
        self,
        backbone: tuning.Model,
        *,
        neftune_alpha: float | None = None,
        neftune_padded: bool = False,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.neftune_alpha, self.neftune_padded = neftune_alpha, neftune_padded

    @classmethod
    def to_learn(cls, folder: Path, settings: Tuning, *, tokens: int) -> Self:
        """On the language model saved in a folder, of which learns what the settings say.

        `tokens` is the size of the vocabulary; the embeddings of those that the folder lacks learn
        in any case. Seed torch before: new weights are random.
        """
        bare = language_model(folder, tokens=tokens, four_bit=settings.four_bit)
        new = list(range(len(SavedTokenizer(folder)), tokens))
        return cls(
            tuning.adapt(bare, settings, task_type="CAUSAL_LM", new_tokens=new),
            neftune_alpha=settings.neftune_alpha,
            neftune_padded=settings.neftune_padded,
        )

    @classmethod
    def from_pretrained(cls, folder: Path, *, tokens: int, four_bit: bool = False) -> Generator:
        """Load what `save_pretrained` wrote: the same logits, bit for bit.

        `tokens` is the size of the vocabulary, which may have grown since the backbone was made.
        """
        load_body = partial(language_model, tokens=tokens, four_bit=four_bit)
        return cls(tuning.load(folder, load_body)).eval()

    def save_pretrained(self, folder: Path) -> None:
        """Write the model; `AutoModelForCausalLM` or peft loads it from the same folder."""
        tuning.save(self.backbone, folder)

    def forward(
        self,
        input_ids: Tensor,  # (B, T), padded on the right
        attention_mask: Tensor,  # (B, T), 1 where there is a token
        labels: Tensor,  # (B, T), IGNORED where nothing is to be learnt
    ) -> dict[str, Tensor]:
        """The loss over the labels, and the logits (N, V) that predict them, row after row."""
        inputs = {"input_ids": input_ids}
        if self.training and self.neftune_alpha:
            embeddings = self.backbone.get_input_embeddings()(input_ids)
            noisy = tuning.noisy(
                embeddings, attention_mask, self.neftune_alpha, padded=self.neftune_padded
            )
            inputs = {"inputs_embeds": noisy}
        following = F.pad(labels[:, 1:], (0, 1), value=IGNORED)  # the token before predicts a label
        chosen = following != IGNORED
        with logits_only_at(self.backbone, chosen):
            output = self.backbone(**inputs, attention_mask=attention_mask, use_cache=False)
        logits = output.logits.float()
        return {"loss": F.cross_entropy(logits, following[chosen]), "logits": logits}

    @torch.inference_mode()
    def write(
        self,
        input_ids: Tensor,  # (B, T), padded on the left
        attention_mask: Tensor,  # (B, T)
        *,
        longest: int,
        end: int,
        pad: int,
    ) -> Continuation:
        """The likeliest next token again and again, up to `end` or the `longest` answer.

        Gives ids (B, A), `pad` after the end, and the log-probability of each (B, A), 0 after it:
        those of transformers' `generate`, for any backbone that keeps keys and values. One that
        keeps another kind of state reads all tokens again for each.
        """
        return complete(
            partial(self.backbone, use_cache=True, logits_to_keep=1),
            input_ids,
            attention_mask,
            max_new_tokens=longest,
            eos_token_id=end,
            pad_token_id=pad,
        )


def language_model(folder: Path, *, tokens: int, four_bit: bool = False) -> PreTrainedModel:
    """The language model of a folder, its embeddings as many as `tokens`."""
    model: PreTrainedModel = load_backbone(folder, writes=True, four_bit=four_bit)
    if tokens > model.config.vocab_size:
        # New rows are drawn around the mean of all; of a shape alone there is none.
        model.resize_token_embeddings(tokens, mean_resizing=model.device.type != "meta")
    # Whoever calls transformers' `generate` on what is saved gets what `write` gives, without the
    # penalties and forbidden words that a checkpoint may name.
    model.generation_config = GenerationConfig.from_model_config(model.config)
    return model
