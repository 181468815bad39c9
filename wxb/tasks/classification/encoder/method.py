"""Text classification by a backbone and a linear layer on its pooled hidden states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError
from wxb.corpora.text.tokenizers import special_tokens
from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Encoder, EncoderModel
from wxb.tasks.classification.predictor import Classifier


class EncoderClassifier(Classifier):
    """A trained backbone with its linear layer."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder."""
        from wxb.tasks.classification.encoder import model

        shape = EncoderModel(**settings["shape"])
        return model.Classifier.from_pretrained(
            folder, labels=settings["labels"], settings=shape, four_bit=settings["four_bit"]
        )

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """The pooling and the dropout."""
        return {"shape": experiment.model.model_dump()}


class Method(predictor.Method):
    """A linear layer on a backbone."""

    experiment: Encoder
    Predictor = EncoderClassifier

    def build(self, backbone: Path) -> Any:
        """The backbone with a random head; also sets the tokenizer's `model_max_length`.

        Raises WxbError if `pooling` is `cls` and the tokenizer puts no [CLS] first. The first token
        of a decoder, for example, has not seen the text.
        """
        from wxb.tasks.classification.encoder import model

        experiment = self.experiment
        leading, _ = special_tokens(self.tokenizer)
        if experiment.model.pooling == "cls" and self.tokenizer.cls_token_id not in leading[:1]:
            raise WxbError(
                f"model.pooling: found cls, but backbone {experiment.backbone!r} puts no [CLS]"
                " token first; expected mean"
            )
        # Plain transformers truncates texts to this length.
        self.tokenizer.model_max_length = experiment.encoding.max_length
        return model.Classifier.from_backbone(
            backbone, experiment.tuning, labels=self.labels, settings=experiment.model
        )
