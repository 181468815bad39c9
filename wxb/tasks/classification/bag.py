"""Text classification by the mean embedding of words and pairs (fastText: Joulin et al. 2017)."""

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.core.params.section import Fraction, Section
from wxb.tasks.classification.models.predictor import ScratchMethod
from wxb.tasks.classification.params import Scratch


class BagModel(Section):
    """The embeddings of words and pairs of words."""

    embedding_size: PositiveInt = 64
    pairs: PositiveInt = 65536  # embeddings for pairs, which are hashed
    dropout: Fraction = 0.0


class BagExperiment(Scratch):
    """The mean embedding of words and pairs of words, trained from scratch."""

    model: BagModel = BagModel()


class Bag(nn.Module):
    """A linear layer on the mean embedding of words and of pairs of adjacent words."""

    def __init__(
        self, words: int, classes: int, *, embedding_size: int, pairs: int, dropout: float
    ) -> None:
        super().__init__()
        self.words, self.pairs = words, pairs
        self.embeddings = nn.EmbeddingBag(words + pairs, embedding_size, padding_idx=0)
        nn.init.uniform_(self.embeddings.weight, -1 / embedding_size, 1 / embedding_size)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(embedding_size, classes)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> dict[str, Tensor]:  # inputs must be padded on the right
        """Logits (B, K) of words (B, T) and hashed word pairs; the loss of labels (B,) if given."""
        words = input_ids * attention_mask  # 0 is padding
        pairs = self.words + (words[:, :-1] * 1_000_003 + words[:, 1:]) % self.pairs  # by hash
        bag = torch.cat([words, pairs * attention_mask[:, 1:]], dim=1)  # (B, 2 * T - 1)
        logits = self.head(self.dropout(self.embeddings(bag)))
        if labels is None:
            return {"logits": logits}
        return {"logits": logits, "loss": F.cross_entropy(logits, labels)}


class BagMethod(ScratchMethod):
    """A bag of the words of a vocabulary."""

    experiment: BagExperiment
    NETWORK = Bag
