"""Read labelled pictures: scikit-learn's digits, the files of CIFAR-10, or a folder."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from wxb.core.errors import WxbError

SUFFIXES = (".png", ".jpg", ".jpeg")
CIFAR = (3, 32, 32)  # channels, height, width


class Images(NamedTuple):
    """Pictures of one size with values in [0, 1], and the indices of their classes."""

    pixels: NDArray[np.float32]  # (N, C, H, W)
    labels: NDArray[np.int64]  # (N,)
    classes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: NDArray[np.int64]) -> "Images":
        """The pictures of these rows."""
        return Images(self.pixels[rows], self.labels[rows], self.classes)


def digits() -> Images:
    """All 1,797 digits of scikit-learn with their classes, unsplit (N, 1, 8, 8), in 17 shades.

    Source: Alpaydin and Kaynak (1998), "Optical recognition of handwritten digits", UCI.
    """
    data = load_digits()
    pixels = (data.images / 16).astype(np.float32)[:, None]  # (N, 1, 8, 8)
    return Images(pixels, data.target.astype(np.int64), [str(name) for name in data.target_names])


def cifar(path: Path) -> tuple[Images, Images]:
    """The training and the test pictures (N, 3, 32, 32) of CIFAR-10, from its binary version.

    A picture is a byte for its class and 3,072 for its pixels. Raises WxbError for other files.

    Source: Krizhevsky (2009), "Learning multiple layers of features from tiny images"; the format:
    cs.toronto.edu/~kriz/cifar.html.
    """
    try:
        classes = (path / "batches.meta.txt").read_text(encoding="utf-8").split()
        parts = []
        for pattern in ("data_batch_*.bin", "test_batch.bin"):
            files = [np.fromfile(file, np.uint8) for file in sorted(path.glob(pattern))]
            rows = np.concatenate(files).reshape(-1, 1 + math.prod(CIFAR))
            pixels = rows[:, 1:].reshape(-1, *CIFAR).astype(np.float32) / np.float32(255)
            parts.append(Images(pixels, rows[:, 0].astype(np.int64), classes))
    except (OSError, ValueError) as error:
        raise WxbError(
            f"{path}: expected the binary version of CIFAR-10, data_batch_*.bin, test_batch.bin and"
            f" batches.meta.txt: {error}"
        ) from None
    return parts[0], parts[1]


def folder(path: Path) -> Images:
    """Read pictures <class>/<file>.png (or .jpg) of one size, and convert them to RGB (N, 3, H, W).

    Raises WxbError for fewer than two classes, and for an unreadable picture or another size.
    """
    files = sorted(file for file in path.glob("[!.]*/[!.]*") if file.suffix.lower() in SUFFIXES)
    classes = sorted({file.parent.name for file in files})
    if len(classes) < 2:
        raise WxbError(
            f"{path}: found pictures of {len(classes)} class(es); expected two or more, as"
            f" <class>/<file> with {', '.join(SUFFIXES)}"
        )
    pictures: list[NDArray[np.uint8]] = []  # (H, W, 3) each
    for file in files:
        try:
            with Image.open(file) as image:
                picture = np.asarray(image.convert("RGB"))
        except (UnidentifiedImageError, OSError) as error:
            raise WxbError(f"{file}: not a readable picture: {error}") from None
        pictures.append(picture)
        if picture.shape != pictures[0].shape:
            raise WxbError(
                f"{file}: found {picture.shape[1]} x {picture.shape[0]} pixels; resize all pictures"
                f" to one size, such as {pictures[0].shape[1]} x {pictures[0].shape[0]}"
            )
    pixels = np.stack(pictures).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    labels = np.array([classes.index(file.parent.name) for file in files])
    return Images(pixels, labels, classes)


def split(images: Images, share: float, *, seed: int) -> tuple[Images, Images]:
    """Split into the rest and a random, stratified share, each in order; WxbError if too few."""
    try:
        rest, held_out = train_test_split(
            np.arange(len(images)), test_size=share, random_state=seed, stratify=images.labels
        )
    except ValueError as error:
        raise WxbError(f"{len(images)} pictures cannot be split: {error}") from None
    return images.select(np.sort(rest)), images.select(np.sort(held_out))
