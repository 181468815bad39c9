"""The lesson on pictures: splits, statistics, and the results of a short training."""

from pathlib import Path

import numpy as np
import pytest

from tests import demo
from wxb.core.params import check
from wxb.lessons import images as lesson


def params(**changes):
    """The committed parameters with two epochs and changed settings of the lesson."""
    content = demo.content()
    content["lessons"]["images"].update(changes)
    content["lessons"]["images"]["training"]["epochs"] = 2
    return check(content)


@pytest.fixture(autouse=True)
def _temporary_working_folder(cwd):
    """Checkpoints are written to the working folder."""
    Path("images.py").touch()


def test_two_epochs_on_digits_are_accurate_and_deterministic():
    result = lesson.run(params(path="images.py"), "images")
    metrics = result.metrics
    assert metrics["accuracy_low"] < metrics["accuracy"] < metrics["accuracy_high"]
    assert metrics["accuracy_low"] > 0.6
    assert metrics["support"] == 360
    assert metrics["parameters"] == (9 + 1) * 32 + (32 * 9 + 1) * 64 + (64 * 4 + 1) * 10
    assert f"{metrics['accuracy']:.1%} of 360" in result.answer
    assert not list(Path(".wxb/checkpoints").glob("*"))
    assert lesson.run(params(path="images.py"), "images").metrics == metrics
    confusions, training = result.sections
    counts = np.array([[cell.value for cell in row[1:]] for row in confusions.blocks[1].rows])
    assert counts.sum() == 360
    assert np.trace(counts) == round(metrics["accuracy"] * 360)
    curve = training.blocks[1].charts["Validation accuracy"].data[0]
    assert len(curve.y) == 2


def test_split_sizes_are_shares_of_all_and_depend_on_the_seed():
    settings = params(path="images.py").lessons["images"]
    train, valid, test = lesson.read(settings, seed=1)
    assert (len(train), len(valid), len(test)) == (1257, 180, 360)
    assert np.array_equal(lesson.read(settings, seed=1)[2].pixels, test.pixels)
    assert not np.array_equal(lesson.read(settings, seed=2)[2].pixels, test.pixels)


def test_statistics_are_those_of_each_channel_and_never_divide_by_0():
    pixels = np.zeros((2, 2, 1, 2), np.float32)
    pixels[:, 0] = [[[0, 1]], [[0, 1]]]
    mean, std = lesson.channel_statistics(lesson.Images(pixels, np.zeros(2, np.int64), ["a"]))
    assert mean.ravel().tolist() == [0.5, 0]
    assert std.ravel().tolist() == [0.5, 1]
