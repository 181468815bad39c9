"""Text classification by a backbone and a linear layer on its pooled hidden states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import special_tokens
from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Encoder, EncoderModel, Regression
from wxb.tasks.classification.predictor import Classifier
from wxb.tasks.classification.record.ngrams import Tfidf
from wxb.tasks.methods import Items

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun


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

    def size(self, *, trainable: bool = False) -> int:
        """Number of parameters, with the weights of n-grams; none of a frozen backbone's train."""
        from wxb.training.backbones.tuning import parameter_count

        words = self.model.words
        module = self.model.head if trainable and self.settings.get("frozen") else self.model
        count = parameter_count(module, trainable=trainable)
        return count + (words.coef.size if words else 0)

    def logits(self, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        logits = super().logits(texts, label=label)
        return logits + self.model.words.logits(texts) if self.model.words else logits

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """The shape of the model, and whether its backbone was frozen."""
        frozen = {"frozen": True} if experiment.tuning.frozen else {}
        return {"shape": experiment.model.model_dump(exclude_none=True), **frozen}


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

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> Items:
        """One item per text, as `predictor.Method`; for n-grams also its `text`."""
        texts: list[Any] = [record.input for record in records]
        items = super().dataset(features, targets, [])
        if not self.experiment.model.words:
            return items
        return [{**item, "text": text} for item, text in zip(items, texts, strict=True)]

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Any, list[dict[str, float]]]:
        """Fine-tune a model, or fit its linear layer by `fit_regression` if the settings say so.

        The regression reads pooled hidden states, and with `model.words` TF-IDF weights. Hidden
        states are divided by their mean length in training, as vectors of TF-IDF have length 1.
        """
        if not isinstance(run.settings, Regression):
            return super().fit(backbone, run)
        import torch

        model, words = self.build(backbone), self.experiment.model.words
        splits = {"train": run.train, "valid": run.valid}
        states = {split: self._pooled(model, items, run.label) for split, items in splits.items()}
        length = np.linalg.norm(states["train"], axis=1).mean()
        ngrams: dict[str, Any] = {}
        if words:
            texts = {split: [item["text"] for item in items] for split, items in splits.items()}
            model.words = Tfidf.from_texts(texts["train"], words)
            ngrams = {split: model.words.features(rows) for split, rows in texts.items()}
        fits: list[tuple[float, float, NDArray[np.float64], NDArray[np.float64]]] = []
        history: list[dict[str, float]] = []
        for factor in words.states if words else [1.0]:
            features: dict[str, Any] = {s: rows * factor / length for s, rows in states.items()}
            if words:
                features = {
                    split: csr_array(hstack([csr_array(rows), ngrams[split]]))
                    for split, rows in features.items()
                }
            score, coef, intercept, rows = self.fit_regression(features, run)
            fits.append((score, factor, coef, intercept))
            before = history[-1]["step"] if history else 0
            for row in rows:
                step = before + row["step"]
                history.append({**row, "step": step, "epoch": step, "states": factor})
        _, factor, coef, intercept = max(fits, key=lambda fit: fit[0])  # the first of equal ones
        size = states["train"].shape[1]
        with torch.no_grad():
            model.head.weight.copy_(torch.from_numpy(coef[:, :size] * factor / length))
            model.head.bias.copy_(torch.from_numpy(intercept))
        if model.words:
            model.words.coef, model.words.intercept = coef[:, size:], np.zeros(len(coef))
        return model, history

    def _pooled(self, model: Any, items: Items, label: str) -> NDArray[np.float64]:
        """The pooled hidden states (N, C) of N items."""
        encoder = EncoderClassifier(model, self.tokenizer)
        encoder.prediction = self.experiment.prediction
        inputs = [{"input_ids": item["input_ids"]} for item in items]
        with model.without_head():
            rows = [output["logits"] for output in encoder.outputs(inputs, label=label)]
        return np.array(rows, np.float64).reshape(len(rows), -1)
