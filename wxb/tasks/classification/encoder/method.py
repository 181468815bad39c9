"""Classes by a backbone and a linear layer on what is pooled of its hidden states."""

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
    """A trained model of this method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """The model that was saved in a folder."""
        from wxb.tasks.classification.encoder import model

        shape = EncoderModel(**settings["shape"])
        return model.Classifier.from_pretrained(
            folder, labels=settings["labels"], settings=shape, four_bit=settings["four_bit"]
        )

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """How it pools."""
        return {"shape": experiment.model.model_dump()}


class Method(predictor.Method):
    """A linear layer on a backbone."""

    experiment: Encoder
    Predictor = EncoderClassifier

    def build(self, backbone: Path) -> Any:
        """The model that training starts from; its head is random.

        Raises WxbError for `cls` of a backbone that puts no [CLS] first, such as a decoder, whose
        first token has seen nothing of the text.
        """
        from wxb.tasks.classification.encoder import model

        experiment = self.experiment
        before, _ = special_tokens(self.tokenizer)
        if experiment.model.pooling == "cls" and self.tokenizer.cls_token_id not in before[:1]:
            raise WxbError(
                f"model.pooling: found cls, but backbone {experiment.backbone!r} puts no [CLS]"
                " token first; expected mean"
            )
        # Plain transformers cut a text where its tokenizer says.
        self.tokenizer.model_max_length = experiment.encoding.max_length
        return model.Classifier.to_learn(
            backbone, experiment.tuning, labels=self.labels, settings=experiment.model
        )
