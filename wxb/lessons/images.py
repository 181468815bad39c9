"""Pictures named by a small convolutional network: how many of them right, and which for which."""

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
from wxb.lessons import Lesson, Part, Table, pictures
from wxb.lessons.pictures import Images
from wxb.metrics import Metric
from wxb.metrics.bootstrap import Interval, intervals
from wxb.models.cnn import CNN
from wxb.reporting.charts.figures import Curve, Line, curves
from wxb.reporting.charts.formatting import amount
from wxb.reporting.charts.losses import evened
from wxb.training import checkpoints
from wxb.training.run import TrainingRun
from wxb.training.trainer import fit

BEST = Metric("accuracy", "accuracy")
PUBLISHED = (
    "The published series (day 9) reports an accuracy of 0.591 on CIFAR-10, for a small CNN after"
    " 20 epochs. This network is another one, and fewer pictures to train on count for much."
)


def run(params: Params, name: str) -> Lesson:
    """Train the network on one part of the pictures, pick its best epoch on another, and test."""
    settings: ImagesLesson = params.named("lessons", name)
    train, valid, test = read(settings, seed=params.seed)
    set_seed(params.seed)
    model = CNN(
        train.pixels.shape[1:],
        len(train.classes),
        widths=settings.widths,
        dropout=settings.dropout,
    )
    unfinished = checkpoints.folder(
        f"lesson@{name}",
        [settings, params.seed, params.threads, params.portable],
        [Path(settings.path)],
    )
    mean, spread = statistics(train)
    run = TrainingRun(
        settings.training,
        train=_items(train, mean, spread),
        valid=_items(valid, mean, spread),
        collate=_collate,
        compute_metrics=lambda predicted, labels: {BEST.key: float(np.mean(predicted == labels))},
        summarize=lambda logits, _: logits.argmax(-1),
        best=BEST,
        seed=params.seed,
        checkpoints=unfinished,
        label=f"lesson@{name}",
    )
    history = fit(model, run)
    pixels = torch.from_numpy((test.pixels - mean) / spread)
    predicted = model.predict(pixels.to(model.classifier.weight.device)).cpu().numpy()
    shutil.rmtree(unfinished)
    return _lesson(settings, params, model, history, (train, valid, test), predicted)


def read(settings: ImagesLesson, *, seed: int) -> tuple[Images, Images, Images]:
    """The pictures to train on, to validate on and to test on; `valid` and `test` share of all."""
    path, valid, test = Path(settings.path), settings.split.valid, settings.split.test
    if test is None:
        rest, tested = pictures.cifar(path)
        return (*pictures.divided(rest, valid, seed=seed), tested)
    every = pictures.digits() if settings.source == "digits" else pictures.folder(path)
    rest, tested = pictures.divided(every, test, seed=seed)
    return (*pictures.divided(rest, valid / (1 - test), seed=seed), tested)


def statistics(pictures: Images) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each channel (C, 1, 1), the latter never 0."""
    mean = pictures.pixels.mean(axis=(0, 2, 3))[:, None, None]
    spread = pictures.pixels.std(axis=(0, 2, 3))[:, None, None]
    return mean, np.where(spread > 0, spread, 1).astype(np.float32)


def accuracy(right: NDArray[np.bool_], *, resamples: int, seed: int) -> Interval:
    """The share of pictures (N,) named right, with its bootstrap interval.

    With one class wanted and one named for each picture, precision, recall and F1 are all of them
    this share.
    """
    one = np.ones(len(right), np.int64)
    counts = np.stack([right.astype(np.int64), one], axis=1)
    return intervals(counts, _share, resamples=resamples, seed=seed)["accuracy"]


def _items(
    pictures: Images, mean: NDArray[np.float32], spread: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """What the Trainer makes batches of."""
    scaled = (pictures.pixels - mean) / spread
    return [
        {"pixels": picture, "labels": label}
        for picture, label in zip(scaled, pictures.labels, strict=True)
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
    score = accuracy(predicted == test.labels, resamples=params.resamples, seed=params.seed)
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
        answer=f"It names {score.value:.1%} of {len(test):,} test pictures right"
        f" (95% interval {score.low:.1%} to {score.high:.1%}); who always says"
        f" “{train.classes[most]}” is right about {chance:.1%}.",
        facts=[
            f"{len(train):,} pictures to train on",
            f"{len(valid):,} to validate",
            f"{len(test):,} to test",
            f"{len(train.classes)} classes",
            f"{amount(parameters)} parameters",
            f"{params.resamples:,} bootstrap resamples",
        ],
        parts=[
            _confusion(test, predicted),
            _training(history),
            _network(settings, train, parameters),
        ],
    )


def _share(sums: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Accuracy (...) of numbers of right pictures and of all (..., 2)."""
    return {"accuracy": sums[..., 0] / sums[..., 1]}


def _confusion(test: Images, predicted: NDArray[np.int64]) -> Part:
    counts = confusion_matrix(test.labels, predicted, labels=range(len(test.classes)))
    shares = counts / counts.sum(axis=1, keepdims=True).clip(min=1)
    return Part(
        "Which is taken for which",
        ["A row for each class, and what its pictures were named; the deeper, the more of them."],
        tables={
            "": Table(
                ["class", *test.classes],
                [[name, *row] for name, row in zip(test.classes, counts.tolist(), strict=True)],
                shares.tolist(),
            )
        },
    )


def _training(history: Sequence[dict[str, float]]) -> Part:
    def curve(key: str) -> Curve:
        return [(int(row["step"]), row[key]) for row in history if key in row]

    losses = [
        Line("training", 0, evened(curve("loss"))),
        Line("validation", 0, curve("valid_loss"), True),
    ]
    return Part(
        "Training",
        [
            "Dashed: on validation pictures, once an epoch. The weights kept are those of the epoch"
            " with the best accuracy there; the test pictures took no part in that choice.",
        ],
        {
            "Loss": curves(losses, title="loss"),
            "Validation accuracy": curves(
                [Line("validation", 0, curve("valid_accuracy"))], title="accuracy"
            ),
        },
    )


def _network(settings: ImagesLesson, train: Images, parameters: int) -> Part:
    channels, height, width = train.pixels.shape[1:]
    rows: list[list[str | int]] = [["input", channels, height, width]]
    for number, size in enumerate(settings.widths, start=1):
        height, width = height // 2, width // 2
        rows.append([f"block {number}", size, height, width])
    return Part(
        "The network",
        [
            "A block is a 3 × 3 convolution, ReLU and 2 × 2 max-pooling; one linear layer over what"
            f" the last block gives names the class. {parameters:,} parameters in all.",
            *([PUBLISHED] if settings.source == "cifar-10" else []),
        ],
        tables={"Shapes": Table(["after", "channels", "height", "width"], rows)},
    )
