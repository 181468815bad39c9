"""Pictures: reading, stratified splits, and pickles that cannot run code."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from wxb.core.errors import WxbError
from wxb.lessons.pictures import Images, cifar, folder, split, unpickle


def write_cifar(path, pictures, changes=None):
    """Write files in the layout of CIFAR-10: two training batches and a test batch."""
    path.mkdir()
    meta = {b"label_names": [b"cat", b"dog"]}
    (path / "batches.meta").write_bytes(pickle.dumps(meta))
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        labels = [index % 2 for index in range(len(pictures))]
        batch = {b"data": pictures.reshape(len(pictures), -1), b"labels": labels, **(changes or {})}
        (path / name).write_bytes(pickle.dumps(batch))
    return path


def pictures(count=4):
    return np.random.default_rng(0).integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)


def test_cifar_is_read_as_channels_rows_and_columns(tmp_path):
    expected = pictures()
    train, test = cifar(write_cifar(tmp_path / "cifar", expected))
    assert train.pixels.shape == (8, 3, 32, 32)
    assert np.array_equal((test.pixels * 255).round(), expected)
    assert train.labels.tolist() == [0, 1, 0, 1] * 2
    assert test.classes == ["cat", "dog"]


def test_missing_and_invalid_files_of_cifar_are_errors(tmp_path):
    with pytest.raises(WxbError, match="found no data_batch_1"):
        cifar(tmp_path)
    for number, changes in enumerate(({b"labels": [0, 1]}, {b"data": np.zeros((4, 3072))})):
        path = write_cifar(tmp_path / str(number), pictures(), changes)
        with pytest.raises(WxbError, match=r"data_batch_1: found data of shape \(4, 3072\)"):
            cifar(path)
    path = write_cifar(tmp_path / "cifar", pictures())
    (path / "test_batch").unlink()
    with pytest.raises(WxbError, match="test_batch"):
        cifar(path)


class Attack:
    """An object whose pickle runs a command when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_runs_nothing(tmp_path, protocol):
    trace = tmp_path / "trace"
    command = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    malicious = pickle.dumps({"data": Attack(eval, command)}, protocol)
    pickle.loads(malicious)
    assert trace.exists(), "the attack has no effect"
    trace.unlink()
    (tmp_path / "batch").write_bytes(malicious)
    with pytest.raises(WxbError, match=r"batch: not a pickle of arrays: found .*eval"):
        unpickle(tmp_path / "batch")
    assert not trace.exists()


@pytest.mark.parametrize("name", [b"numpy load", b"numpy.core.multiarray scalar"])
def test_only_names_of_arrays_are_allowed(tmp_path, name):
    (tmp_path / "batch").write_bytes(b"c" + name.replace(b" ", b"\n") + b"\n.")
    with pytest.raises(WxbError, match="not a pickle of arrays"):
        unpickle(tmp_path / "batch")


def draw(path, colour, size=(5, 4), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def test_a_folder_names_its_classes(tmp_path):
    draw(tmp_path / "red/a.png", (255, 0, 0))
    draw(tmp_path / "blue/b.JPG", (0, 0, 255))
    draw(tmp_path / "blue/c.png", 51, mode="L")
    (tmp_path / "blue/notes.txt").write_text("no picture")
    images = folder(tmp_path)
    assert images.classes == ["blue", "red"]
    assert images.labels.tolist() == [0, 0, 1]
    assert images.pixels.shape == (3, 3, 4, 5)
    assert images.pixels[2, :, 0, 0].tolist() == [1, 0, 0]
    assert images.pixels[1].tolist() == np.full((3, 4, 5), np.float32(0.2)).tolist()


def test_a_folder_that_cannot_serve_says_why(tmp_path):
    with pytest.raises(WxbError, match=r"found pictures of 0 class\(es\)"):
        folder(tmp_path)
    draw(tmp_path / "red/a.png", 0)
    with pytest.raises(WxbError, match="expected two or more"):
        folder(tmp_path)
    draw(tmp_path / "blue/a.png", 0, size=(6, 4))
    with pytest.raises(WxbError, match=r"red/a.png: found 5 x 4 pixels"):
        folder(tmp_path)
    (tmp_path / "blue/a.png").write_bytes(b"no picture")
    with pytest.raises(WxbError, match=r"blue/a.png: not a readable picture"):
        folder(tmp_path)


@given(
    counts=st.lists(st.integers(5, 30), min_size=2, max_size=5),
    share=st.sampled_from([0.2, 0.5]),
    seed=st.integers(0, 1000),
)
@example(counts=[6, 6, 29], share=0.2, seed=0)
def test_a_split_is_complete_and_stratified(counts, share, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    pixels = np.arange(len(labels), dtype=np.float32).reshape(-1, 1, 1, 1)
    images = Images(pixels, labels, [str(label) for label in range(len(counts))])
    rest, held_out = split(images, share, seed=seed)
    both = np.concatenate([rest.pixels, held_out.pixels]).ravel()
    assert sorted(both) == list(range(len(labels)))
    assert np.array_equal(labels[held_out.pixels.ravel().astype(int)], held_out.labels)
    assert len(held_out) == np.ceil(share * len(labels))
    for label, count in enumerate(counts):
        proportion = len(held_out) * count / len(labels)  # the total is rounded up first
        assert abs((held_out.labels == label).sum() - proportion) <= 1
    again = split(images, share, seed=seed)
    assert np.array_equal(again[1].pixels, held_out.pixels)


def test_too_few_pictures_of_a_class_cannot_be_split():
    images = Images(np.zeros((5, 1, 1, 1), np.float32), np.array([0, 0, 0, 0, 1]), ["a", "b"])
    with pytest.raises(WxbError, match="5 pictures cannot be split"):
        split(images, 0.4, seed=0)
