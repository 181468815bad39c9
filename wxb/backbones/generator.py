"""A language model that learns to write the answer to a prompt, and no other token."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from transformers import GenerationConfig, PreTrainedModel

from wxb.backbones import tuning
from wxb.backbones.weights import body, head_reads
from wxb.text.encoded import IGNORED


class Generator(nn.Module):
    """A causal language model; saved as a plain Hugging Face or peft folder."""

    def __init__(self, backbone: tuning.Body, *, neftune_alpha: float | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.neftune_alpha = neftune_alpha

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
            noisy = tuning.noisy(embeddings, attention_mask, self.neftune_alpha)
            inputs = {"inputs_embeds": noisy}
        following = F.pad(labels[:, 1:], (0, 1), value=IGNORED)  # the token before predicts a label
        chosen = following != IGNORED
        with head_reads(self.backbone, chosen):
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
    ) -> tuple[Tensor, Tensor]:
        """The likeliest next token again and again, up to `end` or the `longest` answer.

        Gives ids (B, A), `pad` after the end, and the log-probability of each (B, A), 0 after it.
        """
        output = self.backbone.generate(  # type: ignore[operator]
            input_ids=input_ids,
            attention_mask=attention_mask,
            max_new_tokens=longest,
            do_sample=False,
            use_cache=True,
            eos_token_id=end,
            pad_token_id=pad,
            return_dict_in_generate=True,
            output_logits=True,
        )
        ids = output.sequences[:, input_ids.shape[1] :]  # by the padded length of the prompts
        finished = (ids == end).cumsum(dim=1) - (ids == end).long() > 0
        logits = torch.stack(output.logits, dim=1).float()  # (B, A, V)
        chosen = logits.log_softmax(-1).gather(-1, ids[:, :, None]).squeeze(-1)
        return ids.masked_fill(finished, pad), chosen.masked_fill(finished, 0)


def language_model(folder: Path, *, tokens: int, four_bit: bool = False) -> PreTrainedModel:
    """The language model of a folder, its embeddings as many as `tokens`."""
    model: PreTrainedModel = body(folder, writes=True, four_bit=four_bit)
    if tokens > model.config.vocab_size:
        model.resize_token_embeddings(tokens)
    # `generate` would obey what a checkpoint says of penalties and forbidden words.
    model.generation_config = GenerationConfig.from_model_config(model.config)
    return model
