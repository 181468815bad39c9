"""Translation networks by the settings of params.yaml, with validation, saving and loading."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.core import pretrained
from wxb.core.files import write_json
from wxb.core.pretrained import CONFIG, WEIGHTS
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import text_of
from wxb.models import gpt2, seq2seq, transformer
from wxb.models.decoding import DecoderState, decoder_step, positions, search_targets
from wxb.models.transformer import smoothed_loss
from wxb.tasks.translation.record.bleu import bleu_statistics


def build_network(shape: Mapping[str, Any], special: Mapping[str, int], max_length: int) -> Any:
    """A network with random weights: recurrent, transformer or decoder-only gpt2, by `shape`.

    The arguments are a `model` block, `special_ids_and_size`, and the most tokens of a text.
    """
    ids = {name: special[name] for name in ("pad", "bos", "eos")}
    sizes: dict[str, Any] = {"source_size": special["size"], "target_size": special["size"], **ids}
    options = {key: value for key, value in shape.items() if key != "kind"}
    match shape["kind"]:
        case "recurrent":
            del options["teacher_forcing_decay"]
            return seq2seq.Seq2Seq(seq2seq.Config(**sizes, **options))
        case "transformer":
            options["max_length"] = max_length + 1
            return transformer.Translator(transformer.Config(**sizes, **options))
        case _:  # gpt2
            smoothing, dropout = options.pop("label_smoothing"), options.pop("dropout")
            config = gpt2.Config(
                vocab_size=special["size"],
                n_positions=2 * max_length + 1,
                resid_pdrop=dropout,
                embd_pdrop=dropout,
                attn_pdrop=0.0,
                **options,
            )
            return PromptedGPT2(config, Special(**ids), label_smoothing=smoothing)


class Seq2SeqModel(nn.Module):
    """A translation network with its tokenizer, which validation decodes with.

    The arguments are those of `build_network`. The Trainer sets `updates`, on which teacher forcing
    depends if `shape` has a `teacher_forcing_decay`.
    """

    updates = 0

    def __init__(
        self, tokenizer: Any, shape: Mapping[str, Any], special: Mapping[str, int], max_length: int
    ) -> None:
        super().__init__()
        self.model = build_network(shape, special, max_length)
        self.tokenizer, self.shape, self.max_length = tokenizer, shape, max_length

    def forward(
        self,
        input_ids: Tensor,  # (B, S), padded on the right
        attention_mask: Tensor,  # (B, S), 1 for tokens, 0 for padding
        labels: Tensor,  # (B, T), IGNORED after eos
    ) -> dict[str, Tensor]:
        """`loss`; in evaluation BLEU `statistics` (B, 10) of greedy texts, cut at 2T + 8 tokens."""
        targets = labels.masked_fill(labels == IGNORED, self.model.config.pad)
        if self.training and (decay := self.shape.get("teacher_forcing_decay")):
            share = seq2seq.teacher_forcing(self.updates, decay=decay)
            output = self.model(input_ids, attention_mask, targets, teacher_forcing=share)
            return {"loss": output["loss"]}
        loss = self.model.loss(input_ids, attention_mask, targets)
        if self.training:
            return {"loss": loss}
        # A translation far longer than its label is wrong however it ends.
        longest = min(self.max_length, 2 * labels.shape[1] + 8)
        sources = input_ids, attention_mask
        best = search_targets(self.model, *sources, max_new_tokens=longest).tokens[:, 0]
        predicted, references = self._texts(best), self._texts(targets)
        statistics = bleu_statistics(predicted, [[reference] for reference in references])
        return {"loss": loss, "statistics": torch.from_numpy(statistics).to(loss.device)}

    def _texts(self, tokens: Tensor) -> list[str]:
        """The stripped texts of ids (B, T), without special tokens."""
        return [text_of(self.tokenizer, row).strip() for row in tokens.tolist()]

    @torch.no_grad()
    def attention_weights(self, source: NDArray[Any], target: NDArray[Any]) -> NDArray[Any] | None:
        """Weights (T + 1, S) of source tokens for target tokens and eos; None without attention."""
        if not hasattr(self.model, "attention_weights") or self.shape.get("attention") is False:
            return None
        device = next(self.parameters()).device
        ids = torch.tensor([source.tolist()], device=device)
        labels = torch.tensor([[*target.tolist(), self.model.config.eos]], device=device)
        weights: Tensor = self.model.attention_weights(ids, torch.ones_like(ids), labels)
        return weights[0].float().cpu().numpy()

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors; a GPT-2 with its configuration, as in transformers."""
        weights = self._saved_module().state_dict()
        if isinstance(self.model, PromptedGPT2):
            del weights["lm_head.weight"]  # shared with the embedding
            special = {f"{name}_token_id": id_ for name, id_ in self.model.config._asdict().items()}
            config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}
            shape = vars(self.model.gpt2.transformer.config)
            write_json(folder / CONFIG, {**config, **shape, **special})
        contiguous = {name: weight.contiguous() for name, weight in weights.items()}
        save_file(contiguous, folder / WEIGHTS, metadata={"format": "pt"})

    def load_weights(self, folder: Path) -> None:
        """Load the weights that `save_pretrained` wrote."""
        weights = pretrained.read_weights(folder / WEIGHTS)
        pretrained.load_weights(self._saved_module(), weights, folder / WEIGHTS)

    def _saved_module(self) -> nn.Module:
        return self.model.gpt2 if isinstance(self.model, PromptedGPT2) else self.model


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
        self.config = special
        self.smoothed = partial(smoothed_loss, smoothing=label_smoothing, ignored=special.pad)
        self.gpt2 = gpt2.GPT2LMHeadModel(shape)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> DecoderState:
        """The decoder state after sources with ids and mask (B, S); the next token is bos."""
        ids, mask = pad_left(input_ids, attention_mask)
        output = self.gpt2.transformer(ids, attention_mask=mask, position_ids=positions(mask))
        return DecoderState(F.pad(mask, (0, 1), value=1), ids[:, :0], output.past_key_values)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Logits (B, V) after the next tokens (B, 1), and the new state."""
        return decoder_step(partial(self.gpt2, logits_to_keep=1))(tokens, state)

    def loss(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """The mean smoothed loss of labels (B, T), which end with eos and are padded with pad."""
        mask = labels != self.config.pad
        hidden = self.hidden(input_ids, attention_mask, labels)[mask]
        return self.smoothed(self.gpt2.lm_head(hidden), labels[mask])

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


def pad_left(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, S) with the padding of each row moved to its start."""
    order = mask.long().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.long().gather(1, order)
