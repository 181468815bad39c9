"""Backbones of the native architectures, in the place of transformers' own."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wxb.core import pretrained

if TYPE_CHECKING:
    from transformers import PreTrainedModel  # its import takes seconds

CONFIG, WEIGHTS = "config.json", "model.safetensors"

# What holds the embeddings of tokens, by the type of architecture.
TABLES = {"bert": "embeddings.word_embeddings", "llama": "embed_tokens"}


class Native(nn.Module):
    """One of our backbones, with the weights of one of transformers', under the same names."""

    def __init__(self, config: Any) -> None:
        """The backbone of a configuration: transformers', or one with the same attributes.

        Raises ValueError where ours cannot be the same; see `from_hf` of its configuration.
        """
        super().__init__()
        self.config = config
        self.backbone = _made_as(config)

    @classmethod
    def of(cls, theirs: PreTrainedModel) -> Native:
        """The same backbone as one of transformers'."""
        with torch.random.fork_rng(devices=[]):  # a head made next is as beside theirs
            made = cls(theirs.config)
        made.backbone.load_state_dict(theirs.state_dict(), strict=True)
        made.config.architectures = [type(theirs).__name__]
        return made

    @classmethod
    def read(cls, folder: Path) -> Native | None:
        """The backbone that `save_pretrained`, ours or transformers', left in a folder, to predict.

        None where the folder holds another architecture, or no whole backbone. Raises WxbError
        where it asks for code, as does all that loads one.
        """
        pretrained.harmless(folder)
        if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS)):
            return None
        config = SimpleNamespace(**json.loads((folder / CONFIG).read_text(encoding="utf-8")))
        try:
            with torch.random.fork_rng(devices=[]):
                made = cls(config)
            made.backbone.load_state_dict(_bare(load_file(folder / WEIGHTS)), strict=True)
        except (ValueError, RuntimeError):  # what is not the same here is for transformers
            return None
        return made.eval()

    def get_input_embeddings(self) -> nn.Module:
        """The table of what each token is, under the name by which transformers asks for it."""
        table: nn.Module = self.backbone.get_submodule(TABLES[self.config.model_type])
        return table

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T)
        attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding
        inputs_embeds: Tensor | None = None,  # (B, T, C), in place of `input_ids`
    ) -> Any:
        """What the backbone makes of texts; `last_hidden_state` is (B, T, C)."""
        return self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds
        )

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder in Hugging Face's layout, which `AutoModel` loads as its own."""
        self.config.save_pretrained(str(folder))
        weights = {name: weight.contiguous() for name, weight in self.backbone.state_dict().items()}
        save_file(weights, Path(folder, WEIGHTS), metadata={"format": "pt"})


def _bare(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a backbone, out of those of a BERT with a head on it."""
    own = {name.removeprefix("bert."): w for name, w in weights.items() if name[:5] == "bert."}
    return {name: w for name, w in own.items() if not name.startswith("pooler.")} or weights


def _made_as(config: Any) -> Any:
    # Each is imported alone: an edit of one must not make models of the other stale.
    match config.model_type:
        case "bert":
            from wxb.models import bert

            return bert.BertModel(bert.Config.from_hf(config), add_pooling_layer=False)
        case "llama":
            from wxb.models import llama

            return llama.LlamaModel(llama.Config.from_hf(config))
    raise ValueError(f"model_type: found {config.model_type!r}; expected bert or llama")
