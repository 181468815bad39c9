"""Logistic regression by scikit-learn, whose strength validation records choose."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.progress import track
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.classification.models.predictor import cross_entropy
from wxb.tasks.classification.params import Regression
from wxb.tasks.methods import History, Labels


class Fit(NamedTuple):
    """One regression of several, and the history of all."""

    score: float
    coef: NDArray[np.float64]  # (K, F)
    intercept: NDArray[np.float64]  # (K,)
    history: History


def fit_regression(
    features: Mapping[str, Any], labels: Labels, settings: Regression, *, seed: int, caption: str
) -> Fit:
    """Fit a logistic regression with each C; returns the best.

    `features` (N, F) and `labels` (N,) are of the splits `train` and `valid`. The score is accuracy
    on `valid` without IGNORED labels, or with `folds` that of cross-validation on `train`, in no
    more folds than the largest class has records. Of equal scores, the smallest C is best. The
    printed history has a row for each C. Its steps and epochs add up the solver's iterations.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    known = labels["valid"] != IGNORED
    sizes = np.unique(labels["train"], return_counts=True)[1]
    # A fold needs a record of a class to predict it.
    folds = min(settings.folds or 0, int(sizes.max()))
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed) if folds > 1 else None
    fits: list[Fit] = []
    history: History = []
    steps = 0
    options = settings.model_dump(include={"class_weight", "max_iter", "tol"})
    for strength in track(sorted(settings.C), caption, len(settings.C), unit="C"):
        solver = LogisticRegression(C=strength, random_state=seed, **options)
        solver.fit(features["train"], labels["train"])
        coef, intercept = weights_per_class(solver.coef_), weights_per_class(solver.intercept_)
        logits = {split: rows @ coef.T + intercept for split, rows in features.items()}
        is_correct = logits["valid"].argmax(-1) == labels["valid"]
        score = accuracy = float(is_correct[known].mean())
        further = {}
        if splitter:
            data = features["train"], labels["train"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes with fewer records than folds
                by_fold = cross_val_score(solver, *data, cv=splitter, scoring="accuracy")
            score = float(np.nan_to_num(by_fold).mean())  # nan: a fold without a class
            further = {"folds_accuracy": score}
        steps += int(solver.n_iter_.max())
        row = {
            "step": steps,
            "epoch": steps,
            "C": strength,
            "loss": cross_entropy(logits["train"], labels["train"]),
            "valid_loss": cross_entropy(logits["valid"][known], labels["valid"][known]),
            "valid_accuracy": accuracy,
            **further,
        }
        print(row, flush=True)
        history.append(row)
        fits.append(Fit(score, coef, intercept, history))
    return max(fits, key=lambda fit: fit.score)  # the first of equal ones


def weights_per_class(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (K, ...) by class; scikit-learn's (1, ...) of two classes become -w/2 and w/2."""
    return values if len(values) > 1 else np.concatenate([-values / 2, values / 2])
