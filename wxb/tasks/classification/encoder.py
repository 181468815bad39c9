"""Text classification by a backbone and a linear layer on its pooled hidden states."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Tag, model_validator
from scipy.sparse import csr_array, hstack

from wxb.core.errors import WxbError
from wxb.core.params import experiments
from wxb.core.params.experiments import Tuning
from wxb.core.params.training import Training
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import special_tokens
from wxb.tasks.classification.models.predictor import LogitClassifier
from wxb.tasks.classification.models.regression import Fit, fit_regression
from wxb.tasks.classification.models.tfidf import Tfidf
from wxb.tasks.classification.params import EncoderModel, Encoding, Regression
from wxb.tasks.methods import History, Items, Network


def _kind_of_training(block: Any) -> str:
    """The variant of `training` of an encoder: "regression" if it has C, else "steps"."""
    has_strengths = isinstance(block, Mapping) and "C" in block
    return "regression" if has_strengths or isinstance(block, Regression) else "steps"


class EncoderExperiment(experiments.Experiment):
    """A backbone with a linear layer on its pooled hidden states.

    Training in steps fine-tunes both; a logistic regression fits the layer alone.
    """

    required_weights = "hidden states"

    encoding: Encoding
    model: EncoderModel
    training: Annotated[
        Annotated[Training, Tag("steps")] | Annotated[Regression, Tag("regression")],
        Discriminator(_kind_of_training),
    ]

    @property
    def traits(self) -> list[str]:
        """The pooling, and "TF-IDF" and "logistic regression" if used."""
        regression = ["logistic regression"] if isinstance(self.training, Regression) else []
        words = ["TF-IDF"] if self.model.words else []
        return [f"{self.model.pooling} pooling", *words, *regression]

    @model_validator(mode="after")
    def _check_regression(self) -> Self:
        """A regression needs a frozen backbone and mean pooling, and `words` need a regression."""
        if isinstance(self.training, Regression) and (
            self.tuning != Tuning(frozen=True) or self.model.pooling != "mean"
        ):
            raise ValueError(
                "`training.C` fits a logistic regression to the mean hidden states of a frozen"
                " backbone; expected `tuning: {frozen: true}` and `model: {pooling: mean}`"
            )
        if self.model.words and not isinstance(self.training, Regression):
            raise ValueError(
                "`model.words` is read by a logistic regression; expected `training: {C: [...]}`"
            )
        return self


class EncoderClassifier(LogitClassifier):
    """A trained backbone with its linear layer."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder."""
        from wxb.tasks.classification.models import encoder

        shape = EncoderModel(**settings["shape"])
        return encoder.Classifier.from_pretrained(
            folder, labels=settings["labels"], settings=shape, four_bit=settings["four_bit"]
        )

    def size(self, *, trainable: bool = False) -> int:
        """Number of parameters, with the linear weights of n-grams, but not their IDF."""
        words = self.model.words
        return super().size(trainable=trainable) + (words.coef.size if words else 0)

    def logits(self, texts: Sequence[str], *, caption: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts; those of n-grams are added if the model has `words`."""
        logits = super().logits(texts, caption=caption)
        return logits + self.model.words.logits(texts) if self.model.words else logits


class EncoderMethod(Network):
    """A linear layer on a backbone."""

    experiment: EncoderExperiment  # type: ignore[assignment]  # which a regression may train
    PREDICTOR = EncoderClassifier

    def new_model(self, backbone: Path) -> Any:
        """The backbone with a random head; also sets the tokenizer's `model_max_length`.

        Raises WxbError if `pooling` is `cls` and the tokenizer puts no [CLS] first. The first token
        of a decoder, for example, has not seen the text.
        """
        from wxb.tasks.classification.models import encoder

        experiment = self.experiment
        leading, _ = special_tokens(self.tokenizer)
        if experiment.model.pooling == "cls" and self.tokenizer.cls_token_id not in leading[:1]:
            raise WxbError(
                f"model.pooling: found cls, but backbone {experiment.backbone!r} puts no [CLS]"
                " token first; expected mean"
            )
        # Plain transformers truncates texts to this length.
        self.tokenizer.model_max_length = experiment.encoding.max_length
        return encoder.Classifier.from_backbone(
            backbone, experiment.tuning, labels=self.labels, settings=experiment.model
        )

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """One item per text, as by default; for n-grams also its `text`."""
        items = super().items(features, targets, [])
        if not self.experiment.model.words:
            return items
        return [{**i, "text": record.input} for i, record in zip(items, records, strict=True)]

    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[Any, History]:
        """Fine-tune a model, or fit its linear layer by `fit_regression` if the settings say so.

        The regression reads pooled hidden states, divided by their mean length in training, and
        with `model.words` TF-IDF weights. The best factor in `states` counts; the history has all.
        """
        settings = self.experiment.training
        if not isinstance(settings, Regression):
            return super().train(
                backbone, train, valid, seed=seed, checkpoints=checkpoints, caption=caption
            )
        import torch

        model, words = self.new_model(backbone), self.experiment.model.words
        splits = {"train": train, "valid": valid}
        labels = {s: np.array([item["labels"] for item in items]) for s, items in splits.items()}
        states = {s: self._pooled_states(model, items, caption) for s, items in splits.items()}
        length = np.linalg.norm(states["train"], axis=1).mean()
        ngrams: dict[str, Any] = {}
        if words:
            texts = {split: [item["text"] for item in items] for split, items in splits.items()}
            model.words = Tfidf.from_texts(texts["train"], words)
            ngrams = {split: model.words.features(rows) for split, rows in texts.items()}
        fits: list[tuple[float, Fit]] = []
        history: History = []
        for factor in words.states if words else [1.0]:
            features: dict[str, Any] = {s: rows * factor / length for s, rows in states.items()}
            for split, rows in ngrams.items():
                features[split] = csr_array(hstack([csr_array(features[split]), rows]))
            fit = fit_regression(features, labels, settings, seed=seed, caption=caption)
            fits.append((factor, fit))
            before = history[-1]["step"] if history else 0
            for row in fit.history:
                step = before + row["step"]
                history.append({**row, "step": step, "epoch": step, "states": factor})
        factor, best = max(fits, key=lambda pair: pair[1].score)  # the first of equal ones
        size = states["train"].shape[1]
        with torch.no_grad():
            model.head.weight.copy_(torch.from_numpy(best.coef[:, :size] * factor / length))
            model.head.bias.copy_(torch.from_numpy(best.intercept))
        if model.words:
            model.words.coef, model.words.intercept = best.coef[:, size:], np.zeros(len(best.coef))
        return model, history

    def _pooled_states(self, model: Any, items: Items, caption: str) -> NDArray[np.float64]:
        """Pooled hidden states (N, C) of items; leaves the model in eval mode, on a GPU if any."""
        from torch.nn import Identity

        encoder = EncoderClassifier(model, self.tokenizer)
        inputs = [{"input_ids": item["input_ids"]} for item in items]
        head, model.head = model.head, Identity()
        rows = [output["logits"] for output in encoder.outputs(inputs, caption=caption)]
        model.head = head
        return np.array(rows, np.float64).reshape(len(rows), -1)

    def model_settings(self, targets: Path) -> dict[str, Any]:
        """The experiment's `model` settings, as `shape`."""
        return {"shape": self.experiment.model.model_dump(exclude_none=True)}
