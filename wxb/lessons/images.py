"""Lesson on a small convolutional network that names pictures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, f1_score
from transformers import set_seed

from wxb.core.params import Params
from wxb.core.params.lessons import ImagesLesson
from wxb.lessons import Lesson, pictures
from wxb.lessons.pictures import Images
from wxb.metrics import Metric
from wxb.metrics.intervals import Groups, Interval, Sums, intervals
from wxb.models.cnn import CNN
from wxb.reporting.charts.figures import Curve, Line, curves
from wxb.reporting.charts.formatting import Cell, Table, amount
from wxb.reporting.charts.parts import DEEPEST, Charts, Section
from wxb.training import checkpoints
from wxb.training.trainer import fit

BEST = Metric("accuracy", "accuracy")


def run(params: Params, name: str) -> Lesson:
    """Train the network, choose its best epoch on validation pictures, and test it.

    Killed runs resume from their last checkpoint.
    """
    settings: ImagesLesson = params.block("lessons", name)
    train, valid, test = read(settings, seed=params.seed)
    set_seed(params.seed)
    model = CNN(
        train.pixels.shape[1:],
        len(train.classes),
        widths=settings.widths,
        dropout=settings.dropout,
    )
    checkpoint_folder = checkpoints.folder(
        f"lesson@{name}",
        [settings, params.seed, params.threads, params.portable],
        [Path(settings.path)],
    )
    mean, std = channel_statistics(train)
    history = fit(
        model,
        settings.training,
        _items(train, mean, std),
        _items(valid, mean, std),
        collate=_collate,
        seed=params.seed,
        checkpoints=checkpoint_folder,
        caption=f"lesson@{name}",
        metric=BEST.key,
        compute_metrics=lambda predicted, labels: {BEST.key: float(np.mean(predicted == labels))},
        summarize=lambda logits, _: logits.argmax(-1),
    )
    pixels = torch.from_numpy((test.pixels - mean) / std)
    predicted = model.predict(pixels.to(model.classifier.weight.device)).cpu().numpy()
    shutil.rmtree(checkpoint_folder)
    return _lesson(settings, params, model, history, (train, valid, test), predicted)


def read(settings: ImagesLesson, *, seed: int) -> tuple[Images, Images, Images]:
    """Read the training, validation and test pictures, split as the settings say."""
    path, test = Path(settings.path), settings.split.test
    if test is None:
        rest, test_images = pictures.cifar(path)
    else:
        images = pictures.folder(path) if settings.source == "folder" else pictures.digits()
        rest, test_images = pictures.split(images, test, seed=seed)
    return (*pictures.split(rest, settings.split.valid / (1 - (test or 0)), seed=seed), test_images)


def channel_statistics(images: Images) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each channel (C, 1, 1); a deviation of 0 becomes 1."""
    mean = images.pixels.mean(axis=(0, 2, 3))[:, None, None]
    std = images.pixels.std(axis=(0, 2, 3))[:, None, None]
    return mean, np.where(std > 0, std, 1).astype(np.float32)


def accuracy(right: NDArray[np.bool_]) -> Interval:
    """The accuracy of pictures (N,), with its interval."""
    counts = {"correct": right.astype(np.int64), "pictures": np.ones(len(right), np.int64)}
    return intervals(Groups.from_records([counts]), _accuracy, [BEST])[BEST.key]


def _items(
    images: Images, mean: NDArray[np.float32], std: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """The training items of pictures, with standardized pixels."""
    scaled = (images.pixels - mean) / std
    return [
        {"pixels": pixels, "labels": label}
        for pixels, label in zip(scaled, images.labels, strict=True)
    ]


def _collate(items: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
    return {key: torch.from_numpy(np.stack([item[key] for item in items])) for key in items[0]}


def _lesson(
    settings: ImagesLesson,
    params: Params,
    model: CNN,
    history: Sequence[dict[str, float]],
    parts: tuple[Images, Images, Images],
    predicted: NDArray[np.int64],
) -> Lesson:
    train, valid, test = parts
    score = accuracy(predicted == test.labels)
    parameters = sum(p.numel() for p in model.parameters())
    most = int(np.bincount(train.labels).argmax())
    chance = float(np.mean(test.labels == most))
    return Lesson(
        metrics={
            "accuracy": score.value,
            "accuracy_low": score.low,
            "accuracy_high": score.high,
            "f1_macro": float(f1_score(test.labels, predicted, average="macro", zero_division=0)),
            "support": len(test),
            "parameters": parameters,
            "trainable_parameters": parameters,
        },
        answer=f"It classifies {score.value:.1%} of {len(test):,} test pictures correctly"
        f" (95% interval {score.low:.1%} to {score.high:.1%}). Always answering"
        f" “{train.classes[most]}” scores {chance:.1%}.",
        facts=[
            f"{len(train):,} training pictures",
            f"{len(valid):,} validation pictures",
            f"{len(test):,} test pictures",
            f"{len(train.classes)} classes",
            f"{amount(parameters)} parameters",
        ],
        sections=[_confusions(test, predicted), _training(history)],
    )


def _accuracy(sums: Sums) -> dict[str, NDArray[np.float64]]:
    """Accuracy (...) from the numbers of correct and of all pictures (...)."""
    return {"accuracy": sums["correct"] / sums["pictures"].clip(min=1)}


def _confusions(test: Images, predicted: NDArray[np.int64]) -> Section:
    counts = confusion_matrix(test.labels, predicted, labels=range(len(test.classes)))
    shades = (DEEPEST * counts / counts.sum(axis=1, keepdims=True).clip(min=1)).round().astype(int)
    rows = [
        [name, *(Cell(f"{n:,}", n, shade=int(shade)) for n, shade in zip(*row, strict=True))]
        for name, *row in zip(test.classes, counts.tolist(), shades, strict=True)
    ]
    return Section(
        "confusions",
        "Confusion matrix",
        [
            "Rows are gold classes, columns predicted ones. Darker cells have more pictures.",
            Table("Confusions", ["class", *test.classes], rows),
        ],
    )


def _training(history: Sequence[dict[str, float]]) -> Section:
    def curve(key: str) -> Curve:
        return [(int(row["step"]), row[key]) for row in history if key in row]

    losses = [
        Line("training", 0, curve("loss")),
        Line("validation", 0, curve("valid_loss"), True),
    ]
    charts = {
        "Loss": curves(losses, y_title="loss"),
        "Validation accuracy": curves(
            [Line("validation", 0, curve("valid_accuracy"))], y_title="accuracy"
        ),
    }
    return Section(
        "training",
        "Training",
        [
            "Dashed: on validation pictures, once an epoch. The final weights are those of the"
            " epoch with the best validation accuracy.",
            Charts(charts),
        ],
    )
