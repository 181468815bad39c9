"""A decoder that answers a prompt with one of some tokens."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from wxb.corpora.text.encoded import IGNORED
from wxb.training.backbones.generator import Generator
from wxb.training.backbones.tuning import logits_only_at


class Answerer(Generator):
    """A causal language model that chooses the next token among its answers."""

    unpredicted_labels = 0
    answers: Sequence[int]  # ids of tokens

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> dict[str, Tensor]:  # inputs must be padded on the right
        """`logits` (B, K) of the answers to prompts (B, T), and `loss` of labels (B,) if given."""
        last = attention_mask.sum(dim=1) - 1
        is_last = F.one_hot(last, input_ids.shape[1]).bool()  # (B, T)
        inputs = self.backbone_inputs(input_ids, attention_mask)
        with logits_only_at(self.backbone, is_last):
            output = self.backbone(**inputs, use_cache=False)
        logits = output.logits[:, self.answers].float()
        if labels is None:
            return {"logits": logits}
        return {"logits": logits, "loss": F.cross_entropy(logits, labels, ignore_index=IGNORED)}
