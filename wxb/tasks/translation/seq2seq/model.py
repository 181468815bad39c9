"""The models that translate: made as params say, scored while they learn, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wxb.core.files import write_json
from wxb.corpora.text.encoded import IGNORED
from wxb.models import decoding, gpt2, seq2seq, transformer
from wxb.models.decoding import Hypotheses
from wxb.tasks.translation.metrics.sums import bleu_statistics
from wxb.tasks.translation.predictor import decoded
from wxb.tasks.translation.seq2seq.prompted import Prompted, Special

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def made(shape: Mapping[str, Any], special: Mapping[str, int], max_length: int) -> Any:
    """A model of random weights; `shape` is a block `model` of params, `special` as of `special`.

    It reads and writes texts of `max_length` tokens at most.
    """
    ids = {name: special[name] for name in ("pad", "bos", "eos")}
    sizes: dict[str, Any] = {"source_size": special["size"], "target_size": special["size"], **ids}
    own = {key: value for key, value in shape.items() if key != "kind"}
    match shape["kind"]:
        case "recurrent":
            del own["teacher_forcing_decay"]
            return seq2seq.Seq2Seq(seq2seq.Config(**sizes, **own))
        case "transformer":
            return transformer.Translator(
                transformer.Config(**sizes, **own, max_length=max_length + 1)
            )
        case "gpt2":
            smoothing, dropout = own.pop("label_smoothing"), own.pop("dropout")
            config = gpt2.Config(
                vocab_size=special["size"],
                n_positions=2 * max_length + 1,
                resid_pdrop=dropout,
                embd_pdrop=dropout,
                attn_pdrop=0.0,
                **own,
            )
            return Prompted(config, Special(**ids), label_smoothing=smoothing)
    raise ValueError(f"kind: found {shape['kind']!r}; expected recurrent, transformer or gpt2")


class Learner(nn.Module):
    """A model that translates, and what is needed to score it while it learns.

    `updates` is set by whoever trains it: the label is read ever less often where `shape` says so.
    """

    updates = 0

    def __init__(
        self, model: Any, tokenizer: Any, *, longest: int, shape: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.model = model
        self.tokenizer, self.longest, self.shape = tokenizer, longest, dict(shape)

    def forward(
        self,
        input_ids: Tensor,  # (B, S), padded on the right
        attention_mask: Tensor,  # (B, S), 1 where there is a token
        labels: Tensor,  # (B, T), IGNORED behind eos
    ) -> dict[str, Tensor]:
        """The loss; and of a model that does not learn now, what BLEU is made of (B, 10).

        That is of its greedy translations, with the labels for references.
        """
        targets = labels.masked_fill(labels == IGNORED, self.model.config.pad)
        if self.training and (decay := self.shape.get("teacher_forcing_decay")):
            forced = seq2seq.teacher_forcing(self.updates, decay=decay)
            found = self.model(input_ids, attention_mask, targets, teacher_forcing=forced)
            return {"loss": found["loss"]}
        loss = self.model.loss(input_ids, attention_mask, targets)
        if self.training:
            return {"loss": loss}
        # Far longer than the label, a translation is as wrong as can be.
        longest = min(self.longest, 2 * labels.shape[1] + 8)
        tokens = decoding.generate(self.model, input_ids, attention_mask, max_new_tokens=longest)
        written, references = self._texts(tokens), self._texts(targets)
        statistics = bleu_statistics(written, [[reference] for reference in references])
        return {"loss": loss, "statistics": torch.from_numpy(statistics).to(loss.device)}

    def _texts(self, tokens: Tensor) -> list[str]:
        """The texts of ids (B, T), each up to its end."""
        eos, texts = self.model.config.eos, []
        for ids in tokens.tolist():
            texts.append(decoded(self.tokenizer, ids[: ids.index(eos)] if eos in ids else ids))
        return texts

    def search(self, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Hypotheses:
        """The best translations of sources (B, S); see `wxb.models.decoding.search`."""
        return decoding.search(self.model, input_ids, attention_mask, **options)

    @torch.no_grad()
    def attention_weights(self, source: NDArray[Any], target: NDArray[Any]) -> NDArray[Any] | None:
        """What each token of a target (T), and the end, looked at in its source (S): (T + 1, S).

        None for a model without attention to the source as such.
        """
        if not hasattr(self.model, "attention_weights") or self.shape.get("attention") is False:
            return None
        device = next(self.parameters()).device
        ids = torch.tensor([source.tolist()], device=device)
        labels = torch.tensor([[*target.tolist(), self.model.config.eos]], device=device)
        weights: Tensor = self.model.attention_weights(ids, torch.ones_like(ids), labels)
        found: NDArray[Any] = weights[0].float().cpu().numpy()
        return found

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors; those of a GPT-2 as transformers loads them."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = self._kept().state_dict()
        if isinstance(self.model, Prompted):
            del weights["lm_head.weight"]  # which is the embedding
            write_json(folder / CONFIG, _as_hf(self.model))
        contiguous = {name: weight.contiguous() for name, weight in weights.items()}
        save_file(contiguous, folder / WEIGHTS, metadata={"format": "pt"})

    def read(self, folder: Path) -> None:
        """Take the weights that `save_pretrained` wrote."""
        weights = load_file(folder / WEIGHTS)
        if isinstance(self.model, Prompted):
            weights["lm_head.weight"] = weights["transformer.wte.weight"]
        self._kept().load_state_dict(weights, strict=True)

    def _kept(self) -> nn.Module:
        module: nn.Module = self.model.gpt2 if isinstance(self.model, Prompted) else self.model
        return module


def _as_hf(model: Prompted) -> dict[str, Any]:
    """The configuration of a GPT-2 as transformers has it."""
    special = model.config
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        **vars(model.gpt2.transformer.config),
        "pad_token_id": special.pad,
        "bos_token_id": special.bos,
        "eos_token_id": special.eos,
    }
