"""Pictures: reading, and stratified splits."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from wxb.core.errors import WxbError
from wxb.lessons.pictures import Images, cifar, folder, split


def draw(path, colour, size=(5, 4), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def test_cifar_is_a_byte_of_class_then_channels_rows_and_columns(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 2, 3, 32, 32), dtype=np.uint8)
    (tmp_path / "batches.meta.txt").write_text("cat\ndog\n\n")
    for name, batch in zip(("data_batch_1", "data_batch_2", "test_batch"), pixels, strict=True):
        rows = np.concatenate([np.array([[1], [0]], np.uint8), batch.reshape(2, -1)], axis=1)
        rows.tofile(tmp_path / f"{name}.bin")
    train, test = cifar(tmp_path)
    assert np.array_equal((train.pixels * 255).round(), pixels[:2].reshape(4, 3, 32, 32))
    assert np.array_equal((test.pixels * 255).round(), pixels[2])
    assert (train.labels.tolist(), test.classes) == ([1, 0, 1, 0], ["cat", "dog"])
    for damage in (lambda file: file.write_bytes(b"short"), Path.unlink):
        damage(tmp_path / "test_batch.bin")
        with pytest.raises(WxbError, match="expected the binary version of CIFAR-10"):
            cifar(tmp_path)


def test_a_folder_names_its_classes(tmp_path):
    draw(tmp_path / "red/a.png", (255, 0, 0))
    draw(tmp_path / "blue/b.JPG", (0, 0, 255))
    draw(tmp_path / "blue/c.png", 51, mode="L")
    (tmp_path / "blue/._c.png").touch()  # as macOS writes beside each file
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
