"""Lesson on a small convolutional network that names pictures."""

import shutil
from collections.abc import Sequence
from functools import partial
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
from wxb.reporting.figures import Curve, Line, curves
from wxb.reporting.formatting import amount
from wxb.reporting.parts import Charts, Section, confusion_table
from wxb.training import checkpoints
from wxb.training.batches import collate
from wxb.training.trainer import fit

Floats = NDArray[np.float32]
BEST = Metric("accuracy", "accuracy")


def run(params: Params, name: str) -> Lesson:
    """Train the network (killed runs resume), choose its best epoch on `valid`, and test it."""
    settings: ImagesLesson = params.block("lessons", name)
    train, valid, test = read(settings, seed=params.seed)
    set_seed(params.seed)
    size, classes = train.pixels.shape[1:], train.classes
    model = CNN(size, len(classes), widths=settings.widths, dropout=settings.dropout)
    blocks = settings.model_dump(), params.seed, params.threads, params.portable
    checkpoint_folder = checkpoints.folder(f"lesson@{name}", blocks, [Path(settings.path)])
    mean, std = channel_statistics(train)
    history = fit(
        model,
        settings.training,
        _items(train, mean, std),
        _items(valid, mean, std),
        collate=partial(collate, pad=0),
        seed=params.seed,
        checkpoints=checkpoint_folder,
        caption=f"lesson@{name}",
        metric=BEST.key,
        compute_metrics=lambda r: {BEST.key: float(np.mean(r.predictions == r.label_ids))},
        summarize=lambda logits, _: logits.argmax(-1),
    )
    pixels = torch.from_numpy((test.pixels - mean) / std)
    predicted = model.predict(pixels.to(model.classifier.weight.device)).cpu().numpy()
    shutil.rmtree(checkpoint_folder)
    score = accuracy(predicted == test.labels)
    parameters = sum(p.numel() for p in model.parameters())
    most = int(np.bincount(train.labels).argmax())
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
        f" “{classes[most]}” scores {np.mean(test.labels == most):.1%}.",
        facts=[
            f"{len(train):,} training pictures",
            f"{len(valid):,} validation pictures",
            f"{len(test):,} test pictures",
            f"{len(classes)} classes",
            f"{amount(parameters)} parameters",
        ],
        sections=[_confusion_matrix(test, predicted), _training(history)],
    )


def read(settings: ImagesLesson, *, seed: int) -> tuple[Images, Images, Images]:
    """Read train, valid and test: of CIFAR-10 if `split.test` is None, else a folder or digits."""
    path, test = Path(settings.path), settings.split.test
    if test is None:
        rest, test_images = pictures.cifar(path)
    else:
        images = pictures.folder(path) if settings.source == "folder" else pictures.digits()
        rest, test_images = pictures.split(images, test, seed=seed)
    return (*pictures.split(rest, settings.split.valid / (1 - (test or 0)), seed=seed), test_images)


def channel_statistics(images: Images) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each channel (C, 1, 1); a deviation of 0 becomes 1."""
    mean = images.pixels.mean(axis=(0, 2, 3))[:, None, None]
    std = images.pixels.std(axis=(0, 2, 3))[:, None, None]
    return mean, np.where(std > 0, std, 1).astype(np.float32)


def accuracy(right: NDArray[np.bool_]) -> Interval:
    """The accuracy of pictures (N,), with the interval of `metrics.intervals`."""
    counts = {"correct": right.astype(np.int64), "pictures": np.ones(len(right), np.int64)}

    def scores(sums: Sums) -> dict[str, NDArray[np.float64]]:
        return {BEST.key: sums["correct"] / sums["pictures"].clip(min=1)}

    return intervals(Groups.from_records([counts]), scores, [BEST])[BEST.key]


def _items(images: Images, mean: Floats, std: Floats) -> list[dict[str, Any]]:
    """The normalized `pixels` (C, H, W) and the class, as `labels`, of each image."""
    pairs = zip((images.pixels - mean) / std, images.labels, strict=True)
    return [{"pixels": pixels, "labels": label} for pixels, label in pairs]


def _confusion_matrix(test: Images, predicted: NDArray[np.int64]) -> Section:
    matrix = confusion_matrix(test.labels, predicted, labels=range(len(test.classes))).tolist()
    rows = (dict(zip(test.classes, counts, strict=True)) for counts in matrix)
    table = confusion_table("class", dict(zip(test.classes, rows, strict=True)))
    note = "Rows are gold classes, columns predicted ones. Darker cells have more pictures."
    return Section("confusions", "Confusion matrix", [note, table])


def _training(history: Sequence[dict[str, float]]) -> Section:  # curves of loss and accuracy
    def curve(key: str) -> Curve:
        return [(int(row["step"]), row[key]) for row in history if key in row]

    validation = Line("validation", 0, curve("valid_loss"), True)
    scores = Line("validation", 0, curve("valid_accuracy"))
    charts = {
        "Loss": curves([Line("training", 0, curve("loss")), validation], y_title="loss"),
        "Validation accuracy": curves([scores], y_title="accuracy"),
    }
    note = (
        "Dashed: on validation pictures, once an epoch. The final weights are those of the epoch"
        " with the best validation accuracy."
    )
    return Section("training", "Training", [note, Charts(charts)])
