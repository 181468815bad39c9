"""Text classification by logistic regression on TF-IDF weights of n-grams.

scikit-learn fits one model for each regularization strength, and validation records choose among
them. Nothing here imports torch.
"""

from typing import Any

from wxb.core.params import experiments
from wxb.tasks.classification.models.predictor import FittedClassifier
from wxb.tasks.classification.models.regression import fit_regression
from wxb.tasks.classification.models.tfidf import Tfidf
from wxb.tasks.classification.params import Regression, TfidfModel
from wxb.tasks.methods import FittedMethod, History, Labels, Texts


class TfidfExperiment(experiments.Untuned):
    """Logistic regression on TF-IDF weights of n-grams."""

    model: TfidfModel = TfidfModel()
    training: Regression


class TfidfMethod(FittedMethod):
    """Logistic regression on TF-IDF weights."""

    experiment: TfidfExperiment
    PREDICTOR = FittedClassifier
    MODEL = Tfidf

    def fit(self, texts: Texts, labels: Labels, *, seed: int, caption: str) -> tuple[Any, History]:
        """The model with the best C, and the history; WxbError if all n-grams are too rare."""
        model = Tfidf.from_texts(texts["train"], self.experiment.model)
        features = {split: model.features(rows) for split, rows in texts.items()}
        fit = fit_regression(features, labels, self.experiment.training, seed=seed, caption=caption)
        model.coef, model.intercept = fit.coef, fit.intercept
        return model, fit.history
