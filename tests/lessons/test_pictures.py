"""Pictures: reading, stratified splits, and pickles that cannot run code."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from wxb.core.errors import WxbError
from wxb.lessons.pictures import Images, cifar, digits, folder, split, unpickle

CIFAR = Path(__file__).parents[2] / "../shared/data/images/cifar-10-batches-py"


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


def test_digits_have_values_from_0_to_1():
    images = digits()
    assert images.pixels.shape == (1797, 1, 8, 8)
    assert (images.pixels.min(), images.pixels.max()) == (0, 1)
    assert images.classes == [*"0123456789"]
    assert np.bincount(images.labels).min() > 170


def test_cifar_is_read_as_channels_rows_and_columns(tmp_path):
    expected = pictures()
    train, test = cifar(write_cifar(tmp_path / "cifar", expected))
    assert train.pixels.shape == (8, 3, 32, 32)
    assert np.array_equal((test.pixels * 255).round(), expected)
    assert train.labels.tolist() == [0, 1, 0, 1] * 2
    assert test.classes == ["cat", "dog"]


def test_files_of_cifar_are_read():
    if not CIFAR.exists():
        pytest.skip(f"{CIFAR.name} is not in ../shared/data/images")
    train, test = cifar(CIFAR)
    assert train.pixels.shape == (2000, 3, 32, 32)
    assert np.bincount(train.labels).tolist() == [200] * 10
    assert np.bincount(test.labels).tolist() == [50] * 10
    assert test.classes[:3] == ["airplane", "automobile", "bird"]
    assert 0.4 < train.pixels.mean() < 0.55
    # Neighbouring pixels of a photograph are similar, unlike those of other photographs.
    steps = np.abs(np.diff(train.pixels, axis=3)).mean()
    assert steps < 0.3 * np.abs(train.pixels - train.pixels[::-1]).mean()


@pytest.mark.parametrize(
    "changes",
    [
        {b"labels": [0, 1, 2, 0]},
        {b"labels": [0, 1]},
        {b"labels": ["cat"] * 4},
        {b"data": [1, 2, 3]},
        {b"data": np.zeros((4, 3072))},
        {b"data": np.zeros((4, 7), np.uint8)},
    ],
    ids=["unknown class", "too few labels", "text", "list", "floats", "small"],
)
def test_invalid_batches_are_errors(tmp_path, changes):
    path = write_cifar(tmp_path / "cifar", pictures(), changes)
    with pytest.raises(WxbError, match=r"data_batch_1: found .*expected `data`, 3072 bytes"):
        cifar(path)


def test_missing_files_of_cifar_are_errors(tmp_path):
    with pytest.raises(WxbError, match="found no data_batch_1"):
        cifar(tmp_path)
    path = write_cifar(tmp_path / "cifar", pictures())
    (path / "test_batch").unlink()
    with pytest.raises(WxbError, match="test_batch does not exist"):
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


@pytest.mark.parametrize(
    "name", [b"os system", b"numpy load", b"numpy.core.multiarray scalar", b"builtins getattr"]
)
def test_only_names_of_arrays_are_allowed(tmp_path, name):
    (tmp_path / "batch").write_bytes(b"c" + name.replace(b" ", b"\n") + b"\n.")
    with pytest.raises(WxbError, match="a pickle may run any code"):
        unpickle(tmp_path / "batch")


@given(st.binary(max_size=60).filter(lambda content: not content.startswith(b"}.")))
def test_invalid_pickles_are_errors(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("pickles") / "batch"
    path.write_bytes(content)
    with pytest.raises(WxbError, match=r"batch: (not a pickle|found a)"):
        unpickle(path)


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_are_read_unchanged(tmp_path, protocol):
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    content = {"data": array, "n": 3, "more": [1.5, None, "é"]}
    (tmp_path / "batch").write_bytes(pickle.dumps(content, protocol))
    read = unpickle(tmp_path / "batch")
    assert np.array_equal(read["data"], array)
    assert read["more"] == [1.5, None, "é"]


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
    with pytest.raises(WxbError, match=r"red/a.png: found 5 x 4 pixels; expected 6 x 4"):
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
